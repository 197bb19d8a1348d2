"""Threads for the parts of a scan: as many as there are cores, and more where a network answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

__all__ = ["run_in_threads", "wait_for_each"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_WAITING = 16  # threads, where most of their time is spent waiting


def run_in_threads(
    call: Callable[[_Item], _Result], items: Iterable[_Item], *, waiting: bool
) -> list[_Result]:
    """The results in order; at the first error what has not begun is dropped.

    Threads live as long as the call: starting one takes some microseconds, and none is left behind
    in a forked process. The settings of the caller count in them too.
    """
    every = list(items)
    workers = min(len(every), _WAITING if waiting else os.cpu_count() or 1)
    if workers <= 1:
        return [call(item) for item in every]
    with ThreadPoolExecutor(workers, thread_name_prefix="alcid-scan") as pool:
        futures = [pool.submit(copy_context().run, call, item) for item in every]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()


def wait_for_each(
    call: Callable[[_Item], _Result], items: Iterable[_Item], *, remote: bool
) -> list[_Result]:
    """The results in order, of calls that read a little and then hold Python's lock.

    Threads help them to wait for a network, and without one only make them wait for each other.
    """
    if remote:
        return run_in_threads(call, items, waiting=True)
    return [call(item) for item in items]
