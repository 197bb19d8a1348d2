from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from alcid.formats import hashing
from alcid.formats.file_index.bloom_filter import hash_bytes, hash_integers

MASK = (1 << 64) - 1


def wang(value: int) -> int:
    """The hash function in Python's integers."""

    def shift_right(key: int, by: int) -> int:
        return (key - (1 << 64) if key >> 63 else key) >> by & MASK

    key = (~value + (value << 21)) & MASK
    key ^= shift_right(key, 24)
    key = (key * 265) & MASK
    key ^= shift_right(key, 14)
    key = (key * 21) & MASK
    key ^= shift_right(key, 28)
    return (key + (key << 31)) & MASK


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_integers(values: list[int]) -> None:
    assert hash_integers(np.array(values, np.int64)).tolist() == [wang(value) for value in values]


def test_narrow_integers_are_sign_extended() -> None:
    assert hash_integers(np.array([-1], np.int8)).tolist() == [wang(-1)]


@pytest.fixture(autouse=True, scope="module")
def few_values_are_hashed_together() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, "_fewest_together", lambda _: 32)
        yield


@given(st.binary(max_size=150), st.integers(0, 100), st.integers(0, 3))
def test_bytes_hash_alike_whether_their_length_is_common_or_rare(
    value: bytes, copies: int, shift: int
) -> None:
    values = [b"!" * shift, *(bytes([copy]) + value for copy in range(copies)), value]
    hashes = hash_bytes(pa.array(values, pa.large_binary()))
    assert hashes.tolist() == [xxhash.xxh64_intdigest(value) for value in values]


def test_every_length_up_to_three_stripes() -> None:
    for length in (*range(100), 127, 128, 129):
        values = [bytes(range(index, index + length)) for index in range(40)]
        hashes = hash_bytes(pa.array(values, pa.large_binary()))
        assert hashes.tolist() == [xxhash.xxh64_intdigest(value) for value in values], length


def test_a_slice_hashes_its_own_values() -> None:
    array = pa.array([b"skipped", b"a", b"bc"], pa.large_binary())[1:]
    assert hash_bytes(array).tolist() == [
        xxhash.xxh64_intdigest(b"a"),
        xxhash.xxh64_intdigest(b"bc"),
    ]


def test_empty_values_only() -> None:
    assert hash_bytes(pa.array([b""] * 40, pa.large_binary())).tolist() == [0xEF46DB3751D8E999] * 40
