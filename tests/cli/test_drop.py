from __future__ import annotations

from pathlib import Path

import pytest

import alcid as library
from tests.cli.samples import Alcid
from tests.cli.writing import paimon_table, parquet_folder, rows_of, state, text_of

OPTIONS = {"file-index.bitmap.columns": "name", "file-index.bsi.columns": "id"}


@pytest.fixture(params=["folder", "paimon"])
def indexed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "events"
    if request.param == "folder":
        parquet_folder(folder)
        library.parquet(folder).build_indexes(OPTIONS)
    else:
        table = paimon_table(folder, options=OPTIONS)
        for first in (0, 100, 200):
            table.append(rows_of(first, first + 100))
    return folder


def kinds(folder: Path) -> dict[tuple[str, str], int]:
    return {
        (index.column, index.index_type): index.bytes for index in library.table(folder).indexes()
    }


def test_a_dry_run_names_what_then_is_dropped(alcid: Alcid, indexed: Path) -> None:
    before, had = state(indexed), kinds(indexed)
    size = had["name", "bitmap"]
    shown = f"{size / 1000:.1f} kB" if size >= 1000 else f"{size} B"
    report = f"dropped 1 index of 3 files, {shown}\nbitmap of 'name': 3 files, {shown}\n"
    command = ("drop", indexed, "--column", "name")
    assert text_of(alcid(*command, "--dry-run")) == f"would have {report}"
    assert state(indexed) == before
    assert text_of(alcid(*command)) == report
    assert kinds(indexed) == {("id", "bsi"): had["id", "bsi"]}
    assert text_of(alcid(*command)) == "dropped nothing: there is no such index\n"


def test_all_are_dropped_by_default(alcid: Alcid, indexed: Path) -> None:
    dry, real = alcid("drop", indexed, "--dry-run", "--json"), alcid("drop", indexed, "--json")
    assert {**dry.json, "dry_run": False} == real.json
    assert (real.json["files"], len(real.json["indexes"]), kinds(indexed)) == (3, 2, {})


def test_types_and_columns_are_checked(alcid: Alcid, indexed: Path) -> None:
    before = state(indexed)
    run = alcid("drop", indexed, "--type", "bloom")
    assert (run.status, run.out) == (2, "")
    assert run.err == "alcid: no such index: bloom; did you mean bloom-filter?\n"
    run = alcid("drop", indexed, "--column", "nme")
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert "nme" in run.err
    assert state(indexed) == before
