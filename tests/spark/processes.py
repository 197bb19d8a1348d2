"""Processes of this machine: the ones below another, and ending them by id."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

PATIENCE = 90.0  # seconds, for what takes a few on an idle machine


def wait_for(met: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + patience
    while not met():
        assert time.monotonic() < end, f"{what}: not after {patience} s"
        time.sleep(0.02)


def below(process: int) -> list[int]:
    """The children of a process, and theirs."""
    parents: dict[int, list[int]] = {}
    for other, fields in _status().items():
        parents.setdefault(int(fields[1]), []).append(other)
    processes: list[int] = []
    todo = [process]
    while todo:
        children = parents.get(todo.pop(), [])
        processes += children
        todo += children
    return processes


def _status() -> dict[int, list[str]]:
    """For every process: state, parent, group, session and more."""
    states = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                # After the name, which may contain anything.
                text = (folder / "stat").read_text()
                states[int(folder.name)] = text.rpartition(")")[2].split()
    return states


def in_session(leader: int) -> list[int]:
    """All processes of a session, also if those in between have ended."""
    return [process for process, fields in _status().items() if int(fields[3]) == leader]


def command_of(process: int) -> str:
    """Its command line; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def kill(processes: Iterable[int]) -> None:
    """Kill processes at once; those that have ended are skipped."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def is_running(process: int) -> bool:
    """Whether it is still running; a zombie is not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
