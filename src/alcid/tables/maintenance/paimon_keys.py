"""What is wrong with the keys of buckets: found by tasks, to be reported or repaired.

Most keys are right, and seen by one task only: that of their bucket. What comes back are rows and
hashes that are wrong, or suspect; the suspects are then looked for in all buckets of the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import numpy as np

from alcid._arrays import Int32Array
from alcid._text import count_text
from alcid.errors import FileGoneError, FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.storage import Storage
from alcid.storage.threads import in_order
from alcid.tables.engine import Engine, Task, Threads
from alcid.tables.maintenance.findings import Finding, FindingKind
from alcid.tables.maintenance.paimon_hash_indexes import (
    Claim,
    Ownership,
    assign_hashes,
    claim_hashes,
    has_hash_indexes,
    live_twice,
    lost_hashes,
    shared_hashes,
)
from alcid.tables.paimon.keyed.bucket import Bucket, Buckets, KeyedTable, read_hashes
from alcid.tables.paimon.metadata.manifest import BucketId
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.table_state import HASH, IndexEntry
from alcid.tables.parquet_writer import SNAPPY

_SMALL: Final = 16 << 20  # bytes that one process reads faster than a job of Spark begins
_KEY_PART: Final = 8  # keys are about so small a part of a file
_NO_HASHES: Final[Int32Array] = np.zeros(0, np.int32)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, eq=False)
class BucketKeys:
    """What is wrong with the keys of a bucket."""

    bucket: Bucket
    twice: Mapping[str, DeletionVector] = field(default_factory=dict)
    """Rows that are live beside a newer one of their key in the bucket, by file name."""
    lost: Int32Array = field(default_factory=lambda: _NO_HASHES)
    """Hashes of its rows that its hash index does not have."""
    shared: Int32Array = field(default_factory=lambda: _NO_HASHES)
    """Hashes in its hash index that the index of another bucket has too."""
    ownership: Ownership = field(default_factory=Ownership)
    """What can be done about hashes, and about keys that are live in another bucket."""

    @property
    def elsewhere(self) -> Mapping[str, DeletionVector]:
        """Rows whose key is live in another bucket, where it belongs; by file name."""
        return self.ownership.marks

    @property
    def rows(self) -> int:
        """How many rows are live beside another of their key, which counts."""
        return sum(map(len, [*self.twice.values(), *self.elsewhere.values()]))

    @property
    def is_wrong(self) -> bool:
        """Whether there is anything."""
        return bool(self.rows or len(self.lost) or len(self.shared))

    def findings(self) -> Iterator[Finding]:
        """What is wrong: first of rows, by file, and then of hashes."""
        folder = self.bucket.folder
        for marks, where in ((self.twice, "twice"), (self.elsewhere, "in another bucket")):
            for name, rows in marks.items():
                problem = f"{count_text(len(rows), 'row')} with a key that is live {where}"
                yield Finding(FindingKind.KEYS, f"{folder}{name}", problem)
        for hashes, problem in (
            (self.lost, "not in its hash index"),
            (self.shared, "in the hash index of another bucket too"),
        ):
            if len(hashes):
                yield Finding(FindingKind.KEY_HASHES, folder, f"{len(hashes):,} {problem}")


def keyed_for_reading(
    storage: Storage,
    schema: TableSchema,
    schemas: Mapping[int, TableSchema],
    options: TableOptions,
) -> KeyedTable:
    """A table whose data files are only read: how new ones are written plays no part."""
    return KeyedTable(storage, schema, schemas, options, (), SNAPPY)


def check_bucket_keys(
    engine: Engine,
    keyed: KeyedTable,
    buckets: Buckets,
    chosen: Sequence[Bucket],
    indexes: Sequence[IndexEntry],
) -> list[BucketKeys]:
    """What is wrong with the keys of some buckets, and with the hash indexes of their partitions.

    A bucket with a file that cannot be read is passed over, and then also which keys are in several
    buckets of its partition.

    Args:
        engine: Does the work, unless it is little.
        keyed: The table.
        buckets: All of the table.
        chosen: Those to check.
        indexes: The index files of the table, that which was committed last at the end.

    Returns:
        Of buckets with something wrong.
    """
    tasks = _Tasks(engine, keyed)
    results = tasks.map(_check_bucket, chosen, _key_size)
    checked = {keys.bucket.id: keys for keys in results if keys is not None}
    if not has_hash_indexes(keyed.schema, keyed.options):
        return [keys for keys in checked.values() if keys.is_wrong]
    recency = [(entry.partition, entry.bucket) for entry in indexes if entry.index_type == HASH]
    partitions = sorted({bucket.partition for bucket in chosen})
    shared = tasks.map(
        _shared_in_partition,
        [tuple(buckets.of_partition(partition).values()) for partition in partitions],
        lambda several: sum(entry.size for bucket in several for entry in bucket.hashes),
    )
    for partition, hashes in zip(partitions, shared, strict=True):
        of_partition = buckets.of_partition(partition).values()
        lost = [checked[bucket.id].lost for bucket in of_partition if bucket.id in checked]
        suspects = np.unique(np.concatenate([_NO_HASHES if hashes is None else hashes, *lost]))
        if hashes is not None and len(suspects):
            assigned = _assign(tasks, of_partition, checked, hashes, suspects, recency)
            checked |= {keys.bucket.id: keys for keys in assigned}
    return [keys for keys in checked.values() if keys.is_wrong]


def _assign(
    tasks: _Tasks,
    buckets: Iterable[Bucket],
    checked: Mapping[BucketId, BucketKeys],
    shared: Int32Array,
    suspects: Int32Array,
    recency: Iterable[BucketId],
) -> list[BucketKeys]:
    """The buckets of a partition, with the hashes and keys that each is to own."""
    order = {place: number for number, place in enumerate(recency)}
    oldest_first = sorted(buckets, key=lambda bucket: order.get(bucket.id, -1))
    before = [checked.get(bucket.id, BucketKeys(bucket)) for bucket in oldest_first]
    items = [_Suspects(keys.bucket, suspects, keys.twice) for keys in before]
    claims = tasks.map(_claim, items, lambda item: _key_size(item.bucket))
    sure = [claim for claim in claims if claim is not None]
    if len(sure) < len(claims):
        return before
    descending = tasks.keyed.options.sequence_descending
    owned = assign_hashes(sure, suspects, descending=descending)
    return [
        BucketKeys(
            keys.bucket, keys.twice, keys.lost, np.intersect1d(shared, claim.indexed), ownership
        )
        for keys, claim, ownership in zip(before, sure, owned, strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Suspects:
    """What is looked for in a bucket."""

    bucket: Bucket
    hashes: Int32Array
    marks: Mapping[str, DeletionVector]


def _check_bucket(keyed: KeyedTable, bucket: Bucket) -> BucketKeys:
    _check_schemas(keyed, bucket)
    lost = _NO_HASHES
    if has_hash_indexes(keyed.schema, keyed.options):
        lost = lost_hashes(keyed, bucket)
    return BucketKeys(bucket, live_twice(keyed, bucket), lost)


def _shared_in_partition(keyed: KeyedTable, buckets: Sequence[Bucket]) -> Int32Array:
    return shared_hashes([read_hashes(keyed, bucket) for bucket in buckets])


def _claim(keyed: KeyedTable, task: _Suspects) -> Claim:
    _check_schemas(keyed, task.bucket)
    return claim_hashes(keyed, task.bucket, task.hashes, task.marks)


def _check_schemas(keyed: KeyedTable, bucket: Bucket) -> None:
    for file in bucket.files:
        if file.file.schema_id not in keyed.schemas:
            raise FormatError(f"no schema {file.file.schema_id}", file=file.path)


def _key_size(bucket: Bucket) -> int:
    return sum(file.file.size for file in bucket.files) // _KEY_PART


@dataclass(frozen=True, slots=True, eq=False)
class _Tasks:
    """Runs functions on buckets, here or on the engine."""

    engine: Engine
    keyed: KeyedTable

    def map(
        self,
        call: Callable[[KeyedTable, _Item], _Result],
        items: Sequence[_Item],
        size: Callable[[_Item], int],
    ) -> list[_Result | None]:
        """Results in the order of items; None where a file cannot be read."""
        if not items:
            return []
        sizes = np.array([size(item) for item in items], np.int64)
        engine = Threads() if sizes.sum() <= _SMALL else self.engine
        parts = engine.map(_BucketTask(self.keyed, call), items, sizes)
        return [result for part in parts for result in part]


@dataclass(frozen=True, slots=True, eq=False)
class _BucketTask(Generic[_Item, _Result]):
    """The work on items, for `Engine.map`."""

    keyed: KeyedTable
    call: Callable[[KeyedTable, _Item], _Result]

    def __call__(self, task: Task[Sequence[_Item]]) -> list[_Result | None]:
        with closing(in_order(self._run, task.items, task.threads)) as results:
            return list(results)

    def _run(self, item: _Item) -> _Result | None:
        try:
            return self.call(self.keyed, item)
        except (FormatError, FileGoneError):
            return None
