"""A compaction of a table: one snapshot, whatever others do meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid import PaimonTable
from alcid.errors import (
    ColumnError,
    ConflictError,
    FileGoneError,
    FormatError,
    LiteralError,
    UnsupportedError,
)
from alcid.tables.paimon.keyed import compact as compacting
from alcid.tables.paimon.keyed.bucket import Bucket, BucketCompaction, KeyedTable
from alcid.tables.paimon.keyed.bucket_compaction import compact_buckets
from alcid.tables.paimon.keyed.compact import compact
from alcid.tables.reports import CompactReport
from tests.tables.paimon.keyed.bucket_kit import BucketTable
from tests.tables.paimon.small_tables import create, set_options

PARTITIONED = {"dt": "DATE", "id": "INT", "v": "STRING"}
VECTORS = {"bucket": "2", "deletion-vectors.enabled": "true"}
DAYS = [date(2026, 8, 1), date(2026, 8, 2)]


def levels(table: PaimonTable) -> dict[Any, set[int]]:
    """The levels of the files of each partition."""
    table.refresh()
    by_partition: dict[Any, set[int]] = {}
    for placed in table.snapshot.placed:
        by_partition.setdefault(placed.folder.partition("/")[0], set()).add(placed.file.level)
    return by_partition


def kinds(table: PaimonTable) -> list[str]:
    """The kinds of all snapshots."""
    latest = table.folder.snapshots.latest()
    assert latest is not None
    return [table.folder.snapshots.get(number).commit_kind for number in range(1, latest.id + 1)]


def data_files(table: PaimonTable) -> set[str]:
    """All files in the folders of data and of indexes, whoever names them."""
    paths = table.storage.list().paths.to_pylist()
    return {path for path in paths if "bucket-" in path or path.startswith("index/")}


def named_files(table: PaimonTable) -> set[str]:
    """The data files that any snapshot has named."""
    latest = table.folder.snapshots.latest()
    assert latest is not None
    names: set[str] = set()
    for number in range(1, latest.id + 1):
        opened = PaimonTable(table.storage, snapshot_id=number, merge_on_read=True)
        names |= {placed.path for placed in opened.snapshot.placed}
        names |= {f"index/{index.name}" for index in opened.snapshot.state.indexes}
    return names


def day_rows(day: date, ids: Sequence[int], value: str) -> pa.Table:
    return pa.table(
        {
            "dt": pa.array([day] * len(ids), pa.date32()),
            "id": pa.array(ids, pa.int32()),
            "v": [value] * len(ids),
        }
    )


@pytest.fixture
def partitioned(tmp_path: Path) -> PaimonTable:
    """Two days in two buckets each, written three times."""
    table = create(
        tmp_path / "table",
        PARTITIONED,
        partition_keys=["dt"],
        primary_keys=["dt", "id"],
        options=VECTORS,
    )
    for step in range(3):
        for day in DAYS:
            table.upsert(day_rows(day, range(step * 5, step * 5 + 20), f"{step}"))
    return table


def as_set(table: PaimonTable) -> set[tuple[Any, ...]]:
    table.refresh()
    rows = table.scan().to_arrow()
    assert len(rows) == len(rows.select(["dt", "id"]).group_by(["dt", "id"]).aggregate([]))
    return {tuple(row.values()) for row in rows.to_pylist()}


def test_all_files_of_a_bucket_become_one(partitioned: PaimonTable) -> None:
    rows, snapshots = as_set(partitioned), len(kinds(partitioned))
    files = len(partitioned.snapshot.placed)
    assert files == 12
    report = compact(partitioned)
    assert kinds(partitioned)[snapshots:] == ["COMPACT"]
    assert as_set(partitioned) == rows
    assert levels(partitioned) == {"dt=20666": {5}, "dt=20667": {5}}
    written = [placed.file for placed in partitioned.snapshot.placed]
    assert report == CompactReport(
        buckets=4,
        files_before=12,
        files_after=4,
        rows=60,
        bytes_written=sum(file.size for file in written),
        snapshot_id=snapshots + 1,
        seconds=report.seconds,
    )
    assert sum(file.rows for file in written) == len(rows) == 60
    assert not [index for index in partitioned.snapshot.state.indexes if index.ranges]
    assert data_files(partitioned) == named_files(partitioned)


def test_a_second_time_there_is_nothing_to_do(partitioned: PaimonTable) -> None:
    compact(partitioned)
    snapshot = partitioned.snapshot_id
    report = partitioned.compact()
    assert (report.buckets, report.rows, report.snapshot_id) == (0, 0, None)
    assert str(report) == "compacted nothing: no bucket has anything to be merged"
    assert partitioned.snapshot_id == snapshot


def test_a_partition_is_compacted_alone(partitioned: PaimonTable) -> None:
    rows = as_set(partitioned)
    report = compact(partitioned, {"DT": DAYS[1]})
    assert (report.buckets, report.files_before, report.files_after) == (2, 6, 2)
    assert levels(partitioned) == {"dt=20666": {3, 4, 5}, "dt=20667": {5}}
    assert as_set(partitioned) == rows
    assert compact(partitioned, {"dt": date(2026, 8, 3)}).snapshot_id is None
    assert compact(partitioned, {"dt": None}).snapshot_id is None
    assert compact(partitioned, {}).buckets == 2


def test_partitions_are_found_by_some_of_their_keys(tmp_path: Path) -> None:
    table = create(
        tmp_path / "table",
        {"dt": "STRING", "part": "BIGINT", "id": "BIGINT", "v": "STRING"},
        partition_keys=["dt", "part"],
        primary_keys=["dt", "part", "id"],
        options={**VECTORS, "bucket": "1"},
    )
    for value in ("old", "new"):
        for day, part in (("a", 1), ("a", 2), ("b", 1)):
            table.upsert(pa.table({"dt": [day], "part": [part], "id": [1], "v": [value]}))
    assert compact(table, {"dt": "a", "part": 2}).buckets == 1
    assert compact(table, {"part": 1}).buckets == 2
    assert compact(table).snapshot_id is None


@pytest.mark.parametrize(
    ("partition", "error", "text"),
    [
        ({"id": 1}, ColumnError, "partition: id is no partition column"),
        ({"dt": "tomorrow"}, LiteralError, "partition dt: found 'tomorrow', expected date32[day]"),
    ],
    ids=["no partition key", "no date"],
)
def test_a_partition_that_cannot_be_is_an_error(
    partitioned: PaimonTable, partition: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as raised:
        compact(partitioned, partition)
    assert str(raised.value).startswith(text)


def test_tables_that_are_not_compacted_say_why(tmp_path: Path) -> None:
    plain = create(tmp_path / "plain", {"id": "INT"})
    with pytest.raises(UnsupportedError, match="compact: the table has no primary key"):
        plain.compact()
    changelog = create(
        tmp_path / "changelog",
        {"id": "INT"},
        primary_keys=["id"],
        options={"bucket": "1", "changelog-producer": "input"},
    )
    with pytest.raises(UnsupportedError, match="changelog-producer=input: cannot compact"):
        changelog.compact()


def test_a_table_of_the_past_is_not_compacted(partitioned: PaimonTable) -> None:
    past = alcid.paimon(partitioned.location, snapshot_id=1)
    with pytest.raises(UnsupportedError, match="opened at a snapshot of the past"):
        past.compact()


def test_a_table_without_vectors_is_compacted(tmp_path: Path) -> None:
    options = {"bucket": "1"}
    table = create(
        tmp_path / "table", {"id": "BIGINT", "v": "STRING"}, primary_keys=["id"], options=options
    )
    for step in range(3):
        table.upsert(pa.table({"id": [step, step + 1], "v": [f"{step}", f"{step}"]}))
    before = table.scan().to_arrow().sort_by("id")
    assert table.compact().files_after == 1
    assert table.scan().to_arrow().sort_by("id") == before
    assert [placed.file.level for placed in table.snapshot.placed] == [5]


# -- others at the same time -----------------------------------------------------------------


def meddle(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], object]) -> list[int]:
    """After each round of work, another writer does a step; returns the buckets of each round."""
    left, rounds = list(steps), list[int]()
    real = compact_buckets

    def compact_then_meddle(
        engine: Any, keyed: KeyedTable, buckets: Sequence[Bucket], **how: Any
    ) -> list[BucketCompaction | None]:
        rounds.append(len(buckets))
        made = real(engine, keyed, buckets, **how)
        if left:
            left.pop(0)()
        return made

    monkeypatch.setattr(compacting, "compact_buckets", compact_then_meddle)
    return rounds


def test_rows_that_come_meanwhile_stay_on_level_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = BucketTable(tmp_path)
    table.put({1: "a", 2: "b"}, level=5)
    table.put({2: "B", 3: "c"})
    rounds = meddle(monkeypatch, lambda: table.put({1: None, 3: "C"}))
    compact(table.table)
    assert rounds == [1]
    assert sorted(table.levels.values()) == [0, 5]
    assert table.rows() == {1: "a", 2: "B", 3: "c"}
    assert table.rows(merge_on_read=True) == {2: "B", 3: "C"}
    compact(table.table)
    assert table.rows() == {2: "B", 3: "C"}


def test_buckets_that_others_have_compacted_are_worked_out_again(
    partitioned: PaimonTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = PaimonTable(partitioned.storage)
    rows = as_set(partitioned) - {(DAYS[0], 0, "0")} | {(DAYS[0], 0, "new")}
    rounds = meddle(monkeypatch, lambda: other.upsert(day_rows(DAYS[0], [0], "new")))
    report = compact(partitioned)
    assert rounds == [4, 1]
    assert report.buckets == 4
    assert as_set(partitioned) == rows
    assert levels(partitioned) == {"dt=20666": {5}, "dt=20667": {5}}
    assert data_files(partitioned) == named_files(partitioned)


def test_a_compaction_that_another_has_done_is_left_to_it(
    partitioned: PaimonTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = PaimonTable(partitioned.storage)
    rows = as_set(partitioned)
    real = compact_buckets
    done: list[CompactReport] = []

    def first(*args: Any, **how: Any) -> Any:
        made = real(*args, **how)
        monkeypatch.setattr(compacting, "compact_buckets", real)
        done.append(compact(other))
        return made

    monkeypatch.setattr(compacting, "compact_buckets", first)
    report = compact(partitioned)
    assert done[0].buckets == 4
    assert report.snapshot_id is None
    assert as_set(partitioned) == rows
    assert data_files(partitioned) == named_files(partitioned)


def test_others_that_are_always_faster_are_a_conflict_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compacting, "_WAIT", 0.0)
    table = BucketTable(tmp_path, {"num-levels": "30"})
    table.put({1: "a", 2: "b"}, level=29)
    table.put({1: "A"})
    steps = [partial(table.upsert, {2: f"{number}"}) for number in range(10)]
    rounds = meddle(monkeypatch, *steps)
    with pytest.raises(ConflictError, match="bucket-0/: another has compacted it meanwhile"):
        compact(table.table)
    assert rounds == [1] * 10
    assert table.rows() == {1: "A", 2: "9"}
    assert data_files(table.table) == named_files(table.table)


def test_a_schema_that_came_meanwhile_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = BucketTable(tmp_path)
    table.put({1: "a", 2: "b"}, level=5)
    table.put({2: "B"})
    other = PaimonTable(table.table.storage)
    rounds = meddle(monkeypatch, lambda: set_options(other, snapshot__num_retained__min="3"))
    report = compact(table.table)
    assert rounds == [1, 0]  # was written under the previous schema, and is valid
    assert report.buckets == 1
    assert table.rows() == {1: "a", 2: "B"}
    assert {placed.file.schema_id for placed in table.bucket.files} == {0}


@pytest.mark.parametrize("number", [0, -1], ids=["first", "last"])
def test_a_damaged_file_stops_all_and_leaves_nothing(partitioned: PaimonTable, number: int) -> None:
    path = Path(partitioned.location) / partitioned.snapshot.placed[number].path
    content = path.read_bytes()
    path.write_bytes(content[:-8] + b"\0" * 8)
    before = data_files(partitioned)
    with pytest.raises(FormatError):
        compact(partitioned)
    assert data_files(partitioned) == before


def test_a_file_that_is_gone_is_an_error_in_the_end(
    partitioned: PaimonTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compacting, "_WAIT", 0.0)
    last = partitioned.snapshot.placed[-1]
    (Path(partitioned.location) / last.path).unlink()
    before = data_files(partitioned)
    with pytest.raises(FileGoneError):
        compact(partitioned)
    assert data_files(partitioned) == before
