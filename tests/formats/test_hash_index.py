from __future__ import annotations

import pickle
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import FormatError, LimitError, UnsupportedError
from alcid.formats.hash_index import HashIndex, hash_array
from alcid.inspect.byte_bar import distribution
from alcid.inspect.display import picture

HASHES = st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3), max_size=50)


def test_bytes_are_ascending_signed_and_big_endian() -> None:
    index = HashIndex([2**31 - 1, 1, -(2**31), -1, 1])
    assert index.to_bytes().hex(" ", 4) == "80000000 ffffffff 00000001 7fffffff"
    assert HashIndex().to_bytes() == b""


@given(HASHES)
def test_a_file_in_any_order_holds_the_same_hashes(hashes: list[int]) -> None:
    data = struct.pack(f">{len(hashes)}i", *hashes)
    index = HashIndex.from_bytes(data)
    assert index.hashes.tolist() == sorted(set(hashes))
    assert index.hashes.dtype == np.int32
    assert len(index) == len(set(hashes))
    assert index.duplicates == len(hashes) - len(set(hashes))
    assert index == HashIndex(hashes)
    again = HashIndex.from_bytes(index.to_bytes())
    assert (again, again.duplicates) == (index, 0)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 4001])
def test_a_part_of_a_hash_is_refused(size: int) -> None:
    with pytest.raises(FormatError) as raised:
        HashIndex.from_bytes(bytes(size), name="index-1")
    offset, problem = size - size % 4, f"found {size % 4} bytes, expected 4"
    assert str(raised.value) == f"index-1: truncated hash at offset {offset}: {problem}"


@given(HASHES, HASHES)
def test_contains_and_union(left: list[int], right: list[int]) -> None:
    index = HashIndex(left)
    asked = [*left, *right]
    assert index.contains(asked).tolist() == [number in set(left) for number in asked]
    expected = sorted({*left, *right})
    assert index.union(right).hashes.tolist() == expected
    assert index.union(HashIndex(right)).hashes.tolist() == expected
    assert index.hashes.tolist() == sorted(set(left))


@pytest.mark.parametrize(
    "hashes",
    [
        [3, -1],
        (3, -1),
        {3, -1},
        iter([3, -1]),
        np.array([3, -1], np.int32),
        np.array([3, -1], ">i4"),
        pa.array([3, -1], pa.int32()),
        pa.chunked_array([[3], [-1]], pa.int32()),
    ],
    ids=lambda hashes: f"{type(hashes).__name__} {getattr(hashes, 'dtype', '')}",
)
def test_hashes_may_come_in_any_form(hashes: Any) -> None:
    assert HashIndex(hashes).hashes.tolist() == [-1, 3]


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
def test_what_does_not_fit_is_refused_and_does_not_wrap(number: int) -> None:
    with pytest.raises(LimitError, match=f"found {number}, expected -2147483648 to 2147483647"):
        HashIndex([0, number])
    with pytest.raises(LimitError):
        HashIndex([1]).contains([number])


@pytest.mark.parametrize(
    "hashes", [[1.5], ["a"], pa.array([1, None]), [2**70], np.array([1]), pa.array([1])]
)
def test_other_things_than_hashes_are_refused(hashes: Any) -> None:
    with pytest.raises(UnsupportedError, match="expected int32, as hash_rows gives them"):
        hash_array(hashes)


def test_one_hash_is_asked_for_and_indexes_are_joined() -> None:
    index = HashIndex([5]) | HashIndex([-1])
    assert index.hashes.tolist() == [-1, 5]
    assert [value in index for value in (5, np.int32(-1), 7, "5")] == [True, True, False, False]


def test_an_index_does_not_change() -> None:
    hashes = np.array([2, 1], np.int32)
    index = HashIndex(hashes)
    hashes[0] = 9
    assert index.hashes.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        index.hashes[0] = 5


def test_equality_and_pickling() -> None:
    index = HashIndex([1, 2])
    assert index == HashIndex([2, 1, 1])
    assert hash(index) == hash(HashIndex([2, 1, 1]))
    assert index != HashIndex([1])
    assert index != [1, 2]
    assert pickle.loads(pickle.dumps(index)) == index
    assert repr(index) == "<HashIndex of 2 hashes>"


@pytest.mark.parametrize(
    ("hashes", "description"),
    [
        (b"\0\0\0\7", "bytes: from_bytes reads those"),
        (bytearray(4), "bytes: from_bytes reads those"),
        (pa.array([1, None], pa.int32()), "nulls, expected int32, as hash_rows gives them"),
        (np.zeros((2, 2), np.int32), "2 dimensions, expected one"),
        ([[1], [2]], "2 dimensions, expected one"),
        (np.array([1.5]), "float64, expected int32, as hash_rows gives them"),
        (np.array([1]), "int64, expected int32, as hash_rows gives them"),
    ],
)
def test_values_that_are_not_hashes_are_named(hashes: Any, description: str) -> None:
    with pytest.raises(UnsupportedError) as raised:
        hash_array(hashes)
    assert str(raised.value) == f"hashes: found {description}"


def test_contains_beyond_both_ends() -> None:
    index = HashIndex([-5, 3, 9])
    assert index.contains([9, 10, -6, -5, 4, 3, 2**31 - 1]).tolist() == [
        *[True, False, False, True, False, True, False]
    ]
    assert HashIndex().contains([1]).tolist() == [False]


def test_a_picture_counts_the_hashes_of_each_eighth() -> None:
    title, (said, spread) = picture(HashIndex([-(2**31), -1, 0, 2**31 - 1]))
    assert (title, said) == ("Hash index of 4 keys", "<p>Hash index of 4 keys</p>")
    expected = distribution(np.array([-(2**31), -1, 0, 2**31 - 1]), -(2**31), 2**31 - 1, bins=8)
    assert spread == expected.replace(">rows<", ">hashes<")
