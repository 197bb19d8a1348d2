from __future__ import annotations

import struct

import datasketches
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import AlcidError, FormatError
from alcid._arrays import UInt64Array
from alcid.formats.source import BytesSource, Section
from alcid.formats.theta import compact as theta_bytes
from alcid.formats.theta.compact import (
    MAX_THETA,
    CompactTheta,
    decode,
    encode,
)
from alcid.testing import flips, truncations

LOW = 0x0123456789ABCDEF  # a theta


def compact(theta: int, *hashes: int) -> CompactTheta:
    return CompactTheta(theta, np.array(hashes, np.uint64))


def read(data: bytes) -> CompactTheta:
    return decode(Section(BytesSource(data)))


def content(sketch: CompactTheta) -> tuple[int, list[int]]:
    return sketch.theta, sketch.hashes.tolist()


def by_peer(sketch: CompactTheta, *, compress: bool) -> bytes:
    """The bytes that datasketches writes for the same hashes."""
    if sketch.theta == MAX_THETA and not len(sketch.hashes):  # it would have the seed hash 0
        peer = datasketches.update_theta_sketch().compact()
    else:
        peer = datasketches.compact_theta_sketch.deserialize(encode(sketch))
    data: bytes = peer.serialize(compress)
    return data


SKETCHES = {
    "empty": compact(MAX_THETA),
    "single": compact(MAX_THETA, 5),
    "two": compact(MAX_THETA, 5, 258),
    "estimating, none kept": compact(LOW),
    "estimating, one kept": compact(LOW, 5),
    "estimating, nine kept": compact(LOW, *range(7, 1 << 40, 1 << 37), LOW - 1),
}
JAVA = {
    "empty": "01030300001e0000",
    "single": "01030300003acc93 0500000000000000",
    "two": "02030300001acc93 020000000000803f 0500000000000000 0201000000000000",
    "estimating, none kept": "03030300001acc93 000000000000803f efcdab8967452301",
    "estimating, one kept": "03030300001acc93 010000000000803f efcdab8967452301 0500000000000000",
}
PEER = {
    "empty": "01030300001ecc93",
    "single": "01030300001acc93 0500000000000000",
    "two": "02030300001acc93 0200000000000000 0500000000000000 0201000000000000",
    "estimating, one kept": "03030300001acc93 0100000000000000 efcdab8967452301 0500000000000000",
}
COMPRESSED = {
    "two": "0104030801 1acc93 02 05fd",
    "estimating, one kept": "0204030301 1acc93 efcdab8967452301 01 a0",
}


@pytest.mark.parametrize("name", JAVA)
def test_written_and_read_as_java_writes(name: str) -> None:
    data = bytes.fromhex(JAVA[name])
    assert encode(SKETCHES[name]) == data
    assert content(read(data)) == content(SKETCHES[name])


@pytest.mark.parametrize("name", PEER)
def test_the_other_form_of_version_3_is_read(name: str) -> None:
    data = bytes.fromhex(PEER[name])
    assert by_peer(SKETCHES[name], compress=False) == data
    assert content(read(data)) == content(SKETCHES[name])


@pytest.mark.parametrize("name", COMPRESSED)
def test_version_4_is_read(name: str) -> None:
    data = bytes.fromhex(COMPRESSED[name])
    assert by_peer(SKETCHES[name], compress=True) == data
    assert content(read(data)) == content(SKETCHES[name])


@pytest.mark.parametrize("bits", range(1, 64))
def test_version_4_with_entries_of_any_width(bits: int) -> None:
    largest = (1 << bits) - 1
    for count in (2, 7, 8, 9, 17):
        if count * largest >= MAX_THETA:
            differences = [1] * (count - 1) + [largest - count]
        else:
            differences = [largest - number % min(largest, 3) for number in range(count)]
        sketch = compact(MAX_THETA, *np.cumsum(np.array(differences, np.uint64)).tolist())
        data = by_peer(sketch, compress=True)
        assert data[1] == 4
        assert content(read(data)) == content(sketch)


@given(st.sets(st.integers(1, MAX_THETA - 1), min_size=2, max_size=300), st.booleans())
def test_version_4_gives_what_was_compressed(hashes: set[int], estimating: bool) -> None:
    ordered = sorted(hashes)
    sketch = compact(ordered.pop() if estimating else MAX_THETA, *ordered)
    data = by_peer(sketch, compress=True)
    assert data[1] == (3 if len(ordered) == 1 and not estimating else 4)
    assert content(read(data)) == content(sketch)


def test_version_4_of_more_than_one_block() -> None:
    hashes = np.cumsum(np.random.default_rng(3).integers(1, 1 << 40, 150_000, np.uint64))
    sketch = CompactTheta(MAX_THETA, hashes)
    assert content(read(by_peer(sketch, compress=True))) == content(sketch)


@pytest.mark.parametrize("flag", [0x0A, 0x1A], ids=["unordered", "ordered"])
def test_unordered_hashes_are_sorted_unless_they_are_said_to_be_ordered(flag: int) -> None:
    data = bytearray(encode(compact(MAX_THETA, 5, 6, 7)))
    data[5] = flag
    data[16:] = struct.pack("<3Q", 6, 7, 5)
    if flag == 0x0A:
        assert content(read(bytes(data))) == (MAX_THETA, [5, 6, 7])
        return
    with pytest.raises(FormatError, match="bad hash at offset 32: found 5, expected ascending"):
        read(bytes(data))


def test_the_unused_fields_of_version_3_are_not_looked_at() -> None:
    data = bytearray(encode(SKETCHES["estimating, nine kept"]))
    data[3:5] = b"\xff\xff"
    data[12:16] = struct.pack("<f", 0.5)
    assert content(read(bytes(data))) == content(SKETCHES["estimating, nine kept"])


def test_one_hash_after_two_longs_is_read() -> None:
    data = bytes.fromhex("02030300001acc93 010000000000803f 0500000000000000")
    assert content(read(data)) == (MAX_THETA, [5])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "truncated at offset 0: found 0 bytes, expected 8"),
        ("01030300001e00", "truncated at offset 0: found 7 bytes, expected 8"),
        ("01030200001e0000", "not a compact theta sketch at offset 2: found family 2, expected 3"),
        ("01020300001e0000", "unknown theta sketch version at offset 1: found 2, expected 3 or 4"),
        ("01030300001f0000", "big-endian theta sketch at offset 5: found flags 0x1f"),
        ("0103030000160000", "bad theta sketch flags at offset 5: found 0x16, expected compact"),
        ("01030300001c0000", "bad theta sketch flags at offset 5: found 0x1c, expected compact"),
        ("01030300005e0000", "bad theta sketch flags at offset 5: found 0x5e, expected compact"),
        ("01030300003e0000", "bad theta sketch flags at offset 5: found empty and single"),
        ("01030300001ecc92", "hashes of another seed at offset 6: found 0x92cc, expected 0x93cc"),
        ("01030300001a00000500000000000000", "hashes of another seed at offset 6: found 0x0000"),
        ("00030300001e0000", "bad number of longs at offset 0: found 0, expected 1"),
        (
            "02030300001e0000000000000000803f",
            "bad number of longs at offset 0: found 2, expected 1",
        ),
        (
            "02030300003acc93010000000000803f0500000000000000",
            "longs at offset 0: found 2, expected 1",
        ),
        ("04030300001acc93", "bad number of longs at offset 0: found 4, expected 1 to 3"),
        ("01030300001e000000", "of another length at offset 8: found 9 bytes, expected 8"),
        ("01030300001acc93", "of another length at offset 16: found 8 bytes, expected 16"),
        ("02030300001acc93", "truncated at offset 8: found 0 bytes, expected 4"),
        ("02030300001acc93ffffffff0000803f", "offset 34359738376: found 16 bytes, expected"),
        ("03030300001acc93000000000000803f0000000000000000", "bad theta at offset 16: found 0"),
        (
            "03030300001acc93000000000000803fffffffffffffffff",
            "bad theta at offset 16: found 1844674",
        ),
        ("01030300003acc930000000000000000", "bad hash at offset 8: found 0, expected ascending"),
        ("01030300003acc93ffffffffffffff7f", "bad hash at offset 8: found 9223372036854775807"),
        ("01030300003acc93ffffffffffffffff", "bad hash at offset 8: found 1844674407"),
        (
            "02030300000acc93 03000000 0000803f 0700000000000000 0500000000000000 0700000000000000",
            "bad hash at offset 32: found 7, expected ascending",
        ),
        (
            "02030300000acc93 03000000 0000803f 0700000000000000 0500000000000000 0000000000000000",
            "bad hash at offset 32: found 0",
        ),
        (
            "03030300001acc93 01000000 0000803f 0500000000000000 0500000000000000",
            "bad hash at offset 24: found 5, expected ascending, above 0 and below 5",
        ),
        ("0104030801 12cc93 02 05fd", "bad theta sketch flags at offset 5: found 0x12"),
        (
            "0104030801 0acc93 02 05fd",
            "bad flags of version 4 at offset 5: found 0x0a, expected 0x1a",
        ),
        (
            "0104030801 1ecc93 02 05fd",
            "bad flags of version 4 at offset 5: found 0x1e, expected 0x1a",
        ),
        (
            "0104030801 3acc93 02 05fd",
            "bad flags of version 4 at offset 5: found 0x3a, expected 0x1a",
        ),
        ("0304030801 1acc93 02 05fd", "bad number of longs at offset 0: found 3, expected 1 or 2"),
        ("0104030001 1acc93 02 05fd", "bad number of bits at offset 3: found 0, expected 1 to 63"),
        ("0104034001 1acc93 02 05fd", "bad number of bits at offset 3: found 64, expected 1 to 63"),
        ("0104030800 1acc93 02 05fd", "bytes of the count at offset 4: found 0, expected 1 to 4"),
        ("0104030805 1acc93 02 05fd", "bytes of the count at offset 4: found 5, expected 1 to 4"),
        ("0104030801 1acc93 00", "bad count at offset 8: found 0, expected 1 to 2097152"),
        ("0104030104 1acc93 ffffffff", "bad count at offset 8: found 4294967295, expected 1 to"),
        ("0104030801 1acc93 02 05", "of another length at offset 11: found 10 bytes, expected 11"),
        (
            "0104030801 1acc93 02 05fdfd",
            "of another length at offset 11: found 12 bytes, expected 11",
        ),
        ("0104030801 1acc93 02 0500", "bad hash at offset 10: found 5, expected ascending"),
        ("0204030801 1acc93 0700000000000000 02 0502", "bad hash at offset 18: found 7, expected"),
        ("0104030301 1acc93 01 b0", "bits after the last entry at offset 9: found not zero"),
    ],
)
def test_what_no_writer_writes_is_refused(data: str, message: str) -> None:
    with pytest.raises(FormatError, match=message) as raised:
        read(bytes.fromhex(data))
    assert str(raised.value).startswith("<bytes>: ")


def test_entries_of_version_4_that_leave_63_bits_are_refused() -> None:
    head = bytes.fromhex("0104033f01 1acc93 03")
    data = np.packbits(np.array(([1] * 62 + [0]) * 3 + [0] * 3, np.uint8)).tobytes()
    with pytest.raises(FormatError, match="bad hash at offset 16: found 18446744073709551612"):
        read(head + data)


def test_an_early_bad_entry_of_version_4_is_found_before_the_rest_is_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unpacked = []
    unpack = theta_bytes._unpack

    def counted(packed: bytes, bits: int, first: int, count: int) -> UInt64Array:
        unpacked.append(count)
        return unpack(packed, bits, first, count)

    monkeypatch.setattr(theta_bytes, "_unpack", counted)
    with pytest.raises(FormatError, match="bad hash at offset 12: found 0"):
        read(bytes.fromhex("0104030104 1acc93 00002000") + bytes(1 << 18))  # 2^21 entries
    assert unpacked == [1 << 16]


SAMPLES = {
    f"{name}, {kind}": data
    for name, sketch in SKETCHES.items()
    for kind, data in {
        "java": encode(sketch),
        "peer": by_peer(sketch, compress=False),
        "compressed": by_peer(sketch, compress=True),
    }.items()
}


@pytest.mark.parametrize("name", SAMPLES)
def test_damage_is_refused_or_gives_a_sound_sketch(name: str) -> None:
    for damage in [*flips(SAMPLES[name]), *truncations(SAMPLES[name])]:
        try:
            sketch = read(damage.data)
        except AlcidError:
            continue
        hashes = sketch.hashes.tolist()
        assert hashes == sorted(set(hashes)), damage.what
        assert not hashes or 0 < hashes[0] <= hashes[-1] < sketch.theta <= MAX_THETA, damage.what


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_cut_off_or_goes_on_is_refused(name: str) -> None:
    for data in [*(damage.data for damage in truncations(SAMPLES[name])), SAMPLES[name] + b"\0"]:
        with pytest.raises(FormatError):
            read(data)


def test_the_least_hash_is_1() -> None:
    assert content(read(encode(compact(MAX_THETA, 1, 2)))) == (MAX_THETA, [1, 2])
    with pytest.raises(FormatError) as raised:
        read(encode(compact(MAX_THETA, 0, 2)))
    assert str(raised.value) == (
        "<bytes>: bad hash at offset 16: found 0, "
        f"expected ascending, above 0 and below {MAX_THETA}"
    )
