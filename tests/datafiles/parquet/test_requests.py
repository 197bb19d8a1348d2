"""Ranges are merged without losing or repeating a byte."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from alcid.formats.source import BytesSource
from alcid.storage.ranges import Coalescing, RangeReader, ReadReport
from alcid.testing import CountingSource

ranges = st.lists(st.tuples(st.integers(0, 180), st.integers(1, 20)), min_size=1, max_size=20)


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
        for number, file_ranges in enumerate(files)
        for start, length in sorted(set(file_ranges))
    ]
    starts = np.array([reader.bases[number] + start for number, start, _ in pairs])
    lengths = np.array([length for _, _, length in pairs])
    responses = reader.fetch(starts, lengths)
    for (number, start, length), address in zip(pairs, starts.tolist(), strict=True):
        expected = contents[number][start : start + length]
        assert responses.range(address, length) == expected
        assert reader.locate(address) == (str(number), start)
    joined = b"".join(contents[number][start : start + length] for number, start, length in pairs)
    assert b"".join(responses.joined(starts, lengths)) == joined
    assert report.bytes_read == sum(source.bytes_read for source in sources)
    assert report.requests == sum(len(source.reads) for source in sources)
