"""When a process kills itself: before a call to its files, or within a write."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from alcid.storage.local import LocalFiles
from alcid.testing.faults import (
    Call,
    Decide,
    Fault,
    Faults,
)

__all__ = ["counted_calls", "die", "die_with_children", "killing"]

_CALLS = ("entries", "stat", "read", "put", "replace", "link", "delete", "remove_folder")


def killing(at: int, end: Callable[..., None], *, within: bool) -> Decide:
    """End before a call of a number; or at the first write from there on.

    Args:
        at: The number.
        end: What ends the process.
        within: In a write, when a file is on the disk, but does not have its name yet.
    """

    def decide(call: Call) -> Fault | None:
        if call.number >= at:
            if within and call.kind in {"put", "replace"}:
                Path.hardlink_to = Path.replace = end  # type: ignore[assignment, method-assign]
            elif not within:
                end()
        return None

    return decide


def die(*_: Any, **__: Any) -> None:
    """End immediately, without any clean-up."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_with_children(*_: Any, **__: Any) -> None:
    """The same for the whole process group: for the driver of a Spark, its JVM."""
    os.killpg(0, signal.SIGKILL)


@contextmanager
def counted_calls(faults: Faults) -> Iterator[None]:
    """Report all calls to files on a disk to `faults`, whichever table makes them.

    What `killing` has done to writes is undone at the end.
    """

    def telling(kind: str, function: Any) -> Any:
        def call(files: LocalFiles, path: str, *arguments: Any, **named: Any) -> Any:
            faults.next(kind, path)
            return function(files, path, *arguments, **named)

        return call

    with ExitStack() as stack:
        for write in ("hardlink_to", "replace"):
            stack.enter_context(mock.patch.object(Path, write, getattr(Path, write)))
        for kind in _CALLS:
            call = telling(kind, getattr(LocalFiles, kind))
            stack.enter_context(mock.patch.object(LocalFiles, kind, call))
        yield
