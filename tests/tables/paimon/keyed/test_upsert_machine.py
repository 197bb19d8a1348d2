"""Random upserts, deletes and compactions: after each one, the rows equal those of a model.

The same machines run in every run of the profile `ci`, and new ones in others; see
`tests/tables/paimon/test_state_machine.py`.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.tables.paimon.keyed.upsert_machine import UpsertMachine
from tests.tables.paimon.machine_runs import IS_SOAK, machine_count, mostly_one_thread, seed

__all__ = ["seed"]

STEPS = 50


@pytest.mark.filterwarnings("ignore:.*not yet compacted")
@pytest.mark.parametrize("number", range(machine_count(100)))
def test_rows_are_those_of_the_model_after_every_upsert(
    number: int, seed: str, tmp_path: Path
) -> None:
    is_thorough = IS_SOAK or number == 0
    source = random.Random(f"{seed} upsert {number}")
    machine = UpsertMachine(source, tmp_path / "t", is_thorough=is_thorough)
    machine.log.append(f"ALCID_SEED={seed}, machine {number}")
    with mostly_one_thread(number):
        machine.run(STEPS)
