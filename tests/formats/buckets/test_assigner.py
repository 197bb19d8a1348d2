from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import (
    AlcidError,
    AlcidWarning,
    FormatError,
    LimitError,
    OptionError,
    UnsupportedError,
)
from alcid.formats.binary_row import EMPTY_ROW_HASH
from alcid.formats.buckets import (
    BucketAssigner,
    BucketOptions,
    Routing,
    assigner_of,
    fixed_bucket,
)
from alcid.formats.buckets import assigner as module
from alcid.formats.hash_index import HashIndex

LEAST, MOST = -(2**31), 2**31 - 1
INT32 = st.integers(LEAST, MOST) | st.sampled_from([LEAST, LEAST + 1, -1, 0, 1, MOST])


def java_remainder(value: int, divisor: int) -> int:
    """Java's `%`: the sign is that of the dividend."""
    return abs(value) % divisor * (-1 if value < 0 else 1)


# -- formulas ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition", "keys", "channels", "assigners", "expected"),
    [
        (MOST, [0, 1, 2, 3], 5, 5, [2, 3, 4, 0]),
        (2, [0, 1, 2, 3], 5, 3, [2, 3, 4, 2]),
        (3, [1, 2], 5, 1, [3, 3]),
        (7, [11], 4, 3, [1]),
        (-7, [11], 4, 3, [1]),
        (LEAST, [LEAST], 5, 3, [0]),
        (123456, [-98765], 8, 8, [5]),
    ],
)
def test_assigners_that_paimon_gives(
    partition: int, keys: list[int], channels: int, assigners: int, expected: list[int]
) -> None:
    assert assigner_of(partition, keys, channels, assigners).tolist() == expected
    assert [int(assigner_of(partition, key, channels, assigners)) for key in keys] == expected


@given(INT32, INT32, st.integers(1, MOST), st.data())
def test_assigners_by_the_formula(
    partition: int, key: int, channels: int, data: st.DataObject
) -> None:
    assigners = data.draw(st.integers(1, channels))
    start = abs(java_remainder(partition, channels))
    expected = (start + abs(java_remainder(key, assigners))) % channels
    assert assigner_of([partition], [key], channels, assigners).tolist() == [expected]


@given(st.lists(INT32), st.integers(1, MOST))
def test_fixed_buckets_by_the_formula(hashes: list[int], buckets: int) -> None:
    expected = [abs(java_remainder(number, buckets)) for number in hashes]
    assigned = fixed_bucket(np.array(hashes, np.int32), buckets)
    assert assigned.tolist() == expected
    assert assigned.dtype == np.int32


@pytest.mark.parametrize("buckets", [0, -1, 2**31])
def test_a_number_of_buckets_that_cannot_be(buckets: int) -> None:
    with pytest.raises(OptionError, match=f"found {buckets} to share hashes among"):
        fixed_bucket([1], buckets)


def test_a_hash_beyond_32_bits_does_not_wrap() -> None:
    with pytest.raises(LimitError, match="found 2147483648"):
        fixed_bucket([2**31], 4)


# -- options and routing -----------------------------------------------------------------------


def test_options_of_paimon() -> None:
    assert BucketOptions.parse({"bucket": "-1"}) == BucketOptions(2_000_000, -1, None, None)
    options = {
        "dynamic-bucket.target-row-num": "5",
        "dynamic-bucket.max-buckets": -1,
        "dynamic-bucket.initial-buckets": " 7 ",
        "dynamic-bucket.assigner-parallelism": 8,
    }
    assert BucketOptions.parse(options) == BucketOptions(5, -1, 7, 8)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("target-row-num", "0", "found 0, expected 1 to 9223372036854775807"),
        ("target-row-num", "-5", "found -5, expected 1 to 9223372036854775807"),
        ("target-row-num", "2e6", "found '2e6', expected a whole number"),
        ("target-row-num", None, "found None, expected a whole number"),
        ("max-buckets", "0", "found 0, expected -1, or 1 to 32768"),
        ("max-buckets", "-2", "found -2, expected -1, or 1 to 32768"),
        ("max-buckets", 32769, "found 32769, expected -1, or 1 to 32768"),
        ("initial-buckets", 0, "found 0, expected 1 to 2147483647"),
        ("assigner-parallelism", 2**31, "found 2147483648, expected 1 to 2147483647"),
        ("assigner-parallelism", 1.5, "found 1.5, expected a whole number"),
    ],
)
def test_a_bad_option_is_named_with_its_value(key: str, value: Any, expected: str) -> None:
    with pytest.raises(OptionError) as raised:
        BucketOptions.parse({f"dynamic-bucket.{key}": value})
    assert str(raised.value) == f"dynamic-bucket.{key}: {expected}"


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(OptionError, match=r"dynamic-bucket.max: no such option, expected .*num or"):
        BucketOptions.parse({"dynamic-bucket.max": "5"})


@pytest.mark.parametrize(
    ("options", "parallelism", "channels", "assigners"),
    [
        (BucketOptions(), 8, 8, 8),
        (BucketOptions(initial_buckets=3), 8, 6, 3),
        (BucketOptions(initial_buckets=100), 8, 8, 8),
        (BucketOptions(assigner_parallelism=5), 8, 5, 5),
        (BucketOptions(max_buckets=2), 8, 2, 2),
        (BucketOptions(max_buckets=7, initial_buckets=4), 8, 4, 4),
        (BucketOptions(max_buckets=100, assigner_parallelism=12, initial_buckets=5), 8, 10, 5),
        (BucketOptions(), 1, 1, 1),
    ],
)
def test_a_planned_routing(
    options: BucketOptions, parallelism: int, channels: int, assigners: int
) -> None:
    assert Routing.plan(options, parallelism) == Routing(channels, assigners)


@pytest.mark.parametrize(("channels", "assigners"), [(5, 3), (3, 5), (0, 1), (1, 0), (4, -2)])
def test_channels_that_would_share_buckets_are_refused(channels: int, assigners: int) -> None:
    with pytest.raises(OptionError, match=f"found {channels} channels and {assigners} assigners"):
        Routing(channels, assigners)
    with pytest.raises(OptionError):
        Routing.plan(BucketOptions(), 0)


def test_the_channels_of_arrays() -> None:
    channels = Routing(4, 2).channel(np.array([3, 3, -4], np.int32), np.array([0, 1, 1], np.int32))
    assert channels.tolist() == [3, 0, 1]
    assert [bucket for bucket in range(7) if Routing(4, 2).owns(3, bucket)] == [1, 3, 5]


# -- assignment --------------------------------------------------------------------------------


def test_buckets_fill_up_one_after_the_other() -> None:
    assigner = BucketAssigner(BucketOptions(target_row_num=5))
    assert assigner.assign(range(12)).tolist() == [0] * 5 + [1] * 5 + [2] * 2
    assert assigner.assign([*range(0, 12, 3), 99]).tolist() == [0, 0, 1, 1, 2]
    assert assigner.counts == {0: 5, 1: 5, 2: 3}


def test_the_first_of_equal_hashes_decides_in_a_batch() -> None:
    assigner = BucketAssigner(BucketOptions(target_row_num=1))
    assert assigner.assign([9, -9, 9, 5, -9, 9]).tolist() == [0, 1, 0, 2, 1, 0]


def test_own_buckets_of_each_channel() -> None:
    routing = Routing(3, 3)
    hashes = np.arange(30, dtype=np.int32)
    channels = routing.channel(EMPTY_ROW_HASH, hashes)
    for channel in range(3):
        assigner = BucketAssigner(BucketOptions(target_row_num=4), channel, routing)
        buckets = assigner.assign(hashes[channels == channel]).tolist()
        assert buckets == [channel] * 4 + [channel + 3] * 4 + [channel + 6] * 2


def test_restored_buckets_are_filled_in_ascending_order() -> None:
    assigner = BucketAssigner(BucketOptions(target_row_num=3))
    assigner.restore(4, HashIndex([40, 41]))
    assigner.restore(1, HashIndex([10]))
    assigner.restore(0, HashIndex([1, 2, 3, 4]))
    assigner.restore(2, HashIndex())  # as if it did not exist
    assert assigner.counts == {0: 4, 1: 1, 4: 2}
    assert assigner.assign([50, 41, 51, 52, 53, 1]).tolist() == [1, 4, 1, 4, 2, 0]
    assert assigner.counts == {0: 4, 1: 3, 2: 1, 4: 3}
    new = {bucket: hashes.tolist() for bucket, hashes in assigner.new_hashes().items()}
    assert new == {1: [50, 51], 2: [53], 4: [52]}


def test_restored_buckets_are_filled_batch_after_batch() -> None:
    assigner = BucketAssigner(BucketOptions(target_row_num=2))
    for bucket in (2, 5, 9):
        assigner.restore(bucket, HashIndex([bucket]))
    assert [assigner.assign([number]).tolist() for number in range(20, 24)] == [[2], [5], [9], [0]]


def test_a_known_hash_keeps_a_bucket_of_another_channel_and_others_fill_own_ones() -> None:
    routing = Routing(2, 2)
    own = [number for number in range(20) if routing.channel(0, number) == 1]
    assigner = BucketAssigner(BucketOptions(target_row_num=12), 1, routing, partition_hash=0)
    assigner.restore(0, HashIndex([1, 2]))  # an even bucket is not ours, but the hash 1 is
    assigner.restore(3, HashIndex(range(2, 13)))
    assert own[:7] == [1, 3, 5, 7, 9, 11, 13]
    assert assigner.counts == {3: 11}
    assert assigner.assign([1, 3, 13, 15]).tolist() == [0, 3, 3, 1]
    assert {bucket: hashes.tolist() for bucket, hashes in assigner.new_hashes().items()} == {
        1: [15],
        3: [13],
    }


def test_of_two_buckets_of_a_hash_the_last_restored_counts() -> None:
    assigner = BucketAssigner()
    assigner.restore(5, HashIndex([1, 2]))
    assigner.restore(3, HashIndex([2, 3]))
    with pytest.warns(AlcidWarning, match="^1 hashes are in two buckets"):
        assert assigner.assign([1, 2, 3]).tolist() == [5, 3, 3]


def test_nothing_is_restored_once_keys_are_assigned() -> None:
    assigner = BucketAssigner()
    assert assigner.assign([1]).tolist() == [0]
    with pytest.raises(AlcidError, match="bucket 3: restored after keys were assigned"):
        assigner.restore(3, HashIndex([1, 2]))


def test_keys_are_not_taken_for_hashes() -> None:
    message = "hashes: found int64, expected int32, as hash_rows gives them"
    for keys in (np.array([1]), pa.array([1]), pa.chunked_array([[1]])):
        with pytest.raises(UnsupportedError, match=message):
            BucketAssigner().assign(keys)


def test_a_table_of_fixed_buckets_is_refused() -> None:
    with pytest.raises(OptionError, match="bucket: found '4', expected -1"):
        BucketOptions.parse({"bucket": "4"})


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: BucketAssigner({"dynamic-bucket.target-row-num": "2"}),  # type: ignore[arg-type]
        lambda: BucketAssigner().restore(0, np.array([1], np.int32)),  # type: ignore[arg-type]
        lambda: BucketAssigner().restore("0", HashIndex()),  # type: ignore[arg-type]
    ],
    ids=["options", "hashes", "bucket"],
)
def test_arguments_of_other_classes_are_named(misuse: Callable[[], object]) -> None:
    with pytest.raises(UnsupportedError, match=r"found (dict|ndarray|str), expected "):
        misuse()


def test_beyond_the_limit_hashes_are_spread_the_same_way_in_every_run() -> None:
    options = BucketOptions(target_row_num=10, max_buckets=4)
    hashes = np.arange(0, 400_000, 4, dtype=np.int32)  # the hashes of a channel look like this
    assigner = BucketAssigner(options)
    buckets = assigner.assign(hashes)
    assert buckets[:40].tolist() == np.repeat(range(4), 10).tolist()
    assert assigner.counts == {0: 24813, 1: 24934, 2: 25191, 3: 25062}
    again = BucketAssigner(options)
    parts = [again.assign(hashes[:40]), again.assign(hashes[:39:-1])[::-1]]
    assert np.concatenate(parts).tolist() == buckets.tolist()


def test_existing_buckets_beyond_the_limit_stay_in_use() -> None:
    assigner = BucketAssigner(BucketOptions(target_row_num=2, max_buckets=1))
    assigner.restore(6, HashIndex([60]))
    assert assigner.assign([1, 2, 3, 60]).tolist() == [6, 0, 0, 6]
    spread = assigner.assign(range(100, 200))
    assert set(spread.tolist()) == {0, 6}


def test_a_channel_without_any_bucket_says_what_to_change() -> None:
    assigner = BucketAssigner(BucketOptions(max_buckets=2), 2, Routing(3, 3), partition_hash=0)
    with pytest.raises(OptionError) as raised:
        assigner.assign([2])
    assert str(raised.value) == (
        "dynamic-bucket.max-buckets: found 2, expected at least 3 for channel 2; "
        "or take fewer assigners"
    )


def test_more_buckets_than_there_are_numbers() -> None:
    options = BucketOptions(target_row_num=1)
    assigner = BucketAssigner(options)
    assert assigner.assign(range(32_767)).tolist() == list(range(32_767))
    with pytest.raises(
        LimitError, match=r"channel 0 hold 1 keys.*raise dynamic-bucket\.target-row"
    ):
        assigner.assign([32_767])
    assert assigner.assign([32_766]).tolist() == [32_766]
    limited = BucketAssigner(BucketOptions(target_row_num=1, max_buckets=32_768))
    assert limited.assign(range(32_768)).tolist() == list(range(32_768))


def test_a_key_of_another_channel_is_refused() -> None:
    assigner = BucketAssigner(BucketOptions(), 1, Routing(4, 4), partition_hash=0)
    with pytest.raises(OptionError, match="found a key of channel 3 in row 2, expected 1"):
        assigner.assign([1, 5, 7, 9])
    assert assigner.counts == {}


@pytest.mark.parametrize("channel", [-1, 2])
def test_a_channel_that_is_not_there(channel: int) -> None:
    with pytest.raises(OptionError, match=f"channel: found {channel}, expected 0 to 1"):
        BucketAssigner(BucketOptions(), channel, Routing(2, 2))


def test_restoring_impossible_states() -> None:
    assigner = BucketAssigner()
    assigner.restore(7, HashIndex([1]))
    with pytest.raises(FormatError, match="bucket 7: found a second hash index, expected one"):
        assigner.restore(7, HashIndex([2]))
    for bucket in (-1, 32_768):
        with pytest.raises(FormatError, match=f"found {bucket}, expected 0 to 32767"):
            assigner.restore(bucket, HashIndex([2]))


def test_no_hashes() -> None:
    assigner = BucketAssigner()
    assert assigner.assign([]).tolist() == []
    assert assigner.assign(np.zeros(0, np.int32)).dtype == np.int32
    assert (assigner.counts, assigner.new_hashes()) == ({}, {})


def test_a_long_array_is_assigned_in_batches_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashes = np.random.default_rng(7).integers(-500, 500, 3000).astype(np.int32)
    whole = BucketAssigner(BucketOptions(target_row_num=70)).assign(hashes)
    monkeypatch.setattr(module, "_BATCH", 100)
    parts = BucketAssigner(BucketOptions(target_row_num=70)).assign(hashes)
    assert parts.tolist() == whole.tolist()


def test_options_and_routing_travel_to_tasks() -> None:
    for sent in (BucketOptions(max_buckets=3), Routing(4, 2)):
        assert pickle.loads(pickle.dumps(sent)) == sent


def test_an_assigner_says_what_it_holds() -> None:
    assigner = BucketAssigner(BucketOptions(target_row_num=2), 1, Routing(2, 2))
    assert repr(assigner) == "<BucketAssigner of channel 1, buckets: 0, keys: 0>"
    mine = [
        hash_ for hash_ in range(10) if Routing(2, 2).channel(EMPTY_ROW_HASH, np.int32(hash_)) == 1
    ]
    assigner.assign(mine[:3])
    assert repr(assigner) == "<BucketAssigner of channel 1, buckets: 2, keys: 3>"


@pytest.mark.parametrize("bucket", [-1, 1 << 15])
def test_a_bucket_that_cannot_be_is_named(bucket: int) -> None:
    with pytest.raises(FormatError) as raised:
        BucketAssigner().restore(bucket, HashIndex([1]))
    assert str(raised.value) == f"bad bucket: found {bucket}, expected 0 to 32767"
