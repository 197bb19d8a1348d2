"""Full compaction of a table with a primary key, or of some of its partitions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray
from alcid.errors import ColumnError, ConflictError, FileGoneError, LiteralError, require
from alcid.options import match_column
from alcid.storage import retry
from alcid.tables.paimon.data_files import table_paths
from alcid.tables.paimon.keyed.bucket import (
    Bucket,
    BucketCompaction,
    Buckets,
    KeyedTable,
    buckets_of,
)
from alcid.tables.paimon.keyed.bucket_compaction import (
    compact_buckets,
    discard_compactions,
    pick_all,
)
from alcid.tables.paimon.keyed.commit import compact_change
from alcid.tables.paimon.keyed.upsert import keyed_table
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.manifest import BucketId
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.table_folder import partition_values
from alcid.tables.paimon.metadata.table_state import TableState
from alcid.tables.progress import Progress
from alcid.tables.reports import CompactReport

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

_TRIES = 10
_WAIT, _LONGEST_WAIT = 0.02, 0.5  # seconds


def compact(
    table: OpenPaimonTable,
    partition: Mapping[str, Any] | None = None,
    *,
    dry_run: bool = False,
    progress: Progress | bool | None = False,
) -> CompactReport:
    """Merge the files of buckets on their top level, in one snapshot of kind COMPACT.

    Rows that others write meanwhile stay on level 0, for the next compaction.

    Args:
        table: The table; it is refreshed before and after.
        partition: Values of partition columns, as `{"dt": "20260801"}`; by default all partitions.
        dry_run: Only report which buckets there are to compact.
        progress: How progress is shown, see `alcid.tables.progress.track_progress`.

    Raises:
        ColumnError: A column that the table is not partitioned by.
        LiteralError: A value that a column cannot have.
        UnsupportedError: A table without a primary key, or an option that cannot be followed.
        ConflictError: Others have compacted the same buckets every time.
    """
    begin = time.monotonic()
    if partition is not None:
        require(partition, Mapping, "partition")  # type: ignore[type-abstract]
    compaction = _TableCompaction(table, dict(partition or {}), progress)
    with table.engine.settings():
        if dry_run:
            buckets = compaction.pending()
            files = sum(len(bucket.files) for bucket in buckets)
            seconds = time.monotonic() - begin
            return CompactReport(len(buckets), files, None, None, None, None, seconds, dry_run=True)
        snapshot_id = compaction.run()
        table.refresh()
    return _report(compaction.compactions, snapshot_id, time.monotonic() - begin)


class _TableCompaction:
    """A compaction, which is repeated until no other writer interferes."""

    def __init__(
        self,
        table: OpenPaimonTable,
        partition: Mapping[str, Any],
        progress: Progress | bool | None,
    ) -> None:
        self._table, self._partition, self._progress = table, partition, progress
        self._compactions: dict[BucketId, BucketCompaction] = {}

    @property
    def compactions(self) -> list[BucketCompaction]:
        """What is written, to be committed."""
        return list(self._compactions.values())

    def run(self) -> int | None:
        """Commit a snapshot; None if there is nothing to do."""

        def attempt() -> int | None:
            self._table.refresh()
            self._compact()
            return self._commit()

        try:
            return retry(
                attempt,
                on=(ConflictError, FileGoneError),
                attempts=_TRIES,
                wait=_WAIT,
                longest_wait=_LONGEST_WAIT,
            )
        except (ConflictError, FileGoneError):
            self._discard()
            raise

    def pending(self) -> list[Bucket]:
        """The buckets that there are to compact."""
        self._table.refresh()
        return self._pending(*self._buckets())

    def _buckets(self) -> tuple[KeyedTable, Buckets]:
        """The table, and its buckets as they are."""
        self._table.committer()  # raises where nothing can be written
        keyed = keyed_table(self._table, "compact")
        return keyed, _buckets(self._table, self._table.snapshot.state)

    def _pending(self, keyed: KeyedTable, buckets: Buckets) -> list[Bucket]:
        """The buckets that there are to compact, without those that are written already."""
        return [
            bucket
            for bucket in _buckets_of_partitions(buckets, keyed.schema, self._partition)
            if bucket.id not in self._compactions and pick_all(bucket, keyed.options.num_levels)
        ]

    def _compact(self) -> None:
        """Compact the buckets; earlier work stays valid where no other writer changed a bucket."""
        keyed, buckets = self._buckets()
        valid = {
            bucket_id: compaction
            for bucket_id, compaction in self._compactions.items()
            if _is_applicable(compaction.base, buckets[bucket_id])
        }
        lost = [self._compactions[bucket_id] for bucket_id in self._compactions.keys() - valid]
        discard_compactions(self._table.storage, lost)
        self._compactions = valid
        try:
            compactions = compact_buckets(
                self._table.engine,
                keyed,
                self._pending(keyed, buckets),
                full=True,
                progress=self._progress,
            )
        except BaseException:
            self._discard()
            raise
        self._compactions.update(
            (compaction.base.id, compaction) for compaction in compactions if compaction is not None
        )

    def _commit(self) -> int | None:
        if not self._compactions:
            return None
        state = self._table.snapshot.state
        snapshot = self._table.committer().commit(self._plan, cached=state)
        return None if snapshot is None else snapshot.id

    def _discard(self) -> None:
        """Remove everything that was written."""
        discard_compactions(self._table.storage, self._compactions.values())
        self._compactions = {}

    def _plan(self, state: TableState) -> Change:
        buckets = _buckets(self._table, state)
        for bucket_id, compaction in self._compactions.items():
            if not _is_applicable(compaction.base, buckets[bucket_id]):
                raise ConflictError(f"{compaction.base.folder}: another has compacted it meanwhile")
        return compact_change(self._compactions.values())


def _buckets(table: OpenPaimonTable, state: TableState) -> Buckets:
    return buckets_of(state, table_paths(table.snapshot.schema, table.snapshot.options))


def _is_applicable(base: Bucket, now: Bucket) -> bool:
    """Whether a bucket has changed by nothing but new files on level 0."""
    before = {file.entry.identity for file in base.files}
    after = {file.entry.identity: file for file in now.files}
    return (
        before <= after.keys()
        and not any(after[new].file.level for new in after.keys() - before)
        and {entry.name for entry in base.vectors} == {entry.name for entry in now.vectors}
    )


def _buckets_of_partitions(
    buckets: Buckets, schema: TableSchema, partition: Mapping[str, Any]
) -> list[Bucket]:
    """The buckets of the partitions that have these values."""
    partitions = list(buckets.partitions)
    keys = schema.partition_keys
    values = partition_values(partitions, keys, schema.partition_types, file="partitions")
    is_chosen = np.ones(len(partitions), bool)
    for column, value in partition.items():
        name = match_column(column, keys)
        if name is None:
            expected = ", ".join(keys) or "none"
            raise ColumnError(f"partition: {column} is no partition column, found {expected}")
        is_chosen &= _equals(values.column(name), value, name)
    return [
        bucket
        for packed in compress(partitions, is_chosen.tolist())
        for bucket in buckets.of_partition(packed).values()
    ]


def _equals(column: pa.ChunkedArray, value: Any, name: str) -> BoolArray:
    if value is None:
        equal = pc.is_null(column)
    else:
        try:
            equal = pc.equal(column, pa.scalar(value, column.type)).fill_null(False)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            problem = f"partition {name}: found {value!r}, expected {column.type}"
            raise LiteralError(problem) from None
    mask: BoolArray = equal.to_numpy()
    return mask


def _report(
    compactions: Sequence[BucketCompaction], snapshot_id: int | None, seconds: float
) -> CompactReport:
    before = sum(len(compaction.base.files) for compaction in compactions)
    removed = {file.file.name for compaction in compactions for file in compaction.removed}
    added = [file.file for compaction in compactions for file in compaction.added]
    rewritten = [file for file in added if file.name not in removed]
    return CompactReport(
        buckets=len(compactions),
        files_before=before,
        files_after=before - len(removed) + len(added),
        rows=sum(file.rows for file in rewritten),
        bytes_written=sum(file.size for file in rewritten),
        snapshot_id=snapshot_id,
        seconds=seconds,
    )
