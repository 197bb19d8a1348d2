"""Dynamic buckets: which bucket each key of a partition goes to, for good.

A known key keeps its bucket. New keys fill the buckets that are not full yet, then new ones; once
there may be no more buckets, they go to any. The known keys are in the hash index of each bucket
(`alcid.formats.hash_index`); `KnownHashes` maps them to buckets, in whole batches.

Do not use it where two jobs write to one partition at the same time: each would remember its own
keys only, and the same key may end up in two buckets. Paimon does not support that either.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, SupportsIndex, TypeAlias

import numpy as np

from alcid._arrays import BoolArray, Int16Array, Int32Array, changes
from alcid.errors import AlcidError, AlcidWarning, FormatError, LimitError, OptionError, require
from alcid.formats.binary_row.rows import EMPTY_ROW_HASH
from alcid.formats.buckets.routing import MOST_BUCKETS, BucketOptions, Routing
from alcid.formats.hash_index import Hashes, HashIndex, hash_array
from alcid.formats.hashing import mix_hash

Buckets: TypeAlias = Int16Array

UNKNOWN: Final = -1
_PLACE_BITS: Final = 16
_RATIO: Final = 4  # of more, a batch is merged into more; of less, more runs are asked


class HashRun(NamedTuple):
    """Hashes, ascending, and their buckets."""

    hashes: Int32Array
    buckets: Buckets

    def merge(self, other: HashRun) -> HashRun:
        """The hashes of both, none of which both have."""
        positions = np.searchsorted(self.hashes, other.hashes) + np.arange(len(other.hashes))
        is_own = np.ones(len(self.hashes) + len(other.hashes), bool)
        is_own[positions] = False
        hashes, buckets = np.empty(len(is_own), np.int32), np.empty(len(is_own), np.int16)
        hashes[is_own], hashes[positions] = self.hashes, other.hashes
        buckets[is_own], buckets[positions] = self.buckets, other.buckets
        return HashRun(hashes, buckets)


class KnownHashes:
    """Sorted runs of hashes, each more than four times as long as the next.

    So a batch is added without touching most of what is known, and few runs need to be asked. It
    takes 6 bytes a hash.

    >>> known = KnownHashes()
    >>> known.add(np.array([-5, 7], np.int32), np.array([0, 1], np.int16))
    >>> known.find(np.array([-5, 3, 7], np.int32)).tolist()
    [0, -1, 1]
    """

    def __init__(self) -> None:
        """Start with none."""
        self._runs: list[HashRun] = []

    @property
    def runs(self) -> Sequence[HashRun]:
        """The sorted runs; there is one at most where hashes were only loaded."""
        return self._runs

    def find(self, hashes: Int32Array) -> Buckets:
        """The bucket of each hash, or `UNKNOWN`; faster if they are ascending."""
        buckets = np.full(len(hashes), UNKNOWN, np.int16)
        left = np.arange(len(hashes))
        for run in self._runs:
            asked = hashes[left]
            positions = np.searchsorted(run.hashes, asked)
            positions[positions == len(run.hashes)] = 0
            hit = run.hashes[positions] == asked
            buckets[left[hit]] = run.buckets[positions[hit]]
            left = left[~hit]
        return buckets

    def add(self, hashes: Int32Array, buckets: Buckets) -> None:
        """Take hashes that are not known yet, ascending and each once."""
        if not len(hashes):
            return
        run = HashRun(hashes, buckets)
        while self._runs and len(self._runs[-1].hashes) <= _RATIO * len(run.hashes):
            run = self._runs.pop().merge(run)
        self._runs.append(run)

    def load(self, by_bucket: Mapping[int, Int32Array]) -> int:
        """Start with the hashes of whole buckets.

        A hash should be in one bucket. Of several, the last counts, as in Paimon; how many there
        are is returned.
        """
        places = enumerate(by_bucket.values())
        packed = np.concatenate(
            [hashes.astype(np.int64) << _PLACE_BITS | number for number, hashes in places]
        )
        packed.sort()
        hashes = (packed >> _PLACE_BITS).astype(np.int32)
        last = np.append(changes(hashes)[1:], True)[: len(hashes)]
        buckets = np.array(list(by_bucket), np.int16)[packed & (1 << _PLACE_BITS) - 1]
        self.add(hashes[last], buckets[last])
        return len(hashes) - int(last.sum())


_MOST_UNLIMITED: Final = MOST_BUCKETS - 1  # the buckets that Paimon makes if there is no limit
_DEFAULT_OPTIONS: Final = BucketOptions()
_BATCH: Final = 1 << 21  # rows that are sorted together, so that memory stays bounded
_ONE_CHANNEL: Final = Routing()


class BucketAssigner:
    """Assigns buckets to the keys of one partition, or to the share of them of one channel.

    Walk through the data once: `restore` the hash index of every bucket of the partition (of none
    at the first write), then `assign` batch after batch, and at the end write the hash index of
    every bucket in `new_hashes`.

    A bucket may get keys that other channels assigned to it, if it was filled with another number
    of channels. So bring the rows of a bucket together before they are written.

    >>> assigner = BucketAssigner(BucketOptions(target_row_num=2))
    >>> assigner.restore(0, HashIndex([10]))
    >>> assigner.assign([30, 10, 20, 30, 40]).tolist()
    [0, 0, 1, 0, 1]
    >>> {bucket: hashes.tolist() for bucket, hashes in assigner.new_hashes().items()}
    {0: [30], 1: [20, 40]}
    """

    def __init__(
        self,
        options: BucketOptions = _DEFAULT_OPTIONS,
        channel: int = 0,
        routing: Routing = _ONE_CHANNEL,
        *,
        partition_hash: int = EMPTY_ROW_HASH,
    ) -> None:
        """Start with no bucket.

        Args:
            options: Of the table.
            channel: Which of the channels this is.
            routing: How keys are shared out among channels.
            partition_hash: The hash of the partition's row; by default that of no columns.

        Raises:
            OptionError: No such channel.
        """
        require(options, BucketOptions, "options")
        if not 0 <= channel < routing.channels:
            raise OptionError(f"channel: found {channel}, expected 0 to {routing.channels - 1}")
        self._options, self._channel, self._routing = options, channel, routing
        self._partition_hash = partition_hash
        self._known = KnownHashes()
        self._started = False
        self._waiting: dict[int, Int32Array] = {}  # restored, and not among the known yet
        self._counts: dict[int, int] = {}
        self._open: list[int] = []  # own buckets that are not full, ascending
        self._next = channel % routing.assigners  # below it no own bucket is free
        self._new: list[tuple[Int32Array, Buckets]] = []

    @property
    def counts(self) -> dict[int, int]:
        """How many hashes are in each bucket that this channel owns."""
        return dict(sorted(self._counts.items()))

    def restore(self, bucket: int, index: HashIndex) -> None:
        """Take over a bucket of the partition, whoever owns it, as its hash index says.

        A key of this channel keeps its bucket even if another channel owns that by now, and a
        bucket of this channel is as full as the keys of all channels make it.

        Raises:
            FormatError: A bucket that cannot be, or that was restored already.
            AlcidError: Keys have been assigned: they may be in this bucket, and are in another.
        """
        require(index, HashIndex, "hash index")
        bucket = int(require(bucket, SupportsIndex, "bucket"))  # type: ignore[type-abstract]
        if not 0 <= bucket < MOST_BUCKETS:
            raise FormatError("bad bucket", found=bucket, expected=f"0 to {MOST_BUCKETS - 1}")
        if self._started:
            raise AlcidError(f"bucket {bucket}: restored after keys were assigned, expected before")
        if bucket in self._waiting:
            raise FormatError(f"bucket {bucket}: found a second hash index, expected one")
        self._waiting[bucket] = index.hashes[self._is_mine(index.hashes)]
        self.restore_count(bucket, len(index))

    def restore_count(self, bucket: int, keys: int) -> None:
        """Take over how many keys a bucket has, where only new keys are to be assigned.

        >>> assigner = BucketAssigner(BucketOptions(target_row_num=2))
        >>> assigner.restore_count(0, 1)
        >>> assigner.assign([30, 20]).tolist()
        [0, 1]
        """
        if keys and self._routing.owns(self._channel, bucket):
            self._counts[bucket] = self._counts.get(bucket, 0) + keys

    def assign(self, hashes: Hashes) -> Int32Array:
        """The bucket of each key, by its hash; as if the keys came one after the other.

        Raises:
            OptionError: A key of another channel; or there is no bucket that this one may use.
            LimitError: All buckets are full, and there is no option that limits their number.
        """
        hashes_array = hash_array(hashes)
        mine = self._is_mine(hashes_array)
        if not mine.all():
            row = int(mine.argmin())
            other = self._routing.channel(self._partition_hash, hashes_array[row])
            raise OptionError(
                f"channel: found a key of channel {other} in row {row}, expected {self._channel}"
            )
        self._load()
        batches = range(0, len(hashes_array), _BATCH)
        buckets = [self._assign(hashes_array[start : start + _BATCH]) for start in batches]
        return np.concatenate([np.zeros(0, np.int32), *buckets])

    def _assign(self, hashes: Int32Array) -> Int32Array:
        by_hash = np.sort(hashes.astype(np.int64) << 32 | np.arange(len(hashes)))
        rows, ordered = by_hash & 0xFFFFFFFF, (by_hash >> 32).astype(np.int32)
        first = np.flatnonzero(changes(ordered))
        buckets = self._known.find(ordered[first])
        new = np.flatnonzero(buckets == UNKNOWN)
        if len(new):
            first_rows = rows[first[new]]
            is_first = np.zeros(len(hashes), bool)
            is_first[first_rows] = True
            arriving = np.flatnonzero(is_first)
            by_row = np.empty(len(hashes), np.int16)
            by_row[arriving] = self._place(hashes[arriving])
            buckets[new] = by_row[first_rows]
            added = ordered[first[new]], buckets[new]
            self._known.add(*added)
            self._new.append(added)
        assigned = np.empty(len(hashes), np.int32)
        assigned[rows] = np.repeat(buckets, np.diff(first, append=len(hashes)))
        return assigned

    def new_hashes(self) -> dict[int, Int32Array]:
        """The hashes that were added to each bucket, ascending.

        >>> assigner = BucketAssigner()
        >>> _ = assigner.assign([5, -3])
        >>> HashIndex([7]).union(assigner.new_hashes()[0]).to_bytes().hex(" ", 4)
        'fffffffd 00000005 00000007'
        """
        if not self._new:
            return {}
        hashes, buckets = (np.concatenate(parts) for parts in zip(*self._new, strict=True))
        order = np.argsort(buckets, kind="stable")  # by counting, for narrow numbers
        numbers = buckets[order]
        first = np.flatnonzero(changes(numbers))
        parts = np.split(hashes[order], first[1:])
        return dict(zip(numbers[first].tolist(), map(np.sort, parts), strict=True))

    def __repr__(self) -> str:
        buckets, keys = len(self._counts), sum(self._counts.values())
        return f"<BucketAssigner of channel {self._channel}, buckets: {buckets}, keys: {keys}>"

    def _is_mine(self, hashes: Int32Array) -> BoolArray:
        mine: BoolArray = self._routing.channel(self._partition_hash, hashes) == self._channel
        return mine

    def _load(self) -> None:
        """Take what was restored."""
        if self._started:
            return
        self._started = True
        if self._waiting and (shared := self._known.load(self._waiting)):
            warnings.warn(
                f"{shared} hashes are in two buckets, of which the last restored counts: were there"
                " two writers at once?",
                AlcidWarning,
                stacklevel=3,
            )
        self._waiting = {}
        self._open = self._not_full(self._counts)

    def _not_full(self, buckets: Iterable[int]) -> list[int]:
        target = self._options.target_row_num
        return [bucket for bucket in sorted(buckets) if self._counts[bucket] < target]

    def _place(self, hashes: Int32Array) -> Buckets:
        """The buckets of new hashes, in the order of their arrival."""
        target, limit = self._options.target_row_num, self._options.max_buckets
        unlimited = limit == -1
        left, shares = len(hashes), dict[int, int]()
        for bucket in self._open:
            shares[bucket] = min(left, target - self._counts[bucket])
            left -= shares[bucket]
        bucket = self._next
        while left and bucket < (_MOST_UNLIMITED if unlimited else limit):
            if bucket not in self._counts:
                shares[bucket] = min(left, target)
                left -= shares[bucket]
            bucket += self._routing.assigners
        counts = np.fromiter(shares.values(), np.int64)
        placed = np.repeat(np.fromiter(shares, np.int16), counts)
        if left and unlimited:
            raise LimitError(
                f"all buckets of channel {self._channel} hold {target} keys, and there are at most "
                f"{_MOST_UNLIMITED} buckets: raise dynamic-bucket.target-row-num"
            )
        if left:
            placed = np.concatenate((placed, self._spread(hashes[-left:], shares)))
        counted = np.bincount(placed)
        for number in np.flatnonzero(counted).tolist():
            self._counts[number] = self._counts.get(number, 0) + int(counted[number])
        self._open = self._not_full(shares)
        self._next = bucket
        return placed

    def _spread(self, hashes: Int32Array, more: Iterable[int]) -> Buckets:
        """Any own bucket for each hash, all with the same chance.

        Paimon draws it by lot. But a task that runs again must put its rows where it put them
        first, so here the hash decides: mixed, as the hashes of a channel have much in common.
        """
        own = np.array(sorted({*self._counts, *more}), np.int16)
        if not len(own):
            raise OptionError(
                f"dynamic-bucket.max-buckets: found {self._options.max_buckets}, expected at least "
                f"{self._channel % self._routing.assigners + 1} for channel {self._channel}; "
                "or take fewer assigners"
            )
        mixed = mix_hash(hashes.view(np.uint32)).astype(np.uint64)
        spread: Buckets = own[mixed * np.uint64(len(own)) >> np.uint64(32)]
        return spread
