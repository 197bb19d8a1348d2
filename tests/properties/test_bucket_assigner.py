"""Buckets of whole arrays, compared with a model that goes row by row."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from alcid import AlcidError, AlcidWarning
from alcid.formats.buckets import (
    BucketAssigner,
    BucketOptions,
    Routing,
    assigner_of,
)
from alcid.formats.buckets import assigner as module
from alcid.formats.hash_index import HashIndex

INT32 = st.integers(-(2**31), 2**31 - 1)
FEW = st.integers(-60, 60)  # so that hashes repeat
OPTIONS = st.builds(
    BucketOptions,
    target_row_num=st.integers(1, 8) | st.integers(1, 30),
    max_buckets=st.just(-1) | st.integers(1, 12),
    initial_buckets=st.none() | st.integers(1, 6),
    assigner_parallelism=st.none() | st.none() | st.integers(1, 12),
)


@dataclass
class Model:
    """One channel of one partition, row by row."""

    options: BucketOptions
    channel: int
    routing: Routing
    partition_hash: int
    known: dict[int, int] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    new: dict[int, set[int]] = field(default_factory=dict)

    def restore(self, bucket: int, hashes: set[int]) -> None:
        channels, assigners = self.routing.channels, self.routing.assigners
        for number in hashes:
            if assigner_of(self.partition_hash, number, channels, assigners) == self.channel:
                self.known[number] = bucket
            if bucket % assigners == self.channel % assigners:
                self.counts[bucket] = self.counts.get(bucket, 0) + 1

    def assign(self, number: int) -> int:
        if number not in self.known:
            bucket = self.choose(number)
            self.known[number] = bucket
            self.counts[bucket] = self.counts.get(bucket, 0) + 1
            self.new.setdefault(bucket, set()).add(number)
        return self.known[number]

    def choose(self, number: int) -> int:
        for bucket in sorted(self.counts):
            if self.counts[bucket] < self.options.target_row_num:
                return bucket
        limit = 32_767 if self.options.max_buckets == -1 else self.options.max_buckets
        for bucket in range(limit):
            if self.routing.owns(self.channel, bucket) and bucket not in self.counts:
                return bucket
        own = sorted(self.counts)
        return own[mixed(number) * len(own) >> 32]


def mixed(number: int) -> int:
    """The last steps of Murmur3, in Python's own integers."""
    number &= 0xFFFFFFFF
    number = (number ^ number >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    number = (number ^ number >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return number ^ number >> 16


@given(
    st.data(),
    OPTIONS,
    st.sampled_from((1, 2, 3, 12)),
    INT32,
    st.dictionaries(st.integers(0, 15), st.sets(FEW | INT32, max_size=12), max_size=5),
    st.lists(st.lists(FEW | INT32, max_size=60), max_size=5),
    st.sampled_from((7, 1 << 21)),
)
def test_arrays_are_assigned_as_if_row_by_row(
    data: st.DataObject,
    options: BucketOptions,
    parallelism: int,
    partition_hash: int,
    restored: dict[int, set[int]],
    batches: list[list[int]],
    largest_batch: int,
) -> None:
    routing = Routing.plan(options, parallelism)
    any_key = data.draw(st.integers(0, routing.assigners - 1), label="any key of the channel")
    channel = int(routing.channel(partition_hash, any_key))
    assigner = BucketAssigner(options, channel, routing, partition_hash=partition_hash)
    model = Model(options, channel, routing, partition_hash)
    for bucket, hashes in restored.items():
        assigner.restore(bucket, HashIndex(hashes))
        model.restore(bucket, hashes)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", AlcidWarning)  # a hash may be in two buckets
        patch.setattr(module, "_BATCH", largest_batch)
        for batch in batches:
            own = [key for key in batch if routing.channel(partition_hash, key) == channel]
            assert assigner.assign(own).tolist() == [model.assign(key) for key in own]
    assert assigner.counts == dict(sorted(model.counts.items()))
    new = {bucket: hashes.tolist() for bucket, hashes in assigner.new_hashes().items()}
    assert new == {bucket: sorted(hashes) for bucket, hashes in sorted(model.new.items())}
    assert all(routing.owns(channel, bucket) for bucket in new)


@given(OPTIONS, st.integers(1, 40), INT32, st.lists(INT32, max_size=200), st.integers(0, 32_767))
def test_no_two_channels_of_a_partition_own_a_bucket(
    options: BucketOptions, parallelism: int, partition_hash: int, keys: list[int], bucket: int
) -> None:
    routing = Routing.plan(options, parallelism)
    used = {int(routing.channel(partition_hash, key)) for key in range(routing.assigners)}
    assert len(used) == routing.assigners
    assert {int(channel) for channel in routing.channel(partition_hash, keys)} <= used
    assert len([channel for channel in used if routing.owns(channel, bucket)]) == 1
    if options.max_buckets != -1:  # and none remains without a bucket
        assert all(
            any(routing.owns(channel, number) for number in range(options.max_buckets))
            for channel in used
        )


@given(st.integers(1, 12), st.integers(1, 12), INT32)
def test_every_routing_that_is_refused_would_share_buckets(
    channels: int, assigners: int, partition_hash: int
) -> None:
    """The rule is not stricter than necessary: some partition has two owners of a bucket."""
    assume(assigners <= channels)
    try:
        Routing(channels, assigners)
    except AlcidError:
        shared = False
        for start in range(channels):
            used = {int(assigner_of(start, key, channels, assigners)) for key in range(assigners)}
            shared |= len({channel % assigners for channel in used}) < assigners
        assert shared
    else:
        used = {int(assigner_of(partition_hash, k, channels, assigners)) for k in range(assigners)}
        assert {channel % assigners for channel in used} == set(range(assigners))
