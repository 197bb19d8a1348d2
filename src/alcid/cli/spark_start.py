"""Keeps what a JVM prints while Spark starts, which says nothing to a user if it does start."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["held_back"]

_STDERR = 2
_STARTED, _FAILED = b"\0started\n", b"\0failed\n"


@contextmanager
def held_back() -> Iterator[None]:
    """Hold back what a process prints on stderr that is started within.

    It is printed if what is done within fails, and else is gone; what the process prints afterwards
    is passed on. What this process prints meanwhile takes the same way.
    """
    sys.stderr.flush()
    own, (read, write) = os.dup(_STDERR), os.pipe()
    lines = _Lines(read, own)
    threading.Thread(target=lines.run, daemon=True).start()
    os.dup2(write, _STDERR)
    os.close(write)
    outcome = _FAILED
    try:
        yield
        outcome = _STARTED
    finally:
        sys.stderr.flush()
        os.write(_STDERR, outcome)
        os.dup2(own, _STDERR)  # `own` stays open, for what comes later
        lines.are_decided.wait()


class _Lines:
    """Lines of a pipe; a mark among them says what becomes of those before it."""

    def __init__(self, read: int, own: int) -> None:
        self._read, self._own = read, own
        self.are_decided = threading.Event()

    def run(self) -> None:
        """Read until all that could write have ended."""
        held: list[bytes] = []
        with os.fdopen(self._read, "rb") as lines:
            for line in lines:
                if self.are_decided.is_set():
                    os.write(self._own, line)
                elif line.endswith((_STARTED, _FAILED)):
                    if line.endswith(_FAILED):
                        os.write(self._own, b"".join([*held, line.removesuffix(_FAILED)]))
                    self.are_decided.set()
                else:
                    held.append(line)
