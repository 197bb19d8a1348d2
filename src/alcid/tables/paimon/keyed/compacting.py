"""`t.compact()`: everything goes to the top level, without the rows that are not live."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import ColumnError, ConflictError, FileGoneError, LiteralError, require
from alcid.options import match_column
from alcid.paimon_metadata.commit import Change
from alcid.paimon_metadata.paths import partition_values
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.table_state import TableState
from alcid.tables.build_report import count_text, size_text
from alcid.tables.paimon.data_files import table_paths
from alcid.tables.paimon.keyed.bucket import Bucket, Buckets, Place, buckets_of
from alcid.tables.paimon.keyed.changes import Settlement
from alcid.tables.paimon.keyed.compact_change import compact_change
from alcid.tables.paimon.keyed.runs import choose_all
from alcid.tables.paimon.keyed.settle_work import remove_written, settle_buckets
from alcid.tables.paimon.keyed.upserting import keyed_table

if TYPE_CHECKING:
    from alcid.tables.paimon.table import PaimonTable

__all__ = ["CompactReport", "compact"]

_TRIES = 10
_PAUSE = 0.5  # seconds at most between two tries


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What a compaction did.

    >>> print(CompactReport(4, 23, 5, 1_200_000, 34_500_000, 7, 1.25))
    compacted 4 buckets: 23 files became 5, 1,200,000 rows (34.5 MB) written in 1.2 s: snapshot 7
    >>> print(CompactReport(0, 0, 0, 0, 0, None, 0.01))
    compacted nothing: no bucket has anything to be merged
    """

    buckets: int
    """Those that were changed."""
    files_before: int
    """Data files of these buckets."""
    files_after: int
    rows: int
    """Those written anew; files whose keys no other has are not."""
    bytes_written: int
    snapshot_id: int | None
    """The new snapshot; None where there was nothing to do."""
    seconds: float

    def __str__(self) -> str:
        if self.snapshot_id is None:
            return "compacted nothing: no bucket has anything to be merged"
        files = f"{count_text(self.files_before, 'file')} became {self.files_after:,}"
        rows = f"{count_text(self.rows, 'row')} ({size_text(self.bytes_written)}) written"
        done = f"compacted {count_text(self.buckets, 'bucket')}: {files}, {rows}"
        return f"{done} in {self.seconds:.1f} s: snapshot {self.snapshot_id}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)


def compact(table: PaimonTable, partition: Mapping[str, Any] | None = None) -> CompactReport:
    """Merge the files of buckets on their top level, in one snapshot of kind COMPACT.

    Rows that others write meanwhile stay on level 0, for the next time.

    Args:
        table: The table; it is read anew before and after.
        partition: Values of partition keys, as `{"dt": "20260801"}`; by default all partitions.

    Raises:
        ColumnError: The table is not partitioned by a column.
        LiteralError: A value that a column cannot have.
        UnsupportedError: A table without a primary key, or an option that cannot be followed.
        ConflictError: Others have compacted the same buckets every time.
    """
    begin = time.monotonic()
    if partition is not None:
        require(partition, Mapping, "partition")  # type: ignore[type-abstract]
    compaction = _Compaction(table, dict(partition or {}))
    with table.engine.settings():
        snapshot_id = compaction.run()
        table.refresh()
    return _report(compaction.made, snapshot_id, time.monotonic() - begin)


class _Compaction:
    """What is tried until no other comes between."""

    def __init__(self, table: PaimonTable, wanted: Mapping[str, Any]) -> None:
        self._table, self._wanted = table, wanted
        self._made: dict[Place, Settlement] = {}

    @property
    def made(self) -> list[Settlement]:
        """What there is to be committed."""
        return list(self._made.values())

    def run(self) -> int | None:
        """Make the snapshot; None if there is nothing to do."""
        for attempt in range(_TRIES):
            self._table.refresh()
            try:
                self._settle()
                return self._commit()
            except (ConflictError, FileGoneError):
                if attempt == _TRIES - 1:
                    self._drop()
                    raise
            time.sleep(random.uniform(0, min(_PAUSE, 0.02 * 2**attempt)))
        raise AssertionError("the last try returns or raises")

    def _settle(self) -> None:
        """Do what is to be done; what was done before is kept where nobody has changed it."""
        self._table.committer()  # raises where nothing can be written
        keyed = keyed_table(self._table, "compact")
        buckets = _buckets(self._table, self._table.snapshot.state)
        fitting = {
            place: one for place, one in self._made.items() if _goes_with(one.base, buckets[place])
        }
        lost = [one for place, one in self._made.items() if place not in fitting]
        remove_written(self._table.storage, lost)
        self._made = fitting
        missing = [
            bucket
            for bucket in _chosen(buckets, keyed.schema, self._wanted)
            if bucket.place not in fitting and choose_all(bucket, keyed.options.num_levels)
        ]
        try:
            made = settle_buckets(self._table.engine, keyed, missing, full=True)
        except BaseException:
            self._drop()
            raise
        self._made.update((one.base.place, one) for one in made if one is not None)

    def _commit(self) -> int | None:
        if not self._made:
            return None
        state = self._table.snapshot.state
        snapshot = self._table.committer().commit(self._plan, known=state)
        return None if snapshot is None else snapshot.id

    def _drop(self) -> None:
        """Take back all that was written."""
        remove_written(self._table.storage, self._made.values())
        self._made = {}

    def _plan(self, state: TableState) -> Change:
        now = _buckets(self._table, state)
        for place, one in self._made.items():
            if not _goes_with(one.base, now[place]):
                raise ConflictError(f"{one.base.folder}: another has compacted it meanwhile")
        return compact_change(self._made.values())


def _buckets(table: PaimonTable, state: TableState) -> Buckets:
    return buckets_of(state, table_paths(table.snapshot.schema, table.snapshot.options))


def _goes_with(base: Bucket, now: Bucket) -> bool:
    """Whether a bucket has nothing but newer files on level 0 besides what it had."""
    before = {one.entry.identity for one in base.files}
    after = {one.entry.identity: one for one in now.files}
    return (
        before <= after.keys()
        and not any(after[new].file.level for new in after.keys() - before)
        and {one.name for one in base.vectors} == {one.name for one in now.vectors}
    )


def _chosen(buckets: Buckets, schema: TableSchema, wanted: Mapping[str, Any]) -> list[Bucket]:
    """The buckets of the partitions that have these values."""
    partitions = list(buckets.partitions)
    keys = schema.partition_keys
    values = partition_values(partitions, keys, schema.partition_types, file="partitions")
    fits = np.ones(len(partitions), bool)
    for given, value in wanted.items():
        name = match_column(given, keys)
        if name is None:
            known = ", ".join(keys) or "none"
            raise ColumnError(f"partition: {given} is no partition column, found {known}")
        column = values.column(name)
        fits &= _equals(column, value, name)
    return [
        bucket
        for partition, is_fitting in zip(partitions, fits.tolist(), strict=True)
        if is_fitting
        for bucket in buckets.of_partition(partition).values()
    ]


def _equals(column: pa.ChunkedArray, value: Any, name: str) -> npt.NDArray[np.bool_]:
    if value is None:
        found = pc.is_null(column)
    else:
        try:
            found = pc.equal(column, pa.scalar(value, column.type)).fill_null(False)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            told = f"partition {name}: found {value!r}, expected {column.type}"
            raise LiteralError(told) from None
    equal: npt.NDArray[np.bool_] = found.to_numpy()
    return equal


def _report(
    settlements: Sequence[Settlement], snapshot_id: int | None, seconds: float
) -> CompactReport:
    before = sum(len(one.base.files) for one in settlements)
    gone = {placed.file.name for one in settlements for placed in one.removed}
    added = [placed.file for one in settlements for placed in one.added]
    new = [file for file in added if file.name not in gone]
    return CompactReport(
        buckets=len(settlements),
        files_before=before,
        files_after=before - len(gone) + len(added),
        rows=sum(file.rows for file in new),
        bytes_written=sum(file.size for file in new),
        snapshot_id=snapshot_id,
        seconds=seconds,
    )
