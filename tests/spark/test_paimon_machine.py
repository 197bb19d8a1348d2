"""Random steps on Paimon tables in a session of Spark: the rows equal those of a model."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.tables.paimon.known_rows import Rows, as_text
from tests.tables.paimon.machine import Machine
from tests.tables.paimon.machine_runs import machine_count, seed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from alcid import PaimonTable

__all__ = ["seed"]

STEPS = 20


class SparkMachine(Machine):
    """Rows come from a DataFrame, and are read into one."""

    def as_input(self, rows: pa.Table) -> Any:
        kinds = {name: self.now.columns[name] for name in rows.column_names}
        columns = [f"{name} {kind}" for name, kind in kinds.items()]
        ddl = ", ".join(columns).replace("TIMESTAMP(6)", "TIMESTAMP_NTZ")
        return self.engine.createDataFrame(rows, ddl)

    def check_rows(self, table: PaimonTable, expected: Rows) -> None:
        super().check_rows(table, expected)
        rows = table.read().toArrow()
        assert rows.column_names == list(expected.columns)
        assert as_text(rows) == as_text(expected.named())


@pytest.mark.parametrize("number", range(machine_count(5)))
def test_rows_are_those_of_the_model_after_every_step(
    spark: SparkSession, number: int, seed: str, tmp_path: Path
) -> None:
    source = random.Random(f"{seed} spark {number}")
    machine = SparkMachine(source, tmp_path / "t", is_thorough=True, engine=spark)
    machine.log.append(f"ALCID_SEED={seed}, machine {number}")
    machine.run(STEPS)
