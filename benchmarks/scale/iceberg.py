"""An Iceberg table whose metadata are kept in two files, and a bundle in its statistics file.

Nobody asks a catalog: the entries of the snapshot are there as Arrow, as a session gives them. How
long a session takes to list them is not measured here.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import feather

from alcid.formats.puffin import PuffinReader
from alcid.formats.source import BytesSource
from alcid.index.build import IndexedFile
from alcid.index.bundle import BundleWriter
from alcid.tables.iceberg.bundles import BUNDLE_SUFFIX
from alcid.tables.iceberg.metadata.table_metadata import StatisticsFile
from alcid.tables.iceberg_table import IcebergTable
from benchmarks.scale.files import FIELDS, ROWS, ManyFiles
from tests.iceberg.saved import SavedTable

__all__ = ["make_iceberg", "open_iceberg"]

_SNAPSHOT = 1
_KINDS = {"BIGINT": ("long", "<i8"), "INT": ("int", "<i4")}
_ENTRIES, _METADATA = "entries.arrow", "metadata.json"


def make_iceberg(files: ManyFiles, folder: Path) -> None:
    """Link the files, and write what the catalog would say and the statistics file."""
    (folder / "data").mkdir(parents=True)
    paths, known = [], []
    data = io.BytesIO()
    ids = {name: number for number, name in enumerate(FIELDS, 1)}
    with BundleWriter(
        data, field_ids=ids, snapshot_id=_SNAPSHOT, sequence_number=_SNAPSHOT
    ) as writer:
        for number, found in enumerate(files.indexed()):
            path = folder / "data" / f"{number:06}.parquet"
            files.link(number, path)
            entry = replace(found.entry, path=str(path), version="")
            replace(found, entry=entry).add_to(writer)
            paths.append(str(path))
            known.append(found)
    bundle = folder / f"{_SNAPSHOT}-0{BUNDLE_SUFFIX}"
    bundle.write_bytes(data.getvalue())
    footer = PuffinReader(BytesSource(data.getvalue())).footer_size
    listed = StatisticsFile(_SNAPSHOT, str(bundle), len(data.getvalue()), footer)
    (folder / _METADATA).write_text(json.dumps(_metadata(folder, listed)))
    feather.write_feather(_entries(paths, known), folder / _ENTRIES, compression="zstd")


def open_iceberg(folder: Path) -> IcebergTable:
    """Open the table, with its files and bundle."""
    entries = feather.read_table(folder / _ENTRIES)
    saved = SavedTable("lake.db.many", (folder / _METADATA).read_text(), {_SNAPSHOT: entries})
    table = IcebergTable(saved)
    _ = table.snapshot  # which is read when it is first asked for
    return table


def _metadata(folder: Path, listed: StatisticsFile) -> dict[str, object]:
    fields = [
        {"id": number, "name": name, "type": _KINDS[kind][0], "required": False}
        for number, (name, kind) in enumerate(FIELDS.items(), 1)
    ]
    return {
        "format-version": 2,
        "table-uuid": "5f1e0c7a-0000-0000-0000-000000000000",
        "location": str(folder),
        "schemas": [{"schema-id": 0, "type": "struct", "fields": fields}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "properties": {},
        "current-snapshot-id": _SNAPSHOT,
        "snapshots": [
            {
                "snapshot-id": _SNAPSHOT,
                "sequence-number": _SNAPSHOT,
                "timestamp-ms": 1_754_000_000_000,
                "schema-id": 0,
                "summary": {"operation": "append"},
            }
        ],
        "refs": {"main": {"snapshot-id": _SNAPSHOT, "type": "branch"}},
        "statistics": [listed.to_json()],
    }


def _entries(paths: list[str], files: list[IndexedFile]) -> pa.Table:
    """The rows of the metadata table `entries`, with the metrics that Iceberg keeps."""
    count = len(paths)
    return pa.table(
        {
            "sequence_number": pa.array(np.full(count, _SNAPSHOT)),
            "content": pa.array(np.zeros(count), pa.int32()),
            "file_path": paths,
            "file_format": ["PARQUET"] * count,
            "spec_id": pa.array(np.zeros(count), pa.int32()),
            "record_count": np.full(count, ROWS),
            "file_size_in_bytes": [one.entry.size for one in files],
            "value_counts": _by_field(np.full(count * len(FIELDS), ROWS)),
            "null_value_counts": _by_field(np.zeros(count * len(FIELDS), np.int64)),
            "lower_bounds": _by_field(pa.array(_bounds(files, "minimum"), pa.binary())),
            "upper_bounds": _by_field(pa.array(_bounds(files, "maximum"), pa.binary())),
        }
    )


def _by_field(values: object) -> pa.MapArray:
    """Values of all columns of all files, as a map of each file."""
    items = pa.array(values)
    width = len(FIELDS)
    keys = pa.array(np.tile(np.arange(1, width + 1), len(items) // width), pa.int32())
    offsets = pa.array(np.arange(0, len(items) + 1, width), pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, items)


def _bounds(files: list[IndexedFile], which: str) -> Iterator[bytes]:
    """Bounds as single values of Iceberg."""
    for one in files:
        for name, kind in FIELDS.items():
            value = getattr(one.entry.statistics[name], which)
            number = value.as_py() if isinstance(value, pa.Scalar) else value
            yield np.array(number, _KINDS[kind][1]).tobytes()
