"""What compactions made of buckets, as one change of their table."""

from __future__ import annotations

from collections.abc import Iterable

from alcid.paimon_metadata.commit import Change
from alcid.paimon_metadata.index_manifest import IndexEntry
from alcid.tables.paimon.keyed.changes import Settlement

__all__ = ["compact_change"]


def compact_change(settlements: Iterable[Settlement]) -> Change:
    """The commit of settlements: what goes, then what comes, and one index file for each bucket.

    A settlement whose vectors are those of its base leaves the index file alone.

    >>> from alcid.tables.paimon.keyed.bucket import Bucket
    >>> compact_change([Settlement(Bucket(b"", 0, "bucket-0/"))]).kind
    'COMPACT'
    """
    every = list(settlements)
    swaps = [_vectors(one) for one in every]
    return Change(
        kind="COMPACT",
        deleted=[placed.entry for one in every for placed in one.removed],
        added=[placed.entry for one in every for placed in one.added],
        index_deleted=[entry for gone, _ in swaps for entry in gone],
        index_added=[entry for _, come in swaps for entry in come],
    )


def _vectors(settlement: Settlement) -> tuple[tuple[IndexEntry, ...], tuple[IndexEntry, ...]]:
    """The index files of vectors that go, and that come."""
    before = settlement.base.vectors
    after = () if settlement.vectors is None else (settlement.vectors,)
    return ((), ()) if after == before else (before, after)
