"""Work on many files in threads, with few of them in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

__all__ = ["in_order"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


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
