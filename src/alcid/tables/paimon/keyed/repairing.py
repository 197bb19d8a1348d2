"""Keys that are live twice are mended: one row of each stays, and hash indexes tell where it is.

No data is written, only index files: a row that is one too many is marked in the deletion vectors
of its bucket. Which row it is, `doubles` says for a bucket, and `key_homes` for keys in several
buckets. A hash index that cannot be read is made again from the keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.hash_index import HashIndex
from alcid.paimon_metadata.index_manifest import IndexEntry
from alcid.tables.engine import Engine
from alcid.tables.paimon.keyed.bucket import Bucket, Buckets, Place
from alcid.tables.paimon.keyed.bucket_vectors import (
    read_hashes,
    read_vectors,
    write_hashes,
    write_vectors,
)
from alcid.tables.paimon.keyed.changes import KeyedTable
from alcid.tables.paimon.keyed.key_homes import has_hash_indexes
from alcid.tables.paimon.keyed.key_look import KeyFindings, look_at_keys
from alcid.tables.repair_report import Mended

__all__ = ["KeyRepair", "is_unchanged", "mend_keys"]

_NONE: Final = DeletionVector()


@dataclass(frozen=True, slots=True, eq=False)
class KeyRepair:
    """The index files of a bucket, written anew; nothing is committed."""

    place: Place
    deleted: tuple[IndexEntry, ...]
    added: tuple[IndexEntry, ...]
    mended: tuple[Mended, ...]


def mend_keys(
    engine: Engine,
    keyed: KeyedTable,
    buckets: Buckets,
    chosen: Collection[Place],
    indexes: Sequence[IndexEntry],
    broken: Collection[str] = (),
) -> list[KeyRepair]:
    """Write the index files that mend the keys of some buckets.

    These are rows that are live beside another of their key, and hashes that are missing in a hash
    index or in one too many. Different keys of the same hash that are in several buckets stay
    there. A bucket with a file that cannot be read is passed over.

    Args:
        engine: What looks at the keys.
        keyed: The table.
        buckets: All of it.
        chosen: Those to look at.
        indexes: The index files of the table, that which was committed last at the end.
        broken: Hash indexes that are to be made again, by their names.
    """
    whole = {
        one.place: replace(one, hashes=tuple(e for e in one.hashes if e.name not in broken))
        for one in buckets
    }
    partitions = {
        partition: {number: whole[partition, number] for number in known}
        for partition, known in buckets.partitions.items()
    }
    found = look_at_keys(
        engine,
        keyed,
        Buckets(buckets.paths, partitions),
        [whole[place] for place in chosen if place in whole],
        indexes,
    )
    made = (_mend(keyed, one, buckets[one.bucket.place]) for one in found)
    return [one for one in made if one is not None]


def _mend(keyed: KeyedTable, found: KeyFindings, before: Bucket) -> KeyRepair | None:
    """Write the vectors, and the hash index, of a bucket anew; `before` has what is broken too."""
    bucket, verdict = found.bucket, found.verdict
    deleted: list[IndexEntry] = []
    added: list[IndexEntry] = []
    if found.twice or found.elsewhere:
        marked = read_vectors(keyed, bucket)
        for marks in (found.twice, found.elsewhere):
            marked |= {name: marked.get(name, _NONE) | rows for name, rows in marks.items()}
        vectors = write_vectors(keyed, bucket, marked)
        deleted += bucket.vectors
        added += [] if vectors is None else [vectors]
    if len(verdict.added) or len(verdict.dropped):
        known = read_hashes(keyed, bucket).hashes
        kept = HashIndex(known[~HashIndex(verdict.dropped).contains(known)])
        deleted += before.hashes
        if len(kept) or len(verdict.added):
            added.append(write_hashes(keyed, bucket, kept.union(verdict.added)))
    mended = tuple(_told(found))
    return KeyRepair(bucket.place, tuple(deleted), tuple(added), mended) if mended else None


def _told(found: KeyFindings) -> Iterator[Mended]:
    every = list(found.problems())
    counts = [len(rows) for marks in (found.twice, found.elsewhere) for rows in marks.values()]
    for (path, what, problem), count in zip(every, counts, strict=False):
        yield Mended(path, what, problem, "marked as deleted", count)
    added, dropped = len(found.verdict.added), len(found.verdict.dropped)
    if added or dropped:
        problems = ", ".join(problem for _, _, problem in every[len(counts) :])
        done = f"{added:,} put in, {dropped:,} taken out"
        yield Mended(found.bucket.folder, "hashes of keys", problems, done, added + dropped)


def is_unchanged(keyed: KeyedTable, place: Place, before: Buckets, now: Buckets) -> bool:
    """Whether what was made for a bucket still holds: nobody has changed it meanwhile."""
    if not has_hash_indexes(keyed.schema, keyed.options):
        return before[place].is_same(now[place])
    # Where a key belongs was found by a look at the whole partition.
    own, others = (one.of_partition(place[0]) for one in (before, now))
    return own.keys() == others.keys() and all(
        one.is_same(others[number]) for number, one in own.items()
    )
