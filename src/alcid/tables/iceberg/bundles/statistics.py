"""Statistics of an Iceberg table: distinct values, in the statistics file of a snapshot.

For each column it has a theta sketch, as Iceberg's own action writes it, and the metadata say how
many values that makes (`ndv`): Spark's optimiser plans by them. Indexes that the file holds stay
there, and so do sketches of other columns.

What was counted of an ancestor of a snapshot, if files were only added since.

Its statistics file has the sketches. How many nulls the files of that time have, manifests say; a
column for which they do not is not known.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from alcid.index.bundle.writer import amend
from alcid.storage import retry
from alcid.tables.iceberg.bounds import null_counts
from alcid.tables.iceberg.bundles.publish import publish
from alcid.tables.iceberg.catalog import snapshot_entries
from alcid.tables.iceberg.locations import Places
from alcid.tables.iceberg.metadata.table_metadata import Snapshot, StatisticsFile, TableMetadata
from alcid.tables.progress import Progress
from alcid.tables.statistics import ColumnCount, KnownCounts, count_columns, counts_table

if TYPE_CHECKING:
    from alcid.tables.iceberg.files import IcebergFiles
    from alcid.tables.iceberg.open_table import OpenIcebergTable

__all__ = ["compute_stats", "known_counts"]


def known_counts(table: OpenIcebergTable, files: IcebergFiles) -> KnownCounts | None:
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
    table: OpenIcebergTable, snapshot: Snapshot, listed: StatisticsFile
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
    table: OpenIcebergTable, files: IcebergFiles, before: Snapshot, sketches: dict[int, ThetaSketch]
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


_ATTEMPTS = 3


def compute_stats(
    table: OpenIcebergTable,
    columns: Collection[str] | None = None,
    *,
    snapshot_id: int | None = None,
    progress: Progress | bool | None = False,
) -> pa.Table:
    """Count the distinct values of columns, and let a snapshot say so.

    Deleted rows do not count. See `alcid.tables.statistics.compute_stats` for what is exact. Before
    the first commit there is nothing to count, and nothing is written. Only new files are read, if
    an ancestor was counted, no file or row went since, and the schema is the same.

    Args:
        table: The table; it is refreshed.
        columns: Those to count; by default all that can be counted, which nested ones cannot.
        snapshot_id: The snapshot whose rows count; by default the one that is read.
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.

    Returns:
        For each column its name, type, distinct values, rows and nulls.

    Raises:
        UnsupportedError: A column of those given cannot be counted, or files that cannot be read
            here.
        ConflictError: The snapshot was expired meanwhile.
    """
    counted = table if snapshot_id is None else table.at(snapshot_id)
    with table.engine.settings():
        files, rows, counts = _count(counted, columns, progress)
    if files.snapshot is not None and counts:
        ids = {field.name: field.id for field in files.schema.fields}
        found = _Found(table.places, files.snapshot, {ids[one.column]: one for one in counts})
        publish(table.catalog, table.places, files.snapshot.id, found.file)
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
        known = known_counts(table, files)
        counted = count_columns(files, table.engine, columns, known=known, progress=progress)
        return files, *counted

    # A file may be compacted and expired since the table was opened.
    return retry(attempt, on=FileGoneError, attempts=_ATTEMPTS)


@dataclass(frozen=True, slots=True)
class _Found:
    """What was counted of a snapshot."""

    places: Places
    snapshot: Snapshot
    counts: Mapping[int, ColumnCount]
    """By field id."""

    def file(
        self, metadata: TableMetadata, lost: Sequence[StatisticsFile]
    ) -> bytes | StatisticsFile:
        """The statistics file of the snapshot with the sketches in it, for `publish`."""
        known = metadata.statistics.get(self.snapshot.id)
        if known is not None and not lost and self._is_in(known):
            return known
        counted = self._blobs()
        if lost:  # the indexes stay, and so do the sketches of whoever replaced them
            others = [] if known is None else self._others(known)
            with suppress(FileGoneError, FormatError, LimitError):  # dropped, not replaced
                return self._amended(lost[-1], [*counted, *others])
        try:
            return self._amended(known, counted)
        except (FileGoneError, FormatError, LimitError) as error:
            # Only sketches are made anew here: what else it had has to be built again.
            problem = f"{error}: it is replaced by one without indexes"
            warnings.warn(problem, DamagedIndexWarning, stacklevel=2)
            return self._amended(None, counted)

    def _amended(self, file: StatisticsFile | None, added: Sequence[tuple[Blob, bytes]]) -> bytes:
        """What a file has, with more sketches, each in place of one of the same column."""
        taken = {blob.fields for blob, _ in added}
        source = None if file is None else self.places.source(file.path, file.size)
        data = io.BytesIO()
        amend(source, data, keep=lambda blob: self._keeps(blob, taken), add=added)
        return data.getvalue()

    def _is_in(self, file: StatisticsFile) -> bool:
        """Whether the metadata say the same."""
        listed = {
            blob.fields[0]: blob.properties.get(DISTINCT_VALUES)
            for blob in file.blobs
            if self._is_sketch(blob.type, blob.fields) and blob.snapshot_id == self.snapshot.id
        }
        return all(listed.get(field) == str(one.sketch.ndv) for field, one in self.counts.items())

    def _keeps(self, blob: Blob, taken: Collection[tuple[int, ...]]) -> bool:
        """Not older sketches of columns that have one, nor any of another snapshot."""
        if not self._is_sketch(blob.type, blob.fields):
            return True
        return blob.snapshot_id == self.snapshot.id and blob.fields not in taken

    def _others(self, file: StatisticsFile) -> list[tuple[Blob, bytes]]:
        """The sketches of a file of columns that were not counted."""
        own = {(field,) for field in self.counts}
        try:
            reader = PuffinReader(self.places.source(file.path, file.size))
            return [
                (blob, reader.read(blob))
                for blob in reader.blobs
                if self._is_sketch(blob.type, blob.fields) and self._keeps(blob, own)
            ]
        except (FileGoneError, FormatError, LimitError):  # nobody can read it
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
                    properties={DISTINCT_VALUES: str(one.sketch.ndv)},
                ),
                one.sketch.to_bytes(),
            )
            for field, one in self.counts.items()
        ]
