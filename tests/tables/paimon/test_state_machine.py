"""Random steps on Paimon tables: after each one, the table has the expected rows.

The same machines run in every run of the profile `ci`, and new ones in others; `ALCID_SEED` names
the seed, and `ALCID_MACHINES` how many there are. Each step is checked in one of many ways in
turn, and in all of them by some machines, or by all if `ALCID_MACHINES` is given.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.tables.paimon.machine import Machine
from tests.tables.paimon.machine_runs import IS_SOAK, machine_count, mostly_one_thread, seed

__all__ = ["seed"]

STEPS = 50


@pytest.mark.parametrize("number", range(machine_count(100)))
def test_rows_are_those_of_the_model_after_every_step(
    number: int, seed: str, tmp_path: Path
) -> None:
    is_thorough = IS_SOAK or number % 20 == 0
    machine = Machine(random.Random(f"{seed} {number}"), tmp_path / "t", is_thorough=is_thorough)
    machine.log.append(f"ALCID_SEED={seed}, machine {number}")
    with mostly_one_thread(number):
        machine.run(STEPS)
