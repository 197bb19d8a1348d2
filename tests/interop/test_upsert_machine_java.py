"""Random upserts by Paimon's Java and by us, in turn: both read the rows of a model."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.interop.java_upsert_machine import JavaUpsertMachine
from tests.tables.paimon.machine_runs import machine_count, seed

__all__ = ["seed"]

STEPS = 20


@pytest.mark.filterwarnings("ignore:.*not yet compacted")
@pytest.mark.parametrize("number", range(machine_count(5)))
def test_java_and_we_read_the_rows_of_the_model_after_every_upsert(
    java_paimon: JavaPaimon, number: int, seed: str, tmp_path: Path
) -> None:
    source = random.Random(f"{seed} java upsert {number}")
    machine = JavaUpsertMachine(source, tmp_path / "t", java_paimon)
    machine.log.append(f"ALCID_SEED={seed}, machine {number}")
    machine.run(STEPS)
