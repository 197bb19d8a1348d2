"""Deletes by predicate; tasks of Spark search for the rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import alcid
from alcid.scan import ScanPlan
from alcid.tables.reports import DeleteReport
from tests.tables.paimon.small_tables import VECTORS, append, create, ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("options", [VECTORS, {}], ids=["vectors", "copies"])
@pytest.mark.parametrize("is_small", [True, False], ids=["driver", "tasks"])
def test_rows_are_deleted_wherever_they_are_found(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_small: bool,
    options: dict[str, str],
) -> None:
    monkeypatch.setattr(ScanPlan, "is_small", is_small)
    local = create(tmp_path, options=options)
    for start in range(0, 400, 100):
        append(local, range(start, start + 100))
    table = alcid.paimon(tmp_path, spark)
    assert table.delete("id < 250 AND name = 'n3'") == DeleteReport(50, 3, 5)
    assert table.delete("id >= 300 OR name = 'n3'") == DeleteReport(110, 2, 6)
    expected = [number for number in range(300) if number % 5 != 3]
    assert ids(local) == expected
    assert sorted(row["id"] for row in table.read(columns=["id"]).collect()) == expected
