"""Blocks, and the source that verifies them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import ChecksumError, FormatError
from alcid.formats.source import BytesSource, Range, read_each
from alcid.index.bundle import CheckedSource, prefetch
from alcid.index.bundle.directory import (
    BLOCK,
    CONTENT,
    damaged_block,
    seal,
    stored,
    unseal,
)
from alcid.testing import CountingSource, flips

PAYLOAD = bytes(position * 7 & 255 for position in range(5000))
payloads = st.integers(1, 5000).map(lambda length: PAYLOAD[:length])


def sealed(payload: bytes) -> bytes:
    return b"".join(seal(payload))


def checked(payload: bytes, before: int = 10) -> tuple[CheckedSource, CountingSource]:
    source = CountingSource(BytesSource(bytes(before) + sealed(payload) + b"behind", "x.bundle"))
    return CheckedSource(source, before, len(payload), payload[:4].ljust(4, b"\0"), "pages"), source


@given(st.binary(max_size=20) | payloads)
def test_blocks_hold_their_payload(payload: bytes) -> None:
    data = memoryview(sealed(payload))
    assert len(data) == stored(len(payload))
    assert damaged_block(data) is None
    assert unseal(data) == payload


def test_every_flip_in_a_block_is_noticed() -> None:
    for damage in flips(sealed(PAYLOAD[: CONTENT + 20])):
        position = int(damage.what.split()[1])
        assert damaged_block(memoryview(damage.data)) == position // BLOCK


@given(payloads, st.data())
def test_any_range_is_what_the_payload_has(payload: bytes, data: st.DataObject) -> None:
    source, counting = checked(payload)
    seen: set[int] = set()
    for _ in range(4):
        offset = data.draw(st.integers(0, len(payload)))
        length = data.draw(st.integers(0, len(payload) - offset))
        assert source.read(offset, length) == payload[offset : offset + length]
        for at, size in counting.take():
            blocks = set(range((at - 10) // BLOCK, (at - 10 + size - 1) // BLOCK + 1))
            assert not blocks <= seen, "a read that was not needed"
            seen |= blocks


def test_the_first_bytes_cost_no_read_and_a_block_is_read_once() -> None:
    source, counting = checked(PAYLOAD)
    assert source.read(0, 4) == PAYLOAD[:4]
    assert source.read(5000, 0) == b""
    assert counting.take() == []
    assert source.read(2, 4) == PAYLOAD[2:6]
    assert counting.take() == [(10, BLOCK)]
    assert source.read(1000, 2000) == PAYLOAD[1000:3000]
    assert counting.take() == [(10 + BLOCK, 2 * BLOCK)]
    assert source.read(0, 5000) == PAYLOAD
    assert counting.take() == [(10 + 3 * BLOCK, BLOCK + 924)]
    assert source.read(0, 5000) == PAYLOAD
    assert counting.take() == []


def test_damage_is_named_with_bundle_and_offset() -> None:
    data = bytearray(sealed(PAYLOAD))
    data[3 * BLOCK + 5] ^= 1
    source = CheckedSource(BytesSource(data, "x.bundle"), 0, 5000, PAYLOAD[:4], "pages, file 7")
    assert source.read(0, 3 * CONTENT) == PAYLOAD[: 3 * CONTENT]
    message = r"^x.bundle: damaged block of pages, file 7 at offset 3072$"
    with pytest.raises(ChecksumError, match=message):
        source.read(3 * CONTENT - 1, 2)
    assert source.read(4 * CONTENT, 10) == PAYLOAD[4 * CONTENT :][:10]


def test_many_payloads_are_fetched_in_one_round() -> None:
    made = [checked(PAYLOAD[:length], before) for length, before in ((5000, 0), (1500, 3), (3, 0))]
    rounds: list[list[tuple[int, int]]] = []

    def read_many(ranges: object) -> list[bytes]:
        assert isinstance(ranges, list)
        rounds.append([(range_.offset, range_.length) for range_ in ranges])
        return read_each(ranges)

    (large, a), (small, b), (tiny, c) = made
    prefetch([(large, [(2000, 10), (4990, 10)]), (small, [(0, 1500)]), (tiny, [(0, 3)])], read_many)
    assert rounds == [[(BLOCK, BLOCK), (4 * BLOCK, 924), (3, 1508)]]
    for counting in (a, b, c):
        counting.take()
    assert (large.read(2000, 10), large.read(4990, 10)) == (PAYLOAD[2000:2010], PAYLOAD[4990:5000])
    assert (small.read(0, 1500), tiny.read(0, 3)) == (PAYLOAD[:1500], PAYLOAD[:3])
    assert a.reads == b.reads == c.reads == []
    prefetch([(large, [(2000, 10)])], read_many)
    assert len(rounds) == 1


def test_a_round_leaves_damage_to_the_one_file_that_has_it() -> None:
    good, counting = checked(PAYLOAD)
    data = bytearray(sealed(PAYLOAD))
    data[0] ^= 1
    bad = CheckedSource(BytesSource(data, "x.bundle"), 0, 5000, PAYLOAD[:4], "pages")
    prefetch([(bad, [(0, 5000)]), (good, [(0, 5000)])])
    counting.take()
    assert good.read(0, 5000) == PAYLOAD
    assert counting.reads == []
    with pytest.raises(ChecksumError, match="damaged block of pages at offset 0"):
        bad.read(0, 5000)


def test_a_short_answer_of_the_storage_is_an_error() -> None:
    source, _ = checked(PAYLOAD)
    prefetch([(source, [(0, 5000)])], lambda ranges: [b"" for _ in ranges])
    assert source.read(0, 5000) == PAYLOAD

    class Short(BytesSource):
        def read(self, offset: int, length: int) -> bytes:
            return super().read(offset, length)[:-1]

    cut = CheckedSource(Short(sealed(PAYLOAD), "x.bundle"), 0, 5000, PAYLOAD[:4], "pages")
    with pytest.raises(FormatError, match="short read at offset 0: found 5019, expected 5020"):
        cut.read(0, 5000)


def test_ranges_are_plain_tuples() -> None:
    source = BytesSource(b"abc")
    assert read_each([Range(source, 1, 2), Range(source, 0, 1)]) == [b"bc", b"a"]
