"""Deletion vectors whose bytes were written or read wrongly: checksums, kinds, keys, lengths."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from pyroaring import BitMap

from alcid import (
    ChecksumError,
    DeletionVector,
    DeletionVectorFile,
    FormatError,
)
from alcid.formats.deletion_vector.file import DeletionVectorRange
from tests.golden_files import Golden, golden_files

# The rows 2 and 3, in the bytes of Iceberg's Java.
JAVA = bytes.fromhex(
    "00000024 d1d33964 01000000 00000000 00000000"
    "3a300000 01000000 00000100 10000000 02000300 7a813847"
)
MAGIC_64 = bytes.fromhex("d1d33964")


def framed(body: bytes) -> bytes:
    """A body with its length and its checksum."""
    return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def wide(*bitmaps: tuple[int, bytes]) -> bytes:
    """A vector of 64 bits with these keys and bitmaps, and a correct checksum."""
    body = b"".join(struct.pack("<i", key) + bitmap for key, bitmap in bitmaps)
    return framed(MAGIC_64 + struct.pack("<q", len(bitmaps)) + body)


def error_of(data: bytes, cardinality: int | None = None) -> str:
    """The error for a vector."""
    with pytest.raises(FormatError) as raised:
        DeletionVector.from_bytes(data, cardinality, name="v")
    return str(raised.value)


def golden_vector(name: str) -> Golden:
    """An index file of vectors that Paimon's Java wrote."""
    (file,) = (file for file in golden_files("deletion_vector_file") if file.json["name"] == name)
    return file


def test_velox_18296_the_checksum_is_that_of_other_writers() -> None:
    """A checksum without the last complement passed all round trips, but no file from Spark."""
    assert DeletionVector([2, 3], bits=64).to_bytes() == JAVA
    assert list(DeletionVector.from_bytes(JAVA)) == [2, 3]
    not_complemented = JAVA[:-4] + struct.pack(">I", zlib.crc32(JAVA[4:-4]) ^ 0xFFFFFFFF)
    with pytest.raises(ChecksumError) as raised:
        DeletionVector.from_bytes(not_complemented, name="v")
    assert str(raised.value) == (
        "v: bad checksum of a deletion vector at offset 40: found 857ec7b8 stored, expected"
        " 7a813847 of the bytes"
    )


@pytest.mark.parametrize("bits", [32, 64])
def test_duckdb_iceberg_336_every_bit_is_under_the_checksum(bits: int) -> None:
    """The checksum was not checked, so a flipped bit deleted another row."""
    data = DeletionVector([2, 3], bits=64 if bits == 64 else 32).to_bytes()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(FormatError):
            DeletionVector.from_bytes(bytes(flipped))


ROWS = BitMap([7]).serialize()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ((0, 0), "bad key of a bitmap at offset 38: found 0, expected 1 to 2147483646"),
        ((1, 0), "bad key of a bitmap at offset 38: found 0, expected 2 to 2147483646"),
        ((-1, 0), "bad key of a bitmap at offset 16: found -1, expected 0 to 2147483646"),
        ((0, 2**31 - 1), "found 2147483647, expected 1 to 2147483646"),
    ],
    ids=["twice", "descending", "negative", "too high"],
)
def test_iceberg_rust_2866_keys_twice_or_out_of_order(keys: tuple[int, int], message: str) -> None:
    """A decoder of bitmaps accepted duplicate keys and kept the last."""
    assert message in error_of(wide(*((key, ROWS) for key in keys)))
    assert list(DeletionVector.from_bytes(wide((0, ROWS), (1, ROWS)))) == [7, 2**32 + 7]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "v: truncated deletion vector at offset 0: found 0 bytes, expected 20 at least"),
        (b"\xff\xff\xff\xff", "found 4 bytes, expected 20 at least"),
        (b"\xff" * 20, "bad length of a deletion vector at offset 0: found -1, expected 12"),
        (framed(MAGIC_64 + struct.pack("<q", -1)), "bad count of bitmaps at offset 8: found -1"),
        (framed(MAGIC_64 + struct.pack("<q", 2**62)), f"at offset 8: found {2**62}, expected 0"),
    ],
    ids=["nothing", "length only", "minus one", "count -1", "count"],
)
def test_iceberg_rust_2867_lengths_that_cannot_be(data: bytes, message: str) -> None:
    """A negative length, or too few bytes, ended the process."""
    assert message in error_of(data)


def test_iceberg_rust_2867_every_beginning_of_a_vector() -> None:
    """A file that was cut off ended the process, too."""
    for length in range(len(JAVA)):
        error_of(JAVA[:length])
    error_of(JAVA + b"\0")


@pytest.mark.parametrize("magic", ["00000000", "6439d3d1", "d0f2435e", "3a300000"])
def test_iceberg_rust_2416_a_magic_that_is_none(magic: str) -> None:
    """The content was read whatever the magic was: here zeros, or the reversed bytes of a magic."""
    body = bytes.fromhex(magic) + JAVA[8:-4]
    assert error_of(framed(body)) == (
        f"v: not a deletion vector: bad magic at offset 4: found {magic}, expected 5e43f2d0 or"
        " d1d33964"
    )


@pytest.mark.parametrize("name", ["file_many_32", "file_many_64", "file_mixed"])
def test_paimon_rust_785_what_a_range_of_each_kind_counts(name: str) -> None:
    """For 64 bits, the magic is little-endian, and the length is not that of the whole vector."""
    golden = golden_vector(name)
    file = DeletionVectorFile.from_bytes(golden.data)
    vectors = {}
    for each_vector in golden.json["vectors"]:
        vector_range = DeletionVectorRange(
            each_vector["data_file"],
            each_vector["offset"],
            each_vector["length"],
            each_vector["cardinality"],
        )
        vectors[vector_range.data_file] = vector = file.read(vector_range)
        assert (vector.bits, vector.cardinality) == (
            each_vector["bits"],
            each_vector["cardinality"],
        )
    written = DeletionVectorFile.write(vectors)
    assert written.data == golden.data
    assert [(vector_range.offset, vector_range.length) for vector_range in written.ranges] == [
        (vector["offset"], vector["length"]) for vector in golden.json["vectors"]
    ]


@pytest.mark.parametrize(
    ("bits", "length", "says"),
    [
        (32, 22, "found 22, expected 30 with 32 bits"),
        (64, 42, "found 34, expected 26 with 64 bits"),
    ],
)
def test_paimon_3313_a_length_of_the_other_meaning(bits: int, length: int, says: str) -> None:
    """A reader that took the length for that of the whole vector read eight bytes too few."""
    vectors = {"a": DeletionVector([1], bits=64 if bits == 64 else 32)}
    written = DeletionVectorFile.write(vectors | {"b": vectors["a"]})
    (vector_range, _) = written.ranges
    assert (vector_range.offset, vector_range.length) == (1, length)
    file = DeletionVectorFile.from_bytes(written.data, name="index-0")
    other = length + 8 if bits == 32 else length - 8
    with pytest.raises(FormatError) as raised:
        file.read(DeletionVectorRange("a", 1, other))
    assert str(raised.value) == (
        "index-0: bad length of a deletion vector (data file 'a') at offset 1:"
        f" {says}, by its range"
    )


@pytest.mark.parametrize(
    ("bitmap", "message"),
    [
        (BitMap([7, 9]).serialize()[:-2], "(Could not deserialize bitmap) at offset 20"),
        (b"\0" * 12, "(Could not deserialize bitmap) at offset 20"),
        (struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 9, 7), "not strictly increasing) at offset"),
        (struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 7, 7), "not strictly increasing) at offset"),
        (struct.pack("<IIHHIHH", 12346, 1, 0, 1, 99, 7, 9), "that do not fit the containers"),
        (struct.pack("<HHBHHHHH", 12347, 0, 1, 0, 1, 1, 65535, 1), "run start + length too large"),
    ],
    ids=["cut off", "no cookie", "descending", "twice", "offset", "run beyond"],
)
def test_altinity_clickhouse_2119_bitmaps_are_checked_before_use(
    bitmap: bytes, message: str
) -> None:
    """Bitmaps of a file were used without a check of their content."""
    problem = error_of(wide((0, bitmap)))
    assert problem.startswith("v: bad roaring bitmap ")
    assert message in problem


def test_starrocks_72249_a_flipped_bit_in_an_index_file_of_paimon(tmp_path: Path) -> None:
    """The checksum of vectors of 64 bits was skipped."""
    golden = golden_vector("file_many_64")
    (first, *_) = golden.json["vectors"]
    data = bytearray(golden.data)
    data[first["offset"] + first["length"] - 5] ^= 1
    path = tmp_path / "index-0"
    path.write_bytes(data)
    vector_range = DeletionVectorRange(first["data_file"], first["offset"], first["length"])
    with DeletionVectorFile.open(path) as file, pytest.raises(ChecksumError, match="index-0: bad"):
        file.read(vector_range)


def test_datafusion_comet_5365_another_number_of_rows() -> None:
    """Nobody checked that a vector has as many rows as the table says."""
    assert list(DeletionVector.from_bytes(JAVA, 2)) == [2, 3]
    for cardinality in (0, 1, 3):
        assert error_of(JAVA, cardinality) == (
            f"v: deletion vector of another cardinality at offset 0: found 2, "
            f"expected {cardinality}"
        )
