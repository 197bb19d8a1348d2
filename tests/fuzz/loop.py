"""One input after the other, within limits of time and memory; mutants are drawn from a seed."""

from __future__ import annotations

import contextlib
import random
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from alcid.errors import AlcidError
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target

__all__ = ["MEMORY", "SECONDS", "Finding", "bounded_memory", "mutants", "try_input"]

SECONDS = 2.0
"""The processor time that an input may take."""
MEMORY = 512 << 20
"""Bytes that a process may take beyond what it has when the first input comes."""


class Finding(Exception):  # noqa: N818  # what is sought, not what fails
    """An input (`data`) that neither got an answer nor was refused."""

    def __init__(self, target: str, data: bytes, what: str) -> None:
        """Describe what the input did."""
        super().__init__(f"{target}: {what}: {len(data)} bytes {data[:64].hex()}")
        self.data = data


def try_input(target: Target, data: bytes) -> bool:
    """Whether an input was answered; False if it was refused.

    Raises:
        Finding: It was neither, or took too long.
    """
    started = time.process_time()
    try:
        target.run(data)
        answered = True
    except AlcidError:
        answered = False
    except Exception as error:
        raise Finding(target.name, data, repr(error)) from error
    if (taken := time.process_time() - started) > SECONDS:
        raise Finding(target.name, data, f"took {taken:.1f} s")
    return answered


def mutants(target: Target, seed: int) -> Iterator[bytes]:
    """Endless inputs: the seeds as they are, then mutants of them, most of them repaired."""
    seeds = target.seeds()
    yield from seeds
    rng = random.Random(f"{target.name} {seed}")
    while True:
        mutant = mutate(rng.choice(seeds), seeds, rng)
        yield target.repair(mutant) if rng.random() < 0.75 else mutant


@contextlib.contextmanager
def bounded_memory(more: int = MEMORY) -> Iterator[None]:
    """Let this process take no more than it has now and `more` bytes; then MemoryError."""
    statm = Path("/proc/self/statm")
    if not statm.exists():  # elsewhere the limit on address space has no effect
        yield
        return
    used = int(statm.read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
