"""The memory of a process with all that it has started, while it does something."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.spark.process_tree import tree_ticks

__all__ = ["Peak", "watch_memory"]

_PAUSE = 0.1
_MORE = 1.02


class Peak:
    """The most that was seen, in bytes; 0 where the system does not say."""

    def __init__(self) -> None:
        """Begin with what is held now."""
        self.bytes = self._rough = 0
        self.look()

    def look(self) -> None:
        """Look again; the exact figure takes the system long, so it is asked for when it grows."""
        processes = list(tree_ticks())
        rough = sum(map(_roughly, processes))
        if rough > self._rough * _MORE:
            self._rough = rough
            self.bytes = max(self.bytes, sum(map(_exactly, processes)))


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


def _roughly(process: int) -> int:
    """Pages that are not of files, in bytes; those that processes share count for each."""
    with suppress(OSError):  # it has ended meanwhile
        _, resident, shared, *_ = Path(f"/proc/{process}/statm").read_text("ascii").split()
        return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _exactly(process: int) -> int:
    held = 0
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text("ascii").splitlines():
            if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                held += 1024 * int(line.split()[1])
    return held
