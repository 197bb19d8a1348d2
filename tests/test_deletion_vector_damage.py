"""Damaged deletion vectors: what the checksum catches, and what is caught without it."""

from __future__ import annotations

import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from alcid import AlcidError, ChecksumError, FormatError
from alcid.formats.deletion_vector import DeletionVector, DeletionVectorFile, DeletionVectorRange
from alcid.testing import Damage, flips, truncations

MEGABYTE = 1 << 20
NARROW, WIDE = bytes.fromhex("5e43f2d0"), bytes.fromhex("d1d33964")
KINDS: tuple[Literal[32, 64], ...] = (32, 64)
SETS: dict[str, list[int]] = {
    "nothing": [],
    "array": [1, 5, 6, 70_000, 200_000],
    "runs": [*range(10, 40), *range(70_000, 70_100), 70_102],  # without offsets
    "runs of four containers": [(n << 16) + m for n in range(4) for m in range(9)],
    "bitset": list(range(0, 2 * 4097, 2)),
    "bitset and runs": [*range(0, 3 * 4097, 3), *range(65_536, 70_000)],
}
SAMPLES = {
    f"{name}, {bits} bits": DeletionVector(positions, bits=bits).to_bytes()
    for name, positions in SETS.items()
    for bits in KINDS
} | {
    "three keys": DeletionVector([5, 2**32 + 7, *range(2**32 + 70, 2**32 + 90), 3 << 32]).to_bytes()
}


def framed(body: bytes) -> bytes:
    """A body with its correct length and checksum."""
    return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def damaged(data: bytes) -> Iterator[Damage]:
    longer = Damage("a byte more", data + b"\0")
    return chain(flips(data), truncations(data), [longer])


def said(data: bytes) -> list[int]:
    """The positions in these bytes, read literally and without a check."""
    body = data[4:-4]
    if body[:4] == NARROW:
        return _said_by_bitmap(body, 4)[0]
    positions: list[int] = []
    (count,) = struct.unpack_from("<q", body, 4)
    at = 12
    for _ in range(count):
        (key,) = struct.unpack_from("<i", body, at)
        lows, at = _said_by_bitmap(body, at + 4)
        positions += [key << 32 | low for low in lows]
    return positions


def _said_by_bitmap(body: bytes, at: int) -> tuple[list[int], int]:
    cookie, more = struct.unpack_from("<HH", body, at)
    if cookie == 12347:
        count = more + 1
        flags = body[at + 4 : at + 4 + (count + 7) // 8]
        at += 4 + len(flags)
    else:
        (count,), flags = struct.unpack_from("<I", body, at + 4), bytes(8192)
        at += 8
    heads = [struct.unpack_from("<HH", body, at + 4 * n) for n in range(count)]
    at += 4 * count * (2 if cookie != 12347 or count >= 4 else 1)
    values: list[int] = []
    for number, (key, last) in enumerate(heads):
        if flags[number >> 3] >> (number & 7) & 1:
            (runs,) = struct.unpack_from("<H", body, at)
            for run in range(runs):
                start, length = struct.unpack_from("<HH", body, at + 2 + 4 * run)
                values += range(key << 16 | start, (key << 16 | start) + length + 1)
            at += 2 + 4 * runs
        elif last < 4096:
            lows = struct.unpack_from(f"<{last + 1}H", body, at)
            values += [key << 16 | low for low in lows]
            at += 2 * (last + 1)
        else:
            bits = np.frombuffer(body, np.uint8, 8192, at)
            present = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
            values += (present + (key << 16)).tolist()
            at += 8192
    return values, at


@pytest.mark.parametrize("name", SAMPLES)
def test_every_flip_and_truncation_is_seen(name: str) -> None:
    data = SAMPLES[name]
    assert list(DeletionVector.from_bytes(data)) == said(data)
    for damage in damaged(data):
        try:
            vector = DeletionVector.from_bytes(damage.data)
        except FormatError:
            continue
        pytest.fail(f"{damage.what} was read as {vector}")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_flip_behind_the_magic_is_seen_by_the_checksum(name: str) -> None:
    data = SAMPLES[name]
    for damage in islice(flips(data), 2 * 8, None):
        with pytest.raises(ChecksumError, match="bad checksum of a deletion vector at offset"):
            DeletionVector.from_bytes(damage.data)


def test_the_message_of_a_checksum() -> None:
    data = bytearray(DeletionVector([2, 3]).to_bytes())
    data[-1] ^= 1
    with pytest.raises(ChecksumError) as caught:
        DeletionVector.from_bytes(data, name="index-1")
    assert str(caught.value) == (
        "index-1: bad checksum of a deletion vector at offset 28:"
        " found c898f63c stored, expected c898f63d of the bytes"
    )


def check_consistent(data: bytes) -> None:
    """Refused, or read as exactly the positions in the bytes."""
    try:
        vector = DeletionVector.from_bytes(data)
    except FormatError:
        return
    positions = said(data)
    assert positions == sorted(set(positions))
    assert vector.to_numpy().tolist() == positions
    assert len(vector) == len(positions)
    if (vector.last or 0) < 1 << 40:  # every key below the last one is written
        again = vector.to_bytes()
        assert DeletionVector.from_bytes(again, len(positions)) == vector
        assert DeletionVector.from_bytes(again).to_bytes() == again


@pytest.mark.parametrize("name", SAMPLES)
def test_a_flip_with_a_right_checksum_is_refused_or_read_as_it_stands(name: str) -> None:
    body = SAMPLES[name][4:-4]
    step = 1 if len(body) < 1000 else 61  # bitsets look the same everywhere
    for damage in islice(flips(body), 0, None, step):
        try:
            check_consistent(framed(damage.data))
        except Exception as error:
            error.add_note(damage.what)
            raise


@given(st.data())
def test_bytes_changed_at_random_with_a_right_checksum(data: st.DataObject) -> None:
    body = bytearray(SAMPLES[data.draw(st.sampled_from(sorted(SAMPLES)))][4:-4])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(body) - 1, 100)))
        body[at] = data.draw(
            st.sampled_from([0, 1, 2, 15, 16, 127, 128, 255]) | st.integers(0, 255)
        )
    cut = data.draw(st.integers(0, 3))
    check_consistent(framed(bytes(body[: len(body) - cut])))


@given(st.sampled_from([NARROW, WIDE]), st.binary(max_size=80))
def test_any_bytes_behind_a_magic(magic: bytes, tail: bytes) -> None:
    check_consistent(framed(magic + tail))


# -- single fields, with a right checksum ----------------------------------------------------------

Container = tuple[int, int, bytes]  # key, cardinality, data


def u16(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}H", *values)


def plain(*containers: Container, count: int | None = None, shift: int = 0) -> bytes:
    """A bitmap without runs, possibly with another count or with shifted offsets."""
    number = len(containers) if count is None else count
    head = struct.pack("<II", 12346, number)
    head += b"".join(u16(key, cardinality - 1) for key, cardinality, _ in containers)
    at = len(head) + 4 * len(containers) + shift
    for _, _, data in containers:
        head += struct.pack("<I", at)
        at += len(data)
    return head + b"".join(data for _, _, data in containers)


def with_runs(*containers: Container, flags: int = 1) -> bytes:
    """A bitmap of at most three containers, of which those flagged are runs."""
    head = u16(12347, len(containers) - 1) + bytes([flags])
    head += b"".join(u16(key, cardinality - 1) for key, cardinality, _ in containers)
    return head + b"".join(data for _, _, data in containers)


def runs(*pairs: tuple[int, int]) -> bytes:
    return u16(len(pairs), *(value for pair in pairs for value in pair))


def narrow(bitmap: bytes) -> bytes:
    return framed(NARROW + bitmap)


def wide(*bitmaps: tuple[int, Sequence[int] | bytes], count: int | None = None) -> bytes:
    body = WIDE + struct.pack("<q", len(bitmaps) if count is None else count)
    for key, values in bitmaps:
        bitmap = values if isinstance(values, bytes) else BitMap(values).serialize()
        body += struct.pack("<i", key) + bitmap
    return framed(body)


HALF = np.packbits(np.arange(65536) % 2, bitorder="little").tobytes()
REFUSED = {
    "no body": (framed(b""), "truncated deletion vector at offset 0: found 8 bytes, expected 20"),
    "magic only": (framed(NARROW), "truncated deletion vector at offset 0: found 12 bytes"),
    "half a count": (framed(WIDE + bytes(4)), "truncated deletion vector at offset 0"),
    "unknown magic": (framed(NARROW[::-1] + bytes(8)), "bad magic at offset 4: found d0f2435e"),
    "count -1": (wide(count=-1), "bad count of bitmaps at offset 8: found -1, expected 0 to 0"),
    "lowest count": (wide(count=-(2**63)), "bad count of bitmaps at offset 8"),
    "count 2^31 - 1": (wide(count=2**31 - 1), "bad count of bitmaps at offset 8: found 2147483647"),
    "highest count": (wide((0, [1]), count=2**63 - 1), "bad count of bitmaps at offset 8"),
    "count beyond the bytes": (wide((0, []), count=2), "bad count of bitmaps at offset 8: found 2"),
    "no room for a second key": (wide((0, [*range(0, 20, 2)]), count=2), "truncated bitmap"),
    "no room for a second bitmap": (
        framed(wide((0, [*range(0, 20, 2)]), count=2)[4:-4] + bytes(11)),
        "truncated bitmap at offset 56: found 11 bytes, expected 12 at least",
    ),
    "key -1": (wide((-1, [1])), "bad key of a bitmap at offset 16: found -1, expected 0 to"),
    "lowest key": (wide((-(2**31), [1])), "bad key of a bitmap at offset 16: found -2147483648"),
    "highest key": (wide((2**31 - 1, [1])), "found 2147483647, expected 0 to 2147483646"),
    "key again": (
        wide((1, [1]), (1, [2])),
        "bad key of a bitmap at offset 38: found 1, expected 2",
    ),
    "key again, empty": (wide((0, []), (0, [])), "bad key of a bitmap at offset 28: found 0"),
    "keys descending": (wide((2, [1]), (1, [2])), "found 1, expected 3 to 2147483646"),
    "beyond the last position": (
        wide((2**31 - 2, [2**31 + 1])),
        "position beyond 64 bits at offset 8: found 9223372030412324865, expected",
    ),
    "negative for Java": (
        narrow(BitMap([2**31]).serialize()),
        "position beyond 32 bits at offset 8: found 2147483648, expected 2147483647 at most",
    ),
    "unknown cookie": (narrow(struct.pack("<II", 12345, 0)), "bad roaring bitmap"),
    "2^32 - 1 containers": (narrow(plain(count=2**32 - 1)), "bad roaring bitmap"),
    "65537 containers": (narrow(plain((0, 1, u16(1)), count=65537)), "bad roaring bitmap"),
    "65536 containers": (narrow(plain((0, 1, u16(1)), count=65536)), "bad roaring bitmap"),
    "65536 run containers": (narrow(u16(12347, 65535) + b"\xff" * 60), "bad roaring bitmap"),
    "container cut off": (narrow(plain((0, 3, u16(1, 2)))), "bad roaring bitmap"),
    "array not in order": (narrow(plain((0, 3, u16(3, 2, 1)))), "bad roaring bitmap"),
    "array that repeats": (narrow(plain((0, 2, u16(3, 3)))), "bad roaring bitmap"),
    "container keys descending": (
        narrow(plain((2, 1, u16(1)), (1, 1, u16(2)))),
        "bad roaring bitmap",
    ),
    "container key again": (
        narrow(plain((1, 1, u16(1)), (1, 1, u16(2)))),
        "bad roaring bitmap",
    ),
    "offsets beside the containers": (
        narrow(plain((0, 1, u16(1)), shift=2)),
        "offsets or counts that do not fit",
    ),
    "bitset of another cardinality": (narrow(plain((0, 30_000, HALF))), "bad roaring bitmap"),
    "bitset cut off": (narrow(plain((0, 32_768, HALF[:-1]))), "bad roaring bitmap"),
    "no runs": (narrow(with_runs((0, 1, runs()))), "bad roaring bitmap"),
    "runs that overlap": (narrow(with_runs((0, 10, runs((0, 5), (3, 5))))), "bad roaring bitmap"),
    "runs descending": (narrow(with_runs((0, 4, runs((9, 1), (3, 1))))), "bad roaring bitmap"),
    "runs that touch": (narrow(with_runs((0, 6, runs((0, 2), (3, 2))))), "bad roaring bitmap"),
    "run beyond its container": (
        narrow(with_runs((0, 11, runs((65530, 10))))),
        "bad roaring bitmap",
    ),
    "65535 runs": (narrow(with_runs((0, 4, u16(65535, 1, 1)))), "bad roaring bitmap"),
    "runs of another cardinality": (narrow(with_runs((0, 3, runs((5, 1))))), "bad roaring bitmap"),
    "damage in the second bitmap": (
        wide((0, [1]), (1, plain((0, 2, u16(3, 3))))),
        ") at offset 42",
    ),
}
ACCEPTED = {
    "bytes behind": (framed(SAMPLES["array, 32 bits"][4:-4] + b"zzzz"), SETS["array"]),
    "fewer bitmaps counted than there are": (wide((0, [1]), (1, [2]), count=1), [1]),
    "keys far apart": (wide((7, [1]), (2**31 - 2, [3])), [7 << 32 | 1, (2**31 - 2) << 32 | 3]),
    "the last position": (wide((2**31 - 2, [2**31])), [(2**31 - 2) << 32 | 2**31]),
    "empty bitmap far up": (wide((5, [1]), (2**31 - 2, [])), [5 << 32 | 1]),
    "whole of a container": (narrow(with_runs((0, 65536, runs((0, 65535))))), list(range(65536))),
    "three containers, one of runs": (
        narrow(with_runs((0, 1, u16(9)), (1, 2, runs((5, 1))), (2, 1, u16(7)), flags=2)),
        [9, 65541, 65542, 131079],
    ),
    "bitset": (narrow(plain((0, 32_768, HALF))), list(range(1, 65536, 2))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_field_is_named(name: str) -> None:
    data, message = REFUSED[name]
    started = time.perf_counter()
    with pytest.raises(FormatError) as caught:
        DeletionVector.from_bytes(data, name="v")
    assert time.perf_counter() - started < 1
    assert str(caught.value).startswith("v: ")
    assert message in str(caught.value)
    assert not isinstance(caught.value, ChecksumError)


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_unusual_and_right_is_read(name: str) -> None:
    data, positions = ACCEPTED[name]
    assert said(data) == positions
    assert DeletionVector.from_bytes(data, len(positions)).to_numpy().tolist() == positions


@pytest.mark.parametrize("cardinality", [0, 1, 3, -2, 2**32 + 2])
def test_another_cardinality_is_refused(cardinality: int) -> None:
    for bits in KINDS:
        data = DeletionVector([2, 3]).to_bytes(bits)
        with pytest.raises(FormatError) as caught:
            DeletionVector.from_bytes(data, cardinality, name="v")
        assert str(caught.value) == (
            "v: deletion vector of another cardinality at offset 0: "
            f"found 2, expected {cardinality}"
        )


PROCESS = """
import resource
import sys
from tests.test_deletion_vector_damage import ACCEPTED, REFUSED, SAMPLES, use

for data in SAMPLES.values():
    use(data)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for data, _ in [*REFUSED.values(), *ACCEPTED.values()]:
    use(data)
unit = 1 if sys.platform == "darwin" else 1024
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit)
"""


def use(data: bytes) -> None:
    """Do everything possible with a vector, if it is one."""
    try:
        vector = DeletionVector.from_bytes(data)
        vector.contains(np.arange(100_000, step=7))
        vector.contains(np.array([0, 2**62]))
        union = vector | DeletionVector([1, 2**61])
        assert len(union.to_numpy()) == len(list(union))
        assert str(union), hash(union)
        union.to_bytes()
    except AlcidError:
        pass


def test_hostile_vectors_take_little_memory() -> None:
    # In a separate process: tracemalloc does not see the memory of roaring bitmaps.
    command = [sys.executable, "-c", PROCESS]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(ended.stdout) < 16 * MEGABYTE


# -- files -----------------------------------------------------------------------------------------

WRITTEN = DeletionVectorFile.write(
    {
        "a.parquet": DeletionVector(SETS["array"]),
        "b.parquet": DeletionVector(SETS["runs"], bits=64),
        "c.parquet": DeletionVector([]),
        "d.parquet": DeletionVector([2**32], bits=64),
    }
)


def test_every_flip_and_truncation_of_a_file_is_seen() -> None:
    for damage in chain(flips(WRITTEN.data), truncations(WRITTEN.data)):
        try:
            vectors = DeletionVectorFile.from_bytes(damage.data).read_all(WRITTEN.ranges)
        except FormatError:
            continue
        pytest.fail(f"{damage.what} was read as {vectors}")


def test_a_scan_sees_every_flip_and_every_truncation_within_a_vector() -> None:
    starts = [vector_range.offset for vector_range in WRITTEN.ranges]
    for damage in chain(flips(WRITTEN.data), truncations(WRITTEN.data)):
        try:
            vectors = list(DeletionVectorFile.from_bytes(damage.data).scan())
        except FormatError:
            continue
        assert len(damage.data) in starts, f"{damage.what} was read as {vectors}"
        assert len(vectors) == starts.index(len(damage.data))


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("wrong_by", [-9, -8, -1, 1, 8])
@pytest.mark.parametrize("field", ["offset", "length", "cardinality"])
def test_a_wrong_range_is_seen(number: int, wrong_by: int, field: str) -> None:
    vector_range = WRITTEN.ranges[number]
    values = {
        "offset": vector_range.offset,
        "length": vector_range.length,
        "cardinality": vector_range.cardinality or 0,
    }
    values[field] += wrong_by
    file = DeletionVectorFile.from_bytes(WRITTEN.data)
    with pytest.raises(FormatError) as caught:
        file.read(DeletionVectorRange(vector_range.data_file, **values))
    assert f"(data file {vector_range.data_file!r})" in str(caught.value)
