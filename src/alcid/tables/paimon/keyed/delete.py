"""Delete rows of a table with a primary key, of which it is known where they are.

They are marked as any older row is, and besides written as rows that delete: so streaming readers
see them go, and where a bucket has files on level 0, its compaction finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from alcid.errors import ConflictError
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.engine import Share, Tell
from alcid.tables.paimon.data_files import table_paths
from alcid.tables.paimon.keyed.bucket import Bucket, BucketChange, KeyedTable, Place, buckets_of
from alcid.tables.paimon.keyed.bucket_upsert import delete_from_bucket
from alcid.tables.paimon.keyed.commit import Applied, Changing, apply_changes
from alcid.tables.paimon.keyed.upsert import UpsertPlan, compacts, keyed_table
from alcid.tables.paimon.write.deletion_vectors import Mark

if TYPE_CHECKING:
    from alcid.tables.paimon.open_table import OpenPaimonTable

__all__ = ["DeleteWork", "delete_marked"]


def delete_marked(table: OpenPaimonTable, find: Callable[[], Sequence[Mark]]) -> Applied:
    """Delete rows.

    Args:
        table: The table; it is read anew before each try.
        find: Finds the rows in the table as it is now.

    Raises:
        ConflictError: Others have changed the same buckets again and again.
    """

    def changing() -> Changing:
        keyed = keyed_table(table, "delete", {})
        buckets = buckets_of(
            table.snapshot.state, table_paths(table.snapshot.schema, table.snapshot.options)
        )
        marks: dict[Place, list[Mark]] = {}
        for mark in find():
            marks.setdefault((mark.file.entry.partition, mark.file.entry.bucket), []).append(mark)
        lifts = compacts(table, UpsertPlan())
        work = DeleteWork(
            keyed,
            [(buckets[place], _by_file(buckets[place], some)) for place, some in marks.items()],
            lifts,
        )
        return Changing(
            keyed,
            lifts,
            lambda: [
                one
                for share in table.engine.map(work, work.sizes, lambda *_: None)
                for one in share
            ],
        )

    return apply_changes(table, changing)


def _by_file(bucket: Bucket, marks: Sequence[Mark]) -> dict[str, DeletionVector]:
    live = {one.file.name for one in bucket.files}
    for mark in marks:
        if mark.file.file.name not in live:
            raise ConflictError(f"{mark.file.path}: is not there any more")
    return {mark.file.file.name: mark.rows for mark in marks}


@dataclass(frozen=True, slots=True, eq=False)
class DeleteWork:
    """Deletes rows of buckets, for `Engine.map`."""

    keyed: KeyedTable
    buckets: Sequence[tuple[Bucket, dict[str, DeletionVector]]]
    """Buckets, and the rows to be deleted by the names of their files."""
    lifts: bool

    @property
    def sizes(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The bytes of the files that rows are read from."""
        return np.array(
            [
                sum(one.file.size for one in bucket.files if one.file.name in rows)
                for bucket, rows in self.buckets
            ],
            np.int64,
        )

    def __call__(self, share: Share, _tell: Tell) -> list[BucketChange]:
        """What becomes of the buckets of a share."""
        chosen = (self.buckets[place] for place in share.items.tolist())
        return [
            delete_from_bucket(self.keyed, bucket, rows, looks_up=self.lifts)
            for bucket, rows in chosen
        ]
