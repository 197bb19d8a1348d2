"""Progress of work on many files: reported to a function, shown as a bar, or printed as lines."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TextIO, TypeAlias

from alcid._text import count_text

Progress: TypeAlias = Callable[[int, int, int], None]
"""Is called after each file with the files done, the files to do, and the rows so far."""

ReportProgress: TypeAlias = Callable[[int, int], None]
"""What workers call, in any thread: so many more files are done, and so many more rows."""


def no_progress(_files: int, _rows: int) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is done, and with how many files.

    >>> str(Work("indexing", 40))
    'indexing (40 files)'
    """

    action: str
    files: int

    def __str__(self) -> str:
        return f"{self.action} ({count_text(self.files, 'file')})" if self.files else self.action


_work: ContextVar[Work | None] = ContextVar("work", default=None)


def current_work() -> Work | None:
    """The work whose progress is tracked now, for engines that show what runs."""
    return _work.get()


@contextmanager
def track_progress(
    progress: Progress | bool | None, action: str, files: int
) -> Iterator[ReportProgress]:
    """Add up what workers report, and show it.

    Args:
        progress: A function; True for a bar on the standard error stream, False for nothing; None
            for a bar where that is a terminal.
        action: What is done, as `indexing`.
        files: How many files there are.
    """
    shown = sys.stderr.isatty() if progress is None else progress
    token = _work.set(Work(action, files))
    try:
        if not shown:
            yield no_progress
        elif isinstance(shown, ProgressLines):
            with shown.start(action) as lines:
                yield _adding_up(lines, files)
        elif callable(shown):
            yield _adding_up(shown, files)
        else:
            with _bar(action, files) as bar:
                yield _adding_up(bar, files)
    finally:
        _work.reset(token)


def _adding_up(progress: Progress, files: int) -> ReportProgress:
    done = rows = 0
    lock = threading.Lock()

    def report(more_files: int, more_rows: int) -> None:
        nonlocal done, rows
        with lock:
            done = min(done + more_files, files)  # a task that is done twice reports twice
            rows += more_rows
            progress(done, files, rows)

    return report


class ProgressLines:
    """A `Progress` for logs: a line at most every few seconds, and none for short work.

    >>> lines = ProgressLines(sys.stdout, every=0)
    >>> with track_progress(lines, "indexing", 400) as report:
    ...     report(120, 1_200_000)
    indexing: 120/400 files, 1,200,000 rows, 0 s
    """

    def __init__(self, stream: TextIO | None = None, *, every: float = 10.0) -> None:
        """Write to a stream, by default standard error, every `every` seconds at most."""
        self._stream, self._every = stream, every
        self._reset("working")

    def _reset(self, action: str) -> None:
        self._action, self._begin = action, time.monotonic()
        self._printed_at: float | None = None
        self._last = self._printed = ""

    def __call__(self, done: int, files: int, rows: int) -> None:
        """Print a line if the last one is long ago."""
        now = time.monotonic()
        self._last = f"{self._action}: {done:,}/{files:,} files, {rows:,} rows"
        if now - (self._printed_at or self._begin) >= self._every:
            self._print(now)

    @contextmanager
    def start(self, action: str) -> Iterator[ProgressLines]:
        """Begin other work; at its end its last state is printed, if any was before."""
        self._reset(action)
        yield self
        if self._printed_at is not None and self._printed != self._last:
            self._print(time.monotonic())

    def _print(self, now: float) -> None:
        stream = sys.stderr if self._stream is None else self._stream
        stream.write(f"{self._last}, {now - self._begin:.0f} s\n")
        stream.flush()
        self._printed_at, self._printed = now, self._last


@contextmanager
def _bar(action: str, files: int) -> Iterator[Progress]:
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
        task = bar.add_task(action, total=files, rate="")

        def show(done: int, _files: int, rows: int) -> None:
            elapsed = bar.tasks[task].elapsed or 0.0
            rate = f"{rows / elapsed:,.0f} rows/s" if elapsed else ""
            bar.update(task, completed=done, rate=rate)

        yield show
