from __future__ import annotations

from collections.abc import Iterator

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.formats import hashing
from alcid.formats.hashing import SEED, SEED_HASH, ByteValues, murmur


@pytest.fixture(autouse=True, scope="module")
def few_values_are_hashed_together() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, "_fewest_together", lambda _: 32)
        yield


def expected(values: list[bytes]) -> list[int]:
    return [mmh3.hash64(value, SEED, signed=False)[0] for value in values]


def hashes_of(values: list[bytes]) -> list[int]:
    hashes: list[int] = murmur(ByteValues.of(pa.array(values, pa.large_binary()))).tolist()
    return hashes


@pytest.mark.parametrize("length", range(1, 201))
def test_every_length(length: int) -> None:
    data = np.random.default_rng(length).integers(0, 256, 50 * length, np.uint8)
    values = [data[start : start + length].tobytes() for start in range(0, len(data), length)]
    back_to_back = ByteValues(data, range(0, len(data), length), length)
    assert murmur(back_to_back).tolist() == expected(values)
    apart = [value for pair in zip(values, [b"?"] * len(values), strict=True) for value in pair]
    assert hashes_of(apart) == expected(apart)


@given(st.lists(st.binary(max_size=40), max_size=200), st.integers(0, 50))
def test_values_hash_alike_whether_their_length_is_common_or_rare(
    values: list[bytes], copies: int
) -> None:
    values += [bytes([copy]) + values[0] for copy in range(copies) if values]
    assert hashes_of(values) == expected(values)


def test_a_column_of_more_than_one_block() -> None:
    numbers = np.arange(40_000, dtype=np.int64)
    values = [int(number).to_bytes(8, "little") for number in numbers]
    hashes = murmur(ByteValues(numbers.view(np.uint8), range(0, 320_000, 8), 8))
    assert hashes.tolist() == expected(values)


def test_a_slice_hashes_its_own_values() -> None:
    array = pa.array([b"skipped", b"a", b"bc"], pa.large_binary())[1:]
    assert murmur(ByteValues.of(array)).tolist() == expected([b"a", b"bc"])


def test_the_seed_hash_is_that_of_the_seed() -> None:
    assert mmh3.hash64(SEED.to_bytes(8, "little"), 0, signed=False)[0] & 0xFFFF == SEED_HASH
