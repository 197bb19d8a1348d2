"""What Java's write-only jobs left on level 0 is compacted here: Java sees the same."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid import PaimonTable
from alcid.tables.engine import Threads
from alcid.tables.paimon.data_files import table_paths
from alcid.tables.paimon.keyed.bucket import buckets_of
from alcid.tables.paimon.keyed.bucket_compaction import compact_buckets
from alcid.tables.paimon.keyed.commit import compact_change
from alcid.tables.paimon.keyed.upsert import keyed_table
from alcid.tables.paimon.metadata.table_state import DELETION_VECTORS
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.golden.paimon_writing import RowKind
from tests.tables.paimon.known_rows import as_text

COLUMNS = {"id": "INT NOT NULL", "v": "STRING", "at": "INT"}
VECTORS = {"bucket": "2", "deletion-vectors.enabled": "true"}
WRITE_ONLY = {"write-only": "true"}


def rows_of(model: dict[int, tuple[str, int]]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(model, pa.int32()),
            "v": pa.array([value for value, _ in model.values()], pa.string()),
            "at": pa.array([at for _, at in model.values()], pa.int32()),
        }
    )


def compact_level_0(table: PaimonTable) -> None:
    """Compact level 0 of all buckets, and nothing more than that needs."""
    table.refresh()
    files = table.snapshot
    keyed = keyed_table(table, "compact")
    buckets = list(buckets_of(files.state, table_paths(files.schema, files.options)))
    made = [
        bucket
        for bucket in compact_buckets(Threads(), keyed, buckets, full=False)
        if bucket is not None
    ]
    if made:
        assert table.committer().commit(lambda _: compact_change(made)) is not None


def levels(table: PaimonTable) -> list[int]:
    """For all files, sorted."""
    table.refresh()
    return sorted(entry.file.level for entry in table.snapshot.state.entries)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="by number"),
        pytest.param({"sequence.field": "at"}, id="by field"),
        pytest.param({"deletion-vectors.bitmap64": "true"}, id="64 bits"),
        pytest.param({"target-file-size": "2 kb", "num-levels": "3"}, id="many files, few levels"),
        pytest.param({"deletion-vectors.enabled": "false"}, id="no vectors"),
        pytest.param({"deletion-vectors.merge-on-read": "true"}, id="merge on read"),
        pytest.param({"data-file.thin-mode": "true", "bucket": "-1"}, id="thin, dynamic buckets"),
    ],
)
def test_turns_of_java_and_us(
    java_paimon: JavaPaimon, tmp_path: Path, options: dict[str, str]
) -> None:
    source = random.Random(str(options))
    table_options = {**VECTORS, **options}
    path = java_paimon.create(tmp_path / "t", COLUMNS, primary_keys=["id"], options=table_options)
    table = alcid.paimon(path)
    model: dict[int, tuple[str, int]] = {}

    # A delete that is compacted away leaves no field that later rows would have to exceed.
    kinds: list[RowKind] = ["+I"] if "sequence.field" in options else ["+I", "+I", "-D"]

    def write(**how: Any) -> None:
        """Rows, or deletes, written by Java."""
        kind = source.choice(kinds)
        keys = source.sample(range(40), source.choice([1, 8, 25]))
        batch = {key: (chr(97 + key) * source.randrange(60), source.randrange(9)) for key in keys}
        java_paimon.write(path, rows_of(batch), kind, **how)
        for key, (value, at) in batch.items():
            if "sequence.field" in options and key in model and model[key][1] > at:
                continue
            if kind == "-D":
                model.pop(key, None)
            else:
                model[key] = value, at

    for _ in range(8):
        for _ in range(source.randrange(1, 4)):
            write(options=WRITE_ONLY)
        if source.random() < 0.6:
            compact_level_0(table)
        else:
            table.compact()
            assert set(levels(table)) <= {int(table_options.get("num-levels", "6")) - 1}
        if table_options["deletion-vectors.enabled"] == "true":
            assert 0 not in levels(table)
        assert as_text(java_paimon.read(path)) == as_text(rows_of(model))
        assert as_text(alcid.paimon(path).scan().to_arrow()) == as_text(rows_of(model))
        if source.random() < 0.5:
            write()  # it opens the bucket, checks its runs, and compacts
            if table_options["deletion-vectors.enabled"] == "true":
                assert as_text(java_paimon.read(path)) == as_text(rows_of(model))
        report = alcid.paimon(path).verify(progress=False)
        assert report.ok, str(report)
    java_paimon.compact(path)
    assert as_text(java_paimon.read(path)) == as_text(rows_of(model))


def test_files_of_older_schemas_are_merged_into_the_present_one(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    path = java_paimon.create(tmp_path / "t", COLUMNS, primary_keys=["id"], options=VECTORS)
    java_paimon.write(path, rows_of({key: (f"old {key}", key) for key in range(10)}))
    java_paimon.alter(path, "renameColumn", "v", "w")
    java_paimon.alter(path, "updateColumnType", "at", "BIGINT")
    java_paimon.alter(path, "addColumn", "x", "DOUBLE")
    newer = pa.table(
        {
            "id": pa.array([3, 4, 20], pa.int32()),
            "w": ["new", None, "new"],
            "at": pa.array([1 << 40, None, 0], pa.int64()),
            "x": [1.5, 2.5, None],
        }
    )
    java_paimon.write(path, newer, options=WRITE_ONLY)
    before = as_text(java_paimon.read(path, merged=True))
    assert len(before) == 11
    table = alcid.paimon(path)
    assert table.compact().rows == 11
    assert {placed.file.schema_id for placed in table.snapshot.placed} == {3}
    assert as_text(java_paimon.read(path)) == before
    java_paimon.write(path, newer.slice(0, 1))
    java_paimon.compact(path)
    assert as_text(java_paimon.read(path)) == before


def test_partitions_and_index_files_next_to_the_data(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    path = java_paimon.create(
        tmp_path / "t",
        {"dt": "STRING NOT NULL", "id": "INT NOT NULL", "v": "STRING"},
        partition_keys=["dt"],
        primary_keys=["dt", "id"],
        options={**VECTORS, "index-file-in-data-file-dir": "true"},
    )

    def batch(day: str, first: int, value: str) -> pa.Table:
        ids = pa.array(range(first, first + 10), pa.int32())
        return pa.table({"dt": [day] * 10, "id": ids, "v": [value] * 10})

    for day in ("a b", "c"):
        java_paimon.write(path, batch(day, 0, "old"))
        java_paimon.write(path, batch(day, 5, "new"), options=WRITE_ONLY)
    table = alcid.paimon(path)
    compact_level_0(table)
    table.refresh()
    expected = as_text(java_paimon.read(path))
    assert len(expected) == 30
    names = {
        index.name for index in table.snapshot.state.indexes if index.index_type == DELETION_VECTORS
    }
    assert len(names) == 4
    assert names <= {path.name for path in path.glob("dt=*/bucket-*/index-*")}
    assert table.compact({"dt": "a b"}).buckets == 2
    assert as_text(java_paimon.read(path)) == expected
    for day in ("a b", "c"):
        java_paimon.write(path, batch(day, 0, "old").slice(0, 5))
    assert as_text(java_paimon.read(path)) == expected


def test_a_writer_that_gives_out_numbers_again_wins_as_it_does_in_java(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    """It took its first number before we wrote: its rows are newer, but have lower numbers.

    This happens where Java looks up older rows, as it does in larger runs. It merges smaller runs
    with the new rows, and then decides by number. Here it never decides by number.
    """
    lazy = {"num-sorted-run.compaction-trigger": "100", "num-levels": "6"}
    options = {**VECTORS, **lazy, "bucket": "1"}
    letters = random.Random(0).randbytes(20_000).hex()
    path = java_paimon.create(tmp_path / "t", COLUMNS, primary_keys=["id"], options=options)
    table = alcid.paimon(path)
    table.upsert(rows_of(dict.fromkeys(range(10), ("first" + letters, 0))))
    with java_paimon.open_writer(path, WRITE_ONLY) as writer:
        writer.write(rows_of({99: ("java", 0)}))  # now it has looked at the bucket
        table.upsert(rows_of(dict.fromkeys(range(10), ("we" + letters, 0))))
        table.upsert(rows_of(dict.fromkeys(range(5), ("we again" + letters, 0))))
        writer.write(rows_of(dict.fromkeys(range(3), ("java", 0))))
        writer.commit()
    table.refresh()
    numbers = {entry.file.level: entry.file.max_sequence for entry in table.snapshot.state.entries}
    assert numbers[0] < numbers[3]
    copied = tmp_path / "copied"
    shutil.copytree(path, copied)
    java_paimon.write(copied, rows_of({50: ("one more", 0)}))  # it has to compact level 0
    runs = [entry.file.level for entry in alcid.paimon(copied).snapshot.state.entries]
    assert sorted(runs) == [2, 3, 4, 5]
    compact_level_0(table)
    table.upsert(rows_of({50: ("one more", 0)}))
    values = ["java"] * 3 + ["we again" + letters] * 2 + ["we" + letters] * 5
    expected = {key: (value, 0) for key, value in enumerate(values)}
    expected |= {99: ("java", 0), 50: ("one more", 0)}
    assert as_text(java_paimon.read(copied)) == as_text(rows_of(expected))
    assert as_text(java_paimon.read(path)) == as_text(rows_of(expected))
    table.compact()
    assert as_text(java_paimon.read(path)) == as_text(rows_of(expected))
