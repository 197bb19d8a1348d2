"""Random steps on Iceberg tables, by us and by Iceberg: the rows always equal a model.

The same machines run in every run of the profile `ci`, and new ones in others; see
`tests/tables/paimon/test_state_machine.py`.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.iceberg.iceberg_machine import IcebergMachine
from tests.tables.paimon.machine_runs import IS_SOAK, machine_count, seed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["seed"]

STEPS = 20 if IS_SOAK else 14


@pytest.mark.parametrize("number", range(machine_count(5)))
def test_we_and_iceberg_read_the_rows_of_the_model_after_every_step(
    lake: SparkSession, name: str, number: int, seed: str
) -> None:
    source = random.Random(f"{seed} iceberg {number}")
    machine = IcebergMachine(source, lake, name, is_thorough=IS_SOAK or number == 0)
    machine.log.append(f"ALCID_SEED={seed}, machine {number}")
    machine.run(STEPS)
