"""Manifests that are read in this process: metrics by column, in memory that is bounded."""

from __future__ import annotations

import tracemalloc
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from alcid.errors import FileGoneError, FormatError
from alcid.tables.iceberg import catalog as catalog_module
from alcid.tables.iceberg.bounds import column_metrics
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.entries import METRICS
from alcid.tables.iceberg.metadata.manifests import ManifestFile, read_manifest
from alcid.tables.iceberg_table import IcebergTable
from tests.tables.iceberg.manifest_catalog import ManifestCatalog
from tests.tables.iceberg.metadata.test_manifests import NO_SPECS, counts, field, file, manifest

COLUMNS = 40
_BYTES_PER_FILE = 500
"""In memory of a data file, whatever its columns: its path takes most of it."""
_PEAK_PER_FILE = 1_500
"""While it is read, besides the objects of one batch of records."""
_BATCH_BYTES = 48 << 20


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A cache that other tests have not filled."""
    made = catalog_module._ManifestCache(catalog_module.CACHE_BYTES)
    monkeypatch.setattr(catalog_module, "_cache", made)
    return made


def metrics_of(number: int, columns: int = COLUMNS) -> dict[str, Any]:
    every = range(1, columns + 1)
    return {
        "value_counts": [{"key": key, "value": 10} for key in every],
        "null_value_counts": [{"key": key, "value": key % 3} for key in every],
        "nan_value_counts": [],
        "lower_bounds": [
            {"key": key, "value": (number + key).to_bytes(8, "little")} for key in every
        ],
        "upper_bounds": [
            {"key": key, "value": (number + 2 * key).to_bytes(8, "little")} for key in every
        ],
    }


FIELDS = [
    counts("value_counts", 109),
    counts("null_value_counts", 110),
    counts("nan_value_counts", 137),
    counts("lower_bounds", 125, "bytes"),
    counts("upper_bounds", 128, "bytes"),
]


def manifest_of(files: Sequence[int], columns: int = COLUMNS) -> bytes:
    records = [
        file(f"/lake/t/data/{number:08}-{'0' * 36}.parquet", **metrics_of(number, columns))
        for number in files
    ]
    return manifest(records, more=FIELDS)


def test_without_metrics_the_rest_is_the_same() -> None:
    data = manifest_of(range(3000))
    whole = read_manifest(ManifestFile("m"), data, NO_SPECS)
    lean = read_manifest(ManifestFile("m"), data, NO_SPECS, ())
    assert lean.columns.drop_columns(METRICS) == whole.columns.drop_columns(METRICS)
    assert all(lean.columns[name].null_count == 3000 for name in METRICS)
    some = read_manifest(ManifestFile("m"), data, NO_SPECS, {3, 7, 99})
    for name in METRICS:
        expected = [
            [kv for kv in row if kv[0] in (3, 7)] for row in whole.columns[name].to_pylist()
        ]
        assert some.columns[name].to_pylist() == expected


def test_memory_does_not_grow_with_the_columns() -> None:
    sizes = {}
    for columns in (2, 80):
        data = manifest_of(range(4000), columns)
        tracemalloc.start()
        before = pa.total_allocated_bytes()
        lean = read_manifest(ManifestFile("m"), data, NO_SPECS, ())
        sizes[columns] = pa.total_allocated_bytes() - before
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert lean.nbytes < 4000 * _BYTES_PER_FILE
        assert peak < 4000 * _PEAK_PER_FILE + _BATCH_BYTES
    assert sizes[80] < 1.1 * sizes[2] < 1.1 * 4000 * _BYTES_PER_FILE


def test_types_that_metrics_define_and_other_fields_refer_to() -> None:
    """Then all fields are read, since the schema of the rest would not be complete."""
    defined = {"type": "fixed", "name": "four", "size": 4}
    inner = {"type": "record", "name": "kv", "fields": [field("key", "int"), field("value", "int")]}
    more = [
        field("value_counts", {"type": "array", "items": inner}, 109),
        field("odd", defined, 999),
    ]
    again = [field("unknown", "kv", 998)]
    records = [
        file(
            f"{number}",
            value_counts=[{"key": 1, "value": number}],
            odd=b"1234",
            unknown={"key": 1, "value": 2},
        )
        for number in range(3)
    ]
    data = manifest(records, more=[*more, *again])
    lean = read_manifest(ManifestFile("m"), data, NO_SPECS, ())
    assert lean.columns["file_path"].to_pylist() == ["0", "1", "2"]


def test_a_delete_file_among_data_files_keeps_its_metrics() -> None:
    more = [field("content", "int", 134), *FIELDS]
    records = [file("a", content=0, **metrics_of(1)), file("d", content=1, **metrics_of(2))]
    read = read_manifest(ManifestFile("m"), manifest(records, more=more), NO_SPECS, ())
    assert read.columns["lower_bounds"][1].is_valid


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ManifestCatalog:
    """A table with real manifests, whose metrics are read when they are asked for."""
    monkeypatch.setattr(catalog_module, "MAX_VALUES", 0)
    return ManifestCatalog(tmp_path / "t")


def _add_files(made: ManifestCatalog) -> None:
    for first in range(5):
        rows = range(100 * first, 100 * first + 50)
        made.add({f"{9 - first}.parquet": {"id": list(rows), "name": [f"n{row}" for row in rows]}})


def test_bounds_that_are_read_later_are_those_of_all_metrics(
    large: ManifestCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add_files(large)
    lazy = IcebergTable(large)
    assert lazy.snapshot.entries.read_metrics is not None
    monkeypatch.setattr(catalog_module, "MAX_VALUES", 1 << 30)
    whole = IcebergTable(large)
    assert whole.snapshot.entries.read_metrics is None
    assert lazy.snapshot.entries.data["lower_bounds"].null_count == 5
    for column in lazy.snapshot.schema.fields:
        assert column.data_type is not None
        bounds = [
            column_metrics(one.snapshot.entries.with_metrics([column.id]), column, column.data_type)
            for one in (lazy, whole)
        ]
        assert bounds[0] == bounds[1]
        assert bounds[0].null_count == 0
    for where in ("id = 213", "id BETWEEN 40 AND 110", "name = 'n402'", "id > 1000"):
        stages = [one.scan(where).explain().stages for one in (lazy, whole)]
        kept = [[(stage.name, stage.after, stage.dropped) for stage in some] for some in stages]
        assert kept[0] == kept[1]
        assert lazy.scan(where).to_arrow() == whole.scan(where).to_arrow()


def test_manifests_that_two_snapshots_have_are_read_once(
    large: ManifestCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    real = FileIO.read_files

    def read_files(self: FileIO, paths: Sequence[str]) -> list[bytes]:
        read.extend(path.rpartition("/")[2] for path in paths)
        return real(self, paths)

    monkeypatch.setattr(FileIO, "read_files", read_files)
    _add_files(large)
    assert IcebergTable(large).count() == 250
    assert [name.partition("-")[0] for name in read] == ["snap", *["manifest"] * 5]
    read.clear()
    large.add({"new.parquet": {"id": [7], "name": ["x"]}})
    assert IcebergTable(large).count() == 251
    assert [name.partition("-")[0] for name in read] == ["snap", "manifest"]


def test_the_cache_is_bounded() -> None:
    data = manifest_of(range(100))
    entries = read_manifest(ManifestFile("m"), data, NO_SPECS, ())
    small = catalog_module._ManifestCache(3 * entries.nbytes)
    for number in range(5):
        small.put(number, entries)
    assert [small.get(number) is not None for number in range(5)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    small.put("again", entries)
    assert small._bytes == 3 * entries.nbytes
    too_large = catalog_module._ManifestCache(entries.nbytes - 1)
    too_large.put(1, entries)
    assert too_large.get(1) is None


def test_the_same_path_elsewhere_is_another_manifest(large: ManifestCatalog) -> None:
    _add_files(large)
    assert IcebergTable(large).files == 5
    elsewhere = FileIO({"option": 1}).identity, FileIO({"option": 2}).identity, FileIO().identity
    assert len({*elsewhere, FileIO(None, "/home").identity}) == 4
    assert FileIO({"option": 1}).identity == elsewhere[0]


def test_a_manifest_that_is_gone_or_damaged_when_metrics_are_asked_for(
    large: ManifestCatalog,
) -> None:
    _add_files(large)
    entries = IcebergTable(large).snapshot.entries
    path = sorted(large.folder.glob("metadata/manifest-*"))[2]
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    with pytest.raises(FormatError, match=path.name):
        entries.with_metrics([1])
    path.unlink()
    with pytest.raises(FileGoneError, match=path.name):
        entries.with_metrics([1])
    path.write_bytes(data)
    assert len(entries.with_metrics([1])) == 5


class _Listed(ManifestCatalog):
    """A catalog that lists the files of large snapshots."""

    def entries(self, snapshot_id: int, *, metrics: bool = True) -> pa.Table:
        assert not metrics
        assert snapshot_id in self.files
        lean = self.all_entries().drop_columns(METRICS)
        return pa.concat_tables([lean, lean.slice(1, 1)])

    def metrics(self, snapshot_id: int, field_ids: Collection[int]) -> pa.Table:
        assert snapshot_id in self.files
        self.asked = [*field_ids]
        # In another order, the first one twice, and the last one not at all.
        return self.all_entries().select(["file_path", *METRICS]).take(pa.array([3, 0, 2, 1, 0]))


def test_metrics_of_a_catalog_go_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_module, "MAX_VALUES", 0)
    monkeypatch.setattr(catalog_module, "MAX_READ", 0)
    made = _Listed(tmp_path / "t")
    _add_files(made)
    rows = IcebergTable(made).snapshot.entries.with_metrics([1, 2]).to_pylist()
    assert made.asked == [1, 2]
    listed = made.all_entries().to_pylist()
    unknown = [listed[0]["file_path"], listed[4]["file_path"]]
    expected = {row["file_path"]: row["lower_bounds"] for row in listed}
    assert len(rows) == 6
    for row in rows:
        path = row["file_path"]
        assert row["lower_bounds"] == (None if path in unknown else expected[path])
