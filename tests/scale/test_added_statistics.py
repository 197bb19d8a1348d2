"""Counting again after files were added: only these are read, and the sketches are the same."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.formats.puffin import THETA_SKETCH, PuffinReader
from alcid.formats.source import BytesSource
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.open_files import OpenFiles
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.parquet_table import ParquetTable
from tests.tables.iceberg.memory_catalog import MemoryCatalog
from tests.tables.paimon import small_tables

Opened = list[str]


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """What the log says about the last count."""
    caplog.set_level(logging.INFO, "alcid")

    def last() -> str:
        return [
            record.message for record in caplog.records if record.message.startswith("statistics")
        ][-1]

    return last


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """The names of the data files whose rows were read."""
    names: Opened = []
    real = OpenFiles.open

    def open_files(self: OpenFiles, files: Sequence[int]) -> Any:
        names.extend(Path(self.paths[file].as_py()).name for file in files)
        return real(self, files)

    monkeypatch.setattr(OpenFiles, "open", open_files)
    return names


def rows_of(seed: int, count: int) -> pa.Table:
    """Rows with few, many and no values, and some nulls."""
    numbers = np.random.default_rng(seed).integers(0, 50_000, count)
    return pa.table(
        {
            "few": pa.array(numbers % 300, pa.int32()),
            "many": pa.array(
                [f"text {number}" if number % 11 else None for number in numbers], pa.string()
            ),
            "none": pa.nulls(count, pa.int64()),
        }
    )


def sketches(data: bytes) -> dict[str, bytes]:
    """The sketches of a Puffin file, by column or field."""
    reader = PuffinReader(BytesSource(data))
    return {
        str(blob.properties.get("column", blob.fields)): reader.read(blob)
        for blob in reader.blobs
        if blob.type == THETA_SKETCH
    }


def newest(table: Path) -> dict[str, bytes]:
    """The latest sketches of a folder or a Paimon table."""
    return sketches(max((table / "_alcid").glob("statistics-*.puffin")).read_bytes())


def without_statistics(table: Path, copy: Path) -> Path:
    """The same table, with the same modification times, but nothing counted yet."""
    shutil.copytree(table, copy)
    for path in (copy / "_alcid").glob("statistics-*.puffin"):
        path.unlink()
    return copy


def folder_of(path: Path, counts: Sequence[int]) -> ParquetTable:
    path.mkdir()
    for number, count in enumerate(counts):
        pq.write_table(rows_of(number, count), path / f"{number}.parquet")
    return alcid.parquet(path)


@pytest.mark.parametrize("count", [100, 20_000], ids=["exact", "beyond"])
def test_a_folder_is_counted_as_if_all_of_it_was_read(
    tmp_path: Path, said: Callable[[], str], opened: Opened, count: int
) -> None:
    path = tmp_path / "t"
    table = folder_of(path, [count, count, 0])
    table.compute_stats()
    assert said() == "statistics: 3 of 3 files are read"
    pq.write_table(rows_of(7, count), path / "0-new.parquet")
    opened.clear()
    stats = table.compute_stats()
    assert (said(), opened) == ("statistics: 1 of 4 files are read", ["0-new.parquet"])
    copy = without_statistics(path, tmp_path / "copy")
    assert stats.equals(alcid.parquet(copy).compute_stats())
    assert said() == "statistics: 4 of 4 files are read"
    assert newest(path) == newest(copy)
    united = alcid.ThetaSketch()
    for seed in (0, 1, 7):
        united = united.union(alcid.ThetaSketch.of(rows_of(seed, count)["many"]))
    assert newest(path)["many"] == united.to_bytes()


def test_a_count_of_counts_of_counts_is_the_same(tmp_path: Path, said: Callable[[], str]) -> None:
    path = tmp_path / "t"
    table = folder_of(path, [9_000])
    for seed in range(1, 4):
        table.compute_stats()
        pq.write_table(rows_of(seed, 9_000), path / f"{seed}.parquet")
    stats = table.compute_stats()
    assert said() == "statistics: 1 of 4 files are read"
    copy = without_statistics(path, tmp_path / "copy")
    assert stats.equals(alcid.parquet(copy).compute_stats())
    assert newest(path) == newest(copy)


def remove(path: Path) -> None:
    (path / "1.parquet").unlink()


def replace_one(path: Path) -> None:
    pq.write_table(rows_of(5, 40), path / "1.parquet")


def widen(path: Path) -> None:
    wide = rows_of(5, 40).set_column(0, "few", pa.array(range(40), pa.int64()))
    pq.write_table(wide, path / "wide.parquet")


def add_column(path: Path) -> None:
    pq.write_table(rows_of(5, 40).append_column("more", pa.array(range(40))), path / "m.parquet")


def damage(path: Path) -> None:
    kept = max((path / "_alcid").glob("statistics-*.puffin"))
    data = bytearray(kept.read_bytes())
    data[12] ^= 1  # within the first sketch
    kept.write_bytes(data)


def forget(path: Path) -> None:
    kept = max((path / "_alcid").glob("statistics-*.puffin"))
    data = kept.read_bytes()
    assert b"alcid.hashes" in data
    kept.write_bytes(data.replace(b"alcid.hashes", b"other.hashes"))


@pytest.mark.parametrize("change", [remove, replace_one, widen, add_column, damage, forget])
def test_any_other_change_of_a_folder_counts_everything_again(
    tmp_path: Path, said: Callable[[], str], change: Callable[[Path], None]
) -> None:
    path = tmp_path / "t"
    table = folder_of(path, [100, 100])
    table.compute_stats()
    change(path)
    pq.write_table(rows_of(8, 50), path / "8.parquet")
    stats = table.compute_stats()
    files = len(list(path.glob("*.parquet")))
    assert said() == f"statistics: {files} of {files} files are read"
    copy = without_statistics(path, tmp_path / "copy")
    assert stats.equals(alcid.parquet(copy).compute_stats())
    assert newest(path) == newest(copy)


def test_columns_that_were_not_counted_count_everything_again(
    tmp_path: Path, said: Callable[[], str]
) -> None:
    path = tmp_path / "t"
    table = folder_of(path, [100])
    table.compute_stats(["few"])
    pq.write_table(rows_of(8, 50), path / "8.parquet")
    table.compute_stats(["few", "many"])
    assert said() == "statistics: 2 of 2 files are read"
    pq.write_table(rows_of(9, 50), path / "9.parquet")
    table.compute_stats(["many"])
    assert said() == "statistics: 1 of 3 files are read"


def test_the_same_files_again_are_counted_again(tmp_path: Path, said: Callable[[], str]) -> None:
    table = folder_of(tmp_path / "t", [100, 10])
    first = table.compute_stats()
    assert first.equals(table.compute_stats())
    assert said() == "statistics: 2 of 2 files are read"


def test_partitions_are_counted_from_all_paths(tmp_path: Path, said: Callable[[], str]) -> None:
    path = tmp_path / "t"
    for day in (1, 2):
        (path / f"day={day}").mkdir(parents=True)
        pq.write_table(rows_of(day, 50), path / f"day={day}/a.parquet")
    table = alcid.parquet(path)
    table.compute_stats()
    (path / "day=3").mkdir()
    pq.write_table(rows_of(3, 50), path / "day=3/a.parquet")
    stats = table.compute_stats().to_pylist()
    assert said() == "statistics: 1 of 3 files are read"
    assert [(row["ndv"], row["rows"]) for row in stats if row["column"] == "day"] == [(3, 150)]


def test_old_files_of_a_paimon_table_are_not_needed(
    tmp_path: Path, said: Callable[[], str]
) -> None:
    path = tmp_path / "t"
    table = small_tables.create(path)
    small_tables.append(table, range(6_000))
    small_tables.append(table, range(3_000, 9_000))
    table.compute_stats()
    old = list((path / "bucket-0").glob("*.parquet"))
    small_tables.append(table, range(8_000, 12_000))
    copy = without_statistics(path, tmp_path / "copy")
    for file in old:
        file.unlink()
    stats = table.compute_stats()
    assert said() == "statistics: 1 of 3 files are read"
    assert stats.equals(alcid.paimon(copy).compute_stats())
    assert newest(path) == newest(copy)


def delete_rows(table: alcid.PaimonTable, _: Any) -> None:
    table.delete("id = 4")


def rewrite(table: alcid.PaimonTable, entry: Any) -> None:
    """As after a compaction: the same rows in another file."""
    added = small_tables.write_file(table, small_tables.rows_of(range(10)))
    small_tables.commit(table, Change(kind="COMPACT", deleted=[entry], added=[added]))


@pytest.mark.parametrize(("change", "rows"), [(delete_rows, 34), (rewrite, 35)])
def test_a_delete_or_a_compaction_of_a_paimon_table_counts_everything_again(
    tmp_path: Path, said: Callable[[], str], change: Callable[..., None], rows: int
) -> None:
    table = small_tables.create(tmp_path / "t")
    entry = small_tables.append(table, range(10))
    small_tables.append(table, range(20, 40))
    table.compute_stats()
    change(table, entry)
    small_tables.append(table, range(50, 55))
    stats = table.compute_stats().to_pylist()
    assert said() == "statistics: 3 of 3 files are read"
    assert [(row["ndv"], row["rows"]) for row in stats] == [(rows, rows), (5, rows)]


def test_deleted_rows_that_were_so_when_it_was_counted_stay_so(
    tmp_path: Path, said: Callable[[], str]
) -> None:
    table = small_tables.create(tmp_path / "t")
    small_tables.append(table, range(10))
    table.delete("id < 4")
    table.compute_stats()
    small_tables.append(table, range(20, 25))
    stats = table.compute_stats().to_pylist()
    assert said() == "statistics: 1 of 2 files are read"
    assert [(row["ndv"], row["rows"]) for row in stats] == [(11, 11), (5, 11)]


def test_a_paimon_table_with_a_key_is_counted_completely(
    tmp_path: Path, said: Callable[[], str]
) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    table = alcid.create_table(tmp_path / "t", schema, primary_key=["id"], options=options)
    table.upsert(small_tables.rows_of(range(10)).cast(schema))
    table.compute_stats()
    table.upsert(small_tables.rows_of(range(20, 30)).cast(schema))
    table.compute_stats()
    assert said() == "statistics: 2 of 2 files are read"


class CountingCatalog(MemoryCatalog):
    """A table whose manifests have counts of values and nulls."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.counted = True

    def entries(self, snapshot_id: int, *, metrics: bool = True) -> pa.Table:
        table = super().entries(snapshot_id, metrics=metrics)
        if not self.counted:
            return table
        kind = pa.map_(pa.int32(), pa.int64())
        rows = table["record_count"].to_pylist()
        values = pa.array([[(1, count), (2, count)] for count in rows], kind)
        nulls = pa.array([[(1, 0), (2, count // 5)] for count in rows], kind)
        return table.append_column("value_counts", values).append_column("null_value_counts", nulls)


def rows_by_name(first: int, count: int) -> Mapping[str, Sequence[Any]]:
    """Rows; the first fifth has no name."""
    names = [None if number < count // 5 else f"n{first + number}" for number in range(count)]
    return {"id": range(first, first + count), "name": names}


def iceberg_of(folder: Path) -> tuple[CountingCatalog, IcebergTable]:
    catalog = CountingCatalog(folder)
    catalog.add({"a.parquet": rows_by_name(0, 5_000), "b.parquet": rows_by_name(4_000, 5_000)})
    return catalog, IcebergTable(catalog)


def listed_sketches(catalog: MemoryCatalog) -> dict[str, bytes]:
    """The sketches of the current snapshot."""
    number = catalog.metadata["current-snapshot-id"]
    name = catalog.listed()[number]
    return sketches((catalog.folder / "metadata" / name).read_bytes())


def test_old_files_of_an_iceberg_table_are_not_needed(
    tmp_path: Path, said: Callable[[], str]
) -> None:
    catalog, table = iceberg_of(tmp_path / "t")
    table.compute_stats()
    assert said() == "statistics: 2 of 2 files are read"
    catalog.add({"0.parquet": rows_by_name(8_000, 3_000)})
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / "t" / "data" / name).unlink()
    stats = table.compute_stats()
    assert said() == "statistics: 1 of 3 files are read"
    other = CountingCatalog(tmp_path / "other")
    other.add(
        {
            "a.parquet": rows_by_name(0, 5_000),
            "b.parquet": rows_by_name(4_000, 5_000),
            "0.parquet": rows_by_name(8_000, 3_000),
        }
    )
    assert stats.equals(IcebergTable(other).compute_stats())
    assert said() == "statistics: 3 of 3 files are read"
    assert listed_sketches(catalog) == listed_sketches(other)


def drop_file(catalog: CountingCatalog) -> int:
    catalog.add({}, drop=["a.parquet"])
    return 2


def change_schema(catalog: CountingCatalog) -> int:
    catalog.set_fields((("id", 1, "long"), ("name", 2, "string"), ("more", 3, "int")))
    return 3


def lose_counts(catalog: CountingCatalog) -> int:
    catalog.counted = False
    return 3


def replace_by_another(catalog: CountingCatalog) -> int:
    """As another tool does, whose sketches differ from ours."""
    for path in catalog.puffins():
        data = path.read_bytes()
        path.write_bytes(data.replace(b'"Alcid ', b'"Other '))
    return 3


@pytest.mark.parametrize("change", [drop_file, change_schema, lose_counts, replace_by_another])
def test_any_other_change_of_an_iceberg_table_counts_everything_again(
    tmp_path: Path, said: Callable[[], str], change: Callable[[CountingCatalog], int]
) -> None:
    catalog, table = iceberg_of(tmp_path / "t")
    table.compute_stats()
    files = change(catalog)
    catalog.add({"c.parquet": rows_by_name(8_000, 3_000)})
    table.compute_stats()
    assert said() == f"statistics: {files} of {files} files are read"
