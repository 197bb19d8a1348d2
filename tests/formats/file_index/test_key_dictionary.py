from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from alcid import FormatError
from alcid.formats.file_index.dictionary import KeyDictionary, write_dictionary
from alcid.formats.file_index.keys import Key, KeyType
from alcid.formats.source import BytesSource, Section

INT, BYTES = KeyType(4), KeyType(0)
NUMBERS: list[Key] = [-7, -1, 0, 3, 8, 9, 400]
TEXTS: list[Key] = [b"", b"a", b"ab", b"b", b"bcd", b"c"]
ABC = write_dictionary(BYTES, pa.array([b"a", b"b", b"cc"], pa.large_binary()), 100)
"""i32 13, u8 1, i32 1, i32 4, i32 26; offset @17; head @21: u8 1, key @22, code @27, offset @31,
further @35, their offsets @39, their bytes @43; offsets @47 and @51; b @55, cc @60; 66 bytes"""

ANOTHER_SIZE = "dictionary of another size at offset 1"


def written(keys: list[Key], chunk_size: int) -> bytes:
    if isinstance(keys[0], bytes):
        return write_dictionary(BYTES, pa.array(keys, pa.large_binary()), chunk_size)
    return write_dictionary(INT, np.array(keys, np.int32), chunk_size)


def opened(data: bytes, cardinality: int, key_type: KeyType = BYTES) -> KeyDictionary:
    return KeyDictionary(Section(BytesSource(b"." + data, "x.index"), 1), key_type, cardinality)


@pytest.mark.parametrize("keys", [NUMBERS, TEXTS])
@pytest.mark.parametrize("chunk_size", [0, 4, 5, 8, 11, 12, 1000])
def test_ranks_extremes_and_all_keys(keys: list[Key], chunk_size: int) -> None:
    data = written(keys, chunk_size)
    kind = BYTES if keys is TEXTS else INT
    dictionary = opened(data, len(keys), kind)
    assert dictionary.first == keys[0]
    assert list(dictionary) == keys
    below: list[Key] = [-8, -6, 1, 401] if kind is INT else [b"aa", b"\xff"]
    for key in [*keys, *below]:
        rank = sum(other < key for other in keys), key in keys  # type: ignore[operator]
        assert opened(data, len(keys), kind).rank(key) == rank
    for k in range(1, len(keys) + 2):
        assert dictionary.extremes(k, descending=False) == keys[:k]
        assert dictionary.extremes(k, descending=True) == keys[::-1][:k]
    assert dictionary.chunk_size <= chunk_size
    assert written(keys, dictionary.chunk_size) == data


def test_the_size_of_chunks_is_that_of_the_fullest() -> None:
    assert opened(written(NUMBERS, 0), 7, INT).chunk_size == 0
    assert opened(written(NUMBERS, 9), 7, INT).chunk_size == 8
    assert opened(written(TEXTS, 11), 6).chunk_size == 11  # "a" and "ab", after ""


def put(offset: int, *numbers: int) -> bytes:
    new = struct.pack(f">{len(numbers)}i", *numbers)
    assert ABC[offset : offset + len(new)] != new, "no damage"
    return ABC[:offset] + new + ABC[offset + len(new) :]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (put(0, 12), "bad dictionary head at offset 1: found 12, expected 13"),
        (ABC[:4] + b"\2" + ABC[5:], "unknown dictionary version at offset 5: found 2, expected 1"),
        (put(5, 4), "bad chunk count at offset 6: found 4, expected 0 to 3"),
        (put(9, 8), "bad offsets length at offset 10: found 8, expected 4"),
        (put(13, 67), "bad length of chunk heads at offset 14: found 67, expected 0 to 66"),
        (put(17, 1), "chunk head out of place at offset 22"),
        (put(13, 24), "chunk head out of place at offset 22"),
        (ABC[:21] + b"\2" + ABC[22:], "chunk head of another version or length at offset 22"),
        (put(22, 2), "chunk head of another version or length at offset 22"),
        (put(27, 1), "chunks do not follow each other at offset 1"),
        (put(31, 1), "chunks do not follow each other at offset 1"),
        (put(35, 1), "bad lengths in a chunk head at offset 22"),
        (put(35, -1, -4), "bad lengths in a chunk head at offset 22"),
        (put(39, 4), "bad lengths in a chunk head at offset 22"),
        (put(43, -1), "bad lengths in a chunk head at offset 22"),
        (
            put(43, 10),
            f"{ANOTHER_SIZE}: found 3 keys, 18 bytes, expected 3 keys, 19 bytes",
        ),
        (
            ABC + b"\0",
            f"{ANOTHER_SIZE}: found 3 keys, 19 bytes, expected 3 keys, 20 bytes",
        ),
        (put(47, 1), "key out of place at offset 48"),
        (put(51, 3), "key out of place at offset 48"),
        (put(55, 0), "key of another length at offset 48"),
        (put(60, 3), "key of another length at offset 48"),
        (ABC[:59] + b"a" + ABC[60:], "keys of a chunk not in order at offset 48"),
        (ABC[:64] + b"b" + ABC[65:], None),
        (ABC[:64] + b"a" + ABC[65:], "keys of a chunk not in order at offset 48"),
    ],
)
def test_damage_of_a_dictionary_of_text_is_named(data: bytes, message: str | None) -> None:
    if message is None:  # bc after b is also correct
        assert list(opened(data, 3)) == [b"a", b"b", b"bc"]
        return
    with pytest.raises(FormatError) as raised:
        list(opened(data, 3))
    assert str(raised.value) == f"x.index: {message}"


def test_another_number_of_keys_is_seen() -> None:
    with pytest.raises(FormatError) as raised:
        opened(ABC, 4).rank(b"a")
    assert str(raised.value) == (
        f"x.index: {ANOTHER_SIZE}: found 3 keys, 19 bytes, expected 4 keys, 19 bytes"
    )


def test_chunks_that_are_not_in_order_are_seen() -> None:
    data = written([1, 2, 3], 0)
    assert len(data) == 17 + 3 * (4 + 25)
    first, second = 17 + 12 + 1, 17 + 12 + 25 + 1  # behind the version of each head
    swapped = bytearray(data)
    swapped[first : first + 4], swapped[second : second + 4] = (
        data[second : second + 4],
        data[first : first + 4],
    )
    with pytest.raises(FormatError) as raised:
        opened(bytes(swapped), 3, INT).rank(2)
    assert str(raised.value) == (
        f"x.index: chunks of the dictionary not in order at offset {1 + len(data)}"
    )


def test_the_keys_of_a_chunk_are_below_the_next_chunk() -> None:
    data = bytearray(written([1, 2, 3, 4], 4))  # chunks of two: 2 and 4 are in key blocks
    assert data[-8:] == struct.pack(">ii", 2, 4)
    data[-8:-4] = struct.pack(">i", 3)
    dictionary = opened(bytes(data), 4, INT)
    with pytest.raises(
        FormatError, match=rf"keys of a chunk not in order at offset {len(data) - 7}"
    ):
        dictionary.rank(2)
    assert dictionary.rank(4) == (3, True)
