"""What was counted of an ancestor of a snapshot, if files were only added since.

Its statistics file has the sketches. How many nulls the files of that time have, manifests say; a
column for which they do not is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from alcid.errors import FileGoneError, FormatError, LimitError, UnsupportedError
from alcid.formats.puffin import THETA_SKETCH, PuffinReader
from alcid.formats.theta import ThetaSketch
from alcid.iceberg_metadata.table_metadata import Snapshot, StatisticsFile
from alcid.tables.column_counts import ColumnCount, KnownCounts
from alcid.tables.iceberg.metrics import null_counts
from alcid.tables.iceberg.snapshot_entries import snapshot_entries

if TYPE_CHECKING:
    from alcid.tables.iceberg.files import IcebergFiles
    from alcid.tables.iceberg.table import IcebergTable

__all__ = ["known_counts"]


def known_counts(table: IcebergTable, files: IcebergFiles) -> KnownCounts | None:
    """What was counted of the nearest ancestor that has sketches of ours; None if that is no use.

    It is none where a file went or a row was deleted, since or ever, or the schema has changed.
    """
    now = files.snapshot
    if now is None or table.is_past or len(files.entries.deletes):
        return None
    for before in table.metadata.ancestors(now.id):
        listed = table.metadata.statistics.get(before.id)
        sketches = {} if listed is None or before is now else _sketches(table, before, listed)
        if sketches:
            same = before.schema_id == now.schema_id == files.schema.id
            return _against(table, files, before, sketches) if same else None
    return None


def _sketches(
    table: IcebergTable, snapshot: Snapshot, listed: StatisticsFile
) -> dict[int, ThetaSketch]:
    """The sketches of a snapshot, by field id; none of another writer, whose sketches differ."""
    try:
        reader = PuffinReader(table.places.source(listed.path, listed.size))
        if not reader.properties.get("created-by", "").startswith("Alcid"):
            return {}
        return {
            blob.fields[0]: ThetaSketch.from_bytes(reader.read(blob))
            for blob in reader.blobs
            if blob.type == THETA_SKETCH and len(blob.fields) == 1
            if blob.snapshot_id == snapshot.id
        }
    except (FileGoneError, FormatError, LimitError, UnsupportedError):  # then all is counted
        return {}


def _against(
    table: IcebergTable, files: IcebergFiles, before: Snapshot, sketches: dict[int, ThetaSketch]
) -> KnownCounts | None:
    """What is known, if all files of that time are still there."""
    old = snapshot_entries(table.catalog, table.places, table.metadata, before)
    is_old = pc.is_in(files.file_paths, value_set=old.data["file_path"].chunk(0))
    if len(old.deletes) or is_old.true_count != len(old.data):
        return None
    counts = {}
    for field in files.schema.fields:
        nulls = null_counts(old.data, field.id)
        if field.id in sketches and (nulls >= 0).all():
            kind = str(files.columns.columns[field.name].data_type)
            total = int(nulls.sum())
            counts[field.name] = ColumnCount(field.name, kind, sketches[field.id], total)
    return KnownCounts(~is_old.to_numpy(zero_copy_only=False).astype(np.bool_), counts)
