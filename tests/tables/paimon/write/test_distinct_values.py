"""Statistics of Paimon tables: rows that do not belong to the table do not count."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from alcid import (
    ColumnError,
    OptionError,
    ThetaSketch,
    UnsupportedError,
)
from alcid.errors import ConflictError, FileGoneError
from alcid.formats import puffin
from alcid.storage import Storage
from alcid.tables.distinct_values import count_columns
from alcid.tables.engine import Engine
from alcid.tables.paimon.files import PaimonFiles
from alcid.tables.paimon.write import distinct_values
from alcid.tables.paimon.write.distinct_values import compute_stats, kept_stats
from alcid.tables.paimon_table import PaimonTable
from tests.golden.paimon_tables import table_names, unpack_table
from tests.tables.maintenance.forging import forge, snapshot_of, state_of
from tests.tables.maintenance.kit import Workers
from tests.tables.paimon import small_tables

pytestmark = pytest.mark.filterwarnings("ignore:.*not yet compacted")

READ = [name for name in table_names() if name != "avro"]


def opened(table: Path, engine: Engine | None = None, **options: Any) -> PaimonTable:
    return PaimonTable(Storage.open(table), engine=engine, **options)


def files_in(table: Path, folder: str) -> list[str]:
    return sorted(path.name for path in (table / folder).glob("*"))


def counted_here(rows: pa.Table) -> list[dict[str, Any]]:
    """The same from all values at once; a sketch ignores empty text."""
    return [
        {
            "column": name,
            "ndv": len(
                {repr(value) for value in column.to_pylist() if value not in (None, "", b"")}
            ),
            "rows": rows.num_rows,
            "nulls": column.null_count,
        }
        for name, column in zip(rows.column_names, rows.columns, strict=True)
        if not pa.types.is_nested(column.type)
    ]


@pytest.mark.parametrize("name", READ)
def test_golden_tables_are_counted_as_their_rows_are_read(tmp_path: Path, name: str) -> None:
    table = opened(unpack_table(name, tmp_path))
    rows = table.scan().to_arrow()
    if name == "types":  # Python has no nanoseconds
        rows = rows.drop_columns(["c_timestamp_9", "c_zoned_9"])
    counted_table = compute_stats(table, rows.column_names if name != "types" else None)
    plain = counted_table.drop_columns(["type"]).to_pylist()
    assert [row for row in plain if not row["column"].endswith("_9")] == counted_here(rows)
    kept = kept_stats(table)
    assert kept is not None
    assert kept.equals(counted_table)


def test_any_number_of_workers_makes_the_same_sketches(tmp_path: Path) -> None:
    sketches = []
    for number, engine in enumerate((None, Workers(1), Workers(3))):
        table = unpack_table("key_vectors", tmp_path / str(number))
        compute_stats(opened(table, engine))
        (name,) = files_in(table, "_alcid")
        with puffin.open(io.BytesIO((table / "_alcid" / name).read_bytes())) as reader:
            sketches.append([reader.read(blob) for blob in reader.blobs])
    assert sketches[0] == sketches[1] == sketches[2]


def test_they_are_kept_as_sketches_and_as_analyze_keeps_them(tmp_path: Path) -> None:
    path = unpack_table("vectors_64", tmp_path)
    table = opened(path)
    before = snapshot_of(path)
    compute_stats(table, ["kind", "ring"])
    after = snapshot_of(path)
    files = [entry.file for entry in state_of(path).entries]
    assert sum(file.rows for file in files) > 36
    size = sum(file.size for file in files) * 36 // sum(file.rows for file in files)
    assert (after.id, after.commit_kind, after.schema_id) == (before.id + 1, "ANALYZE", 0)
    assert (after.total_record_count, after.delta_record_count) == (before.total_record_count, 0)
    assert after.index_manifest == before.index_manifest
    assert [after.statistics] == files_in(path, "statistics")
    assert json.loads((path / f"statistics/{after.statistics}").read_bytes()) == {
        "snapshotId": before.id,
        "schemaId": 0,
        "mergedRecordCount": 36,
        "mergedRecordSize": size,
        "colStats": {
            "ring": {"colId": 0, "distinctCount": 36, "nullCount": 0},
            "kind": {"colId": 1, "distinctCount": 4, "nullCount": 9},
        },
    }
    (name,) = files_in(path, "_alcid")
    with puffin.open(io.BytesIO((path / "_alcid" / name).read_bytes())) as reader:
        blobs = [(blob.fields, blob.snapshot_id, blob.properties) for blob in reader.blobs]
        assert blobs == [
            ((0,), before.id, {"column": "ring", "ndv": "36", "type": "INT", "nulls": "0"}),
            ((1,), before.id, {"column": "kind", "ndv": "4", "type": "STRING", "nulls": "9"}),
        ]
        sketch = ThetaSketch.from_bytes(reader.read(reader.blobs[1]))
        assert sketch.ndv == 4
    assert table.snapshot_id == after.id
    assert table.count() == 36


def test_they_count_as_long_as_no_row_comes_or_goes(tmp_path: Path) -> None:
    table = small_tables.create(tmp_path / "t")
    entry = small_tables.append(table, range(10))
    assert kept_stats(table) is None
    first = compute_stats(table)
    assert first.column("ndv").to_pylist() == [10, 5]
    small_tables.swap_index(table, entry, "a.index")
    kept = kept_stats(table)
    assert kept is not None
    assert kept.equals(first)
    small_tables.append(table, range(10, 13))
    assert kept_stats(table) is None
    assert compute_stats(table).column("ndv").to_pylist() == [13, 5]
    pointer = snapshot_of(tmp_path / "t").statistics
    small_tables.append(table, range(13, 15))
    assert snapshot_of(tmp_path / "t").statistics == pointer


def test_another_deletion_vector_makes_them_count_no_more(tmp_path: Path) -> None:
    path = unpack_table("vectors_32", tmp_path)
    compute_stats(opened(path))
    assert kept_stats(opened(path)) is not None
    forge(path)
    assert kept_stats(opened(path)) is not None
    forge(path, indexes=lambda _: [])
    assert kept_stats(opened(path)) is None


def test_columns_that_cannot_be_counted_are_left_out_or_refused(tmp_path: Path) -> None:
    table = opened(unpack_table("types", tmp_path))
    names = compute_stats(table).column("column").to_pylist()
    assert [name for name in table.schema.names if name not in names] == [
        "c_array",
        "c_map",
        "c_row",
    ]
    before = table.snapshot_id
    with pytest.raises(UnsupportedError, match="column c_map: distinct values of MAP"):
        compute_stats(table, ["c_map"])
    with pytest.raises(ColumnError, match="column nope"):
        compute_stats(table, ["nope"])
    with pytest.raises(OptionError, match="columns: found text"):
        compute_stats(table, "c_int")
    table.refresh()
    assert table.snapshot_id == before


def test_a_table_without_rows_has_no_values_and_no_snapshot(tmp_path: Path) -> None:
    table = small_tables.create(tmp_path / "t")
    assert compute_stats(table).to_pylist() == [
        {"column": "id", "type": "BIGINT", "ndv": 0, "rows": 0, "nulls": 0},
        {"column": "name", "type": "STRING", "ndv": 0, "rows": 0, "nulls": 0},
    ]
    assert (table.snapshot_id, files_in(tmp_path / "t", "statistics")) == (None, [])


def test_a_snapshot_of_the_past_is_refused(tmp_path: Path) -> None:
    path = unpack_table("append", tmp_path)
    with pytest.raises(UnsupportedError, match="opened at a snapshot of the past"):
        compute_stats(opened(path, snapshot_id=1))
    assert files_in(path, "statistics") == []


def test_a_change_of_the_schema_meanwhile_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    table = small_tables.create(path)
    small_tables.append(table, range(3))
    other = opened(path)

    def count(*arguments: Any, **options: Any) -> Any:
        counts = count_columns(*arguments, **options)
        small_tables.set_options(other, write_only="true")
        return counts

    monkeypatch.setattr(distinct_values, "count_columns", count)
    with pytest.raises(ConflictError, match="its schema has changed"):
        compute_stats(table)
    assert (files_in(path, "statistics"), files_in(path, "_alcid")) == ([], [])


def test_files_that_vanish_meanwhile_are_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    table = small_tables.create(path)
    small_tables.append(table, range(3))
    real = PaimonFiles.part
    tries: list[int] = []

    def part(self: PaimonFiles, files: Any) -> Any:
        tries.append(len(files))
        if len(tries) == 1:
            raise FileGoneError("it has expired", file="a.parquet")
        return real(self, files)

    monkeypatch.setattr(PaimonFiles, "part", part)
    assert compute_stats(table).column("ndv").to_pylist() == [3, 3]
    assert tries == [1, 1]

    def gone(*_: Any) -> Any:
        raise FileGoneError("it has expired", file="a.parquet")

    monkeypatch.setattr(PaimonFiles, "part", gone)
    with pytest.raises(FileGoneError):
        compute_stats(table)
