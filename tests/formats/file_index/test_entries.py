from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from alcid import LimitError
from alcid.formats.file_index.dictionary import (
    chunk_starts,
    encode,
    integers_at,
    key_sizes,
)
from alcid.formats.file_index.keys import KeyType
from alcid.formats.file_index.reader import ANY, EmptyReader, IndexReader

INT, BYTES = KeyType(4), KeyType(0)
TEXTS = pa.array([b"xx", b"a", b""], pa.large_binary())[1:]


def test_entries_of_numbers_and_of_text() -> None:
    suffix = np.array([7, -1]), np.array([8, (1 << 31) - 1])
    numbers = encode(INT, np.array([1, -2], np.int32), suffix, b"\5")
    assert numbers.offsets.tolist() == [0, 13, 26]
    assert numbers.slice(0, 2).hex(" ", 4) == (
        "0500 00000100 00000700 00000805 fffffffe ffffffff 7fffffff"
    )
    texts = encode(BYTES, TEXTS, suffix, b"\5")
    assert texts.offsets.tolist() == [0, 14, 27]
    assert texts.slice(0, 1).hex() == "05000000016100000007" + "00000008"
    assert texts.slice(1, 2).hex() == "0500000000ffffffff7fffffff"
    assert encode(BYTES, TEXTS).slice(0, 2).hex() == "000000016100000000"
    assert encode(INT, np.array([3], np.int32)).slice(0, 1) == b"\0\0\0\3"


def test_no_entries() -> None:
    nothing = np.zeros(0, np.int64)
    for entries in (encode(BYTES, TEXTS[:0], (nothing,)), encode(INT, nothing, (nothing,))):
        assert (entries.offsets.tolist(), entries.slice(0, 0)) == ([0], b"")
    assert key_sizes(BYTES, TEXTS[:0]).tolist() == []
    assert integers_at(np.zeros(0, np.uint8), nothing).tolist() == []


@pytest.mark.parametrize(("key_type", "keys"), [(INT, np.array([1, 2], np.int32)), (BYTES, TEXTS)])
def test_a_number_beyond_32_bits_is_refused(key_type: KeyType, keys: object) -> None:
    with pytest.raises(LimitError) as raised:
        encode(key_type, keys, (np.array([0, 0]), np.array([5, 1 << 31])))
    assert str(raised.value) == "2147483648 does not fit the 32 bits that the format has for it"


def test_integers_at_any_byte() -> None:
    data = np.frombuffer(bytes.fromhex("00000001fffffffe"), np.uint8)
    assert integers_at(data, np.array([0, 1, 4])).tolist() == [1, 0x1FF, -2]


@pytest.mark.parametrize(
    ("costs", "capacity", "first_is_free", "starts"),
    [
        ([5, 5, 5], 10, False, [0, 2, 3]),
        ([5, 5, 5], 9, False, [0, 1, 2, 3]),
        ([5, 5, 5], 10, True, [0, 3]),
        ([5, 5, 5], 5, True, [0, 2, 3]),
        ([5, 5, 5], 4, True, [0, 1, 2, 3]),
        ([9, 2, 2], 4, True, [0, 3]),
        ([2, 9, 2], 4, True, [0, 1, 3]),
        ([9, 2, 2], 4, False, [0, 1, 3]),
        ([], 4, True, [0]),
        ([], 4, False, [0]),
    ],
)
def test_where_chunks_start(
    costs: list[int], capacity: int, first_is_free: bool, starts: list[int]
) -> None:
    chunks = chunk_starts(np.array(costs, np.int64), capacity, first_is_free=first_is_free)
    assert chunks.tolist() == starts


def test_what_a_format_cannot_tell_is_any_row_and_of_nothing_no_row() -> None:
    for reader, is_no_row in ((IndexReader(), False), (EmptyReader(), True)):
        answers = [
            *(reader.is_null(), reader.is_not_null(), reader.is_in([1]), reader.is_not_in([1])),
            reader.between(None, 1),
            reader.top_n(1, descending=False, nulls="last"),
        ]
        if is_no_row:
            assert all(answer.skip and answer.exact for answer in answers)
        else:
            assert all(answer is ANY for answer in answers)
        assert reader.extremes(1, descending=True) == []
