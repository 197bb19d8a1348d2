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

from alcid._text import count_text
from alcid.errors import (
    ColumnError,
    ConflictError,
    FileGoneError,
    LiteralError,
    require,
)
from alcid.options import match_column
from alcid.tables.engine import Progress
from alcid.tables.paimon.data_files import table_paths
from alcid.tables.paimon.keyed.bucket import (
    Bucket,
    Buckets,
    KeyedTable,
    Place,
    Settlement,
    buckets_of,
)
from alcid.tables.paimon.keyed.commit import compact_change
from alcid.tables.paimon.keyed.key_files import choose_all
from alcid.tables.paimon.keyed.level_zero import remove_written, settle_buckets
from alcid.tables.paimon.keyed.upsert import keyed_table
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.table_folder import partition_values
from alcid.tables.paimon.metadata.table_state import TableState
from alcid.tables.reports import size_text

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

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
    >>> print(CompactReport(4, 23, None, None, None, None, 0.01, dry_run=True))
    would have compacted 4 buckets of 23 files
    """

    buckets: int
    """Those that were changed."""
    files_before: int
    """Data files of these buckets."""
    files_after: int | None
    """None, as rows and bytes, of a dry run: what is live shows when it is merged."""
    rows: int | None
    """Those written anew; files whose keys no other has are not."""
    bytes_written: int | None
    snapshot_id: int | None
    """The new snapshot; None where there was nothing to do."""
    seconds: float
    dry_run: bool = False
    """Nothing was changed."""

    def __str__(self) -> str:
        if not self.buckets or (self.snapshot_id is None and not self.dry_run):
            return "compacted nothing: no bucket has anything to be merged"
        if self.dry_run:
            buckets = count_text(self.buckets, "bucket")
            return f"would have compacted {buckets} of {count_text(self.files_before, 'file')}"
        files = f"{count_text(self.files_before, 'file')} became {self.files_after:,}"
        size = size_text(self.bytes_written or 0)
        rows = f"{count_text(self.rows or 0, 'row')} ({size}) written"
        done = f"compacted {count_text(self.buckets, 'bucket')}: {files}, {rows}"
        return f"{done} in {self.seconds:.1f} s: snapshot {self.snapshot_id}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)


def compact(
    table: OpenPaimonTable,
    partition: Mapping[str, Any] | None = None,
    *,
    dry_run: bool = False,
    progress: Progress | bool | None = False,
) -> CompactReport:
    """Merge the files of buckets on their top level, in one snapshot of kind COMPACT.

    Rows that others write meanwhile stay on level 0, for the next time.

    Args:
        table: The table; it is read anew before and after.
        partition: Values of partition keys, as `{"dt": "20260801"}`; by default all partitions.
        dry_run: Only say which buckets have something to be merged.
        progress: How to tell how far it is, see `alcid.tables.engine.telling`.

    Raises:
        ColumnError: The table is not partitioned by a column.
        LiteralError: A value that a column cannot have.
        UnsupportedError: A table without a primary key, or an option that cannot be followed.
        ConflictError: Others have compacted the same buckets every time.
    """
    begin = time.monotonic()
    if partition is not None:
        require(partition, Mapping, "partition")  # type: ignore[type-abstract]
    compaction = _Compaction(table, dict(partition or {}), progress)
    with table.engine.settings():
        if dry_run:
            found = compaction.missing()
            files = sum(len(bucket.files) for bucket in found)
            seconds = time.monotonic() - begin
            return CompactReport(len(found), files, None, None, None, None, seconds, dry_run=True)
        snapshot_id = compaction.run()
        table.refresh()
    return _report(compaction.made, snapshot_id, time.monotonic() - begin)


class _Compaction:
    """What is tried until no other comes between."""

    def __init__(
        self, table: OpenPaimonTable, wanted: Mapping[str, Any], progress: Progress | bool | None
    ) -> None:
        self._table, self._wanted, self._progress = table, wanted, progress
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

    def missing(self) -> list[Bucket]:
        """The buckets that have something to be merged; nothing is done."""
        self._table.refresh()
        keyed, buckets = self._look()
        return self._open(keyed, buckets)

    def _look(self) -> tuple[KeyedTable, Buckets]:
        """The table, and its buckets as they are."""
        self._table.committer()  # raises where nothing can be written
        keyed = keyed_table(self._table, "compact")
        return keyed, _buckets(self._table, self._table.snapshot.state)

    def _open(self, keyed: KeyedTable, buckets: Buckets) -> list[Bucket]:
        """The buckets of which something is to be done, and is not done yet."""
        return [
            bucket
            for bucket in _chosen(buckets, keyed.schema, self._wanted)
            if bucket.place not in self._made and choose_all(bucket, keyed.options.num_levels)
        ]

    def _settle(self) -> None:
        """Do what is to be done; what was done before is kept where nobody has changed it."""
        keyed, buckets = self._look()
        fitting = {
            place: one for place, one in self._made.items() if _goes_with(one.base, buckets[place])
        }
        lost = [one for place, one in self._made.items() if place not in fitting]
        remove_written(self._table.storage, lost)
        self._made = fitting
        missing = self._open(keyed, buckets)
        try:
            made = settle_buckets(
                self._table.engine, keyed, missing, full=True, progress=self._progress
            )
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


def _buckets(table: OpenPaimonTable, state: TableState) -> Buckets:
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
