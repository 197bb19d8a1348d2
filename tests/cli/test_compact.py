from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import alcid as library
from tests.cli.samples import Alcid
from tests.cli.writing import paimon_table, rows_of, same_numbers, state, text_of


@pytest.fixture
def table(tmp_path: Path) -> Path:
    columns = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    made = library.create_table(
        tmp_path / "t",
        columns,
        primary_key=["id", "day"],
        partition_by=["day"],
        options={"bucket": "1", "deletion-vectors.enabled": "true"},
    )
    for first in (0, 5):
        for day in (1, 2):
            days = [date(2025, 8, day)] * 10
            made.upsert(pa.table({"id": range(first, first + 10), "day": days}))
    return tmp_path / "t"


def test_a_dry_run_says_which_buckets_then_are_compacted(alcid: Alcid, table: Path) -> None:
    before = state(table)
    files = library.paimon(table).files
    command = ("compact", table, "--json")
    dry = alcid(*command, "--dry-run")
    assert state(table) == before
    same = same_numbers(dry, alcid(*command))
    assert same == {"buckets": 2, "files_before": files}
    assert text_of(alcid("compact", table)) == (
        "compacted nothing: no bucket has anything to be merged\n"
    )
    assert alcid(*command, "--dry-run").json["buckets"] == 0


def test_a_partition_is_chosen_by_its_text(alcid: Alcid, table: Path) -> None:
    command = ("compact", table, "--partition", "day=2025-08-02")
    assert text_of(alcid(*command, "--dry-run")) == "would have compacted 1 bucket of 2 files\n"
    done = text_of(alcid(*command))
    assert done.startswith("compacted 1 bucket: 2 files became 1, 15 rows (")
    assert alcid("compact", table, "--dry-run", "--json").json["buckets"] == 1


@pytest.mark.parametrize(
    ("partition", "problem"),
    [
        ("day=monday", "--partition day: found 'monday', expected date32[day]"),
        ("id=3", "partition: id is no partition column, found day"),
        ("dya=2025-08-01", "did you mean day?"),
        ("day", "--partition: found 'day', expected KEY=VALUE"),
    ],
)
def test_a_partition_that_cannot_be(
    alcid: Alcid, table: Path, partition: str, problem: str
) -> None:
    for dry in ((), ("--dry-run",)):
        run = alcid("compact", table, "--partition", partition, *dry)
        assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
        assert problem in run.err


def test_a_table_without_a_key_is_not_compacted(alcid: Alcid, tmp_path: Path) -> None:
    paimon_table(tmp_path / "a").append(rows_of(0, 10))
    for dry in ((), ("--dry-run",)):
        run = alcid("compact", tmp_path / "a", *dry)
        assert (run.status, run.out, run.err.count("\n")) == (1, "", 1)
        assert "primary key" in run.err
