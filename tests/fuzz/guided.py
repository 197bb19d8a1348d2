"""Inputs that coverage guides: atheris, which is libFuzzer, on the code of alcid.

atheris changes the code of modules while they are imported. So this module imports nothing of
alcid by itself, and what it runs is a process of its own.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any

__all__ = ["fuzz", "is_installed"]

_LARGEST = 1 << 14  # bytes of an input
_TIMEOUT = 10  # seconds that an input may take, with the code as atheris changes it
_MEGABYTES = 1500  # that the process may take


def is_installed() -> bool:
    """Whether atheris can be imported; it has wheels for Linux on x86-64 only."""
    return importlib.util.find_spec("atheris") is not None


def fuzz(name: str, seconds: int, seed: int, findings: Path) -> None:
    """Fuzz one target, and end the process: with status 0 if there was no finding.

    The input of a finding is written to `findings`, its traceback to stderr.
    """
    # libFuzzer goes by the peak of the process, and on Linux a program that was started begins
    # with the peak of the one that started it. A forked process begins anew.
    if forked := os.fork():
        os._exit(os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) & 0xFF)
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["alcid"]):
        from tests.fuzz.targets import TARGETS
    from tests.fuzz.loop import try_input

    target = TARGETS[name]

    def mutated(data: bytes, largest: int, number: int) -> bytes:
        mutant: bytes = atheris.Mutate(data, largest)
        return target.repair(mutant)[:largest] if number % 4 else mutant

    def run(data: bytes) -> None:
        try_input(target, data)

    corpus = findings / "corpus" / name  # kept, so that the next run goes on from it
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(data)
    options = {
        "max_total_time": seconds,
        "seed": seed,
        "max_len": _LARGEST,
        "timeout": _TIMEOUT,
        "rss_limit_mb": _MEGABYTES,
        "artifact_prefix": f"{findings}/{name}-",
        "print_final_stats": 1,
        "verbosity": 0,
    }
    arguments = [f"-{option}={value}" for option, value in options.items()]
    atheris.Setup(["alcid", *arguments, str(corpus)], run, custom_mutator=mutated)
    atheris.Fuzz()
