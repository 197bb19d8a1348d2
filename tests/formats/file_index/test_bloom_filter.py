from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from alcid import FormatError, LimitError
from alcid.formats.file_index import bloom_filter as module
from alcid.formats.file_index.bloom_filter import (
    BloomFilterReader,
    build,
    hash_integers,
    lean_sizing,
    sizing,
)
from alcid.formats.file_index.keys import KeyColumn, KeyType, read_column
from alcid.formats.source import BytesSource, Section
from alcid.types import DataType

BIGINT = KeyType(8)


def column_of(values: list[int]) -> KeyColumn:
    return read_column(pa.array(values, pa.int64()), DataType("BIGINT"))


def reader_of(payload: bytes) -> BloomFilterReader:
    return BloomFilterReader(Section(BytesSource(payload, "x.index")), BIGINT)


@pytest.mark.parametrize("fpp", [0.5, 0.1, 0.01, 1e-4, 1e-9])
@pytest.mark.parametrize("items", [1, 10, 1000, 1_000_000])
def test_lean_sizing_keeps_the_rate_with_fewer_functions(items: int, fpp: float) -> None:
    bits, functions = lean_sizing(items, fpp)
    assert bits % 8 == 0
    assert (1 - math.exp(-functions * items / bits)) ** functions <= fpp
    assert functions <= sizing(items, fpp)[1]
    if items > 100:
        assert bits < 1.2 * sizing(items, fpp)[0]


def test_without_items_the_size_follows_the_distinct_values() -> None:
    repeated = build(column_of([5, 7] * 1000))
    assert repeated == build(column_of([7, 5]))
    assert len(repeated) == 4 + lean_sizing(2, 0.01)[0] // 8
    assert len(build(column_of(list(range(1000))))) == 4 + lean_sizing(1000, 0.01)[0] // 8


def test_with_items_the_size_is_paimons() -> None:
    assert len(build(column_of([1]), items=100)) == 4 + 60
    assert len(build(column_of([1]), items=100, fpp=0.01)) == 4 + sizing(100, 0.01)[0] // 8


def test_more_functions_than_java_can_read_are_never_written() -> None:
    payload = build(column_of([1, 2]), items=2, fpp=1e-60)
    assert payload[:4] == b"\0\0\0\x7f"
    assert reader_of(payload).is_in([1]).rows is None


def test_more_functions_than_java_can_read_are_read() -> None:
    bits = np.ones(8, np.uint8) * 255
    assert reader_of(b"\0\0\0\xc8" + bits.tobytes()).is_in([1]).rows is None
    assert reader_of(b"\0\0\0\xc8" + bytes(8)).is_in([1]).skip


def test_a_filter_beyond_31_bits_is_refused() -> None:
    with pytest.raises(LimitError, match="bits is too large: at most 2147483640"):
        sizing(2**31 - 1, 0.01)
    with pytest.raises(LimitError, match="bits is too large"):
        lean_sizing(2**31 - 1, 0.01)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "x.index: truncated bloom filter at offset 0: found 0 bytes"),
        (b"\0\0\0\1", "x.index: truncated bloom filter at offset 0: found 4 bytes"),
        (b"\0\0\0\0?", "x.index: bad hash function count at offset 0: found 0, expected 1 to"),
        (b"\xff\xff\xff\xff?", "x.index: bad hash function count at offset 0: found -1"),
        (b"\0\0\x20\0?", "x.index: bad hash function count at offset 0: found 8192"),
    ],
)
def test_a_broken_filter_says_so(payload: bytes, message: str) -> None:
    with pytest.raises(FormatError) as error:
        reader_of(payload).is_in([1])
    assert str(error.value).startswith(message)


def test_probing_single_bytes_equals_probing_the_whole_filter() -> None:
    payload = build(column_of(list(range(0, 40_000, 2))))
    lazy, whole = reader_of(payload), reader_of(payload)
    absent = list(range(1, 2000, 2))
    alone = [lazy.is_in([key]).skip for key in absent]
    assert "filter" not in lazy.__dict__
    together = [whole.is_in([key] * 1000).skip for key in absent]  # many keys: read together
    assert "filter" in whole.__dict__
    assert alone == together
    assert 0 < alone.count(False) < 40


class Endless:
    """A source that states its size and must not be read."""

    name = "x.index"

    def __init__(self, size: int) -> None:
        self.size = size

    def read(self, offset: int, length: int) -> bytes:
        raise AssertionError(f"read {length} bytes at {offset}")


def test_a_filter_that_no_writer_makes_is_refused_unread() -> None:
    largest = 4 + ((1 << 31) - 8) // 8
    assert BloomFilterReader(Section(Endless(largest)), BIGINT).bits == (1 << 31) - 8
    with pytest.raises(FormatError) as raised:
        BloomFilterReader(Section(Endless(largest + 1)), BIGINT)
    assert str(raised.value) == (
        "x.index: bloom filter too large at offset 0: found 2147483648, expected 2147483640"
    )


@pytest.mark.parametrize("block", [1, 7, 1 << 15])
def test_many_hashes_are_asked_at_once(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    reader = reader_of(build(column_of(list(range(0, 400, 2))), fpp=0.05))
    asked = hash_integers(np.arange(500))
    answers = reader.may_have(asked)
    assert answers[:400:2].all()
    assert answers.tolist() == [not reader.is_in([value]).skip for value in range(500)]
    assert 0 < np.count_nonzero(answers[1:400:2]) < 40
    assert reader.may_have(asked[:0]).tolist() == []
