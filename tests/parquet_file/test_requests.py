"""Ranges are merged without losing or repeating a byte."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from alcid.formats.source import BytesSource
from alcid.parquet_file.report import ReadReport
from alcid.parquet_file.requests import Coalescing, RangeReader, coalesce
from alcid.testing import CountingSource

ranges = st.lists(st.tuples(st.integers(0, 180), st.integers(1, 20)), min_size=1, max_size=20)


@given(ranges, st.integers(0, 20), st.integers(1, 60))
def test_requests_cover_the_ranges_and_no_gap_that_is_too_wide(
    wanted: list[tuple[int, int]], gap: int, largest: int
) -> None:
    starts, lengths = np.array(wanted).T
    begins, ends = coalesce(starts, lengths, Coalescing(gap, largest))
    covered = [byte for begin, end in zip(begins, ends, strict=True) for byte in range(begin, end)]
    assert covered == sorted(set(covered))
    needed = {byte for start, length in wanted for byte in range(start, start + length)}
    assert needed <= set(covered)
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        unread = 0
        for byte in range(begin, end):
            unread = 0 if byte in needed else unread + 1
            assert unread <= gap
    unlimited, _ = coalesce(starts, lengths, Coalescing(gap, 1 << 40))
    assert set(unlimited) <= set(begins)  # a limit only cuts further


@given(st.lists(ranges, min_size=1, max_size=3), st.integers(0, 20))
def test_every_range_of_every_file_comes_back(files: list[list[tuple[int, int]]], gap: int) -> None:
    contents = [bytes((7 * byte + number) % 251 for byte in range(200)) for number in range(3)]
    sources = [
        CountingSource(BytesSource(contents[number], str(number))) for number in range(len(files))
    ]
    report = ReadReport()
    reader = RangeReader(sources, Coalescing(gap), report)
    pairs = [
        (number, start, length)
        for number, wanted in enumerate(files)
        for start, length in sorted(set(wanted))
    ]
    starts = np.array([reader.bases[number] + start for number, start, _ in pairs])
    lengths = np.array([length for _, _, length in pairs])
    fetched = reader.fetch(starts, lengths)
    for (number, start, length), address in zip(pairs, starts.tolist(), strict=True):
        expected = contents[number][start : start + length]
        assert fetched.range(address, length) == expected
        assert reader.place(address) == (str(number), start)
    joined = b"".join(contents[number][start : start + length] for number, start, length in pairs)
    assert b"".join(fetched.ranges(starts, lengths)) == joined
    assert report.bytes_read == sum(source.bytes_read for source in sources)
    assert report.requests == sum(len(source.reads) for source in sources)
