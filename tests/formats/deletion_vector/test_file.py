"""Index files of deletion vectors: bytes of the reference, ranges, reads and rolling."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import AlcidError, FormatError, LimitError
from alcid.formats.deletion_vector import (
    DeletionVector,
    DeletionVectorFile,
    DeletionVectorRange,
    WrittenVectors,
)
from alcid.formats.deletion_vector import file as deletion_vector_writer
from alcid.formats.deletion_vector.file import vector_places
from alcid.formats.source import BytesSource, FileSource, Section
from alcid.testing import CountingSource

# Two vectors written by Paimon: {2, 3}, then {1}.
FILE_32 = bytes.fromhex(
    "01"
    "00000018 5e43f2d0 3a300000 01000000 00000100 10000000 02000300 c898f63d"
    "00000016 5e43f2d0 3a300000 01000000 00000000 10000000 0100 fa2b5192"
)
FILE_64 = bytes.fromhex(
    "01"
    "00000024 d1d33964 01000000 00000000 00000000"
    "3a300000 01000000 00000100 10000000 02000300 7a813847"
    "00000022 d1d33964 01000000 00000000 00000000"
    "3a300000 01000000 00000000 10000000 0100 eebd85f4"
)
RANGES_32 = (DeletionVectorRange("a", 1, 24, 2), DeletionVectorRange("b", 33, 22, 1))
RANGES_64 = (DeletionVectorRange("a", 1, 44, 2), DeletionVectorRange("b", 45, 42, 1))
VECTORS = {"a": DeletionVector([2, 3]), "b": DeletionVector([1])}
FILES: list[tuple[Literal[32, 64], bytes, tuple[DeletionVectorRange, ...]]] = [
    (32, FILE_32, RANGES_32),
    (64, FILE_64, RANGES_64),
]


@pytest.mark.parametrize(("bits", "data", "ranges"), FILES)
def test_bytes_and_ranges_are_those_of_paimon(
    bits: Literal[32, 64], data: bytes, ranges: tuple[DeletionVectorRange, ...]
) -> None:
    assert DeletionVectorFile.write(VECTORS, bits=bits) == WrittenVectors(data, ranges)
    file = DeletionVectorFile.from_bytes(data)
    assert [list(file.read(vector_range)) for vector_range in ranges] == [[2, 3], [1]]
    assert file.read_all(ranges) == VECTORS
    assert [file.read(vector_range).bits for vector_range in ranges] == [bits, bits]
    scanned = list(file.scan())
    assert [vector for _, vector in scanned] == list(VECTORS.values())
    assert [vector_range for vector_range, _ in scanned] == [
        DeletionVectorRange("", vector_range.offset, vector_range.length, vector_range.cardinality)
        for vector_range in ranges
    ]


def test_a_cardinality_may_be_unknown() -> None:
    file = DeletionVectorFile.from_bytes(FILE_32)
    assert list(file.read(DeletionVectorRange("a", 1, 24))) == [2, 3]


def test_each_vector_keeps_its_kind_unless_one_is_asked_for() -> None:
    vectors = {
        "a": DeletionVector([1]),
        "b": DeletionVector([1], bits=64),
        "c": DeletionVector([2, 2**32]),
    }
    written = DeletionVectorFile.write(vectors)
    read = DeletionVectorFile.from_bytes(written.data).read_all(written.ranges)
    assert [read[name].bits for name in "abc"] == [32, 64, 64]
    assert read == vectors
    written = DeletionVectorFile.write(vectors, bits=64)
    read = DeletionVectorFile.from_bytes(written.data).read_all(written.ranges)
    assert [read[name].bits for name in "abc"] == [64, 64, 64]
    with pytest.raises(LimitError, match="position 4294967296 is beyond 32 bits"):
        DeletionVectorFile.write(vectors, bits=32)


def test_a_file_without_vectors_is_its_version() -> None:
    assert DeletionVectorFile.write({}) == WrittenVectors(b"\1", ())
    file = DeletionVectorFile.from_bytes(b"\1")
    assert list(file.scan()) == []
    assert file.read_all([]) == {}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x: truncated at offset 0: found 0 bytes, expected 1"),
        (b"\0", "x: unknown deletion vector file version at offset 0: found 0, expected 1"),
        (
            b"\2" + FILE_32[1:],
            "x: unknown deletion vector file version at offset 0: found 2, expected 1",
        ),
    ],
    ids=["empty", "0", "2"],
)
def test_another_version_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        DeletionVectorFile.from_bytes(data, name="x")
    assert str(caught.value) == message


# -- ranges that do not fit ------------------------------------------------------------------------

OUTSIDE = "range outside of the vectors (data file 'f') at offset"
LENGTH = "bad length of a deletion vector (data file 'f') at offset"
MISFITS = [
    (FILE_32, 0, 24, f"{OUTSIDE} 0: found 24 bytes, expected 12 at least, from 1 to 63"),
    (FILE_32, -1, 24, f"{OUTSIDE} -1: found 24 bytes"),
    (FILE_32, 1, -24, f"{OUTSIDE} 1: found -24 bytes"),
    (FILE_32, 1, 11, f"{OUTSIDE} 1: found 11 bytes"),
    (FILE_32, 64, 22, f"{OUTSIDE} 64: found 22 bytes"),
    (FILE_32, 33, 31, f"{OUTSIDE} 33: found 31 bytes"),
    (FILE_32, 2**40, 2**40, f"{OUTSIDE} 1099511627776: found 1099511627776 bytes"),
    (FILE_32, 1, 25, f"{LENGTH} 1: found 24, expected 25, or 17 with 64 bits"),
    (FILE_32, 1, 32, f"{LENGTH} 1: found 24, expected 32 with 32 bits"),  # as if of 64 bits
    (FILE_64, 1, 36, f"{LENGTH} 1: found 36, expected 28 with 64 bits"),  # as if of 32 bits
    (FILE_64, 1, 52, f"{LENGTH} 1: found 36, expected 52, or 44 with 64 bits"),
    (FILE_32, 33, 23, f"{LENGTH} 33: found 22, expected 23, or 15 with 64 bits"),
    (FILE_32, 2, 24, f"{LENGTH} 2: found 6238, expected 24, or 16 with 64 bits"),
    (FILE_32[:-1], 33, 22, "part outside of its section (data file 'f') at offset 33: found 30"),
    (b"\1" + bytes(20), 1, 12, f"{LENGTH} 1: found 0, expected 12, or 4 with 64 bits"),
    (
        b"\1" + bytes.fromhex("0000000c") + bytes(16),
        1,
        12,
        "not a deletion vector: bad magic (data file 'f') at offset 5: found 00000000, expected",
    ),
    (
        FILE_32[:-1] + b"\0",
        33,
        22,
        "bad checksum of a deletion vector (data file 'f') at offset 59: found fa2b5100 stored,",
    ),
]


@pytest.mark.parametrize(
    ("data", "offset", "length", "message"), MISFITS, ids=[str(n) for n in range(len(MISFITS))]
)
def test_a_range_that_does_not_fit_is_refused(
    data: bytes, offset: int, length: int, message: str
) -> None:
    file = DeletionVectorFile.from_bytes(data, name="index-1")
    with pytest.raises(FormatError) as caught:
        file.read(DeletionVectorRange("f", offset, length))
    assert str(caught.value).startswith(f"index-1: {message}")


def test_another_cardinality_is_refused() -> None:
    file = DeletionVectorFile.from_bytes(FILE_32, name="index-1")
    with pytest.raises(FormatError) as caught:
        file.read_all([RANGES_32[0], DeletionVectorRange("b", 33, 22, 2)])
    assert str(caught.value) == (
        "index-1: deletion vector of another cardinality (data file 'b') at offset 33: "
        "found 1, expected 2"
    )


def test_a_data_file_has_one_range() -> None:
    file = DeletionVectorFile.from_bytes(FILE_32, name="index-1")
    with pytest.raises(FormatError) as caught:
        file.read_all([*RANGES_32, DeletionVectorRange("a", 33, 22)])
    assert str(caught.value) == "index-1: second range (data file 'a') at offset 33"


def test_of_two_ranges_that_overlap_the_wrong_one_is_named() -> None:
    file = DeletionVectorFile.from_bytes(FILE_32)
    with pytest.raises(FormatError, match=r"bad length of .* \(data file 'b'\) at offset 9"):
        file.read_all([RANGES_32[0], DeletionVectorRange("b", 9, 12)])


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (b"\0\0", "x: truncated at offset 63: found 2 bytes, expected 4"),
        (b"\xff" * 20, "x: bad length of a deletion vector at offset 63: found -1, expected 0 to"),
        (b"\0\0\0\x0d" + bytes(16), "x: bad length of a deletion vector at offset 63: found 13"),
        (b"\0\0\0\0" + bytes(4), "x: truncated deletion vector at offset 63: found 8 bytes"),
        (b"\0\0\0\x0c" + bytes(16), "x: not a deletion vector: bad magic at offset 67"),
    ],
    ids=["cut", "negative", "beyond the end", "too short", "magic"],
)
def test_a_scan_says_where_it_stops(tail: bytes, message: str) -> None:
    scan = DeletionVectorFile.from_bytes(FILE_32 + tail, name="x").scan()
    assert [list(next(scan)[1]) for _ in range(2)] == [[2, 3], [1]]
    with pytest.raises(FormatError) as caught:
        next(scan)
    assert str(caught.value).startswith(message)


# -- what is read ----------------------------------------------------------------------------------


def test_one_vector_is_one_read_of_its_range() -> None:
    source = CountingSource(BytesSource(FILE_64))
    file = DeletionVectorFile.open(source)
    assert source.take() == [(0, 1)]
    file.read(RANGES_64[0])
    assert source.take() == [(1, 52)]  # it may be of 32 bits and 8 bytes longer
    file.read(RANGES_64[1])
    assert source.take() == [(45, 42)]


def test_close_ranges_are_read_together_and_in_any_order() -> None:
    sets = {f"f{number}": range(number, 3 * number + 1, 2) for number in range(50)}
    written = DeletionVectorFile.write({name: DeletionVector(sets[name]) for name in sets})
    source = CountingSource(BytesSource(written.data))
    file = DeletionVectorFile.open(source)
    source.take()
    shuffled = sorted(written.ranges, key=lambda vector_range: vector_range.offset * 7919 % 1009)
    vectors = file.read_all(iter(shuffled))
    assert source.take() == [(1, len(written.data) - 1)]
    assert list(vectors) == [vector_range.data_file for vector_range in shuffled]
    assert {name: list(vector) for name, vector in vectors.items()} == {
        name: list(positions) for name, positions in sets.items()
    }


def test_distant_ranges_are_read_one_by_one() -> None:
    large = DeletionVector(np.arange(0, 1_200_000, 2))  # 155 KB
    written = DeletionVectorFile.write(
        {"a": DeletionVector([1]), "b": large, "c": DeletionVector([2])}
    )
    source = CountingSource(BytesSource(written.data))
    file = DeletionVectorFile.open(source)
    source.take()
    first, _, last = written.ranges
    vectors = file.read_all([last, first])
    assert {name: list(vector) for name, vector in vectors.items()} == {"c": [2], "a": [1]}
    assert source.take() == [(1, 30), (last.offset, 30)]


def test_a_read_is_not_larger_than_8_mib_unless_a_vector_is() -> None:
    half = DeletionVector(np.arange(0, 44_000_000, 2))  # 5.5 MB each
    written = DeletionVectorFile.write({"a": half, "b": half})
    source = CountingSource(BytesSource(written.data))
    file = DeletionVectorFile.open(source)
    source.take()
    assert file.read_all(written.ranges) == {"a": half, "b": half}
    assert source.take() == [
        (vector_range.offset, vector_range.length + 8) for vector_range in written.ranges
    ]


def test_a_scan_reads_on_behind_its_window() -> None:
    half = DeletionVector(np.arange(0, 44_000_000, 2))
    written = DeletionVectorFile.write({"a": half, "b": DeletionVector([1]), "c": half})
    scanned = list(DeletionVectorFile.from_bytes(written.data).scan())
    assert [vector for _, vector in scanned] == [half, DeletionVector([1]), half]
    assert [vector_range.offset for vector_range, _ in scanned] == [
        vector_range.offset for vector_range in written.ranges
    ]


def test_a_path_is_closed_and_a_source_is_left_open(tmp_path: Path) -> None:
    path = tmp_path / "index-0"
    path.write_bytes(FILE_32)
    with DeletionVectorFile.open(path) as file:
        assert repr(file) == f"<DeletionVectorFile {path}: 63 bytes>"
        assert file.read_all(RANGES_32) == VECTORS
    other = tmp_path / "index-1"
    other.write_bytes(FILE_32)
    with (
        FileSource(other),  # the system reuses the number of the one that was closed
        pytest.raises(AlcidError, match=r"index-0: the file is closed$"),
    ):
        file.read(RANGES_32[0])
    file.close()  # a second time has no effect
    with FileSource(path) as source:
        with DeletionVectorFile.open(source) as file:
            assert file.read_all(RANGES_32) == VECTORS
        assert source.read(0, 1) == b"\1"


def test_a_path_of_another_version_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "index-0"
    path.write_bytes(b"\3")
    before = set(Path("/dev/fd").iterdir())
    with pytest.raises(FormatError, match="unknown deletion vector file version"):
        DeletionVectorFile.open(str(path))
    assert set(Path("/dev/fd").iterdir()) == before


# -- rolling ---------------------------------------------------------------------------------------

SIZE = len(DeletionVector([1]).to_bytes())  # 30


@pytest.mark.parametrize(
    ("target_size", "counts"),
    [
        (0, [1, 1, 1, 1, 1]),
        (SIZE, [1, 1, 1, 1, 1]),  # with the version, a file of one vector is larger
        (1 + SIZE, [2, 2, 1]),  # equal is not larger
        (2 * SIZE, [2, 2, 1]),
        (1 + 2 * SIZE, [3, 2]),
        (1 + 4 * SIZE, [5]),
        (1 + 5 * SIZE, [5]),
        (1 << 40, [5]),
    ],
)
def test_a_file_ends_with_the_vector_that_makes_it_too_large(
    target_size: int, counts: list[int]
) -> None:
    vectors = {f"f{number}": DeletionVector([number]) for number in range(5)}
    files = list(DeletionVectorFile.roll(vectors, target_size=target_size))
    assert [len(file.ranges) for file in files] == counts
    read: dict[str, DeletionVector] = {}
    for file in files:
        read |= DeletionVectorFile.from_bytes(file.data).read_all(file.ranges)
        assert [vector_range.offset for vector_range in file.ranges] == [
            1 + SIZE * number for number in range(len(file.ranges))
        ]
    assert list(read.items()) == list(vectors.items())


def test_files_are_rolled_at_2_mib_by_default() -> None:
    vector = DeletionVector(np.arange(0, 14_000_000, 2))  # 1.75 MB
    files = list(DeletionVectorFile.roll({str(number): vector for number in range(5)}))
    assert [len(file.ranges) for file in files] == [2, 2, 1]


def test_nothing_to_roll_is_no_file() -> None:
    assert list(DeletionVectorFile.roll({})) == []


def test_one_file_has_a_limit_and_rolled_ones_end_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors = {f"f{number}": DeletionVector([number]) for number in range(5)}
    monkeypatch.setattr(deletion_vector_writer, "_LARGEST_FILE", 1 + 5 * SIZE)
    assert len(DeletionVectorFile.write(vectors).ranges) == 5
    monkeypatch.setattr(deletion_vector_writer, "_LARGEST_FILE", 5 * SIZE)
    with pytest.raises(LimitError) as caught:
        DeletionVectorFile.write(vectors)
    assert str(caught.value) == (
        "an index file holds at most 150 bytes: the deletion vector of 'f4' does not fit"
    )
    assert [len(file.ranges) for file in DeletionVectorFile.roll(vectors)] == [4, 1]
    monkeypatch.setattr(deletion_vector_writer, "_LARGEST_FILE", SIZE)
    with pytest.raises(LimitError, match="the deletion vector of 'f0' does not fit"):
        next(DeletionVectorFile.roll(vectors))  # and no empty file before


vectors_by_name = st.dictionaries(
    st.text(max_size=5),
    st.builds(
        lambda positions, wide: DeletionVector(positions, bits=64 if wide else None),
        st.sets(st.integers(0, 100) | st.sampled_from([70_000, 2**31 - 1, 2**32]), max_size=9),
        st.booleans(),
    ),
    max_size=6,
)


@given(vectors_by_name, st.sampled_from([None, 64]), st.integers(0, 300))
def test_rolled_files_hold_every_vector_once(
    vectors: dict[str, DeletionVector], bits: Literal[64] | None, target_size: int
) -> None:
    merged: list[tuple[str, DeletionVector]] = []
    for written in DeletionVectorFile.roll(vectors, bits=bits, target_size=target_size):
        file = DeletionVectorFile.from_bytes(written.data)
        read = file.read_all(written.ranges)
        merged += read.items()
        assert [file.read(vector_range) for vector_range in written.ranges] == list(read.values())
        assert [vector for _, vector in file.scan()] == list(read.values())
        assert [(vector_range.offset, vector_range.length) for vector_range, _ in file.scan()] == [
            (vector_range.offset, vector_range.length) for vector_range in written.ranges
        ]
        assert [vector_range.cardinality for vector_range in written.ranges] == list(
            map(len, read.values())
        )
    assert merged == list(vectors.items())
    assert [vector.bits for _, vector in merged] == [bits or v.bits for v in vectors.values()]


def test_places_of_vectors_are_found_without_looking_into_them() -> None:
    written = DeletionVectorFile.write(
        {"a": DeletionVector([1]), "b": DeletionVector([2, 3]), "c": DeletionVector([], bits=64)}
    )
    whole = Section(BytesSource(written.data, "x"))
    assert list(vector_places(whole)) == [(1, 30), (31, 32), (63, 20)]
    assert list(vector_places(whole, 31)) == [(31, 32), (63, 20)]
    assert list(vector_places(whole.section(0, 1))) == []


@pytest.mark.parametrize(("size", "end"), [(11, 31), (23, 31), (-1, 31), (22, 30)])
def test_a_length_that_does_not_fit_ends_the_search_for_places(size: int, end: int) -> None:
    data = DeletionVectorFile.write({"a": DeletionVector([1])}).data
    assert len(data) == 31
    data = data[:1] + size.to_bytes(4, "big", signed=True) + data[5:end]
    with pytest.raises(FormatError) as raised:
        list(vector_places(Section(BytesSource(data, "x"))))
    assert str(raised.value) == (
        f"x: bad length of a deletion vector at offset 1: found {size}, expected 12 to {end - 9}"
    )


def test_rolled_vectors_are_of_the_kind_that_is_asked_for() -> None:
    (file,) = DeletionVectorFile.roll(VECTORS, bits=64)
    assert file == WrittenVectors(FILE_64, RANGES_64)
    (file,) = DeletionVectorFile.roll(VECTORS)
    assert file == WrittenVectors(FILE_32, RANGES_32)


def test_a_negative_length_is_named_as_it_is() -> None:
    file = DeletionVectorFile.from_bytes(b"\1\xff\xff\xff\xff" + FILE_32[5:], name="x")
    with pytest.raises(FormatError) as raised:
        file.read(RANGES_32[0])
    assert str(raised.value) == (
        "x: bad length of a deletion vector (data file 'a') at offset 1: "
        "found -1, expected 24, or 16 with 64 bits, by its range"
    )
