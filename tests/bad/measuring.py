"""Time and memory of hostile files: `python -m tests.bad.measuring FILE ...`, a line of JSON each.

Every file is opened in a fork of its own. So the peak of memory begins at the memory in use, a file
that ends the process is distinguished from the others, and a limit holds if all else fails.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from alcid.errors import AlcidError
from tests.bad.opening import OPENERS, ending

__all__ = ["Measured", "measure"]

_LIMIT = 2 << 30  # bytes of address space beyond what is in use
_SECONDS = 30


@dataclass(frozen=True)
class Measured:
    """The outcome for a file."""

    error: str
    """The error that refused it, or how it ended otherwise."""
    seconds: float
    """Processor time."""
    memory: int
    """How much the peak grew."""


def measure(paths: Sequence[Path]) -> list[Measured]:
    """Open files in another process."""
    command = [sys.executable, "-m", "tests.bad.measuring", *map(str, paths)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return [Measured(*json.loads(line)) for line in ended.stdout.splitlines()]


def _main(paths: Sequence[str]) -> None:
    for path in paths:
        data, opener = Path(path).read_bytes(), OPENERS[ending(path)]
        sys.stdout.flush()
        if child := os.fork():
            status = os.waitpid(child, 0)[1]
            if status:
                print(json.dumps([f"ended by signal {os.WTERMSIG(status)}", 0, 0]))
            continue
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
        statm = Path("/proc/self/statm")
        if statm.exists():
            used = int(statm.read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + _LIMIT, used + _LIMIT))
        before, started = _peak(), time.process_time()
        try:
            opener(data)
            outcome = "answered"
        except AlcidError as error:
            outcome = f"{type(error).__name__}: {error}"
        except BaseException as error:  # noqa: BLE001  # it is the finding
            outcome = f"not refused: {error!r}"
        print(json.dumps([outcome, time.process_time() - started, _peak() - before]), flush=True)
        os._exit(0)


def _peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    _main(sys.argv[1:])
