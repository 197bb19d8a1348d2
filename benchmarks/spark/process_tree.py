"""What a process costs with all that it has started: Spark's Java and its Python workers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from benchmarks.measure import Cost

__all__ = ["tree_cost_of", "tree_cpu"]

T = TypeVar("T")
_PARENT, _TIMES = 1, slice(11, 15)  # fields of /proc/<pid>/stat, behind the name


def tree_cost_of(run: Callable[[], T]) -> tuple[Cost, T]:
    """What one run takes, over all processes below this one, and what it returns."""
    cpu, wall = tree_cpu(), time.perf_counter()
    result = run()
    wall = time.perf_counter() - wall
    return Cost(tree_cpu() - cpu, wall), result


def tree_cpu() -> float:
    """Seconds of the processor, in steps of 10 ms; 0 on systems other than Linux.

    Processes that have ended are counted with the one that started them.
    """
    times: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for process, fields in _processes():
        times[process] = sum(map(int, fields[_TIMES]))
        children.setdefault(int(fields[_PARENT]), []).append(process)
    total, waiting = 0, [os.getpid()]
    while waiting:
        process = waiting.pop()
        total += times.get(process, 0)
        waiting += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")


def _processes() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            yield int(folder.name), (folder / "stat").read_text().rpartition(")")[2].split()
