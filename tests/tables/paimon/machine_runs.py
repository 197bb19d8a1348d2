"""How many machines run, with which seed, and how a failure is reported."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import settings

__all__ = ["IS_SOAK", "machine_count", "mostly_one_thread", "noted", "seed"]

DEFAULT_SEED = "2026"
IS_SOAK = "ALCID_MACHINES" in os.environ


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> str:
    """ALCID_SEED; otherwise fixed for the profile `ci`, and new for others."""
    fixed = DEFAULT_SEED if settings().derandomize else request.config.option.hypothesis_seed
    return os.environ.get("ALCID_SEED", str(fixed))


def machine_count(usual: int) -> int:
    """How many machines to run: ALCID_MACHINES percent of the usual number, or 10 % in `ci`.

    Those of `ci` are the same in every run, so that more of them would find little more; `make
    soak` runs 300 %, all of them new.
    """
    share = 10 if settings.get_current_profile_name() == "ci" else 100
    return max(usual * int(os.environ.get("ALCID_MACHINES", share)) // 100, 1)


@contextmanager
def mostly_one_thread(number: int) -> Iterator[None]:
    """Let three of four machines work in one thread: that is faster for small files."""
    with pytest.MonkeyPatch.context() as patch:
        if number % 4 and not IS_SOAK:
            patch.setattr(os, "cpu_count", lambda: 1)
        yield


@contextmanager
def noted(log: Sequence[str]) -> Iterator[None]:
    """Add the steps that were done to an error."""
    try:
        yield
    except BaseException as error:
        for line in log:
            error.add_note(line)
        raise
