"""Files of a table with a primary key equal those that Java writes for the same rows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.errors import AlcidWarning, FormatError, StorageError
from alcid.options import parse_options
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile, has_nanoseconds, stored_schema
from alcid.tables.paimon.keyed.bucket import Bucket, KeyedTable
from alcid.tables.paimon.keyed.key_files import (
    KeyReader,
    SortedRun,
    key_file_schema,
    write_sorted_run,
)
from alcid.tables.paimon.metadata.manifest import ADD, DataFile, ManifestEntry
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.statistics import EMPTY, NO_STATS, pack_rows, unpack_rows
from alcid.tables.parquet_writer import GROUP_ROWS, Encoding
from alcid.types import DataType
from tests.golden.paimon_tables import table_names, unpack_table

KEYED = [
    (version, name)
    for version in ("1.4.2", "2.0.0")
    for name in table_names(version)
    if name.startswith("key_")
]
COLUMNS = {"id": "INT", "name": "STRING", "score": "DOUBLE", "day": "INT"}
BUCKET = Bucket(EMPTY, 0, "bucket-0/")


def keyed_table(
    folder: Path,
    keys: list[str],
    options: dict[str, str] | None = None,
    columns: dict[str, str] = COLUMNS,
    partitions: list[str] | None = None,
    indexes: dict[str, Any] | None = None,
) -> KeyedTable:
    """A table without snapshots."""
    table_options = {"bucket": "1", **(options or {})}
    types = [(name, DataType.parse(kind)) for name, kind in columns.items()]
    schema = TableSchema.of(types, keys, partitions or [], table_options)
    return KeyedTable(
        Storage.open(str(folder)),
        schema,
        {0: schema},
        TableOptions.parse(table_options, has_primary_key=True),
        tuple(parse_options(indexes)) if indexes else (),
        Encoding("zstd", 1, int96=has_nanoseconds(schema)),
    )


def run_of(
    keyed: KeyedTable, rows: dict[str, list[Any]], kinds: list[int] | None = None
) -> SortedRun:
    """Rows with the sequence numbers 10, 11, ...; missing columns are null."""
    count = len(next(iter(rows.values())))
    stored = stored_schema(keyed.schema)
    table = pa.Table.from_arrays(
        [pa.array(rows.get(field.name, [None] * count), field.type) for field in stored],
        schema=stored,
    )
    return SortedRun(table, np.arange(10, 10 + count), np.array(kinds or [0] * count, np.int8))


def values_of(file: DataFile, schema: TableSchema) -> list[Any]:
    """The bounds and null counts of the columns of a file."""
    stats = file.value_stats
    kinds = [schema.types[name] for name in file.stats_columns or schema.names]
    bounds = unpack_rows([stats.minimum, stats.maximum], kinds)
    return [[bound.to_pylist() for bound in bounds], stats.null_counts]


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_and_its_entry(tmp_path: Path) -> None:
    keyed = keyed_table(tmp_path, ["id"])
    run = run_of(keyed, {"id": [-2, 1, 300], "name": ["a", None, "c" * 20]}, [0, 3, 2])
    (written,) = write_sorted_run(keyed, BUCKET, [run], level=0, source=0)
    entry, file = written.entry, written.entry.file
    assert (entry.kind, entry.partition, entry.bucket, entry.total_buckets) == (ADD, EMPTY, 0, 1)
    assert (file.rows, file.level, file.schema_id, file.delete_rows, file.source) == (3, 0, 0, 1, 0)
    assert (file.min_sequence, file.max_sequence) == (10, 12)
    assert file.min_key.hex(" ", 4) == "00000001 00000000 00000000 feffffff 00000000"
    assert file.max_key.hex(" ", 4) == "00000001 00000000 00000000 2c010000 00000000"
    assert (file.key_stats.minimum, file.key_stats.maximum) == (file.min_key, file.max_key)
    assert file.key_stats.null_counts == (0,)
    kinds = list(keyed.schema.types.values())
    bounds = unpack_rows([file.value_stats.minimum, file.value_stats.maximum], kinds)
    assert [column.to_pylist() for column in bounds] == [
        [-2, 300],
        ["a", "c" * 15 + "d"],
        [None, None],
        [None, None],
    ]
    assert file.value_stats.null_counts == (0, 1, 3, 3)
    assert file.stats_columns is None
    assert (file.extra_files, file.embedded_index, file.external_path) == ((), None, None)
    assert written.placed == PlacedFile(entry, "bucket-0/")
    assert listing(tmp_path) == written.paths == [f"bucket-0/{file.name}"]
    assert (tmp_path / written.paths[0]).stat().st_size == file.size

    parquet_file = pq.ParquetFile(tmp_path / written.paths[0])
    described = str(parquet_file.schema).splitlines()[2:-1]
    assert described == [
        "  required int32 field_id=1073741823 _KEY_id;",
        "  required int64 field_id=2147483646 _SEQUENCE_NUMBER;",
        "  required int32 field_id=2147483645 _VALUE_KIND (Int(bitWidth=8, isSigned=true));",
        "  required int32 field_id=0 id;",
        "  optional binary field_id=1 name (String);",
        "  optional double field_id=2 score;",
        "  optional int32 field_id=3 day;",
    ]
    assert parquet_file.read().select(
        ["_KEY_id", "_SEQUENCE_NUMBER", "_VALUE_KIND"]
    ).to_pydict() == {
        "_KEY_id": [-2, 1, 300],
        "_SEQUENCE_NUMBER": [10, 11, 12],
        "_VALUE_KIND": [0, 3, 2],
    }


def test_keys_of_several_columns_come_first_in_the_order_of_the_key(tmp_path: Path) -> None:
    keyed = keyed_table(tmp_path, ["name", "day", "id"], partitions=["day"])
    run = run_of(keyed, {"id": [7, 5], "name": ["a", "b" * 20], "day": [3, 3]})
    (written,) = write_sorted_run(keyed, BUCKET, [run], level=5, source=1)
    file = written.entry.file
    assert pq.read_schema(tmp_path / written.paths[0]).names[:4] == [
        *("_KEY_name", "_KEY_id", "_SEQUENCE_NUMBER", "_VALUE_KIND")
    ]
    kinds = [DataType.parse("STRING"), DataType("INT")]
    keys = unpack_rows([file.min_key, file.max_key], kinds)
    assert [key.to_pylist() for key in keys] == [["a", "b" * 20], [7, 5]]
    # Each column has its own bounds, and nothing is truncated.
    bounds = unpack_rows([file.key_stats.minimum, file.key_stats.maximum], kinds)
    assert [bound.to_pylist() for bound in bounds] == [["a", "b" * 20], [5, 7]]
    assert (file.level, file.source, file.delete_rows) == (5, 1, 0)


def test_a_thin_file_has_no_keys_in_front(tmp_path: Path) -> None:
    keyed = keyed_table(tmp_path, ["id"], {"data-file.thin-mode": "true"})
    run = run_of(keyed, {"id": [1, 2]})
    (written,) = write_sorted_run(keyed, BUCKET, [run], level=0, source=0)
    assert pq.read_schema(tmp_path / written.paths[0]).names == [
        *("_SEQUENCE_NUMBER", "_VALUE_KIND", "id", "name", "score", "day")
    ]
    assert written.entry.file.min_key == pack_rows([pa.array([1])], [DataType("INT")])[0]
    assert written.entry.file.key_stats.null_counts == (0,)


@pytest.mark.parametrize("rows", [GROUP_ROWS - 1, GROUP_ROWS, 2 * GROUP_ROWS + 5])
def test_runs_are_rolled_into_files_whose_keys_do_not_overlap(tmp_path: Path, rows: int) -> None:
    keyed = keyed_table(tmp_path, ["id"], {"target-file-size": "1 kb"})
    whole = run_of(
        keyed, {"id": list(range(rows))}, [3 if row == rows - 1 else 0 for row in range(rows)]
    )
    positions = np.split(np.arange(rows), range(50_000, rows + 50_000, 50_000))
    chunks = [whole.take(part) for part in positions]
    assert not len(chunks[-1])
    written = [
        placed.entry.file for placed in write_sorted_run(keyed, BUCKET, chunks, level=0, source=0)
    ]
    sizes = [GROUP_ROWS] * (rows // GROUP_ROWS) + [rows % GROUP_ROWS]
    assert [file.rows for file in written] == [size for size in sizes if size]
    ends = np.cumsum([file.rows for file in written])
    keys = [unpack_rows([file.min_key, file.max_key], [DataType("INT")])[0] for file in written]
    assert [key.to_pylist() for key in keys] == [
        [int(end) - file.rows, int(end) - 1] for end, file in zip(ends, written, strict=True)
    ]
    assert [(file.min_sequence - 10, file.max_sequence - 10) for file in written] == [
        (int(end) - file.rows, int(end) - 1) for end, file in zip(ends, written, strict=True)
    ]
    assert [file.delete_rows for file in written] == [0] * (len(written) - 1) + [1]
    prefix, numbers = written[0].name[: -len("0.parquet")], range(len(written))
    assert [file.name for file in written] == [f"{prefix}{number}.parquet" for number in numbers]


def test_without_rows_there_is_no_file(tmp_path: Path) -> None:
    keyed = keyed_table(tmp_path, ["id"])
    assert write_sorted_run(keyed, BUCKET, [], level=0, source=0) == []
    assert write_sorted_run(keyed, BUCKET, [run_of(keyed, {"id": []})], level=0, source=0) == []
    assert listing(tmp_path) == []


@pytest.mark.parametrize(
    ("columns", "rises"),
    [
        ([["a", "a", "b"], [1, 2, 0]], True),
        ([["a", "a", "b"], [2, 2, 0]], False),
        ([["a", "a", "b"], [2, 1, 0]], False),
        ([["\x7f", "é", "\uffff", "😀"], [0, 0, 0, 0]], True),
        ([["é", "z"], [0, 1]], False),
    ],
)
def test_keys_of_several_columns_rise(
    tmp_path: Path, columns: list[list[Any]], rises: bool
) -> None:
    keyed = keyed_table(tmp_path, ["name", "id"])
    run = run_of(keyed, dict(zip(("name", "id"), columns, strict=True)))
    if rises:
        assert len(write_sorted_run(keyed, BUCKET, [run], level=0, source=0)) == 1
    else:
        with pytest.raises(FormatError, match="row 1: key is not above that before it"):
            write_sorted_run(keyed, BUCKET, [run], level=0, source=0)


@pytest.mark.parametrize("values", [[0.0, -0.0], [float("nan"), 1.0], [float("nan")] * 2], ids=str)
def test_floats_rise_as_in_java(tmp_path: Path, values: list[float]) -> None:
    keyed = keyed_table(tmp_path, ["score"])
    with pytest.raises(FormatError, match="row 1: key is not above that before it"):
        write_sorted_run(keyed, BUCKET, [run_of(keyed, {"score": values})], level=0, source=0)


@pytest.mark.parametrize(
    "parts", [[[1, 3, 3]], [[2, 1]], [[1, 2], [2, 3]], [[1, 5], [], [4]]], ids=str
)
def test_keys_that_do_not_rise_are_not_written(tmp_path: Path, parts: list[list[int]]) -> None:
    keyed = keyed_table(tmp_path, ["id"])
    chunks = [run_of(keyed, {"id": part}) for part in parts]
    with pytest.raises(FormatError, match="key is not above that before it"):
        write_sorted_run(keyed, BUCKET, chunks, level=0, source=0)
    assert listing(tmp_path) == []


def test_what_was_written_is_taken_back_if_a_later_part_is_wrong(tmp_path: Path) -> None:
    keyed = keyed_table(tmp_path, ["id"], {"target-file-size": "1 kb"})
    seen: list[list[str]] = []

    def chunks() -> Any:
        yield run_of(keyed, {"id": list(range(GROUP_ROWS))})
        yield run_of(keyed, {"id": list(range(GROUP_ROWS, 2 * GROUP_ROWS))})
        seen.append(listing(tmp_path))
        yield run_of(keyed, {"id": [5]})

    with pytest.raises(FormatError, match="bucket-0/"):
        write_sorted_run(keyed, BUCKET, chunks(), level=0, source=0)
    assert [len(files) for files in seen] == [2]
    assert listing(tmp_path) == []


def test_the_number_of_buckets_is_that_of_the_files_that_are_there(tmp_path: Path) -> None:
    keyed = keyed_table(tmp_path, ["id"], {"bucket": "4"})
    file = DataFile(
        name="data-0.parquet", size=1, rows=1, min_key=EMPTY, max_key=EMPTY, key_stats=NO_STATS,
        value_stats=NO_STATS, min_sequence=0, max_sequence=0, schema_id=0, level=5,
    )  # fmt: skip
    present = PlacedFile(ManifestEntry(ADD, EMPTY, 0, 7, file), "bucket-0/")
    run = run_of(keyed, {"id": [1]})
    (first,) = write_sorted_run(keyed, BUCKET, [run], level=0, source=0)
    (second,) = write_sorted_run(keyed, replace(BUCKET, files=(present,)), [run], level=0, source=0)
    assert (first.entry.total_buckets, second.entry.total_buckets) == (4, 7)


@pytest.mark.parametrize("threshold", ["1 b", "1 mb"])
def test_indexes_are_of_the_columns_of_the_table(tmp_path: Path, threshold: str) -> None:
    options = {"file-index.in-manifest-threshold": threshold}
    indexes = {"file-index.bitmap.columns": "id,_KEY_id"}
    keyed = keyed_table(tmp_path, ["id"], options, indexes=indexes)
    run = run_of(keyed, {"id": [1, 2]})
    (written,) = write_sorted_run(keyed, BUCKET, [run], level=0, source=0)
    file = written.entry.file
    assert written.index_bytes > 0
    assert [(column, kind) for column, kind, _ in written.skipped] == [("_KEY_id", "bitmap")]
    if threshold == "1 b":
        assert (file.extra_files, file.embedded_index) == ((f"{file.name}.index",), None)
        assert listing(tmp_path) == sorted(written.paths)
    else:
        assert (file.extra_files, len(file.embedded_index or b"")) == ((), written.index_bytes)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("TINYINT", [-128, -1, 0, 127]),
        ("BIGINT", [-(1 << 63), -1, (1 << 63) - 1]),
        ("DECIMAL(9, 2)", [Decimal("-1.50"), Decimal("0.00"), Decimal("7.25")]),
        ("DECIMAL(30, 0)", [Decimal(-(10**29)), Decimal(-1), Decimal(1 << 65)]),
        ("TIMESTAMP(3)", [datetime(1969, 12, 31), datetime(2026, 1, 1, 1, 2, 3, 4000)]),
        ("TIMESTAMP(9)", [datetime(1969, 12, 31), datetime(2026, 1, 1, 1, 2, 3, 4567)]),
        ("STRING", ["", "a", "a" * 40, "a" * 39 + "b", "é", "\uffff", "😀"]),
        ("VARBINARY(9)", [b"", b"\x7f", b"\x80", b"\xff\xff"]),
        ("BOOLEAN", [False, True]),
        ("DOUBLE", [float("-inf"), -0.0, 0.0, 1.5, float("nan")]),
    ],
)
def test_keys_of_every_type_are_read_again(tmp_path: Path, kind: str, values: list[Any]) -> None:
    keyed = keyed_table(tmp_path, ["k"], columns={"k": kind, "v": "INT"})
    run = run_of(keyed, {"k": values})
    (written,) = write_sorted_run(keyed, BUCKET, [run], level=5, source=0)
    least, most = unpack_rows(
        [written.entry.file.min_key, written.entry.file.max_key], [DataType.parse(kind)]
    )[0].to_pylist()
    assert repr([least, most]) == repr([values[0], values[-1]])
    (keyed_run,) = KeyReader(keyed).runs(written.placed)
    assert repr(keyed_run.rows.to_pylist()) == repr(run.rows.to_pylist())


def test_a_file_that_cannot_be_put_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexes = {"file-index.bitmap.columns": "id"}
    keyed = keyed_table(
        tmp_path, ["id"], {"file-index.in-manifest-threshold": "1 b"}, indexes=indexes
    )
    put = Storage.put

    def full(self: Storage, path: str, data: bytes) -> None:
        if path.endswith(".index"):
            raise StorageError("no space left")
        put(self, path, data)

    monkeypatch.setattr(Storage, "put", full)
    with pytest.raises(StorageError, match="no space left"):
        write_sorted_run(keyed, BUCKET, [run_of(keyed, {"id": [1]})], level=0, source=0)
    assert listing(tmp_path) == []


@pytest.mark.parametrize(("version", "name"), KEYED, ids=[f"{n}-{v}" for v, n in KEYED])
def test_java_writes_the_same(tmp_path: Path, version: str, name: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not yet compacted", AlcidWarning)
        table = alcid.paimon(unpack_table(name, tmp_path, version))
        files = table.snapshot
    keyed = KeyedTable(
        table.storage, files.schema, files.schemas, files.options, (), Encoding("zstd", 1)
    )
    reader, compared = KeyReader(keyed), 0
    for placed in files.placed:
        java, partition = placed.file, placed.entry.partition
        bucket = Bucket(partition, placed.entry.bucket, placed.folder, (placed,))
        runs = reader.runs(placed)
        (written,) = write_sorted_run(
            keyed, bucket, runs, level=java.level, source=java.source or 0
        )
        ours = written.entry.file
        for attribute in (
            "rows", "min_key", "max_key", "key_stats", "min_sequence",
            "max_sequence", "schema_id", "level", "delete_rows", "source", "stats_columns",
        ):  # fmt: skip
            assert getattr(ours, attribute) == getattr(java, attribute), attribute
        # A minimum of 0.0 is -0.0 in ours.
        assert values_of(ours, files.schema) == values_of(java, files.schema)
        assert written.entry.total_buckets == placed.entry.total_buckets
        own, theirs = (
            pq.ParquetFile(tmp_path / name / file.path) for file in (written.placed, placed)
        )
        assert own.read().equals(theirs.read())
        assert str(own.schema).splitlines()[2:] == str(theirs.schema).splitlines()[2:]
        compared += 1
    assert compared


def test_the_columns_of_a_file_are_those_of_the_table_and_its_keys(tmp_path: Path) -> None:
    keyed = keyed_table(tmp_path, ["id"])
    thin, full = (key_file_schema(keyed.schema, thin=thin) for thin in (True, False))
    assert full.names == ["_KEY_id", *thin.names]
    assert thin.names == ["_SEQUENCE_NUMBER", "_VALUE_KIND", *keyed.schema.names]
