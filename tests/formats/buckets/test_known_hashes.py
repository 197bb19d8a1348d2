from __future__ import annotations

import numpy as np
import pytest

from alcid.formats.buckets.assigner import KnownHashes


def add(known: KnownHashes, hashes: range, bucket: int) -> None:
    known.add(np.array(hashes, np.int32), np.full(len(hashes), bucket, np.int16))


def find(known: KnownHashes, *hashes: int) -> list[int]:
    buckets: list[int] = known.find(np.array(hashes, np.int32)).tolist()
    return buckets


def test_no_hashes_are_no_run() -> None:
    known = KnownHashes()
    assert find(known, 0, 7) == [-1, -1]
    assert known.load({3: np.zeros(0, np.int32)}) == 0
    assert known._runs == []
    assert find(known, 0, 7) == [-1, -1]


@pytest.mark.parametrize(("second", "runs"), [(1, [9, 1]), (2, [9, 2]), (3, [12]), (9, [18])])
def test_a_run_that_is_not_four_times_as_long_is_merged(second: int, runs: list[int]) -> None:
    known = KnownHashes()
    add(known, range(0, 18, 2), 0)
    add(known, range(-5, 2 * second - 5, 2), 1)
    assert [len(run.hashes) for run in known._runs] == runs
    assert find(known, *range(0, 18, 2)) == [0] * 9
    assert find(known, *range(-5, 2 * second - 5, 2)) == [1] * second
    assert find(known, -6, 18, 2 * second - 5) == [-1] * 3


def test_of_a_hash_in_two_buckets_the_last_counts() -> None:
    known = KnownHashes()
    by_bucket = {
        5: np.array([-7, 1, 4], np.int32),
        2: np.array([1, 9], np.int32),
        0: np.array([1, 4], np.int32),
    }
    assert known.load(by_bucket) == 3
    assert find(known, -7, 1, 4, 9, 0) == [5, 0, 0, 2, -1]
