"""Many buckets settled by workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

import numpy as np

from alcid.errors import StorageError
from alcid.storage import Storage
from alcid.tables.engine import Engine, Share, Tell, Threads
from alcid.tables.in_order import in_order
from alcid.tables.paimon.keyed.bucket import Bucket
from alcid.tables.paimon.keyed.changes import KeyedTable, Settlement
from alcid.tables.paimon.keyed.settling import settle
from alcid.tables.progress import Progress, telling

__all__ = ["SettleWork", "remove_written", "settle_buckets"]

_SMALL = 16 << 20  # bytes that one process has compacted before a job of Spark begins


@dataclass(frozen=True, slots=True, eq=False)
class SettleWork:
    """The work on buckets, for `Engine.map`: an item is a bucket."""

    keyed: KeyedTable
    buckets: Sequence[Bucket]
    full: bool

    def __call__(self, share: Share, tell: Tell) -> list[Settlement | None]:
        """Settle the buckets of a share; if one cannot be, what was written for others goes."""
        made: list[Settlement | None] = []

        def work(bucket: Bucket) -> Settlement | None:
            one = settle(self.keyed, bucket, full=self.full)
            made.append(one)  # at once: it may be behind one that cannot be settled
            return one

        found = []
        buckets = [self.buckets[item] for item in share.items.tolist()]
        try:
            with closing(in_order(work, buckets, share.threads)) as results:
                for bucket, one in zip(buckets, results, strict=True):
                    found.append(one)
                    tell(len(bucket.files), sum(placed.file.rows for placed in bucket.files))
        except BaseException:
            remove_written(self.keyed.storage, made)
            raise
        return found


def settle_buckets(
    engine: Engine,
    keyed: KeyedTable,
    buckets: Sequence[Bucket],
    *,
    full: bool,
    progress: Progress | bool | None = False,
) -> list[Settlement | None]:
    """Settle buckets; for each what is to be committed, None if there is nothing to do.

    Args:
        engine: Does the work, unless it is little.
        keyed: The table.
        buckets: As they are.
        full: Bring everything to the top level, not only what lies on level 0.
        progress: How to tell how far it is, see `alcid.tables.progress.telling`.

    Raises:
        FormatError: A file is damaged.
        FileGoneError: Another has replaced a file.
    """
    if not buckets:
        return []
    sizes = np.array([sum(one.file.size for one in bucket.files) for bucket in buckets], np.int64)
    worker = Threads() if sizes.sum() <= _SMALL else engine
    with telling(progress, "compacting", sum(len(bucket.files) for bucket in buckets)) as tell:
        made = worker.map(SettleWork(keyed, buckets, full), sizes, tell)
    return [one for part in made for one in part]


def remove_written(storage: Storage, settlements: Iterable[Settlement | None]) -> None:
    """Take back what was written for settlements that will not be committed."""
    paths = [path for one in settlements if one is not None for path in one.written]
    with suppress(StorageError):  # `clean` removes them later
        storage.delete(paths)
