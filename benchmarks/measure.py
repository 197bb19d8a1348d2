"""Clocks, the best of several runs on a machine that may be busy with other things; memory."""

from __future__ import annotations

import ctypes
import gc
import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

__all__ = ["Cost", "best", "cost_of", "fastest", "machine_facts", "memory_in_use"]

T = TypeVar("T")
_PACKAGES = ("mmh3", "numpy", "pyarrow", "pyroaring", "xxhash")


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one run: of the processor, over all threads, and of the clock on the wall."""

    cpu: float
    wall: float


def cost_of(run: Callable[[], T]) -> tuple[Cost, T]:
    """What one run takes, and what it returns."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall), result


def best(costs: Iterable[Cost]) -> Cost:
    """The least of each clock: what else ran on the machine only ever adds."""
    seen = list(costs)
    return Cost(min(cost.cpu for cost in seen), min(cost.wall for cost in seen))


def fastest(run: Callable[[], T], repeats: int) -> tuple[float, T]:
    """The shortest run in microseconds of the wall clock, and what the last one returned."""
    timed = [_timed(run) for _ in range(repeats)]
    return min(micros for micros, _ in timed), timed[-1][1]


def _timed(run: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter_ns()
    result = run()
    return (time.perf_counter_ns() - start) / 1000, result


def memory_in_use() -> int:
    """The memory of this process in bytes, without what its allocators keep for later.

    That is up to 80 MB, and rises for some rounds though what is in use stays the same.
    """
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("RssAnon:"):  # without libraries, whose pages come and go
            return int(line.split()[1]) << 10
    raise OSError("/proc/self/status: no RssAnon")


def machine_facts(*peers: str) -> dict[str, object]:
    """What the figures depend on, with the versions of peers that are installed beside us."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "alcid": importlib.metadata.version("alcid"),
        **{package: importlib.metadata.version(package) for package in (*_PACKAGES, *peers)},
    }


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    if described.exists():
        for line in described.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
