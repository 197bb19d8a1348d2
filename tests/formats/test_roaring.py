from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from alcid import FormatError
from alcid.formats.roaring import (
    load,
    parse,
    serialize_bits,
    serialize_rows,
)
from alcid.formats.source import BytesSource, Section

CONTAINERS = 5
ROWS = CONTAINERS << 16


def reference(rows: npt.NDArray[np.int64]) -> bytes:
    bitmap = BitMap(rows.astype(np.uint32))
    bitmap.run_optimize()
    return bitmap.serialize()


@st.composite
def row_sets(draw: st.DrawFn) -> npt.NDArray[np.int64]:
    """Rows in a few containers, sparse, dense or in runs, near the limits of each kind."""
    parts = [np.zeros(0, np.int64)]
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, CONTAINERS - 1)) << 16
        match draw(st.sampled_from(["one", "run", "every", "spread"])):
            case "one":
                parts.append(np.array([start + draw(st.sampled_from([0, 1, 65535]))]))
            case "run":
                parts.append(start + np.arange(draw(st.sampled_from([2, 3, 4, 5, 65536, 70000]))))
            case "every":
                step = draw(st.sampled_from([2, 3, 15, 16, 17, 31, 32, 33]))
                parts.append(start + np.arange(0, 65536, step))
            case "spread":
                seed = draw(st.integers(0, 2**32))
                count = draw(st.sampled_from([5, 4095, 4096, 4097, 30000]))
                parts.append(start + np.random.default_rng(seed).integers(0, 65536, count))
    rows = np.unique(np.concatenate(parts))
    return rows[rows < ROWS]


@given(st.lists(row_sets(), max_size=4))
def test_bitmaps_from_rows_equal_those_of_the_library(sets: list[npt.NDArray[np.int64]]) -> None:
    starts = np.append(0, np.cumsum([len(rows) for rows in sets])).astype(np.int64)
    rows = np.concatenate([np.zeros(0, np.int64), *sets]).astype(np.uint32)
    serialized = serialize_rows(rows, starts)
    assert [serialized[i] for i in range(len(sets))] == [reference(rows) for rows in sets]


@given(st.lists(row_sets(), min_size=1, max_size=4))
def test_bitmaps_from_bits_equal_those_of_the_library(sets: list[npt.NDArray[np.int64]]) -> None:
    bits = np.zeros((len(sets), ROWS), np.uint8)
    for index, rows in enumerate(sets):
        bits[index, rows] = 1
    serialized = serialize_bits(np.packbits(bits, axis=1, bitorder="little"))
    assert [serialized[i] for i in range(len(sets))] == [reference(rows) for rows in sets]


def test_no_bitmaps_and_no_containers() -> None:
    assert len(serialize_rows(np.zeros(0, np.uint32), np.zeros(1, np.int64)).data) == 0
    assert serialize_bits(np.zeros((1, 0), np.uint8))[0] == BitMap().serialize()


def section(data: bytes) -> Section:
    return Section(BytesSource(data, "x.index"))


def test_a_bitmap_tells_its_own_length() -> None:
    data = BitMap([1, 5]).serialize() + b"behind"
    rows, length = parse(section(data), 0, memoryview(data), 6)
    assert rows == BitMap([1, 5])
    assert length == len(data) - 6


def test_a_row_outside_of_the_file_is_seen() -> None:
    data = BitMap([1, 5]).serialize()
    with pytest.raises(
        FormatError, match=r"row outside of the file at offset 0: found 5, expected below 5"
    ):
        load(section(data), 0, len(data), 5)


def test_bytes_behind_a_bitmap_of_known_length_are_seen() -> None:
    data = BitMap([1, 5]).serialize() + b"?"
    with pytest.raises(
        FormatError, match="bitmap of another length at offset 0: found 20, expected 21"
    ):
        load(section(data), 0, len(data), 6)


def test_wrong_container_offsets_are_seen_though_the_library_ignores_them() -> None:
    data = bytearray(BitMap([1, 70000]).serialize())
    data[16] ^= 1
    assert BitMap.deserialize(bytes(data)) == BitMap([1, 70000])
    with pytest.raises(FormatError, match="offsets or counts that do not fit"):
        load(section(bytes(data)), 0, len(data), 70001)
