"""Others replace or drop the statistics file while we count."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import alcid
from alcid.formats.puffin.writer import THETA_SKETCH
from alcid.tables.iceberg.metadata.table_metadata import StatisticsFile
from alcid.tables.iceberg_table import IcebergTable
from tests.tables.iceberg.memory_catalog import MemoryCatalog

ROWS: dict[str, list[Any]] = {"id": [1, 2, 3], "name": ["a", "b", "b"]}


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    made = MemoryCatalog(tmp_path / "t")
    made.add({"a.parquet": ROWS})
    return made


def put_sketch(catalog: MemoryCatalog, snapshot: int, field: int) -> None:
    """Replace the statistics file by one with a sketch, as Iceberg's own action does."""
    data = io.BytesIO()
    with alcid.puffin.create(data, properties={"created-by": "Iceberg"}) as writer:
        writer.add(
            THETA_SKETCH,
            b"a sketch of others",
            fields=[field],
            snapshot_id=snapshot,
            sequence_number=1,
            properties={"ndv": "3"},
        )
    path = catalog.folder / "metadata" / f"{snapshot}-others.stats"
    path.write_bytes(data.getvalue())
    with alcid.puffin.open(path) as reader:
        footer, size = reader.footer_size, path.stat().st_size
    catalog.put_statistics(snapshot, StatisticsFile(snapshot, str(path), size, footer).to_json())


def sketches(catalog: MemoryCatalog, snapshot: int) -> dict[tuple[int, ...], bool]:
    """The columns with a sketch, and whether it belongs to another tool."""
    with alcid.puffin.open(catalog.folder / "metadata" / catalog.listed()[snapshot]) as reader:
        return {
            blob.fields: reader.read(blob) == b"a sketch of others"
            for blob in reader.blobs
            if blob.type == THETA_SKETCH
        }


def test_sketches_of_others_stay_though_they_replace_our_file(catalog: MemoryCatalog) -> None:
    table = IcebergTable(catalog)
    assert table.snapshot_id is not None
    snapshot = table.snapshot_id
    table.build_indexes({"file-index.bloom-filter.columns": "id"}, progress=False)
    catalog.between.append(lambda: put_sketch(catalog, snapshot, 1))
    table.compute_stats(["name"], progress=False)
    assert sketches(catalog, snapshot) == {(1,): True, (2,): False}
    assert [(index.column, index.fresh) for index in table.indexes()] == [("id", 1)]


def test_a_file_that_is_dropped_while_we_count_is_no_damage(catalog: MemoryCatalog) -> None:
    """Without a warning: warnings are errors here."""
    table = IcebergTable(catalog)
    assert table.snapshot_id is not None
    table.build_indexes({"file-index.bloom-filter.columns": "id"}, progress=False)

    def drop() -> None:
        assert IcebergTable(catalog).drop_indexes() == 1

    catalog.between.append(drop)
    table.compute_stats(["name"], progress=False)
    assert sketches(catalog, table.snapshot_id) == {(2,): False}
    assert table.indexes() == []
