from __future__ import annotations

from pathlib import Path

import alcid as library
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


def test_a_dry_run_says_what_then_is_upserted(alcid: Alcid, tmp_path: Path) -> None:
    folder, file = tmp_path / "t", tmp_path / "changes.csv"
    paimon_table(folder, keyed=True).upsert(rows_of(0, 10))
    file.write_text("op,id,name\n+I,50,new\n+U,3,changed\n-D,7,\n")
    before = state(folder)
    command = ("upsert", folder, file, "--row-kind", "op")
    shown = text_of(alcid(*command, "--dry-run")).splitlines()
    assert shown[0].startswith("would have upserted 2 rows and deleted 1, 2 older rows replaced; ")
    assert shown[1:] == ["columns: op, id, name", "not given: score"]
    dry = alcid(*command, "--dry-run", "--json")
    assert state(folder) == before
    same = same_numbers(dry, alcid(*command, "--json"))
    keys = ("rows", "deletes", "replaced", "buckets", "is_compacted")
    assert {key: same[key] for key in keys} == {
        "rows": 2,
        "deletes": 1,
        "replaced": 2,
        "buckets": same["buckets"],
        "is_compacted": True,
    }
    assert {"files", "bytes_written", "index_bytes", "snapshot_id", "skipped"} <= same.keys()
    assert ids_of(folder) == [0, 1, 2, 3, 4, 5, 6, 8, 9, 50]
    scan = library.paimon(folder).scan("id IN (3, 50)", columns=["name"], order_by="id")
    assert scan.to_arrow()["name"].to_pylist() == ["changed", "new"]


def test_what_is_not_compacted_is_read_if_asked_for(alcid: Alcid, tmp_path: Path) -> None:
    paimon_table(tmp_path / "t", keyed=True).upsert(rows_of(0, 10), write_only=True)
    count = ("query", tmp_path / "t", "--count")
    run = alcid(*count)
    assert (run.out, run.err.count("--merge-on-read")) == ("0\n", 1)
    run = alcid(*count, "--merge-on-read")
    assert (run.out, run.err) == ("10\n", "")


def test_it_is_for_paimon_tables_with_a_key(alcid: Alcid, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    folder = parquet_folder(tmp_path / "events", files=1)
    run = alcid("upsert", folder, tmp_path / "a.csv")
    assert (run.status, run.out) == (1, "")
    assert run.err == f"alcid: {folder}: upsert is for Paimon tables, found ParquetTable\n"
    paimon_table(tmp_path / "t")
    for dry in ((), ("--dry-run",)):
        run = alcid("upsert", tmp_path / "t", tmp_path / "a.csv", *dry)
        assert (run.status, run.out, run.err.count("\n")) == (1, "", 1)
        assert "primary key" in run.err


def test_a_row_kind_that_cannot_be(alcid: Alcid, tmp_path: Path) -> None:
    paimon_table(tmp_path / "t", keyed=True)
    (tmp_path / "a.csv").write_text("id,op\n1,+X\n")
    before = state(tmp_path / "t")
    for dry in ((), ("--dry-run",)):
        run = alcid("upsert", tmp_path / "t", tmp_path / "a.csv", "--row-kind", "op", *dry)
        assert (run.out, run.err.count("\n")) == ("", 1)
        assert "+X" in run.err
    assert state(tmp_path / "t") == before
