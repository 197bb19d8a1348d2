"""Random tables of all types and partitions, and changes of them: our rows equal Iceberg's.

The same tables in every run of the profile `ci`, and new ones in others; `ALCID_SEED` names them,
and `ALCID_MACHINES` asks for more.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.iceberg.random_tables import RandomTable
from tests.tables.paimon.machine_runs import machine_count, seed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["seed"]

STEPS = 10


@pytest.mark.parametrize("number", range(machine_count(2)))
def test_rows_of_random_tables_are_those_of_iceberg(
    lake: SparkSession, name: str, number: int, seed: str
) -> None:
    log = [f"ALCID_SEED={seed}, table {number}"]
    RandomTable(random.Random(f"{seed} tables {number}"), lake, name, log=log).run(STEPS)
