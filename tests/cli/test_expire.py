from __future__ import annotations

from pathlib import Path

import pytest

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


def test_a_dry_run_says_what_then_expires(alcid: Alcid, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    table = paimon_table(folder, keyed=True)
    for first in range(4):
        table.upsert(rows_of(first, first + 5))
    last = table.snapshot_id
    assert text_of(alcid("expire", folder)) == f"expired nothing: snapshots 1 to {last} stay\n"
    before = state(folder)
    arguments = ("--older-than", "0s", "--retain-last", "2")
    dry = alcid("expire", folder, *arguments, "--dry-run", "--json")
    assert state(folder) == before
    same = same_numbers(dry, alcid("expire", folder, *arguments, "--json"))
    assert last is not None
    assert (same["snapshots"], same["earliest"], same["latest"]) == (last - 2, last - 1, last)
    assert len(list((folder / "snapshot").glob("snapshot-*"))) == 2
    text = text_of(alcid("expire", folder, "--older-than", "0s", "--retain-last", "1"))
    assert text.startswith(f"expired 1 snapshot: {last} stays; removed ")
    assert text.endswith(" in T s\n")
    assert ids_of(folder) == [*range(8)]


def test_only_paimon_tables_have_snapshots_that_expire_here(alcid: Alcid, tmp_path: Path) -> None:
    folder = parquet_folder(tmp_path / "events")
    run = alcid("expire", folder)
    assert (run.status, run.out) == (1, "")
    assert "expire is for Paimon tables, found ParquetTable" in run.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--older-than", "1y"), "--older-than: found '1y', expected "),
        (("--retain-last", "0"), "0"),
    ],
)
def test_arguments_that_cannot_be(
    alcid: Alcid, tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    paimon_table(tmp_path / "t")
    run = alcid("expire", tmp_path / "t", *arguments)
    assert (run.status, run.out) == (2, "")
    assert problem in run.err
