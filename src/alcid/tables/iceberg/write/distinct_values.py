"""Distinct values of columns, as theta sketches in the statistics file of a snapshot.

The file has a sketch for each column, as Iceberg's own action writes it, and the metadata has the
number of distinct values (`ndv`), with which Spark plans. Indexes and sketches of other columns in
the file are kept.

If files were only added since an ancestor was counted, only these are read. The sketches of the
ancestor are in its statistics file, and its null counts in manifests.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import (
    DamagedIndexWarning,
    FileGoneError,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.formats.puffin import THETA_SKETCH, Blob, PuffinReader
from alcid.formats.puffin.writer import DISTINCT_VALUES
from alcid.formats.theta import ThetaSketch
from alcid.storage import retry
from alcid.tables.distinct_values import ColumnCount, PreviousCounts, count_columns, counts_table
from alcid.tables.iceberg.bounds import null_counts
from alcid.tables.iceberg.catalog import snapshot_entries
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.files import IcebergFiles
from alcid.tables.iceberg.metadata.table_metadata import Snapshot, StatisticsFile, TableMetadata
from alcid.tables.iceberg.open_table import OpenIcebergTable
from alcid.tables.iceberg.write.contents import Amended, Content
from alcid.tables.iceberg.write.publish import publish
from alcid.tables.progress import Progress


def previous_counts(table: OpenIcebergTable, files: IcebergFiles) -> PreviousCounts | None:
    """The counts of the nearest ancestor with sketches of ours; None if they cannot be used.

    They cannot if a file was removed, a row was deleted, or the schema has changed.
    """
    snapshot = files.snapshot
    if snapshot is None or table.is_past or len(files.entries.deletes):
        return None
    for ancestor in table.metadata.ancestors(snapshot.id):
        file = table.metadata.statistics.get(ancestor.id)
        sketches = {} if file is None or ancestor is snapshot else _sketches(table, ancestor, file)
        if sketches:
            same = ancestor.schema_id == snapshot.schema_id == files.schema.id
            return _counts_of(table, files, ancestor, sketches) if same else None
    return None


def _sketches(
    table: OpenIcebergTable, snapshot: Snapshot, listed: StatisticsFile
) -> dict[int, ThetaSketch]:
    """The sketches of a snapshot by field id; those of other writers differ and are ignored."""
    try:
        reader = PuffinReader(table.file_io.source(listed.path, listed.size))
        if not reader.properties.get("created-by", "").startswith("Alcid"):
            return {}
        return {
            blob.fields[0]: ThetaSketch.from_bytes(reader.read(blob))
            for blob in reader.blobs
            if blob.type == THETA_SKETCH and len(blob.fields) == 1
            if blob.snapshot_id == snapshot.id
        }
    except (FileGoneError, FormatError, LimitError, UnsupportedError):  # then everything is counted
        return {}


def _counts_of(
    table: OpenIcebergTable, files: IcebergFiles, before: Snapshot, sketches: dict[int, ThetaSketch]
) -> PreviousCounts | None:
    """The counts of an ancestor, if all its files are still in the snapshot."""
    old = snapshot_entries(table.catalog, table.file_io, table.metadata, before)
    is_old = pc.is_in(files.file_paths, value_set=old.data["file_path"].chunk(0))
    if len(old.deletes) or is_old.true_count != len(old.data):
        return None
    counts = {}
    data = old.with_metrics([field.id for field in files.schema.fields if field.id in sketches])
    for field in files.schema.fields:
        nulls = null_counts(data, field.id)
        if field.id in sketches and (nulls >= 0).all():
            kind = str(files.columns.columns[field.name].data_type)
            total = int(nulls.sum())
            counts[field.name] = ColumnCount(field.name, kind, sketches[field.id], total)
    return PreviousCounts(~is_old.to_numpy(zero_copy_only=False).astype(np.bool_), counts)


_ATTEMPTS = 3


def compute_stats(
    table: OpenIcebergTable,
    columns: Collection[str] | None = None,
    *,
    snapshot_id: int | None = None,
    progress: Progress | bool | None = False,
) -> pa.Table:
    """Count the distinct values of columns, and store them in the statistics file of a snapshot.

    Deleted rows do not count. See `alcid.tables.distinct_values.compute_stats` for what is exact.
    Before the first commit nothing is counted or written. Only new files are read if an ancestor
    was counted, no file or row was removed since, and the schema is the same.

    Args:
        table: The table; it is refreshed.
        columns: The columns to count; by default all but nested ones.
        snapshot_id: The snapshot to count; by default the one that is read.
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.

    Returns:
        The name, type, distinct values, rows and nulls of each column.

    Raises:
        UnsupportedError: A column cannot be counted, or files are not supported.
        ConflictError: The snapshot expired meanwhile.
    """
    counted = table if snapshot_id is None else table.at(snapshot_id)
    with table.engine.settings():
        files, rows, counts = _count(counted, columns, progress)
    if files.snapshot is not None and counts:
        ids = {field.name: field.id for field in files.schema.fields}
        counted_snapshot = _CountedSnapshot(
            table.file_io, files.snapshot, {ids[count.column]: count for count in counts}
        )
        publish(
            table.catalog, table.file_io, files.snapshot.id, counted_snapshot.file, table.engine
        )
        table.refresh()
    return counts_table(rows, counts)


def _count(
    table: OpenIcebergTable, columns: Collection[str] | None, progress: Progress | bool | None
) -> tuple[IcebergFiles, int, list[ColumnCount]]:
    def attempt() -> tuple[IcebergFiles, int, list[ColumnCount]]:
        table.refresh()
        files = table.snapshot
        if files.delegated_reason:
            raise UnsupportedError(
                f"{table.name}: {files.delegated_reason}: let Iceberg count, by its procedure"
                " compute_table_stats"
            )
        previous = previous_counts(table, files)
        counted = count_columns(files, table.engine, columns, previous=previous, progress=progress)
        return files, *counted

    # A file may be compacted and expired since the table was opened.
    return retry(attempt, on=FileGoneError, attempts=_ATTEMPTS)


@dataclass(frozen=True, slots=True)
class _CountedSnapshot:
    """The counts of a snapshot."""

    file_io: FileIO
    snapshot: Snapshot
    counts: Mapping[int, ColumnCount]
    """By field id."""

    def file(
        self, metadata: TableMetadata, lost: Sequence[StatisticsFile]
    ) -> Content | StatisticsFile:
        """The statistics file with these sketches, for `publish`."""
        current = metadata.statistics.get(self.snapshot.id)
        if current is not None and not lost and self._is_in(current):
            return current
        counted = self._blobs()
        if lost:  # keep the indexes, and the sketches of the tool that replaced them
            others = [] if current is None else self._others(current)
            with suppress(FileGoneError, FormatError, LimitError):  # dropped, not replaced
                return self._amended(lost[-1], [*counted, *others])
        try:
            return self._amended(current, counted)
        except (FileGoneError, FormatError, LimitError) as error:
            # Only sketches are recreated here; indexes have to be rebuilt.
            problem = f"{error}: it is replaced by one without indexes"
            warnings.warn(problem, DamagedIndexWarning, stacklevel=2)
            return self._amended(None, counted)

    def _amended(self, file: StatisticsFile | None, added: Sequence[tuple[Blob, bytes]]) -> Content:
        """A file with sketches added, or replaced for columns that have one."""
        replaced = {blob.fields for blob, _ in added}
        source = None if file is None else (file.path, file.size)

        def keep(blob: Blob) -> bool:
            return self._keeps(blob, replaced)

        return Amended.of(self.file_io, source, keep=keep, add=added)

    def _is_in(self, file: StatisticsFile) -> bool:
        """Whether the metadata of a file has the same counts."""
        listed = {
            blob.fields[0]: blob.properties.get(DISTINCT_VALUES)
            for blob in file.blobs
            if self._is_sketch(blob.type, blob.fields) and blob.snapshot_id == self.snapshot.id
        }
        return all(
            listed.get(field) == str(count.sketch.ndv) for field, count in self.counts.items()
        )

    def _keeps(self, blob: Blob, replaced: Collection[tuple[int, ...]]) -> bool:
        """Whether a blob is kept: no sketch of another snapshot or of a replaced column."""
        if not self._is_sketch(blob.type, blob.fields):
            return True
        return blob.snapshot_id == self.snapshot.id and blob.fields not in replaced

    def _others(self, file: StatisticsFile) -> list[tuple[Blob, bytes]]:
        """The sketches in a file of other columns than those counted."""
        counted = {(field,) for field in self.counts}
        try:
            reader = PuffinReader(self.file_io.source(file.path, file.size))
            return [
                (blob, reader.read(blob))
                for blob in reader.blobs
                if self._is_sketch(blob.type, blob.fields) and self._keeps(blob, counted)
            ]
        except (FileGoneError, FormatError, LimitError):  # unreadable for everybody
            return []

    @staticmethod
    def _is_sketch(blob_type: str, fields: Sequence[int]) -> bool:
        return blob_type == THETA_SKETCH and len(fields) == 1

    def _blobs(self) -> list[tuple[Blob, bytes]]:
        return [
            (
                Blob(
                    THETA_SKETCH,
                    (field,),
                    self.snapshot.id,
                    self.snapshot.sequence_number,
                    offset=0,
                    length=0,
                    codec="zstd",
                    properties={DISTINCT_VALUES: str(count.sketch.ndv)},
                ),
                count.sketch.to_bytes(),
            )
            for field, count in self.counts.items()
        ]
