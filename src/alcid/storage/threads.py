"""Threads: a bounded pool for requests over a network, and helpers for work on many files.

- `run_all`: requests, in the one pool of all storages of the process.
- `run_in_threads`, `wait_for_each`: the parts of a scan, in as many threads as there are cores, or
  more where they wait for a network.
- `in_order`: many files, with the results of only a few of them in memory.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

THREADS = 32

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
_lock = threading.Lock()
_executors: list[ThreadPoolExecutor] = []  # none or one


def run_all(call: Callable[[_Argument], _Result], arguments: Sequence[_Argument]) -> list[_Result]:
    """The results, in order; at the first error what has not begun is dropped.

    `call` must not come here itself: its thread could wait for one that never gets free.
    """
    if len(arguments) <= 1:
        return [call(argument) for argument in arguments]
    futures = [_executor().submit(copy_context().run, call, argument) for argument in arguments]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def _executor() -> ThreadPoolExecutor:
    with _lock:
        if not _executors:
            _executors.append(ThreadPoolExecutor(THREADS, thread_name_prefix="alcid-storage"))
        return _executors[0]


def _forget() -> None:
    """In a forked process the threads are missing, and the lock may be held for ever."""
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    _executors.clear()


os.register_at_fork(after_in_child=_forget)


_Item = TypeVar("_Item")


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


def in_order(
    call: Callable[[_Item], _Result], items: Iterable[_Item], threads: int
) -> Generator[_Result, None, None]:
    """The results, in the order of the items; no more are made ahead than there are threads.

    The settings of the caller count in the threads too. Close it where it may be left early.

    >>> list(in_order(abs, [-3, 2, -1], threads=2))
    [3, 2, 1]
    """
    if threads == 1:
        yield from map(call, items)
        return
    running: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="alcid-files") as pool:
        try:
            for item in items:
                running.append(pool.submit(copy_context().run, call, item))
                if len(running) > threads + 1:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()
