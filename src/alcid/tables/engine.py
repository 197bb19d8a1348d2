"""Where work on many files is done: in this process, or on Spark.

Work is given in shares. One worker does a share from its first item to its last, publishes what it
makes under names of its own, and returns what is to be known of it. So a worker that is killed and
one that does a share for the second time do no harm: only what is returned counts.

How far work on many files is: told to a function, shown as a bar, or printed as lines.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TextIO, TypeAlias, TypeVar

import numpy as np

from alcid._arrays import Int64Array
from alcid.errors import UnsupportedError
from alcid.scan import Scan, ScanEngine, ScanPlan
from alcid.tables.reports import AppendReport, UpsertReport

__all__ = ["Engine", "Progress", "ProgressLines", "Share", "Tell", "Threads", "Work", "telling"]

R = TypeVar("R")


Tell: TypeAlias = Callable[[int, int], None]
"""Is told how many more files are done, and how many more rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """What one worker does."""

    items: Int64Array
    """The places of its items, ascending."""
    threads: int
    """How many threads it may use."""


Work: TypeAlias = Callable[[Share, Tell], R]
"""It is pickled with all that it holds, and so is what it returns."""


class Engine(ScanEngine, Protocol):
    """What does the work on a table, and reads its rows."""

    def map(self, work: Work[R], sizes: Int64Array, tell: Tell) -> list[R]:
        """Do work on all items, and return what each share gave, in their order.

        Args:
            work: What to do with a share.
            sizes: The bytes of each item.
            tell: Is told how far it is.
        """

    def append(self, table: Any, rows: Any, /, **how: Any) -> AppendReport:
        """Write the rows of a DataFrame as files of a table; see its own `append`."""

    def upsert(self, table: Any, rows: Any, plan: Any, /) -> UpsertReport:
        """Let the rows of a DataFrame replace those of their keys; see `PaimonTable.upsert`."""

    def streaming_query(self, rows: Any, /) -> str | None:
        """The id of the streaming query that rows come from, the same as long as its checkpoint is.

        None if there is none, or it is not known.
        """


class Threads:
    """This process, with as many threads as there are cores."""

    has_spark = False

    def __init__(self, like: Engine | None = None) -> None:
        """Work with the settings of another engine; by default with those of `alcid.options`."""
        self._like = like

    def settings(self) -> AbstractContextManager[None]:
        """The time zone and the case rule."""
        return nullcontext() if self._like is None else self._like.settings()

    def map(self, work: Work[R], sizes: Int64Array, tell: Tell) -> list[R]:
        """Do all in one share."""
        return [work(Share(np.arange(len(sizes)), os.cpu_count() or 1), tell)]

    def to_spark(self, scan: Scan) -> Any:
        """There is no Spark.

        Raises:
            UnsupportedError: Always.
        """
        raise _no_spark(scan)

    def append(self, table: Any, _rows: Any, /, **_how: Any) -> AppendReport:
        """There is no Spark.

        Raises:
            UnsupportedError: Always.
        """
        raise _no_spark(table)

    def upsert(self, table: Any, _rows: Any, _plan: Any, /) -> UpsertReport:
        """There is no Spark.

        Raises:
            UnsupportedError: Always.
        """
        raise _no_spark(table)

    def streaming_query(self, _rows: Any, /) -> str | None:
        """There is none."""
        return None

    def count(self, _plan: ScanPlan) -> int | None:
        """Reading is the scan's own work."""
        return None

    def note(self, _scan: Scan) -> str | None:
        """Nothing to say."""
        return None


def _no_spark(what: object) -> UnsupportedError:
    return UnsupportedError(
        f"{what}: needs Spark, open the table with a session, as alcid.session() gives one"
    )


Progress: TypeAlias = Callable[[int, int, int], None]
"""Is told, after each file: how many are done, how many there are to do, the rows so far."""


@contextmanager
def telling(progress: Progress | bool | None, doing: str, files: int) -> Iterator[Tell]:
    """What workers tell how far they are.

    Args:
        progress: A function; True for a bar on the standard error stream, False for nothing; None
            for a bar where that is a terminal.
        doing: What is done, as `indexing`.
        files: How many files there are.
    """
    shown = sys.stderr.isatty() if progress is None else progress
    if not shown:
        yield lambda *_: None
    elif isinstance(shown, ProgressLines):
        with shown.named(doing) as lines:
            yield _Teller(lines, files)
    elif callable(shown):
        yield _Teller(shown, files)
    else:
        with _bar(doing, files) as bar:
            yield _Teller(bar, files)


class ProgressLines:
    """A `Progress` for logs: a line every so often, none of what takes less.

    >>> lines = ProgressLines(sys.stdout, every=0)
    >>> with telling(lines, "indexing", 400) as tell:
    ...     tell(120, 1_200_000)
    indexing: 120/400 files, 1,200,000 rows, 0 s
    """

    def __init__(self, stream: TextIO | None = None, *, every: float = 10.0) -> None:
        """Write to a stream, by default standard error, each `every` seconds at most."""
        self._stream, self._every = stream, every
        self._start("working")

    def _start(self, doing: str) -> None:
        self._doing, self._begin = doing, time.monotonic()
        self._printed_at: float | None = None
        self._last = self._printed = ""

    def __call__(self, done: int, files: int, rows: int) -> None:
        """Take note of how far it is, and say so if that was not said for long."""
        now = time.monotonic()
        self._last = f"{self._doing}: {done:,}/{files:,} files, {rows:,} rows"
        if now - (self._printed_at or self._begin) >= self._every:
            self._print(now)

    @contextmanager
    def named(self, doing: str) -> Iterator[ProgressLines]:
        """Begin with other work; at its end its last state is printed, if any was before."""
        self._start(doing)
        yield self
        if self._printed_at is not None and self._printed != self._last:
            self._print(time.monotonic())

    def _print(self, now: float) -> None:
        stream = sys.stderr if self._stream is None else self._stream
        stream.write(f"{self._last}, {now - self._begin:.0f} s\n")
        stream.flush()
        self._printed_at, self._printed = now, self._last


class _Teller:
    """Adds up what workers tell, in any thread."""

    def __init__(self, progress: Progress, files: int) -> None:
        self._progress, self._files = progress, files
        self._done = self._rows = 0
        self._lock = threading.Lock()

    def __call__(self, files: int, rows: int) -> None:
        with self._lock:
            # A share that is done twice is told twice.
            self._done = min(self._done + files, self._files)
            self._rows += rows
            self._progress(self._done, self._files, self._rows)


@contextmanager
def _bar(doing: str, files: int) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,}/{task.total:,} files"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(doing, total=files, rate="")

        def show(done: int, _files: int, rows: int) -> None:
            elapsed = bar.tasks[task].elapsed or 0.0
            rate = f"{rows / elapsed:,.0f} rows/s" if elapsed else ""
            bar.update(task, completed=done, rate=rate)

        yield show
