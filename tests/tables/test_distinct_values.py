"""Statistics of a table: counts of distinct values, and the file that stores them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid import (
    ColumnError,
    DeletionVector,
    OptionError,
    ThetaSketch,
    UnsupportedError,
)
from alcid.errors import FileGoneError
from alcid.formats import puffin
from alcid.storage import Storage
from alcid.tables.bundle_folder import BundleFolder
from alcid.tables.distinct_values import compute_stats, read_stats
from alcid.tables.engine import Engine, Threads
from alcid.tables.open_files import list_data_files
from alcid.tables.parquet.indexes import FolderIndexes
from alcid.tables.parquet_table import ParquetTable
from tests.tables.folders import OPTIONS, bundle_names, fill, path_of, put_table, rows_of
from tests.tables.maintenance.kit import Workers, folder_of


@pytest.fixture
def local(tmp_path: Path) -> Storage:
    return Storage.open(tmp_path / "table")


def counted(
    storage: Storage,
    columns: list[str] | None = None,
    engine: Engine | None = None,
    folder: BundleFolder | None = None,
    **options: Any,
) -> pa.Table:
    files = ParquetTable(storage).snapshot
    folder = folder or folder_of(storage)
    return compute_stats(files, folder, engine or Threads(), columns, **options)


def sketches(storage: Storage) -> dict[str, bytes]:
    """The sketches of the newest file, by column."""
    name = max(name for name in bundle_names(storage) if name.startswith("statistics-"))
    source = storage.source(f"_alcid/{name}")
    with puffin.open(io.BytesIO(source.read(0, source.size))) as reader:
        return {blob.properties["column"]: reader.read(blob) for blob in reader.blobs}


def by_column(table: pa.Table) -> dict[str, tuple[int, int, int]]:
    return {row["column"]: (row["ndv"], row["rows"], row["nulls"]) for row in table.to_pylist()}


def test_few_values_are_counted_exactly_everywhere(storage: Storage) -> None:
    tables = fill(storage, 5)
    table = counted(storage)
    whole = pa.concat_tables(tables.values())
    expected = [
        {
            "column": name,
            "type": kind,
            "ndv": len(whole[name].unique()),
            "rows": 300,
            "nulls": 0,
        }
        for name, kind in (
            ("id", "BIGINT"),
            ("class_id", "INT"),
            ("score", "DOUBLE"),
            ("name", "STRING"),
        )
    ]
    days = {"column": "dt", "type": "DATE", "ndv": 3, "rows": 300, "nulls": 0}
    assert table.to_pylist() == [*expected, days]
    assert table.equals(read_stats(folder_of(storage), list_data_files(storage)))
    for name in ("id", "class_id", "score", "name"):
        sketch = ThetaSketch().update(whole[name])
        assert sketches(storage)[name] == sketch.to_bytes()


def many(seed: int, rows: int = 40_000) -> pa.Table:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 60_000, rows)
    return pa.table(
        {
            "number": numbers,
            "text": pa.array([f"text {number}" for number in numbers // 7]),
            "few": pa.array(numbers % 1000, pa.int16()),
            "none": pa.nulls(rows, pa.int32()),
        }
    )


def test_many_values_are_counted_within_some_percent_and_by_any_workers(local: Storage) -> None:
    tables = [many(seed) for seed in range(5)]
    for number, table in enumerate(tables):
        put_table(local, f"part-{number}.parquet", table)
    results = [
        (counted(local, engine=engine).to_pylist(), sketches(local))
        for engine in (Threads(), Workers(1), Workers(2), Workers(5))
    ]
    assert results[1:] == results[:1] * 3
    whole, stored = pa.concat_tables(tables), read_stats(folder_of(local), list_data_files(local))
    assert stored is not None
    for name, (ndv, rows, nulls) in by_column(stored).items():
        exact = len(whole[name].drop_null().unique())
        assert (rows, nulls) == (200_000, whole[name].null_count)
        assert ndv == exact if exact <= 4096 else abs(ndv - exact) <= 0.05 * exact, name
    # Equal to the union of one sketch for each file, in the order of the files.
    united = ThetaSketch()
    for table in tables:
        united = united.union(ThetaSketch().update(table["number"]))
    assert sketches(local)["number"] == united.to_bytes()
    assert by_column(stored)["number"][0] == united.ndv


def test_a_column_has_the_type_of_the_table_in_every_file(local: Storage) -> None:
    """The same number is two values in two types; and one file lacks the column."""
    put_table(local, "a.parquet", pa.table({"n": pa.array([1, 2, None], pa.int32())}))
    put_table(local, "b.parquet", pa.table({"N": pa.array([2, 3], pa.int64())}))
    put_table(local, "c.parquet", pa.table({"other": ["x"]}))
    table = counted(local)
    assert by_column(table) == {"n": (3, 6, 2), "other": (1, 6, 5)}
    assert table["type"].to_pylist() == ["BIGINT", "STRING"]
    expected = ThetaSketch().update(pa.array([1, 2, 3], pa.int64()))
    assert sketches(local)["n"] == expected.to_bytes()


def test_dictionaries_and_empty_text_are_counted_as_a_sketch_does(local: Storage) -> None:
    values = pa.array(["fig", "", None, "fig", "pear"]).dictionary_encode()
    put_table(local, "a.parquet", pa.table({"text": values, "score": [0.0, -0.0, 1.0, 1.0, None]}))
    assert by_column(counted(local)) == {"text": (2, 5, 1), "score": (3, 5, 1)}


def test_partition_columns_are_counted_from_the_paths(local: Storage) -> None:
    for folder, rows in (("a=1/b=x", 3), ("a=1/b=y", 2), ("a=2/b=x", 0)):
        put_table(local, f"{folder}/f.parquet", pa.table({"id": np.arange(rows)}))
    put_table(local, "a=3/b=__HIVE_DEFAULT_PARTITION__/f.parquet", pa.table({"id": [7, 8]}))
    table = counted(local)
    assert by_column(table) == {"id": (5, 7, 0), "a": (2, 7, 0), "b": (2, 7, 2)}
    assert by_column(counted(local, ["B"])) == {"b": (2, 7, 2)}


def test_columns_are_chosen_by_name_in_the_order_of_the_table(local: Storage) -> None:
    fill(local, 1)
    assert list(by_column(counted(local, ["name", "ID"]))) == ["id", "name"]
    assert list(sketches(local)) == ["id", "name"]
    with pytest.raises(ColumnError, match="column nowhere: not in the table"):
        counted(local, ["nowhere"])
    with pytest.raises(UnsupportedError, match="column tags: distinct values of MAP"):
        counted(local, ["tags"])
    with pytest.raises(OptionError, match="columns: found text"):
        counted(local, "id")  # type: ignore[arg-type]


def test_a_value_that_cannot_be_counted_leaves_its_column_out(local: Storage) -> None:
    moments = pa.array([0, 2**62], pa.int64()).cast(pa.timestamp("ms"))
    put_table(local, "a.parquet", pa.table({"id": [1, 2], "at": moments}))
    assert by_column(counted(local)) == {"id": (2, 2, 0)}
    with pytest.raises(UnsupportedError, match=r"column at: a\.parquet: a value does not fit"):
        counted(local, ["at"])


def test_deleted_rows_are_refused(local: Storage) -> None:
    fill(local, 1)
    table = ParquetTable(local).with_deletions({path_of(0): DeletionVector([1])})
    with pytest.raises(UnsupportedError, match="statistics of a table with deletions"):
        compute_stats(table.snapshot, folder_of(local), Threads())
    assert bundle_names(local) == []


def test_a_file_that_changed_is_an_error_and_nothing_is_kept(local: Storage) -> None:
    fill(local, 2)
    files = ParquetTable(local).snapshot
    put_table(local, path_of(1), rows_of(5, count=7))
    with pytest.raises(FileGoneError, match="part-1"):
        compute_stats(files, folder_of(local), Threads())
    assert bundle_names(local) == []


def test_the_file_says_what_it_is_of_and_is_no_bundle(local: Storage) -> None:
    fill(local, 2)
    FolderIndexes(local).build(OPTIONS)
    (bundle,) = bundle_names(local)
    counted(local, ["id"])
    _, name = bundle_names(local)
    bundles = folder_of(local).load(strict=True)
    assert bundles.names == (bundle,)
    source = local.source(f"_alcid/{name}")
    with puffin.open(io.BytesIO(source.read(0, source.size))) as reader:
        (blob,) = reader.blobs
        assert (blob.type, blob.fields) == ("apache-datasketches-theta-v1", ())
        assert (blob.snapshot_id, blob.sequence_number) == (-1, -1)
        assert blob.properties == {"column": "id", "ndv": "120", "type": "BIGINT", "nulls": "0"}
        said = reader.properties
    assert (said["alcid.files"], said["alcid.rows"]) == ("2", "120")
    assert len(said["alcid.listing"]) == 64


def test_statistics_count_as_long_as_the_files_are_the_same(local: Storage) -> None:
    folder = folder_of(local)
    assert read_stats(folder, list_data_files(local)) is None
    fill(local, 2)
    counted(local)
    first = counted(local, ["id"])
    assert first.equals(read_stats(folder, list_data_files(local)))
    put_table(local, path_of(1), rows_of(1, count=61))
    assert read_stats(folder, list_data_files(local)) is None
    second = counted(local, ["id"])
    assert second.equals(read_stats(folder, list_data_files(local)))
    local.delete([path_of(0)])
    assert read_stats(folder, list_data_files(local)) is None


def test_damaged_statistics_are_as_good_as_none(local: Storage) -> None:
    fill(local, 1)
    counted(local)
    (name,) = bundle_names(local)
    path = Path(local.location) / "_alcid" / name
    data = path.read_bytes()
    for damaged in (b"", data[:-1], data.replace(b'"ndv":"60"', b'"ndv":"6x"')):
        assert damaged != data
        path.write_bytes(damaged)
        assert read_stats(folder_of(local), list_data_files(local)) is None


def test_they_are_in_a_separate_folder_of_indexes(local: Storage, tmp_path: Path) -> None:
    fill(local, 1)
    folder = BundleFolder(Storage.open(tmp_path / "indexes"))
    table = counted(local, folder=folder)
    assert table.equals(read_stats(folder, list_data_files(local)))
    assert len(folder.storage.list(hidden=True)) == 1


def test_a_table_without_files_or_rows_has_no_values(local: Storage) -> None:
    Path(local.location).mkdir(parents=True)
    assert counted(local).num_rows == 0
    data = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), data)
    local.put("a.parquet", data.getvalue())
    assert by_column(counted(local)) == {"id": (0, 0, 0)}


def test_it_reports_its_progress(local: Storage) -> None:
    fill(local, 3)
    progress: list[tuple[int, int, int]] = []
    counted(local, progress=lambda *state: progress.append(state))
    assert progress == [(1, 3, 60), (2, 3, 120), (3, 3, 180)]
