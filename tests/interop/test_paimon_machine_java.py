"""Random steps on tables that Paimon's Java writes to as well: both read the rows of a model."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import pytest

from alcid.errors import AlcidWarning
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.interop.java_machine import JavaMachine
from tests.interop.key_machine import KeyMachine
from tests.tables.paimon.machine_runs import IS_SOAK, machine_count, noted, seed

__all__ = ["seed"]

STEPS, KEYED_STEPS = (20, 12) if IS_SOAK else (14, 6)
VECTORS = {"deletion-vectors.enabled": "true"}
KEYED: dict[str, dict[str, str]] = {
    "vectors": VECTORS | {"bucket": "2"},
    "vectors-64": VECTORS | {"bucket": "1", "deletion-vectors.bitmap64": "true"},
    "vectors-dynamic": VECTORS | {"bucket": "-1", "dynamic-bucket.target-row-num": "15"},
    "merge": {"bucket": "2"},
    "merge-dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "15"},
}


@pytest.mark.parametrize("number", range(machine_count(5)))
def test_java_and_we_read_the_rows_of_the_model_after_every_step(
    java_paimon: JavaPaimon, number: int, seed: str, tmp_path: Path
) -> None:
    machine = JavaMachine(random.Random(f"{seed} java {number}"), tmp_path / "t", java_paimon)
    machine.log.append(f"ALCID_SEED={seed}, machine {number}")
    machine.run(STEPS)


@pytest.mark.parametrize("number", range(machine_count(1)))
@pytest.mark.parametrize("kind", KEYED)
def test_upserts_of_java_go_on_while_we_build_indexes(
    java_paimon: JavaPaimon, kind: str, number: int, seed: str, tmp_path: Path
) -> None:
    source = random.Random(f"{seed} {kind} {number}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not yet compacted", AlcidWarning)
        machine = KeyMachine(source, tmp_path / "t", java_paimon, KEYED[kind])
        machine.log.append(f"ALCID_SEED={seed}, {kind} {number}")
        with noted(machine.log):
            machine.run(KEYED_STEPS)
