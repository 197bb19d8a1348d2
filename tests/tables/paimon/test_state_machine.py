"""Random steps on Paimon tables: after each one there are the rows that there should be.

The same machines run in every run of the profile `ci`, and new ones in others; `ALCID_SEED` names
the seed, and `ALCID_MACHINES` how many there are. Each step is looked at in one of many ways in
turn, and in all of them by some machines, or by all if `ALCID_MACHINES` is given.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import settings

from tests.tables.paimon.machine import Machine

IS_SOAK = "ALCID_MACHINES" in os.environ
MACHINES = int(os.environ.get("ALCID_MACHINES", "100"))
STEPS = 50
DEFAULT_SEED = "2026"


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> str:
    """ALCID_SEED; else the same for every run of the profile `ci`, and else a new one."""
    fixed = DEFAULT_SEED if settings().derandomize else request.config.option.hypothesis_seed
    return os.environ.get("ALCID_SEED", str(fixed))


@pytest.mark.parametrize("number", range(MACHINES))
def test_rows_are_those_of_the_model_after_every_step(
    number: int, seed: str, tmp_path: Path
) -> None:
    is_thorough = IS_SOAK or number % 50 == 0
    machine = Machine(random.Random(f"{seed} {number}"), tmp_path / "t", is_thorough=is_thorough)
    try:
        for _ in range(STEPS):
            machine.step()
        machine.finish()
    except BaseException as error:
        for line in (f"ALCID_SEED={seed}, machine {number}", *machine.log):
            error.add_note(line)
        raise
