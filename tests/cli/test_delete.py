from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from alcid import create_table
from tests.cli.samples import Alcid
from tests.cli.writing import (
    ids_of,
    paimon_table,
    parquet_folder,
    rows_of,
    same_numbers,
    state,
    text_of,
)


@pytest.fixture(params=["append", "keyed"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made = paimon_table(tmp_path / "t", keyed=request.param == "keyed")
    for first in (0, 100):
        rows = rows_of(first, first + 100)
        _ = made.upsert(rows) if request.param == "keyed" else made.append(rows)
    return tmp_path / "t"


def test_a_dry_run_says_what_then_is_deleted(alcid: Alcid, table: Path) -> None:
    before = state(table)
    command = ("delete", table, "--where", "id >= 98 AND id < 103", "--json")
    dry = alcid(*command, "--dry-run")
    assert state(table) == before
    assert ids_of(table) == list(range(200))
    same = same_numbers(dry, alcid(*command))
    is_keyed = same["files"] is None  # rows are counted by key in such a table
    assert same == {"rows": 5, "files": same["files"], "snapshot_id": same["snapshot_id"]}
    assert is_keyed or same["files"] == 2
    assert ids_of(table) == [*range(98), *range(103, 200)]


def test_what_matches_nothing_changes_nothing(alcid: Alcid, table: Path) -> None:
    before = state(table)
    for dry in ((), ("--dry-run",)):
        run = alcid("delete", table, "--where", "id > 1000", *dry)
        assert text_of(run) == "deleted nothing: no row matches\n"
    assert state(table) == before


def test_the_text_names_rows_files_and_snapshot(alcid: Alcid, tmp_path: Path) -> None:
    paimon_table(tmp_path / "t").append(rows_of(0, 11))
    command = ("delete", tmp_path / "t", "--where", "name = 'n3'")
    report = "deleted 2 rows of 1 file: snapshot 2\n"
    assert text_of(alcid(*command, "--dry-run")) == f"would have {report}"
    assert text_of(alcid(*command)) == report


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["real", "dry"])
def test_a_mistyped_column_names_the_nearest(
    alcid: Alcid, table: Path, dry: tuple[str, ...]
) -> None:
    run = alcid("delete", table, "--where", "nane = 'x'", *dry)
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert "did you mean name?" in run.err


def test_a_predicate_must_be_given(alcid: Alcid, table: Path) -> None:
    run = alcid("delete", table)
    assert (run.status, run.out) == (2, "")
    assert run.err == "alcid: missing option '--where'; see alcid delete --help\n"


def test_rows_of_a_folder_are_not_deleted(alcid: Alcid, tmp_path: Path) -> None:
    folder = parquet_folder(tmp_path / "events", files=1)
    run = alcid("delete", folder, "--where", "id = 1")
    assert (run.status, run.out) == (1, "")
    assert run.err == (
        f"alcid: {folder}: rows of a Parquet folder cannot be deleted, since it has no commits;"
        " use a Paimon or Iceberg table\n"
    )


def test_a_table_without_vectors_gets_new_files(alcid: Alcid, tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(10)}))
    for dry, would, left in ((("--dry-run",), "would have ", 10), ((), "", 9)):
        run = alcid("delete", tmp_path / "t", "--where", "id = 1", *dry)
        assert (run.status, run.err) == (0, "")
        assert run.out == f"{would}deleted 1 row of 1 file: snapshot 2\n"
        table.refresh()
        assert table.count() == left
