from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.samples import Alcid
from tests.cli.writing import paimon_table, parquet_folder, rows_of, state, text_of


@pytest.fixture(params=["folder", "paimon"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "folder":
        return parquet_folder(tmp_path / "t", files=2)
    made = paimon_table(tmp_path / "t")
    made.append(rows_of(0, 100))
    made.append(rows_of(100, 201))
    made.delete("id = 200")
    return tmp_path / "t"


def test_a_dry_run_says_what_then_is_counted(alcid: Alcid, table: Path) -> None:
    before = state(table)
    assert text_of(alcid("stats", table, "--dry-run")) == (
        "would have counted 3 columns of 200 rows in 2 files\nid BIGINT\nname STRING\n"
        "score DOUBLE\n"
    )
    assert state(table) == before
    assert text_of(alcid("stats", table)) == (
        "counted 3 columns of 200 rows in 2 files\nid BIGINT: 200 distinct values\n"
        "name STRING: 7 distinct values\nscore DOUBLE: 200 distinct values\n"
    )
    assert state(table) != before


def test_columns_are_chosen(alcid: Alcid, table: Path) -> None:
    run = alcid("stats", table, "--column", "name", "--json")
    assert run.json == {
        "rows": 200,
        "files": 2,
        "columns": [{"column": "name", "type": "STRING", "ndv": 7, "nulls": 0}],
        "dry_run": False,
    }
    for dry in ((), ("--dry-run",)):
        run = alcid("stats", table, "--column", "nme", *dry)
        assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
        assert "did you mean name?" in run.err
