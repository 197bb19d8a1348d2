"""Which sorted runs of a bucket a compaction takes, and the level that it puts them on.

    level 0   a  b                  always taken, all of it
    level 1   ccc                   taken, as there is no level between it and 0
    level 2   dddd                  taken, so that level 1 is free for the next
    level 3   eeeeeeeeee            taken if it is not larger than all that is taken before it
    level 5   ffffffffffffffffff

Level 0 goes to the level below all runs, as long as there is one. Then runs are merged, the newest
first: each is merged with what is as large as it is, so that a row is not written again too often.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.keyed.bucket import Bucket

__all__ = ["Choice", "choose_all", "choose_runs", "count_levels"]

_LEAST_LEVELS = 2  # level 0, and one for what was compacted


@dataclass(frozen=True, slots=True)
class Choice:
    """What a compaction takes."""

    files: tuple[PlacedFile, ...]
    """Every file of some of the lowest levels, all of level 0 among them."""
    level: int
    """Where they go: below all runs that are not taken."""


def count_levels(bucket: Bucket, num_levels: int) -> int:
    """The levels of a bucket: as many as its table has, or more if its files are on more.

    >>> count_levels(Bucket(b"", 0, "bucket-0/"), 6)
    6
    """
    highest = max((one.file.level for one in bucket.files), default=0)
    return max(num_levels, highest + 1, _LEAST_LEVELS)


def choose_runs(bucket: Bucket, num_levels: int) -> Choice | None:
    """What to take so that level 0 becomes empty; None if it is.

    Args:
        bucket: As it is.
        num_levels: Of its table.
    """
    taken = list(bucket.level_zero)
    if not taken:
        return None
    is_merging = False
    for level, run in _runs(bucket):
        # The level below it must be free; where runs are merged, one more for the next time.
        if not is_merging and level > 1:
            return Choice(tuple(taken), level - 1)
        if is_merging and level > _LEAST_LEVELS and _size(run) > _size(taken):
            return Choice(tuple(taken), level - 1)
        taken.extend(run)
        is_merging = True
    return Choice(tuple(taken), count_levels(bucket, num_levels) - 1)


def choose_all(bucket: Bucket, num_levels: int) -> Choice | None:
    """Everything, for the top level; None if it is there, and nothing of it is deleted."""
    top = count_levels(bucket, num_levels) - 1
    is_done = all(one.file.level == top and one.file.delete_rows == 0 for one in bucket.files)
    if is_done and not any(entry.ranges for entry in bucket.vectors):
        return None
    return Choice(bucket.files, top)


def _runs(bucket: Bucket) -> list[tuple[int, list[PlacedFile]]]:
    """The levels above 0 that are not empty, the newest first."""
    found: dict[int, list[PlacedFile]] = {}
    for one in bucket.sorted_files:
        found.setdefault(one.file.level, []).append(one)
    return sorted(found.items())


def _size(files: Iterable[PlacedFile]) -> int:
    return sum(one.file.size for one in files)
