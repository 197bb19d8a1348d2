"""The memory of a process with all that it has started, while it does something."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.spark.process_tree import _tree_ticks

__all__ = ["Peak", "watch_memory"]

_PAUSE = 0.05


class Peak:
    """The most that was seen, in bytes; 0 where the system does not say."""

    def __init__(self) -> None:
        """Begin with what is held now."""
        self.bytes = _held()

    def look(self) -> None:
        """Look again."""
        self.bytes = max(self.bytes, _held())


@contextmanager
def watch_memory() -> Iterator[Peak]:
    """Look at it from a thread, again and again.

    Pages that processes share count once, and pages of files not at all: the system takes those
    back when it needs them. Java keeps memory that it has once had.
    """
    peak, ended = Peak(), threading.Event()

    def run() -> None:
        while not ended.wait(_PAUSE):
            peak.look()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()
        peak.look()


def _held() -> int:
    return sum(map(_held_by, _tree_ticks()))


def _held_by(process: int) -> int:
    held = 0
    with suppress(OSError):  # it has ended meanwhile
        for line in Path(f"/proc/{process}/smaps_rollup").read_text("ascii").splitlines():
            if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                held += 1024 * int(line.split()[1])
    return held
