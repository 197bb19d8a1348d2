"""Appends to Paimon tables: which files and entries are written, which rows are accepted."""

from __future__ import annotations

import datetime
import math
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alcid
from alcid import FileIndex, PaimonTable
from alcid.datafiles.parquet import read_layout
from alcid.errors import (
    AlcidWarning,
    ColumnError,
    ConflictError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from alcid.formats.binary_row import hash_rows
from alcid.formats.buckets import fixed_bucket
from alcid.formats.source import FileSource
from alcid.storage import Storage
from alcid.tables.paimon.metadata.commit import Change, Committer
from alcid.tables.paimon.metadata.manifest import DataFile
from alcid.tables.paimon.metadata.statistics import EMPTY, NO_STATS, unpack_rows
from alcid.tables.paimon.new_files import WrittenData
from alcid.tables.paimon.write.append import DataJob, append_arrow
from alcid.tables.parquet_writer import GROUP_ROWS, PAGE_ROWS
from alcid.tables.reports import AppendReport
from alcid.types import DataType
from tests.tables.maintenance.forging import forge, with_file
from tests.tables.paimon.every_type import every_type
from tests.tables.paimon.small_tables import (
    commit,
    create,
    ids,
    partition_of,
    rows_of,
    set_options,
    write_file,
)

BUCKETS = {"bucket": "3", "bucket-key": "id"}


def entries(table: PaimonTable) -> list[DataFile]:
    return [entry.file for entry in table.snapshot.state.entries]


def paths_of(table: PaimonTable) -> list[str]:
    return [placed.path for placed in table.snapshot.placed]


def data_files(folder: Path) -> list[str]:
    """Every file below the buckets."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("bucket-*/*"))


def test_the_entry_says_what_paimon_would_say(tmp_path: Path) -> None:
    table = create(tmp_path, options={})
    before = datetime.datetime.now().replace(tzinfo=datetime.UTC)
    report = append_arrow(table, rows_of(range(10)))
    after = datetime.datetime.now().replace(tzinfo=datetime.UTC)
    (entry,) = table.snapshot.state.entries
    file = entry.file
    assert (entry.kind, entry.partition, entry.bucket, entry.total_buckets) == (0, EMPTY, 0, -1)
    (path,) = paths_of(table)
    assert path == f"bucket-0/{file.name}"
    assert file.name.startswith("data-")
    assert file.name.endswith("-0.parquet")
    assert file.creation_time is not None
    assert before - datetime.timedelta(milliseconds=1) <= file.creation_time <= after
    least, most = (
        [row[0].as_py() for row in unpack_rows([bound], list(table.snapshot.schema.types.values()))]
        for bound in (file.value_stats.minimum, file.value_stats.maximum)
    )
    assert (least, most, file.value_stats.null_counts) == ([0, "n0"], [9, "n4"], (0, 0))
    assert file == DataFile(
        name=file.name,
        size=(tmp_path / path).stat().st_size,
        rows=10,
        min_key=EMPTY,
        max_key=EMPTY,
        key_stats=NO_STATS,
        value_stats=file.value_stats,
        min_sequence=0,
        max_sequence=9,
        schema_id=0,
        level=0,
        creation_time=file.creation_time,
        delete_rows=0,
        source=0,
    )
    snapshot = table.snapshot.state.snapshot
    assert snapshot is not None
    assert (snapshot.id, snapshot.commit_kind, snapshot.total_record_count) == (1, "APPEND", 10)
    assert report == AppendReport(1, 10, file.size, 0, 0, report.seconds, snapshot_id=1)
    assert table.scan().to_arrow().equals(rows_of(range(10)))


@pytest.mark.parametrize("nanoseconds", [False, True], ids=["microseconds", "nanoseconds"])
def test_values_of_every_type_come_back(tmp_path: Path, nanoseconds: bool) -> None:
    columns, rows = every_type(nanoseconds)
    table = create(tmp_path, columns, options={})
    report = append_arrow(table, rows)
    assert report.skipped == ()
    assert table.scan().to_arrow().equals(rows)
    physical = pq.ParquetFile(tmp_path / paths_of(table)[0]).schema
    kinds = {
        physical.column(number).path: physical.column(number) for number in range(len(physical))
    }
    assert [kinds[name].physical_type for name in ("money", "middle", "wide", "at6", "b")] == [
        *("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY", "INT32", "BYTE_ARRAY")
    ]
    moments = {kinds[name].physical_type for name in ("ts0", "ts3", "ts6", "z3", "z6")}
    assert moments == {"INT96" if nanoseconds else "INT64"}


def test_a_file_has_small_pages_ids_and_what_is_not_null(tmp_path: Path) -> None:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    table = alcid.create_table(tmp_path, columns, options={"file.compression.zstd-level": "3"})
    append_arrow(table, rows_of(range(5000)))
    path = tmp_path / paths_of(table)[0]
    schema = pq.read_schema(path)
    assert [field.metadata[b"PARQUET:field_id"] for field in schema] == [b"0", b"1"]
    assert [field.nullable for field in schema] == [False, True]
    with FileSource(path) as source:
        layout = read_layout(source)
    for column in layout.columns:
        assert column.leaves[0].pieces[2].tolist() == [*range(0, 5000, PAGE_ROWS)]
    described = pq.ParquetFile(path).metadata
    assert described.row_group(0).column(0).compression == "ZSTD"
    assert not described.metadata


@pytest.mark.parametrize(
    ("option", "codec"),
    [("snappy", "SNAPPY"), ("GZIP", "GZIP"), ("lz4", "LZ4"), ("none", "UNCOMPRESSED")],
)
def test_files_are_compressed_as_the_table_says(tmp_path: Path, option: str, codec: str) -> None:
    table = create(tmp_path, options={"file.compression": option})
    append_arrow(table, rows_of(range(10)))
    described = pq.ParquetFile(tmp_path / paths_of(table)[0]).metadata
    assert described.row_group(0).column(0).compression == codec
    assert ids(table) == [*range(10)]


# -- where rows go -----------------------------------------------------------------------------


def test_each_partition_has_files_of_its_own_in_the_order_of_its_rows(tmp_path: Path) -> None:
    columns = {"id": "BIGINT", "dt": "STRING", "part": "INT"}
    table = create(tmp_path, columns, partition_keys=["dt", "part"], options={})
    days = ["a/b", "é", None, "", " "]
    rows = pa.table(
        {
            "id": [*range(20)],
            "dt": [days[number % 5] for number in range(20)],
            "part": pa.array([number % 2 for number in range(20)], pa.int32()),
        }
    )
    report = append_arrow(table, rows)
    assert (report.files, report.rows) == (10, 20)
    folders = {path.rsplit("/", 2)[0] for path in paths_of(table)}
    null = "__DEFAULT_PARTITION__"
    assert folders == {f"dt={day}/part={n}" for day in ("a%2Fb", "é", null) for n in (0, 1)}
    for placed in table.snapshot.placed:
        stored = pq.read_table(tmp_path / placed.path)
        first = stored["id"][0].as_py()
        assert stored["id"].to_pylist() == [first, first + 10]
        assert placed.entry.partition == partition_of(table, days[first % 5], first % 2)
    assert table.scan("dt = 'a/b'").to_arrow()["id"].to_pylist() == [0, 10, 5, 15]
    assert table.scan("dt IS NULL AND part = 0").to_arrow()["id"].to_pylist() == [2, 12]


def test_rows_go_to_the_bucket_of_their_key_and_numbers_go_on(tmp_path: Path) -> None:
    table = create(tmp_path, options=BUCKETS)
    rows = rows_of(range(20))
    buckets = fixed_bucket(hash_rows([rows["id"]]), 3)
    counts = np.bincount(buckets, minlength=3).tolist()
    for time in range(2):
        append_arrow(table, rows)
        added = table.snapshot.placed[3 * time :]
        assert [entry.entry.bucket for entry in added] == [0, 1, 2]
        for bucket, placed in enumerate(added):
            stored = pq.read_table(tmp_path / placed.path)["id"].to_numpy()
            assert stored.tolist() == np.flatnonzero(buckets == bucket).tolist()
            assert placed.path.startswith(f"bucket-{bucket}/")
            assert placed.entry.total_buckets == 3
            first = time * counts[bucket]
            numbers = placed.file.min_sequence, placed.file.max_sequence
            assert numbers == (first, first + counts[bucket] - 1)
    assert ids(table) == sorted([*range(20)] * 2)


def test_a_partition_of_another_number_of_buckets_is_left_alone(tmp_path: Path) -> None:
    table = create(tmp_path, options=BUCKETS)
    append_arrow(table, rows_of(range(20)))
    before = data_files(tmp_path)
    set_options(table, bucket="4")
    with pytest.raises(ConflictError, match=r"bucket=4: .* is one of 3 buckets"):
        append_arrow(table, rows_of(range(20)))
    assert data_files(tmp_path) == before
    assert ids(table) == [*range(20)]


def test_files_end_when_they_are_long_enough(tmp_path: Path) -> None:
    table = create(tmp_path, options={"target-file-size": "64 kb"})
    report = append_arrow(table, rows_of(range(2 * GROUP_ROWS + 7)))
    assert [file.rows for file in entries(table)] == [GROUP_ROWS, GROUP_ROWS, 7]
    assert [file.max_sequence for file in entries(table)] == [GROUP_ROWS - 1, GROUP_ROWS - 1, 6]
    names = [file.name for file in entries(table)]
    assert [name.rsplit("-", 1)[1] for name in names] == ["0.parquet", "1.parquet", "2.parquet"]
    assert report.bytes_written == sum(file.size for file in entries(table))
    assert ids(table) == [*range(2 * GROUP_ROWS + 7)]


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.integers(-5, 5),
            st.sampled_from([None, "", "a", "a=b"]),
            st.sampled_from([0.5, -2.0]),
        ),
        max_size=30,
    ),
    st.booleans(),
    st.booleans(),
)
def test_no_row_is_lost_or_doubled(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], partitioned: bool, bucketed: bool
) -> None:
    columns = {"id": "BIGINT", "dt": "STRING", "x": "DOUBLE"}
    table = create(
        tmp_path_factory.mktemp("table"),
        columns,
        partition_keys=["dt", "x"] if partitioned else [],
        options=BUCKETS if bucketed else {},
    )
    values: Sequence[Sequence[Any]] = [*zip(*rows, strict=True)] or [[], [], []]
    appended = pa.table(
        [
            pa.array(column, kind)
            for column, kind in zip(values, (pa.int64(), pa.string(), pa.float64()), strict=True)
        ],
        names=["id", "dt", "x"],
    )
    report = append_arrow(table, appended)
    if not partitioned and not bucketed:
        assert table.scan().to_arrow().equals(appended)
    read_rows = table.scan().to_arrow().to_pylist()
    assert sorted(map(repr, read_rows)) == sorted(map(repr, appended.to_pylist()))
    assert report.rows == len(rows)
    buckets = {(placed.entry.partition, placed.entry.bucket) for placed in table.snapshot.placed}
    assert len(buckets) == table.files == report.files


# -- statistics --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "columns", "counts", "least"),
    [
        ({}, ("id", "name", "x"), (0, 0, 1), [0, "a name longer th", 1.5]),
        (
            {"metadata.stats-mode": "full"},
            ("id", "name", "x"),
            (0, 0, 1),
            [0, "a name longer than most", 1.5],
        ),
        ({"metadata.stats-mode": "counts"}, ("id", "name", "x"), (0, 0, 1), [None, None, None]),
        ({"metadata.stats-mode": "none"}, (), (), []),
        ({"metadata.stats-keep-first-n-columns": "1"}, ("id",), (0,), [0]),
        (
            {"metadata.stats-mode": "none", "metadata.stats-dense-store": "false"},
            None,
            (None, None, None, None),
            [None, None, None, None],
        ),
        (
            {
                "metadata.stats-mode": "none",
                "fields.name.stats-mode": "counts",
                "fields.x.stats-mode": "full",
            },
            ("name", "x"),
            (0, 1),
            [None, 1.5],
        ),
    ],
    ids=["truncate", "full", "counts", "none", "first", "none for all", "by column"],
)
def test_statistics_are_those_that_the_table_asks_for(
    tmp_path: Path,
    options: dict[str, str],
    columns: tuple[str, ...] | None,
    counts: tuple[int | None, ...],
    least: list[Any],
) -> None:
    kinds = {"id": "BIGINT", "name": "STRING", "x": "DOUBLE", "list": "ARRAY<INT>"}
    table = create(tmp_path, kinds, options=options)
    rows = pa.table(
        {
            "id": [0, 1],
            "name": ["a name longer than most", "b"],
            "x": [None, 1.5],
            "list": [[1], []],
        },
        schema=pa.schema(
            [
                ("id", pa.int64()),
                ("name", pa.string()),
                ("x", pa.float64()),
                ("list", pa.list_(pa.int32())),
            ]
        ),
    )
    append_arrow(table, rows)
    (file,) = entries(table)
    assert file.stats_columns == columns  # never those of nested values, as in Paimon
    assert file.value_stats.null_counts == counts
    names = table.snapshot.schema.names if columns is None else columns
    types = [table.snapshot.schema.types[name] for name in names]
    bounds = [row[0].as_py() for row in unpack_rows([file.value_stats.minimum], types)]
    assert bounds == least
    assert table.count("id = 1") == 1
    assert table.count("name = 'b'") == 1


def test_a_column_with_nan_has_no_bounds_anywhere(tmp_path: Path) -> None:
    table = create(tmp_path, {"x": "DOUBLE"}, options={})
    append_arrow(table, pa.table({"x": [1.0, math.nan, None]}))
    (file,) = entries(table)
    for bound in (file.value_stats.minimum, file.value_stats.maximum):
        assert unpack_rows([bound], [alcid.DataType("DOUBLE")])[0].to_pylist() == [None]
    assert file.value_stats.null_counts == (1,)
    group = pq.ParquetFile(tmp_path / paths_of(table)[0]).metadata.row_group(0)
    assert group.column(0).statistics is None
    assert table.count("x > 5") == 1


# -- indexes -----------------------------------------------------------------------------------

INDEXES = {
    "file-index.bitmap.columns": "name",
    "file-index.range-bitmap.columns": "ID",
    "file-index.in-manifest-threshold": "1 mb",
}


def index_of(table: PaimonTable, folder: Path) -> FileIndex | None:
    (placed,) = table.snapshot.placed
    data = placed.file.embedded_index
    if placed.file.extra_files:
        assert data is None
        assert placed.file.extra_files == (f"{placed.file.name}.index",)
        data = (folder / f"{placed.path}.index").read_bytes()
    if data is None:
        return None
    return FileIndex.from_bytes(data, {"id": "BIGINT", "name": "STRING"})


@pytest.mark.parametrize("threshold", ["1 mb", "1 b"], ids=["embedded", "beside"])
def test_by_default_files_get_the_indexes_of_the_options(tmp_path: Path, threshold: str) -> None:
    options = INDEXES | {"file-index.in-manifest-threshold": threshold}
    table = create(tmp_path, options=options)
    report = append_arrow(table, rows_of(range(10)))
    index = index_of(table, tmp_path)
    assert index is not None
    assert [(entry.column, entry.index_type) for entry in index.entries] == [
        ("id", "range-bitmap"),
        ("name", "bitmap"),
    ]
    assert report.index_bytes == len(index.to_bytes())
    assert [*(index.evaluate("name = 'n3'").rows or ())] == [3, 8]
    assert [*(index.evaluate("id >= 8").rows or ())] == [8, 9]
    assert (threshold == "1 b") == (len(data_files(tmp_path)) == 2)
    assert table.scan("name = 'n3' AND id > 4").to_arrow()["id"].to_pylist() == [8]


def test_an_index_of_exactly_the_threshold_is_in_the_manifest(tmp_path: Path) -> None:
    table = create(tmp_path / "a", options=INDEXES)
    length = append_arrow(table, rows_of(range(10))).index_bytes or 0
    for limit, beside in ((length, 0), (length - 1, 1)):
        options = INDEXES | {"file-index.in-manifest-threshold": f"{limit} b"}
        table = create(tmp_path / str(limit), options=options)
        append_arrow(table, rows_of(range(10)))
        assert len(entries(table)[0].extra_files) == beside


def test_given_options_take_the_place_of_those_of_the_table(tmp_path: Path) -> None:
    table = create(tmp_path / "a", options=INDEXES)
    assert append_arrow(table, rows_of(range(10)), {}).index_bytes == 0
    assert index_of(table, tmp_path / "a") is None
    table = create(tmp_path / "b", options=INDEXES)
    append_arrow(table, rows_of(range(10)), {"file-index.bsi.columns": "id"})
    index = index_of(table, tmp_path / "b")
    assert index is not None
    assert [(entry.column, entry.index_type) for entry in index.entries] == [("id", "bsi")]
    with pytest.raises(ColumnError, match="column no"):
        append_arrow(table, rows_of([1]), {"file-index.bsi.columns": "no"})
    with pytest.raises(OptionError, match="file-index"):
        append_arrow(table, rows_of([1]), {"file-index.tree.columns": "id"})


def test_mistakes_in_the_options_of_the_table_are_reported(tmp_path: Path) -> None:
    table = create(tmp_path, options=INDEXES | {"file-index.bsi.columns": "gone"})
    with pytest.warns(AlcidWarning, match="no index: column gone"):
        append_arrow(table, rows_of(range(10)))
    assert ids(table) == [*range(10)]


def test_an_index_that_cannot_be_built_is_reported_and_the_rows_are_there(tmp_path: Path) -> None:
    options = {"file-index.bsi.columns": "id,name", "file-index.in-manifest-threshold": "1 mb"}
    table = create(tmp_path, options=options)
    report = append_arrow(table, rows_of(range(10)))
    (skipped,) = report.skipped
    assert (skipped.what, skipped.files) == ("bsi of 'name'", 1)
    assert skipped.example == paths_of(table)[0]
    index = index_of(table, tmp_path)
    assert index is not None
    assert [entry.column for entry in index.entries] == ["id"]


def test_keys_go_by_the_type_of_the_table_not_by_that_of_the_file(tmp_path: Path) -> None:
    columns = {"at": "TIMESTAMP(3)", "fine": "TIMESTAMP(9)"}
    options = {"file-index.bitmap.columns": "at", "file-index.in-manifest-threshold": "1 mb"}
    table = create(tmp_path, columns, options=options)
    append_arrow(table, pa.table({"at": pa.array([1, 5, 7], pa.timestamp("ms"))}))
    embedded = entries(table)[0].embedded_index
    assert embedded is not None
    index = FileIndex.from_bytes(embedded, columns)
    matched = index.evaluate("at = TIMESTAMP_NTZ '1970-01-01 00:00:00.005'").rows
    assert [*(matched or ())] == [1]


# -- which rows are taken ----------------------------------------------------------------------


def test_columns_go_by_name_are_widened_and_null_where_they_are_missing(tmp_path: Path) -> None:
    columns = {"id": "BIGINT", "name": "STRING", "x": "DOUBLE", "b": "BINARY(3)"}
    table = create(tmp_path, columns, options={})
    rows = pa.table(
        {
            "B": pa.array([b"abc", None], pa.binary(3)),
            "NAME": pa.array(["a", "b"]).dictionary_encode(),
            "id": pa.array([1, None], pa.int8()),
        }
    )
    append_arrow(table, rows)
    append_arrow(table, rows.to_batches()[0].slice(1))
    assert table.scan().to_arrow().to_pydict() == {
        "id": [1, None, None],
        "name": ["a", "b", "b"],
        "x": [None] * 3,
        "b": [b"abc", None, None],
    }


def strict_table(folder: Path) -> PaimonTable:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("ts", pa.timestamp("ms"))])
    return alcid.create_table(folder, schema)


@pytest.mark.parametrize(
    ("rows", "error", "problem"),
    [
        ({"id": [1], "no": [1]}, ColumnError, "column no: not in the table"),
        ({"ts": pa.array([1], pa.timestamp("ms"))}, ColumnError, "column id: NOT NULL"),
        ({"id": [1, None]}, UnsupportedError, "column id: found null, expected NOT NULL"),
        ({"id": [1.0]}, UnsupportedError, "column id: double does not go into int64"),
        (
            {"id": [1], "ts": pa.array([1], pa.timestamp("ms", "UTC"))},
            UnsupportedError,
            "column ts: .* does not go into",
        ),
        (
            {"id": [1], "ts": pa.array([1001], pa.timestamp("us"))},
            UnsupportedError,
            "column ts: .* would lose data",
        ),
        ({}, ColumnError, "column id: NOT NULL|no column is left"),
    ],
    ids=["unknown", "missing", "null", "narrower", "zone", "finer", "nothing"],
)
def test_rows_that_do_not_fit_are_refused_and_nothing_is_left(
    tmp_path: Path, rows: dict[str, Any], error: type[Exception], problem: str
) -> None:
    table = strict_table(tmp_path)
    with pytest.raises(error, match=problem):
        append_arrow(table, pa.table(rows))
    assert table.snapshot_id is None
    assert data_files(tmp_path) == []


def test_timestamps_of_a_finer_unit_are_taken_if_their_values_are_not_finer(tmp_path: Path) -> None:
    table = strict_table(tmp_path)
    append_arrow(table, pa.table({"id": [1], "ts": pa.array([5_000_000], pa.timestamp("ns"))}))
    assert table.scan().to_arrow()["ts"].cast(pa.int64()).to_pylist() == [5]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("CHAR(3)", "abcd"),
        ("VARCHAR(3)", "äöüß"),
        ("BINARY(3)", b"abcd"),
        ("VARBINARY(3)", b"abcd"),
    ],
)
def test_what_is_too_long_for_its_column_is_refused(tmp_path: Path, kind: str, value: Any) -> None:
    table = create(tmp_path, {"x": kind}, options={})
    append_arrow(table, pa.table({"x": [value[:3], None]}))
    with pytest.raises(UnsupportedError, match=f"column x: found length 4, expected {kind[:4]}"):
        append_arrow(table, pa.table({"x": [value[:3], value]}))
    assert table.count() == 2


def test_a_timestamp_beyond_nanoseconds_is_refused_where_they_are_kept(tmp_path: Path) -> None:
    table = create(tmp_path, {"at": "TIMESTAMP(6)", "fine": "TIMESTAMP(9)"}, options={})
    year_3000 = pa.array([datetime.datetime(3000, 1, 1)], pa.timestamp("us"))
    with pytest.raises(UnsupportedError, match=r"column at: .*out of bounds"):
        append_arrow(table, pa.table({"at": year_3000}))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"file.format": "orc"}, "file.format=orc: cannot append rows"),
        ({"file.compression": "lzo"}, "file.compression=lzo: cannot append rows"),
        ({"bucket": "2"}, "bucket=2: cannot append rows: there is no bucket-key"),
        ({"bucket": "2", "bucket-key": "no"}, "bucket-key=no: cannot append rows"),
        ({"commit.callbacks": "x.Y"}, "commit.callbacks=x.Y: cannot append rows"),
        (BUCKETS | {"bucket-function.type": "mod"}, "bucket-function.type=mod: cannot append"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) and len(value) == 1 else None,
)
def test_options_that_cannot_be_followed_are_refused(
    tmp_path: Path, options: dict[str, str], problem: str
) -> None:
    table = create(tmp_path, options=options)
    with pytest.raises((UnsupportedError, OptionError), match=problem):
        append_arrow(table, rows_of([1]))
    assert data_files(tmp_path) == []


def test_a_table_with_a_primary_key_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path, primary_keys=["id"], options={"bucket": "1"})
    with pytest.raises(UnsupportedError, match="append: the table has a primary key"):
        append_arrow(table, rows_of([1]))


def test_a_type_that_is_not_written_is_named(tmp_path: Path) -> None:
    table = create(tmp_path, {"id": "BIGINT", "v": "ARRAY<VARIANT>"}, options={})
    with pytest.raises(UnsupportedError, match="column v: VARIANT is not written"):
        append_arrow(table, pa.table({"id": [1]}))


# -- when something goes wrong -----------------------------------------------------------------


def test_without_rows_there_is_no_snapshot(tmp_path: Path) -> None:
    for options, keys in (({}, []), (BUCKETS, ["name"])):
        table = create(tmp_path / str(len(keys)), partition_keys=keys, options=options)
        report = append_arrow(table, rows_of([]))
        assert (report.files, report.rows, report.snapshot_id) == (0, 0, None)
        assert table.snapshot_id is None


def test_files_of_an_append_that_fails_are_removed(tmp_path: Path) -> None:
    options = INDEXES | {"target-file-size": "64 kb", "file-index.in-manifest-threshold": "1 b"}
    table = create(tmp_path, {"id": "BIGINT", "name": "VARCHAR(3)"}, options=options)
    seen: list[int] = []
    write_table = DataJob.write_table

    def watched(job: DataJob, rows: pa.Table) -> Any:
        for written in write_table(job, rows):
            seen.append(len(data_files(tmp_path)))
            yield written

    names = ["ok"] * GROUP_ROWS + ["too long"]
    rows = pa.table({"id": [*range(GROUP_ROWS + 1)], "name": names})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DataJob, "write_table", watched)
        with pytest.raises(UnsupportedError, match="column name: found length 8"):
            append_arrow(table, rows)
    assert seen == [2]  # a data file and its index existed
    assert data_files(tmp_path) == []
    assert table.snapshot_id is None


class Late(Committer):
    """A commit before which another writer commits."""

    def commit(self, *args: Any, **how: Any) -> Any:
        schema = self._schema
        after = replace(schema, id=schema.id + 1)
        self._storage.create(f"schema/schema-{after.id}", after.to_json())
        return super().commit(*args, **how)


class Lost(Committer):
    """A commit whose answer is lost."""

    def commit(self, *args: Any, **how: Any) -> Any:
        super().commit(*args, **how)
        raise StorageError("the answer is lost")


def test_files_are_removed_where_the_schema_has_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, options={})
    monkeypatch.setattr("alcid.tables.paimon.open_table.Committer", Late)
    with pytest.raises(ConflictError, match="its schema has changed"):
        append_arrow(table, rows_of([1]))
    assert data_files(tmp_path) == []


def test_files_stay_where_the_snapshot_may_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(tmp_path, options={})
    monkeypatch.setattr("alcid.tables.paimon.open_table.Committer", Lost)
    with pytest.raises(StorageError, match="the answer is lost"):
        append_arrow(table, rows_of([1, 2]))
    assert ids(table) == [1, 2]


def test_appends_that_race_for_a_number_are_both_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = create(tmp_path, options=BUCKETS), PaimonTable(alcid.paimon(tmp_path).storage)
    write_table = DataJob.write_table

    def slow(job: DataJob, rows: pa.Table) -> list[WrittenData]:
        monkeypatch.setattr(DataJob, "write_table", write_table)
        written = [*job.write_table(rows)]
        append_arrow(other, rows)
        return written

    monkeypatch.setattr(DataJob, "write_table", slow)
    assert append_arrow(table, rows_of(range(9))).snapshot_id == 2
    assert ids(table) == sorted([*range(9)] * 2)
    numbers: dict[int, list[int]] = {}
    for entry in table.snapshot.state.entries:
        file = entry.file
        numbers.setdefault(entry.bucket, []).extend(range(file.min_sequence, file.max_sequence + 1))
    for numbers_of_bucket in numbers.values():
        assert numbers_of_bucket == [*range(len(numbers_of_bucket))]


def test_a_job_goes_to_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path, options=INDEXES | BUCKETS, partition_keys=["name"])

    def elsewhere(job: DataJob, rows: pa.Table) -> Sequence[WrittenData]:
        sent: DataJob = pickle.loads(pickle.dumps(job))
        written = [*sent.write(rows.to_batches(max_chunksize=7))]
        back: list[WrittenData] = pickle.loads(pickle.dumps(written))
        assert back == written
        return back

    monkeypatch.setattr(DataJob, "write_table", elsewhere)
    report = append_arrow(table, rows_of(range(40)))
    assert (report.rows, report.files) == (40, table.files)
    assert ids(table) == [*range(40)]


def test_a_change_of_another_does_not_keep_an_append_from_its_commit(tmp_path: Path) -> None:
    table = create(tmp_path, options={})
    append_arrow(table, rows_of([1]))
    other = alcid.paimon(tmp_path)
    gone = other.snapshot.state.entries
    other.committer().commit(lambda _: Change(kind="OVERWRITE", deleted=gone))
    append_arrow(table, rows_of([2]))
    assert ids(table) == [2]


def test_a_table_anywhere_is_appended_to(storage: Storage) -> None:
    table = create(storage, options=INDEXES | {"file-index.in-manifest-threshold": "1 b"})
    assert append_arrow(table, rows_of(range(10))).snapshot_id == 1
    assert append_arrow(table, rows_of(range(10, 20))).snapshot_id == 2
    assert ids(table) == [*range(20)]
    matched = PaimonTable(storage).scan("name = 'n3'").to_arrow()["id"].to_pylist()
    assert sorted(matched) == [3, 8, 13, 18]


# -- statistics of tables with nested columns ------------------------------------------------------

NESTED = {"id": "BIGINT", "list": "ARRAY<INT>", "name": "STRING"}
DENSE, ALL = ("id", "name"), None


def nested_rows(first: int) -> pa.Table:
    ids = pa.array(range(first, first + 3), pa.int64())
    lists = pa.array([[1], None, []], pa.list_(pa.int32()))
    return pa.table({"id": ids, "list": lists, "name": ["a", "b", None]})


def stats_columns(table: PaimonTable) -> list[tuple[str, ...] | None]:
    return [entry.stats_columns for entry in entries(table)]


@pytest.mark.parametrize(
    ("option", "written"), [(None, ALL), ("true", DENSE), ("false", ALL)], ids=str
)
def test_statistics_are_of_all_columns_where_those_of_old_writers_are(
    tmp_path: Path, option: str | None, written: tuple[str, ...] | None
) -> None:
    """Paimon 0.9.0 takes the bounds of `name` for those of `list` if `list` is omitted."""
    options = {} if option is None else {"metadata.stats-dense-store": option}
    table = create(tmp_path, NESTED, options=options)
    commit(table, Change(kind="APPEND", added=[write_file(table, nested_rows(0))]))
    assert stats_columns(table) == [ALL]
    table.append(nested_rows(3))
    assert stats_columns(table) == [ALL, written]
    stats = entries(table)[1].value_stats
    assert stats.null_counts == ((0, None, 1) if written is ALL else (0, 1))
    names = table.snapshot.schema.names if written is ALL else written
    types = [table.snapshot.schema.types[name] for name in names]
    bounds = [
        [row[0].as_py() for row in unpack_rows([packed], types)]
        for packed in (stats.minimum, stats.maximum)
    ]
    assert bounds == ([[3, None, "a"], [5, None, "b"]] if written is ALL else [[3, "a"], [5, "b"]])
    assert ids(table) == list(range(6))
    assert table.count("id > 3") == 2


def test_statistics_are_dense_in_a_new_table_and_where_one_file_is_so(tmp_path: Path) -> None:
    table = create(tmp_path, NESTED, options={})
    table.append(nested_rows(0))
    commit(table, Change(kind="APPEND", added=[write_file(table, nested_rows(3))]))
    table.append(nested_rows(6))
    assert stats_columns(table) == [DENSE, ALL, DENSE]


def test_files_from_before_a_nested_column_say_nothing_of_the_writer(tmp_path: Path) -> None:
    table = create(tmp_path, options={})
    append_arrow(table, rows_of(range(3)))
    before = table.folder.latest_schema()
    field = replace(before.fields[1], id=2, name="list", data_type=DataType.parse("ARRAY<INT>"))
    after = replace(before, id=1, fields=(*before.fields, field), highest_field_id=2)
    table.storage.create("schema/schema-1", after.to_json())
    table.refresh()
    table.append(nested_rows(3))
    assert stats_columns(table) == [ALL, ("id", "name")]


def test_upserts_keep_the_statistics_of_old_writers(tmp_path: Path) -> None:
    table = create(tmp_path, NESTED, primary_keys=["id"], options={"bucket": "1"})
    table.upsert(nested_rows(0))
    assert stats_columns(table) == [DENSE]
    packed = write_file(table, nested_rows(0)).file.value_stats
    forge(tmp_path, with_file(stats_columns=None, value_stats=packed))
    table.refresh()
    table.upsert(nested_rows(2))
    assert stats_columns(table) == [ALL, ALL]
    table.compact()
    assert stats_columns(table) == [ALL]
    assert ids(table) == list(range(5))
