"""A sorted run becomes files of its bucket, with what the compaction after it is to do.

Rows that delete have files of their own: these go when the bucket is compacted, and what is put
only changes its level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.hash_index import HashIndex
from alcid.paimon_metadata.index_manifest import IndexEntry
from alcid.tables.paimon.keyed.bucket import Bucket
from alcid.tables.paimon.keyed.bucket_vectors import (
    index_file_path,
    read_hashes,
    write_hashes,
    write_vectors,
)
from alcid.tables.paimon.keyed.changes import BucketChange, KeyedTable, Settlement
from alcid.tables.paimon.keyed.key_files import KeyRun, write_runs
from alcid.tables.paimon.keyed.row_kinds import are_deletes
from alcid.tables.paimon.keyed.runs import count_levels
from alcid.tables.paimon.new_files import WrittenData

__all__ = ["Marks", "free_level", "write_change"]

_APPENDED = 0  # the source of files that are not made by a compaction


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """The deletion vectors of a bucket, and the live rows that are to be marked besides."""

    held: Mapping[str, DeletionVector]
    """By the names of data files."""
    new: Mapping[str, DeletionVector] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows are marked besides."""
        return sum(map(len, self.new.values()))

    def merged(self) -> dict[str, DeletionVector]:
        """All vectors, as they are to be."""
        none = DeletionVector()
        return {
            **self.held,
            **{name: self.held.get(name, none) | new for name, new in self.new.items()},
        }


def free_level(keyed: KeyedTable, bucket: Bucket) -> int:
    """The level for a new run; 0 if there is none, until runs are merged."""
    return bucket.free_level(count_levels(bucket, keyed.options.num_levels))


def write_change(
    keyed: KeyedTable,
    bucket: Bucket,
    run: KeyRun,
    *,
    new_hashes: npt.NDArray[np.int32] | None = None,
    marks: Marks | None = None,
) -> BucketChange:
    """Write a run to level 0.

    Args:
        keyed: The table.
        bucket: As it is.
        run: The rows.
        new_hashes: Those of keys that are new to the bucket.
        marks: The rows that the run replaces; None if they are not known yet.
    """
    deletes = are_deletes(run.kinds)
    upserts, removals = (
        tuple(write_runs(keyed, bucket, [chosen], level=0, source=_APPENDED))
        for chosen in (run.filter(~deletes), run.filter(deletes))
    )
    paths = [path for one in (*upserts, *removals) for path in one.paths]
    hashes = None
    if new_hashes is not None and len(new_hashes):
        hashes = write_hashes(keyed, bucket, read_hashes(keyed, bucket) | HashIndex(new_hashes))
        paths.append(index_file_path(keyed, bucket, hashes))
    settlement = None
    if marks is not None:
        settlement = _settlement(keyed, bucket, upserts, removals, marks)
        paths.extend(settlement.written)
    return BucketChange(bucket, upserts, removals, hashes, settlement, tuple(paths))


def _settlement(
    keyed: KeyedTable,
    bucket: Bucket,
    upserts: tuple[WrittenData, ...],
    deletes: tuple[WrittenData, ...],
    marks: Marks,
) -> Settlement:
    """The new run on its level, and the rows that it replaces marked."""
    level = free_level(keyed, bucket)
    new = [one.placed for one in upserts]
    lifted = [replace(one, entry=one.entry.on_level(level)) for one in new]
    vectors: IndexEntry | None = bucket.vectors[0] if bucket.vectors else None
    paths: tuple[str, ...] = ()
    if marks.new or len(bucket.vectors) > 1:
        vectors = write_vectors(keyed, bucket, marks.merged())
        if vectors is not None:
            paths = (index_file_path(keyed, bucket, vectors),)
    removed = (*new, *(one.placed for one in deletes))
    return Settlement(bucket, removed, tuple(lifted), vectors, paths, marks.rows)
