"""How far work on many files is: told to a function, shown as a bar, or printed as lines."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeAlias

from alcid.tables.engine import Tell

__all__ = ["Progress", "ProgressLines", "telling"]

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
