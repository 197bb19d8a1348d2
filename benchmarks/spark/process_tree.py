"""What a process costs with all that it has started: Spark's Java and its Python workers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from benchmarks.measure import Cost

__all__ = ["tree_cost_of", "tree_ticks"]

T = TypeVar("T")
_PARENT, _TIMES = 1, slice(11, 13)  # fields of /proc/<pid>/stat, behind the name


def tree_cost_of(run: Callable[[], T]) -> tuple[Cost, T]:
    """What one run takes, over all processes below this one, and what it returns.

    Seconds of the processor come in steps of 10 ms, and are 0 on systems other than Linux. A
    process that ends within the run is not counted: Spark ends workers that have long been idle,
    and what they took before is not always added to those that started them.
    """
    before, wall = tree_ticks(), time.perf_counter()
    result = run()
    wall = time.perf_counter() - wall
    ticks = sum(taken - before.get(process, 0) for process, taken in tree_ticks().items())
    return Cost(ticks / os.sysconf("SC_CLK_TCK"), wall), result


def tree_ticks() -> dict[int, int]:
    """The time of the processor that each process has taken, from this one down."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for process, fields in _processes():
        ticks[process] = sum(map(int, fields[_TIMES]))
        children.setdefault(int(fields[_PARENT]), []).append(process)
    waiting, found = [os.getpid()], {}
    while waiting:
        process = waiting.pop()
        found[process] = ticks.get(process, 0)
        waiting += children.get(process, [])
    return found


def _processes() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            yield int(folder.name), (folder / "stat").read_text().rpartition(")")[2].split()
