"""The threads that wait for a network: one bounded set for all storages of a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

__all__ = ["THREADS", "run_all"]

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
        return [call(one) for one in arguments]
    futures = [_executor().submit(copy_context().run, call, one) for one in arguments]
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
