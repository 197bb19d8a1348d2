"""Upserts and compactions whose rows or keys do not fit into memory write what others write."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import PaimonTable
from alcid.errors import FormatError, StorageError, UnsupportedError
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.paimon.data_files import stored_schema
from alcid.tables.paimon.key_ranges import key_ranges
from alcid.tables.paimon.keyed import bucket_upsert, live_rows, upsert
from alcid.tables.paimon.keyed.bucket_compaction import compact_bucket
from alcid.tables.paimon.keyed.key_files import KeyReader, SortedRun
from alcid.tables.paimon.keyed.live_rows import merge_rows
from alcid.tables.paimon.keyed.memory import MemoryBounds
from alcid.tables.paimon.keyed.older_rows import OlderRows
from alcid.tables.paimon.keyed.spill import Spill, SpilledRows
from alcid.tables.paimon.keyed.upsert import UpsertPlan, upsert_rows
from alcid.tables.rows import ArrowRows, KeyedRowWriter, RowPiece
from tests.tables.paimon.keyed.bucket_kit import BucketTable
from tests.tables.paimon.small_tables import create

T = TypeVar("T")

TINY = MemoryBounds(buffered_bytes=40, key_bytes=200, hash_bytes=64, most_merged=2)
VECTORS = {"deletion-vectors.enabled": "true"}
KEYS = {"part": "INT", "name": "STRING", "id": "DOUBLE"}
COLUMNS = KEYS | {"at": "INT", "v": "STRING"}
LAYOUTS = {
    "fixed": VECTORS | {"bucket": "2"},
    "dynamic": VECTORS | {"bucket": "-1", "dynamic-bucket.target-row-num": "5"},
    "merged": {"bucket": "2"},
}
EACH_LAYOUT = pytest.mark.parametrize("layout", LAYOUTS)


@contextmanager
def bounded(memory: MemoryBounds) -> Iterator[None]:
    """Let the tasks of upserts and compactions have little memory."""
    with patch.object(upsert, "DEFAULT_MEMORY", memory):
        yield


@contextmanager
def small_groups(rows: int) -> Iterator[None]:
    """Row groups of few rows, so that small files have several."""
    with (
        patch("alcid.tables.parquet_writer.GROUP_ROWS", rows),
        patch("alcid.tables.paimon.keyed.key_files.GROUP_ROWS", rows),
    ):
        yield


def stored(table: PaimonTable) -> dict[tuple[bytes, int, int], list[dict[str, Any]]]:
    """The rows of all files, system columns included, by partition, bucket and level."""
    table.refresh()
    rows: dict[tuple[bytes, int, int], list[dict[str, Any]]] = {}
    for placed in table.snapshot.placed:
        data = table.storage.source(placed.path).read(0, placed.file.size)
        place = (*placed.entry.bucket_id, placed.file.level)
        rows.setdefault(place, []).extend(pq.read_table(io.BytesIO(data)).to_pylist())
    return dict(sorted(rows.items()))


def hashes(table: PaimonTable) -> dict[tuple[bytes, int], bytes]:
    """The hash index of each bucket."""
    return {
        entry.bucket_id: table.storage.source(f"index/{entry.name}").read(0, entry.size)
        for entry in table.snapshot.state.indexes
        if entry.index_type == "HASH"
    }


NAMES = ["", "a", "ab", "b", "ü", "b" * 40]
KINDS = ["+I", "+U", "-U", "-D"]
SCHEMA = pa.schema(
    [
        ("part", pa.int32()),
        ("name", pa.string()),
        ("id", pa.float64()),
        ("at", pa.int32()),
        ("v", pa.string()),
        ("op", pa.string()),
    ]
)


def rows_of(rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows with their kinds."""
    return pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA
    )


def random_rows(seed: int, count: int) -> pa.Table:
    random = Random(seed)
    return rows_of(
        [
            (
                random.randint(0, 1),
                random.choice(NAMES) + str(random.randint(0, 9)),
                random.choice([0.0, -0.0, 1.5, float("nan")]),
                random.choice([None, 0, 1, 2]),
                f"v{seed}-{number}",
                random.choice(KINDS),
            )
            for number in range(count)
        ]
    )


def keyed_tables(folder: Path, options: Mapping[str, str], count: int = 2) -> list[PaimonTable]:
    """Equal tables without rows."""
    return [
        create(
            folder / str(number),
            COLUMNS,
            partition_keys=["part"],
            primary_keys=["part", "name", "id"],
            options=options,
        )
        for number in range(count)
    ]


def rows_in(table: PaimonTable) -> list[str]:
    """What is read, as text: NaN is not equal to itself."""
    table.refresh()
    return sorted(map(repr, table.scan().to_arrow().to_pylist()))


@EACH_LAYOUT
@pytest.mark.parametrize("options", [{}, {"sequence.field": "at"}], ids=["arrival", "field"])
def test_upserts_and_compactions_with_little_memory_leave_the_same_files(
    tmp_path: Path, layout: str, options: dict[str, str]
) -> None:
    table, other = keyed_tables(tmp_path, LAYOUTS[layout] | options)
    for seed in range(2):
        rows = random_rows(seed, 80)
        with small_groups(4):
            expected = other.upsert(rows, row_kind="op")
            with bounded(TINY):
                report = table.upsert(rows, row_kind="op")
        counts = ("rows", "deletes", "replaced", "files", "buckets", "snapshot_id")
        assert [getattr(report, name) for name in counts] == [
            getattr(expected, name) for name in counts
        ]
        assert repr(stored(table)) == repr(stored(other))  # NaN is not equal to itself
        assert hashes(table) == hashes(other)
        assert rows_in(table) == rows_in(other)
    with small_groups(4), bounded(TINY):
        table.compact(progress=False)
    other.compact(progress=False)
    assert repr(stored(table)) == repr(stored(other))
    assert rows_in(table) == rows_in(other)


# -- ranges of keys ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """Some keys of a stream."""

    values: pa.Array
    first: int
    name: str | None = "a file"

    @property
    def keys(self) -> Sequence[pa.Array]:
        return [self.values]

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> Part:
        return Part(self.values.slice(start, stop - start), self.first + start)


def parts_of(keys: Sequence[int], size: int) -> Iterator[tuple[Part, bool]]:
    for first in range(0, len(keys), size):
        part = pa.array(keys[first : first + size], pa.int64())
        yield Part(part, first), first + size >= len(keys)


@given(
    streams=st.lists(st.lists(st.integers(0, 30)).map(sorted), max_size=4),
    size=st.integers(1, 5),
)
def test_ranges_have_all_rows_of_their_keys(streams: list[list[int]], size: int) -> None:
    below, rows = -1, [list[int]() for _ in streams]
    for parts in key_ranges([parts_of(keys, size) for keys in streams]):
        keys = [key for of_stream in parts for part in of_stream for key in part.values.to_pylist()]
        assert min(keys) > below
        below = max(keys)
        for own, of_stream in zip(rows, parts, strict=True):
            for part in of_stream:
                assert part.first == len(own)
                own.extend(part.values.to_pylist())
    assert rows == streams


def test_streams_of_one_part_are_one_range_whatever_their_order() -> None:
    with patch("alcid.tables.paimon.key_ranges.rank_rows", side_effect=AssertionError):
        (parts,) = key_ranges([parts_of([3, 1], 2), parts_of([], 2), parts_of([2], 2)])
    assert [[part.values.to_pylist() for part in own] for own in parts] == [[[3, 1]], [], [[2]]]


def test_few_parts_of_each_stream_are_in_memory() -> None:
    most, read = 0, 0

    def parts(keys: range) -> Iterator[tuple[Part, bool]]:
        nonlocal read
        for part, is_last in parts_of(list(keys), 10):
            read += len(part)
            yield part, is_last

    for own in key_ranges([parts(range(start, 3000, 3)) for start in range(3)]):
        most = max(most, read)
        read -= sum(len(part) for of_stream in own for part in of_stream)
    assert most <= 3 * 2 * 10


def test_a_stream_that_is_not_sorted_is_refused() -> None:
    streams = [parts_of([1, 2, 5, 4, 9, 10], 2), parts_of([1, 7], 2)]
    with pytest.raises(FormatError, match=r"^a file: key of row 3 is below the one before$"):
        list(key_ranges(streams))


# -- spilled rows ------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["a value", "the disk"])
def test_nothing_stays_behind_where_an_upsert_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    (table,) = keyed_tables(tmp_path, LAYOUTS["fixed"], 1)
    folder = tmp_path / "local"
    folder.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / 'none'},{folder}")
    seen = list[list[Path]]()
    write = Spill.write

    def write_seen(self: Spill, runs: Any) -> None:
        write(self, runs)
        seen.append(list(folder.rglob("*.arrow")))
        if problem == "the disk" and len(seen) > 1:
            monkeypatch.setattr("alcid.tables.paimon.keyed.spill.pa.OSFile", no_room)

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    rows = random_rows(1, 60)
    if problem == "a value":
        rows = pa.concat_tables([rows, rows.slice(0, 1).set_column(5, "op", pa.array(["x"]))])
    errors = {"a value": (UnsupportedError, "found 'x'"), "the disk": (StorageError, "No space")}
    error, message = errors[problem]
    with (
        bounded(TINY),
        patch.object(Spill, "write", write_seen),
        pytest.raises(error, match=message),
    ):
        table.upsert(rows, row_kind="op")
    assert len(seen) > 1
    assert len(seen[1]) == 2  # they were where Spark has room
    assert list(folder.iterdir()) == []
    assert table.snapshot_id is None


def test_many_runs_are_merged_in_several_passes(tmp_path: Path) -> None:
    (table,) = keyed_tables(tmp_path, LAYOUTS["fixed"], 1)
    merged = list[int]()
    merge_spilled = bucket_upsert.merge_spilled

    def counted(keyed: Any, parts: Sequence[SpilledRows]) -> SpilledRows:
        merged.append(len({part.name for part in parts}))
        return merge_spilled(keyed, parts)

    with bounded(TINY), patch("alcid.tables.paimon.keyed.upsert_job.merge_spilled", counted):
        assert table.upsert(random_rows(3, 90), row_kind="op").buckets == 4
    assert max(merged) == TINY.most_merged


def test_rows_of_an_earlier_piece_that_arrived_later_are_newer(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    keyed = table.keyed
    runs = [
        SpilledRows(
            SortedRun(
                pa.table(
                    {"id": pa.array([1, 2], pa.int32()), "v": values, "at": pa.nulls(2, pa.int32())}
                ),
                np.array([number, number + 1]),
                np.zeros(2, np.int8),
            ),
            np.array(arrival),
            ["id"],
        )
        for number, values, arrival in ((0, ["a", "b"], [7, 2]), (2, ["c", "d"], [6, 3]))
    ]
    rows = bucket_upsert.merge_spilled(keyed, runs)
    assert rows.run.rows.column("v").to_pylist() == ["a", "d"]
    assert rows.arrival.tolist() == [7, 3]
    assert rows.run.numbers.tolist() == [0, 3]


# -- older rows --------------------------------------------------------------------------------


def test_older_rows_are_looked_up_span_by_span(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    with small_groups(4):
        top = table.put({key: f"a{key}" for key in range(0, 100, 2)}, level=5)
        low = table.put({key: f"b{key}" for key in range(0, 60, 3)}, level=4)
    table.mark({top.file.name: [key // 2 for key in range(0, 60, 6)]})
    keyed = replace(table.keyed, memory=MemoryBounds(key_bytes=2 * 8 * 33))
    read = list[tuple[str, int]]()
    read_span = KeyReader.read_span

    def read_seen(self: KeyReader, placed: Any, deleted: Any, span: Any) -> Any:
        part = read_span(self, placed, deleted, span)
        assert len(part) <= 6
        read.append((placed.file.name, part.first))
        return part

    chunks = [[3, 4, 5], [6, 8, 9], [50, 51, 70], [96, 97, 300]]
    with patch.object(KeyReader, "read_span", read_seen):
        older = OlderRows(keyed, table.bucket)
        kept = list(older.supersede(run_of(keyed, ids) for ids in chunks))
    assert [chunk.rows.column("id").to_pylist() for chunk in kept] == chunks
    added = {name: list(rows) for name, rows in older.update.added.items()}
    assert added == {
        top.file.name: [2, 4, 25, 35, 48],
        low.file.name: [1, 2, 3, 17],
    }
    # All 12 and 5 spans for the first chunk, then 3, 4 and 1 that are near and not in memory.
    assert len(set(read[:17])) == 17
    assert len(read) == 17 + 3 + 4 + 1


def run_of(keyed: Any, ids: Sequence[int]) -> SortedRun:
    stored = stored_schema(keyed.schema)
    columns = {"id": ids, "v": ["new"] * len(ids), "at": [None] * len(ids)}
    rows = pa.table([pa.array(columns[one.name], one.type) for one in stored], schema=stored)
    return SortedRun(rows, np.arange(len(ids)), np.zeros(len(ids), np.int8))


# -- compaction --------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_files_are_merged_range_by_range_into_the_same_chunks(
    tmp_path: Path, chunk_rows: int
) -> None:
    table, random = BucketTable(tmp_path), Random(4)
    left = list(range(200))
    random.shuffle(left)
    with small_groups(3):
        files = [
            table.put({key: f"v{key}" for key in left[first::4]}, level=first + 1)
            for first in range(4)
        ]
    deleted = {
        files[1].file.name: DeletionVector([0, 3, 49]),
        files[2].file.name: DeletionVector([7]),
    }
    chunks = []
    with patch.object(live_rows, "_key_ranges", wraps=live_rows._key_ranges) as ranges:
        for memory in (MemoryBounds(key_bytes=800), MemoryBounds()):
            reader = KeyReader(table.keyed)
            runs = merge_rows(reader, files, deleted, memory=memory, chunk_rows=chunk_rows)
            chunks.append([(run.rows, run.numbers.tolist()) for run in runs])
    assert ranges.call_count == 2
    assert chunks[0] == chunks[1]
    assert sum(len(rows) for rows, _ in chunks[0]) == 196


def test_a_file_that_is_not_sorted_is_not_merged_range_by_range_either(tmp_path: Path) -> None:
    table = BucketTable(tmp_path)
    with small_groups(2), patch("alcid.tables.paimon.keyed.key_files._check_rising"):
        table.put({1: "a", 2: "b", 3: "c", 4: "d"}, level=5)
        with patch("tests.tables.paimon.keyed.bucket_kit.sorted", list, create=True):
            table.put({1: "a", 3: "c", 2: "b", 4: "d"})
    before = table.bucket
    keyed = replace(table.keyed, memory=MemoryBounds(key_bytes=100))
    with pytest.raises(FormatError, match=r"key of row 2 is below the one before$"):
        compact_bucket(keyed, before)


# -- how much memory it takes ------------------------------------------------------------------


POOLS: list[pa.MemoryPool] = []
"""Which have to live as long as what was allocated from them."""


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """The most bytes that Arrow and NumPy have had at a time."""
    before, measured = pa.default_memory_pool(), list[int]()
    pool = pa.proxy_memory_pool(before)
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield measured
        measured.append(pool.max_memory() + tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


ROWS = 5_000
PIECE_BYTES = ROWS * (8 + 4 + 40)


class Pieces(ArrowRows):
    """Rows that come a piece at a time, with keys in any order."""

    def __init__(self, count: int) -> None:
        super().__init__(pa.schema([("id", pa.int64()), ("v", pa.string())]).empty_table())
        self._count = count

    def write_by_key(self, writer: KeyedRowWriter[T]) -> Iterator[T]:
        yield from writer.write_rows(self._pieces())

    def _pieces(self) -> Iterator[RowPiece]:
        random = np.random.default_rng(3)
        for number in range(self._count):
            ids = pa.array(random.integers(0, ROWS * self._count, ROWS))
            values = pc.utf8_lpad(ids.cast(pa.string()), 40)
            columns = [pa.chunked_array([column]) for column in (ids, values)]
            yield RowPiece(columns, None, is_last=number == self._count - 1)


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    options = VECTORS | {"bucket": "1", "target-file-size": "300 kb"}
    peaks, bound = list[list[int]](), 2 * PIECE_BYTES
    for count in (8, 24):
        columns = {"id": "BIGINT", "v": "STRING"}
        table = create(tmp_path / str(count), columns, primary_keys=["id"], options=options)
        peaks.append([])
        with bounded(MemoryBounds(bound, bound, bound, most_merged=4)), small_groups(2048):
            for _ in range(2):
                with peak_memory() as peak:
                    upsert_rows(table, Pieces(count), UpsertPlan())
                peaks[-1] += peak
            with peak_memory() as peak:
                table.compact(progress=False)
            peaks[-1] += peak
    # The first upsert, one that looks all older rows up, and their compaction.
    assert [after / before < 1.5 for before, after in zip(*peaks, strict=True)] == [True] * 3, peaks
