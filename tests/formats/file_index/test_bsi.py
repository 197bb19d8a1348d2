from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from alcid import FormatError
from alcid.formats.file_index.bsi import BsiReader, build
from alcid.formats.file_index.keys import KeyType, read_column
from alcid.formats.source import BytesSource, Section
from alcid.types import DataType


def payload_of(values: Sequence[int | None]) -> bytes:
    return build(read_column(pa.array(values, pa.int64()), DataType("BIGINT")))


def opened(payload: bytes) -> BsiReader:
    return BsiReader(Section(BytesSource(payload, "x.index")), KeyType(8))


@pytest.mark.parametrize(
    ("values", "bounds", "slices"),
    [
        ([5, None, 7, 0], (0, 7), (3, 0)),  # a minimum is always written as 0
        ([-5, None, -8], (-8, 0), (0, 4)),
        ([5, -1, None, -2, 300], (-2, 300), (9, 2)),
        ([0, 0], (0, 0), (0, 0)),
        ([None, None], (None, None), (0, 0)),
        ([], (None, None), (0, 0)),
    ],
)
def test_bounds_slices_and_contents(
    values: list[int | None], bounds: tuple[int | None, int | None], slices: tuple[int, int]
) -> None:
    reader = opened(payload_of(values))
    assert (reader.row_count, reader.min, reader.max) == (len(values), *bounds)
    assert reader.slice_counts == slices
    rows, numbers = reader.contents()
    assert (rows.dtype, numbers.dtype) == (np.dtype("u4"), np.dtype("i8"))
    expected = [(row, value) for row, value in enumerate(values) if value is not None]
    assert sorted(zip(rows.tolist(), numbers.tolist(), strict=True)) == expected


def with_bounds(payload: bytes, least: int, most: int) -> bytes:
    # u8 version, i32 rows, u8 has values >= 0, part @6: u8 version, i64 minimum, i64 maximum
    return payload[:7] + struct.pack(">qq", least, most) + payload[23:]


def test_a_minimum_that_is_stated_counts() -> None:
    """Paimon writes 0 there, but reads the field."""
    payload = with_bounds(payload_of([5, None, 0, 7]), 2, 9)
    reader = opened(payload)
    assert (reader.min, reader.max) == (2, 9)
    rows, numbers = reader.contents()
    assert dict(zip(rows.tolist(), numbers.tolist(), strict=True)) == {0: 7, 2: 2, 3: 9}
    assert list(reader.is_in([2, 7, 1]).rows or ()) == [0, 2]
    assert list(reader.is_not_in([2]).rows or ()) == [0, 3]
    assert list(reader.between(3, 8).rows or ()) == [0]
    assert list(reader.between(0, 9).rows or ()) == [0, 2]
    assert list(reader.between(None, 10).rows or ()) == [0, 2, 3]


def test_a_value_beyond_the_stated_maximum_is_seen() -> None:
    reader = opened(with_bounds(payload_of([5, 7]), 0, 6))
    with pytest.raises(FormatError) as raised:
        reader.contents()
    assert str(raised.value) == (
        "x.index: value above the greatest at offset 5: found 7, expected 6"
    )
    reader = opened(with_bounds(payload_of([5, 7]), 1, 7))
    with pytest.raises(FormatError, match="value above the greatest at offset 5: found 8, exp"):
        reader.contents()


@pytest.mark.parametrize(("least", "most"), [(-1, 7), (8, 7)])
def test_bounds_that_cannot_be_are_seen(least: int, most: int) -> None:
    with pytest.raises(FormatError) as raised:
        opened(with_bounds(payload_of([5, 7]), least, most)).parts  # noqa: B018
    assert str(raised.value) == (
        f"x.index: minimum and maximum not in order at offset 6: found ({least}, {most})"
    )


def test_ranges_of_the_bitmaps() -> None:
    payload = payload_of([1, -1, 3])
    positive, negative = opened(payload).parts
    assert positive is not None
    assert negative is not None
    for part, sizes in ((positive, [20, 20, 18]), (negative, [18, 18])):
        assert part.extents[0][0] == part.start + 17
        assert [length for _, length in part.extents] == sizes
        assert [at for at, _ in part.extents[1:]] == [
            part.extents[0][0] + sizes[0] + 4 + sum(sizes[1 : 1 + index])
            for index in range(len(sizes) - 1)
        ]
    assert (positive.start, negative.start) == (6, 6 + 17 + 20 + 4 + 38 + 1)
    assert negative.start + 17 + 18 + 4 + 18 == len(payload)


@pytest.mark.parametrize(("count", "expected"), [(2, "3"), (4, "0 to 3")])
def test_a_number_of_slices_that_does_not_fit_the_bounds_is_named(
    count: int, expected: str
) -> None:
    payload = payload_of([5, 7])
    assert payload[43:47] == b"\0\0\0\3"
    with pytest.raises(FormatError) as raised:
        opened(payload[:43] + struct.pack(">i", count) + payload[47:]).parts  # noqa: B018
    assert str(raised.value) == (
        f"x.index: bad slice count at offset 43: found {count}, expected {expected}"
    )
