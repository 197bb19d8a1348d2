"""The buckets that keys go to by their hashes, and the hash index of a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from alcid import BucketAssigner, BucketOptions, HashIndex
from alcid._arrays import Int32Array
from benchmarks import table_data
from benchmarks.table_peers import PyPaimon
from benchmarks.table_run import TIME, Case, Group, Side, here, scaled

__all__ = ["bucket_cases"]


_ASSIGNING = Group("Bucket assignment", "hashes")
_SINGLY = Group("Bucket assignment, one key a call", "hashes", TIME)
_INDEX = Group("Hash index", "hashes")
_BATCH = 1 << 16
_ONE_BY_ONE = 1000


def bucket_cases(scale: float, peer: PyPaimon | None) -> Iterator[Case]:
    """Keys that are new and keys that are known, at once and in parts; then the index."""
    count, fewer = scaled(5_000_000, scale), scaled(200_000, scale)
    for known in (False, True):
        for batch, how in ((count, "at once"), (_BATCH, f"in batches of {_BATCH:,}")):
            sides = partial(_assigning, count, fewer, batch, known, peer)
            yield Case(_ASSIGNING, _name(known), how, sides)
    for known in (False, True):
        total = scaled(1_000_000, scale) if known else _ONE_BY_ONE
        sides = partial(_assigning_singly, total, known, peer)
        yield Case(_SINGLY, _name(known), f"{_ONE_BY_ONE:,} of {total:,} keys", sides)
    hashes = scaled(2_000_000, scale)
    for operation, data, sides in (
        ("to_bytes", "ascending", partial(_to_bytes, hashes)),
        ("from_bytes", "ascending", partial(_from_bytes, hashes, False)),
        ("from_bytes", "in any order, as Java writes", partial(_from_bytes, hashes, True)),
        ("contains", "half of them present", partial(_contains, hashes)),
    ):
        yield Case(_INDEX, operation, data, sides)


def _name(known: bool) -> str:
    return "assign known" if known else "assign new"


def _assigning(
    count: int, fewer: int, batch: int, known: bool, peer: PyPaimon | None
) -> Iterator[Side]:
    """Fifty buckets, of which the peer fills two."""
    hashes, target = table_data.hashes(count), max(count // 50, 1)
    expected = _buckets(hashes, target)
    batches = [hashes[start : start + batch] for start in range(0, count, batch)]
    yield _side(batches, expected, target, _filled(hashes, target) if known else None)
    if peer is not None:
        yield peer.assigning(hashes[:fewer], expected[:fewer], target=target, known=known)


def _assigning_singly(total: int, known: bool, peer: PyPaimon | None) -> Iterator[Side]:
    hashes, target = table_data.hashes(total), max(total // 10, 1)
    expected = _buckets(hashes, target)[:_ONE_BY_ONE]
    asked = hashes[:_ONE_BY_ONE]
    yield _side(
        np.split(asked, len(asked)), expected, target, _filled(hashes, target) if known else None
    )
    if peer is not None:
        yield peer.assigning(asked, expected, target=target, known=known, singly=True)


def _side(
    batches: list[Int32Array], expected: Int32Array, target: int, filled: BucketAssigner | None
) -> Side:
    """Assign the batches with a new assigner, or with one that knows them."""

    def assign() -> Int32Array:
        assigner = filled or BucketAssigner(BucketOptions(target_row_num=target))
        return np.concatenate([assigner.assign(batch) for batch in batches])

    return here(len(expected), assign, lambda found: np.array_equal(found, expected))


def _filled(hashes: Int32Array, target: int) -> BucketAssigner:
    assigner = BucketAssigner(BucketOptions(target_row_num=target))
    assigner.assign(hashes)
    return assigner


def _buckets(hashes: Int32Array, target: int) -> Int32Array:
    """Distinct hashes fill one bucket after the other, in the order in which they arrive."""
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    arrival = np.empty(len(first), np.int64)
    arrival[np.argsort(first)] = np.arange(len(first))
    return (arrival[inverse] // target).astype(np.int32)


def _stored(hashes: Int32Array) -> bytes:
    return hashes.astype(">i4").tobytes()


def _to_bytes(count: int) -> Iterator[Side]:
    hashes = np.unique(table_data.hashes(count))
    index, stored = HashIndex(hashes), _stored(hashes)
    yield here(len(hashes), index.to_bytes, lambda found: bool(found == stored))


def _from_bytes(count: int, shuffled: bool) -> Iterator[Side]:
    hashes = np.unique(table_data.hashes(count))
    stored = _stored(table_data.random("order").permutation(hashes) if shuffled else hashes)
    yield here(
        len(hashes),
        lambda: HashIndex.from_bytes(stored),
        lambda found: np.array_equal(found.hashes, hashes),
    )


def _contains(count: int) -> Iterator[Side]:
    drawn = table_data.hashes(2 * count)
    index, asked = HashIndex(drawn[:count]), drawn[count // 2 : count // 2 + count]
    expected = np.isin(asked, drawn[:count])
    yield here(count, lambda: index.contains(asked), lambda found: np.array_equal(found, expected))
