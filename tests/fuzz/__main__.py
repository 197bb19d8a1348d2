"""Fuzz targets for some time: `python -m tests.fuzz --seconds 60`, or only `--target NAME`.

Coverage guides it where atheris is installed. Without it, or with `--plain`, mutants are drawn at
random, the same for the same `--seed`. Findings are written to `--findings`, a file for each;
the status is then 1. A file is tried again with `--target NAME --input FILE`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

from tests.fuzz import guided


def main() -> int:
    """Run as the arguments say; the status of the process."""
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", help="one of the targets; by default all, one by one")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--findings", type=Path, default=Path(".cache/fuzz"))
    parser.add_argument("--plain", action="store_true", help="without atheris")
    parser.add_argument("--input", type=Path, help="try this file, and nothing else")
    arguments = parser.parse_args()
    if arguments.target is None:
        return _each(sys.argv[1:])
    if arguments.input is not None:
        return _again(arguments.target, arguments.input)
    if guided.is_installed() and not arguments.plain:
        guided.fuzz(arguments.target, arguments.seconds, arguments.seed, arguments.findings)
    return _plain(arguments.target, arguments.seconds, arguments.seed, arguments.findings)


def _each(arguments: list[str]) -> int:
    """All targets, each in a process of its own."""
    from tests.fuzz.targets import TARGETS

    status = 0
    for name in TARGETS:
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", "tests.fuzz", "--target", name, *arguments]
        status |= bool(subprocess.run(command, check=False).returncode)
    return status


def _again(name: str, path: Path) -> int:
    from tests.fuzz.loop import try_input
    from tests.fuzz.targets import TARGETS

    answered = try_input(TARGETS[name], path.read_bytes())
    print("answered" if answered else "refused")
    return 0


def _plain(name: str, seconds: int, seed: int, findings: Path) -> int:
    from tests.fuzz.loop import Finding, bounded_memory, mutants, try_input
    from tests.fuzz.targets import TARGETS

    target, end = TARGETS[name], time.monotonic() + seconds
    number, failures = 0, 0
    with bounded_memory():
        for number, data in zip(count(1), mutants(target, seed), strict=False):
            if time.monotonic() > end:
                break
            try:
                try_input(target, data)
            except Finding as finding:
                failures += 1
                findings.mkdir(parents=True, exist_ok=True)
                path = findings / f"{name}-{seed}-{number}"
                path.write_bytes(data)
                print(f"{path}: {finding}", flush=True)
    print(f"{name}: {number} inputs, {failures} findings")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
