"""Ranges are merged without losing or repeating a byte, and never over the end of a file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.storage.ranges import base_addresses, coalesce

ranges = st.lists(st.tuples(st.integers(0, 180), st.integers(1, 20)), min_size=1, max_size=20)


@given(ranges, st.integers(0, 20), st.integers(1, 60))
def test_requests_cover_the_ranges_and_no_gap_that_is_too_wide(
    asked: list[tuple[int, int]], gap: int, largest: int
) -> None:
    starts, lengths = np.array(asked).T
    begins, ends = coalesce(starts, lengths, gap, largest)
    covered = [byte for begin, end in zip(begins, ends, strict=True) for byte in range(begin, end)]
    assert covered == sorted(set(covered))
    needed = {byte for start, length in asked for byte in range(start, start + length)}
    assert needed <= set(covered)
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        unread = 0
        for byte in range(begin, end):
            unread = 0 if byte in needed else unread + 1
            assert unread <= gap
    unlimited, _ = coalesce(starts, lengths, gap, 1 << 40)
    assert set(unlimited) <= set(begins)  # a limit only divides further


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(0, 20))
def test_files_are_never_merged(sizes: list[int], gap: int) -> None:
    filled = [size for size in sizes if size]
    bases = base_addresses(filled, gap)
    begins, ends = coalesce(bases, np.array(filled, np.int64), gap, 1 << 40)
    assert begins.tolist() == bases.tolist()
    assert (ends - begins).tolist() == filled


def test_files_longer_than_any_are_refused() -> None:
    with pytest.raises(OverflowError):
        base_addresses([1 << 62, 1 << 62, 1], 0)


def test_files_are_further_apart_than_the_gap() -> None:
    assert base_addresses([10, 0, 7], gap=3).tolist() == [0, 14, 18]
    assert base_addresses([], gap=3).tolist() == []
