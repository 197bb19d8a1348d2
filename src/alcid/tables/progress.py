"""How far work on many files is: told to a function, or shown as a bar."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from alcid.tables.engine import Tell

__all__ = ["Progress", "telling"]

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
    elif callable(shown):
        yield _Teller(shown, files)
    else:
        with _bar(doing, files) as bar:
            yield _Teller(bar, files)


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
