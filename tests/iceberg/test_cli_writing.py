"""Commands that change Iceberg tables, and their dry runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import alcid as library
from tests.cli.samples import Alcid, runner
from tests.cli.writing import rows_of, same_numbers, state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def alcid(capsys: pytest.CaptureFixture[str]) -> Alcid:
    return runner(capsys)


@pytest.fixture
def table(lake: SparkSession, name: str, tmp_path: Path) -> library.IcebergTable:
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, name STRING, score DOUBLE) USING iceberg"
        " TBLPROPERTIES ('format-version'='3')"
    )
    pq.write_table(rows_of(0, 20), tmp_path / "a.parquet")
    lake.read.parquet(str(tmp_path / "a.parquet")).coalesce(1).writeTo(name).append()
    return library.iceberg(name, lake)


def folder_of(table: library.IcebergTable) -> Path:
    return Path(table.location.removeprefix("file:"))


def dry_then_real(alcid: Alcid, table: library.IcebergTable, *command: object) -> dict[str, Any]:
    """What a dry run predicted, without changing anything, and what was then done."""
    before = state(folder_of(table))
    dry = alcid(*command, "--dry-run", "--json")
    assert state(folder_of(table)) == before
    return same_numbers(dry, alcid(*command, "--json"))


def test_dry_runs_say_what_then_is_done(
    alcid: Alcid, table: library.IcebergTable, tmp_path: Path
) -> None:
    name = table.name
    built = dry_then_real(alcid, table, "build", name, "--bitmap", "name")
    assert (built["files"], built["indexed"], built["fresh"], built["rows"]) == (1, 1, 0, 20)

    pq.write_table(rows_of(20, 30).drop_columns("score"), tmp_path / "b.parquet")
    appended = dry_then_real(alcid, table, "append", name, tmp_path / "b.parquet")
    assert (appended["rows"], appended["skipped"]) == (10, [])

    deleted = dry_then_real(alcid, table, "delete", name, "--where", "id IN (3, 25, 99)")
    assert (deleted["rows"], deleted["files"]) == (2, 2)
    table.refresh()
    assert table.count() == 28

    counted = dry_then_real(alcid, table, "stats", name, "--column", "id")
    assert counted["rows"] == 28

    dropped = dry_then_real(alcid, table, "drop", name)
    assert (dropped["files"], len(dropped["indexes"])) == (table.files, 1)
    table.refresh()
    assert table.indexes() == []

    assert dry_then_real(alcid, table, "clean", name)["removed"] == []


def test_what_does_not_fit_is_the_same_error_for_a_dry_run(
    alcid: Alcid, table: library.IcebergTable, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,nane\n100,x\n")
    before = state(folder_of(table))
    runs = [alcid("append", table.name, tmp_path / "a.csv", *dry) for dry in (("--dry-run",), ())]
    assert runs[0] == runs[1]
    assert (runs[0].status, runs[0].out, runs[0].err.count("\n")) == (1, "", 1)
    assert "nane" in runs[0].err
    assert state(folder_of(table)) == before
