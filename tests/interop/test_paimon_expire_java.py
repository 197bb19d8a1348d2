"""Expiry of snapshots, compared with that of Paimon's Java on a copy of the same table."""

from __future__ import annotations

import json
import random
import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid.errors import UnsupportedError
from tests.golden.paimon_table_cases import WRITE_ONLY, birds, key_vectors, sidecars
from tests.golden.paimon_tables import table_names, unpack_table
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.interop.test_paimon_maintain_java import files_of, grow_old, remove_orphans
from tests.tables.paimon.known_rows import as_text

HOUR = 3_600_000
KEYED = {"bucket": "2", "deletion-vectors.enabled": "true"}


def copy_of(table: Path, name: str) -> Path:
    """The same table in another folder."""
    return Path(shutil.copytree(table, table.with_name(f"{table.name}-{name}")))


def numbers_of(table: Path) -> list[int]:
    return sorted(int(path.name[9:]) for path in (table / "snapshot").glob("snapshot-*"))


def change_json(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **fields}))


def upserted(table: Path, batches: int, options: dict[str, str] | None = None) -> None:
    """A table with a key that a sink has written to."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
    opened = alcid.create_table(table, schema, primary_key=["id"], options=options or KEYED)
    sink = alcid.upsert_sink(opened, "s")
    for batch in range(batches):
        ids = range(batch, batch + 8)
        sink(pa.table({"id": ids, "name": [f"{batch}"] * 8}, schema), batch)


@pytest.mark.parametrize("name", table_names())
def test_the_files_that_stay_are_those_of_java(
    java_paimon: JavaPaimon, tmp_path: Path, name: str
) -> None:
    table = unpack_table(name, tmp_path)
    for keep in range(1, len(numbers_of(table)) + 1):
        theirs, ours = copy_of(table, f"java-{keep}"), copy_of(table, f"ours-{keep}")
        count = java_paimon.expire(theirs, keep=keep)
        report = alcid.paimon(ours).expire_snapshots(timedelta(0), keep)
        assert report.snapshots == count
        assert files_of(ours) - {"snapshot/EARLIEST"} == files_of(theirs) - {"snapshot/EARLIEST"}
        if count:
            earliest = (theirs / "snapshot/EARLIEST").read_text()
            assert (ours / "snapshot/EARLIEST").read_text() == earliest == str(report.earliest)
        assert java_paimon.read(ours).num_rows == java_paimon.read(theirs).num_rows


def test_the_files_of_a_sink_that_stay_are_those_of_java(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    upserted(table, 12)
    (table / "statistics").mkdir()
    alcid.paimon(table).compute_stats()
    alcid.paimon(table).build_indexes({"file-index.bloom-filter.columns": "name"})
    theirs = copy_of(table, "java")
    assert java_paimon.expire(theirs, keep=2) > 0
    alcid.paimon(table).expire_snapshots(timedelta(0), 2)
    assert files_of(table) == files_of(theirs)
    grow_old(table)
    orphans = remove_orphans(java_paimon, theirs)
    assert {one.path for one in alcid.paimon(table).clean(timedelta(0)).removed} >= orphans


def test_which_snapshots_expire_is_what_java_decides(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    """Every option at random, snapshots of any age, and consumers."""
    source = random.Random(5)
    table = tmp_path / "t"
    upserted(table, 6)
    numbers = numbers_of(table)
    expired = set()
    for round_ in range(30):
        least, age = source.randint(1, 12), source.choice([0, 1, 2, 5, 9, 30])
        options = {
            "snapshot.num-retained.min": str(least),
            "snapshot.num-retained.max": str(least + source.choice([0, 3, 100])),
            "snapshot.time-retained": source.choice(
                [f"{age} h", f"{age * HOUR}", f"{age * 60}min"]
            ),
            "snapshot.expire.limit": str(source.choice([1, 3, 50])),
        }
        copies = copy_of(table, f"java-{round_}"), copy_of(table, f"ours-{round_}")
        now = int(time.time() * 1000)
        for copy in copies:
            schema = copy / "schema/schema-0"
            change_json(schema, options=json.loads(schema.read_bytes())["options"] | options)
            for number in numbers:
                # Half an hour after the full one, so that the seconds of the test do not matter.
                then = now - (numbers[-1] - number) * HOUR - HOUR // 2
                change_json(copy / f"snapshot/snapshot-{number}", timeMillis=then)
        if source.random() < 0.4:
            following = source.randint(1, numbers[-1] + 1)
            for copy in copies:
                (copy / "consumer").mkdir()
                (copy / "consumer/consumer-c").write_text(json.dumps({"nextSnapshot": following}))
                (copy / "consumer/consumer-d").write_text(json.dumps({"nextSnapshot": 99}))
        theirs, ours = copies
        count = java_paimon.expire_by_options(theirs)
        assert alcid.paimon(ours).expire_snapshots().snapshots == count, options
        assert files_of(ours) - {"snapshot/EARLIEST"} == files_of(theirs) - {"snapshot/EARLIEST"}
        expired.add(count)
    assert len(expired) > 5


@pytest.mark.filterwarnings("ignore:.*not yet compacted")
def test_java_goes_on_with_what_is_left(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    """It reads the snapshots and the tag that stay, commits, compacts and expires on."""
    table = tmp_path / "t"
    key_vectors(java_paimon, table)
    numbers = numbers_of(table)
    java_paimon.tag(table, "old", numbers[2])
    at: dict[str, dict[str, str]] = {
        f"{number}": {"scan.snapshot-id": str(number)} for number in numbers[-3:]
    } | {"old": {"scan.tag-name": "old"}, "now": {}}
    before = {
        name: as_text(java_paimon.read(table, options=options)) for name, options in at.items()
    }
    report = alcid.paimon(table).expire_snapshots(timedelta(0), 3)
    assert (report.snapshots, report.earliest) == (len(numbers) - 3, numbers[-3])
    after = {
        name: as_text(java_paimon.read(table, options=options)) for name, options in at.items()
    }
    assert after == before
    opened = alcid.paimon(table, tag="old")
    assert as_text(opened.scan().to_arrow()) == before["old"]
    merged = as_text(alcid.paimon(table, merge_on_read=True).scan().to_arrow())
    java_paimon.compact(table)
    assert as_text(java_paimon.read(table)) == merged
    assert java_paimon.expire(table, keep=1) > 0
    assert as_text(java_paimon.read(table, options=at["old"])) == before["old"]
    assert as_text(java_paimon.read(table)) == merged
    assert alcid.paimon(table).verify(progress=False).ok


def test_a_tag_keeps_what_java_lets_it_keep(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    table = tmp_path / "t"
    upserted(table, 8)
    for number in (3, 8):
        java_paimon.tag(table, f"t{number}", number)
    tagged = {
        number: as_text(java_paimon.read(table, options={"scan.tag-name": f"t{number}"}))
        for number in (3, 8)
    }
    theirs = copy_of(table, "java")
    java_paimon.expire(theirs, keep=1)
    alcid.paimon(table).expire_snapshots(timedelta(0), 1)
    assert files_of(table) == files_of(theirs)
    for number, rows in tagged.items():
        options = {"scan.tag-name": f"t{number}"}
        assert as_text(java_paimon.read(table, options=options)) == rows


def test_a_branch_keeps_what_java_takes_from_it(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    """Once the tag is gone that a branch was made of, Java's expiry knows nothing of the branch."""
    table = java_paimon.create(tmp_path / "t", {"id": "INT", "name": "STRING"}, options=WRITE_ONLY)
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", "b"]})
    java_paimon.write(table, rows)
    java_paimon.tag(table, "first", 1)
    java_paimon.branch(table, "b", "first")
    (table / "tag/tag-first").unlink()
    (table / "branch/branch-b/tag/tag-first").unlink()
    java_paimon.write(table, rows, overwrite={})
    theirs = copy_of(table, "java")
    assert java_paimon.expire(theirs, keep=1) == 1
    assert alcid.paimon(table).expire_snapshots(timedelta(0), 1).snapshots == 1
    lost = files_of(table) - files_of(theirs)
    assert len([path for path in lost if path.startswith("bucket-0/")]) == 1
    assert files_of(theirs) <= files_of(table)
    read = java_paimon.read(table, options={"branch": "b"})
    assert sorted(read["id"].to_pylist()) == [1, 2]
    with pytest.raises(Exception, match=r"FileNotFound|not exist|NoSuchFile"):
        java_paimon.read(theirs, options={"branch": "b"})


def test_changelogs_go_with_their_snapshots(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    columns = {"id": "INT NOT NULL", "name": "STRING"}
    options = {"bucket": "1", "changelog-producer": "input"}
    table = java_paimon.create(tmp_path / "t", columns, primary_keys=["id"], options=options)
    for batch in range(5):
        ids = pa.array([batch, batch + 1], pa.int32())
        java_paimon.write(table, pa.table({"id": ids, "name": [f"{batch}"] * 2}))
    assert [path for path in files_of(table) if "changelog-" in path]
    for keep in (3, 1):
        theirs, ours = copy_of(table, f"java-{keep}"), copy_of(table, f"ours-{keep}")
        assert java_paimon.expire(theirs, keep=keep) > 0
        alcid.paimon(ours).expire_snapshots(timedelta(0), keep)
        assert files_of(ours) == files_of(theirs)
        assert as_text(java_paimon.read(ours)) == as_text(java_paimon.read(table))
    java_paimon.alter(table, "setOption", "changelog.num-retained.min", "20")
    before = files_of(table)
    with pytest.raises(UnsupportedError, match=r"changelog.num-retained.min=20: cannot expire"):
        alcid.paimon(table).expire_snapshots(timedelta(0), 1)
    assert files_of(table) == before


def test_indexes_that_were_replaced_stay_as_in_java_until_clean(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    sidecars(java_paimon, table)
    replaced = {path for path in files_of(table) if path.endswith(".parquet.index")}
    alcid.paimon(table).expire_snapshots(timedelta(0), 1)
    assert replaced <= files_of(table)
    assert {one.path for one in alcid.paimon(table).clean(timedelta(0)).removed} == replaced


def test_what_java_appends_after_it_is_read(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    table = tmp_path / "t"
    sidecars(java_paimon, table)
    rows = java_paimon.read(table).num_rows
    alcid.paimon(table).expire_snapshots(timedelta(0), 1)
    more = birds(50, 53)
    if "dt" in java_paimon.read(table).column_names:
        more = more.append_column("dt", pa.array(["new"] * len(more)))
    java_paimon.write(table, more.select(java_paimon.read(table).column_names), options=WRITE_ONLY)
    assert java_paimon.read(table).num_rows == rows + len(more)
    assert alcid.paimon(table).count() == rows + len(more)
