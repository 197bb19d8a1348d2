"""Deletion vectors: bytes of the reference, sets of positions, limits and refusals."""

from __future__ import annotations

import copy
import pickle
import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64, FrozenBitMap

from alcid import (
    FormatError,
    LimitError,
    OptionError,
    UnsupportedError,
)
from alcid.formats.deletion_vector import DeletionVector, positions, vector
from alcid.formats.deletion_vector import vector as vector_module
from alcid.formats.source import BytesSource, Section
from alcid.inspect import display
from alcid.inspect.byte_bar import distribution
from alcid.inspect.display import picture

LARGEST_32 = 2**31 - 1
LARGEST = ((2**31 - 2) << 32) | 2**31
KINDS: tuple[Literal[32, 64], ...] = (32, 64)

# Written by Paimon's Java; those of 64 bits are also what Iceberg writes.
WIDE_HEAD = "d1d33964 01000000 00000000 00000000"
WRITTEN = [
    ([], 32, "0000000c 5e43f2d0 3a300000 00000000 5de5c7e9"),
    ([], 64, "0000000c d1d33964 00000000 00000000 bf18480c"),
    ([2, 3], 32, "00000018 5e43f2d0 3a300000 01000000 00000100 10000000 02000300 c898f63d"),
    ([1], 32, "00000016 5e43f2d0 3a300000 01000000 00000000 10000000 0100 fa2b5192"),
    ([2, 3], 64, f"00000024 {WIDE_HEAD} 3a300000 01000000 00000100 10000000 02000300 7a813847"),
    ([1], 64, f"00000022 {WIDE_HEAD} 3a300000 01000000 00000000 10000000 0100 eebd85f4"),
]


@pytest.mark.parametrize(("positions", "bits", "text"), WRITTEN)
def test_bytes_are_those_of_the_reference(
    positions: list[int], bits: Literal[32, 64], text: str
) -> None:
    data = bytes.fromhex(text)
    read = DeletionVector.from_bytes(data, len(positions))
    assert (list(read), read.bits) == (positions, bits)
    assert read.to_bytes() == data
    assert DeletionVector(positions, bits=bits).to_bytes() == data
    assert DeletionVector(positions).to_bytes(bits) == data


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def wide(*bitmaps: tuple[int, list[int]]) -> bytes:
    """A vector of 64 bits with exactly these bitmaps."""
    body = struct.pack("<iq", 1681511377, len(bitmaps))
    for key, values in bitmaps:
        body += struct.pack("<i", key) + BitMap(values).serialize()
    return framed(body)


def test_keys_without_positions_are_written_as_empty_bitmaps() -> None:
    vector = DeletionVector([2**32 + 7, 4 * 2**32 + 9])
    assert vector.to_bytes() == wide((0, []), (1, [7]), (2, []), (3, []), (4, [9]))


def test_keys_without_positions_may_be_absent_when_read() -> None:
    data = wide((1, [7]), (4, [9]), (2**31 - 2, [2**31]))
    assert list(DeletionVector.from_bytes(data, 3)) == [2**32 + 7, 4 * 2**32 + 9, LARGEST]


def test_a_vector_of_another_writer_keeps_the_containers_it_was_written_with() -> None:
    # A run of three takes as many bytes as an array: Java keeps what began as a run.
    as_run = struct.pack("<HHBHHHHH", 12347, 0, 1, 0, 2, 1, 5, 2)
    data = framed(bytes.fromhex("5e43f2d0") + as_run)
    assert list(DeletionVector.from_bytes(data)) == [5, 6, 7]
    assert DeletionVector.from_bytes(data).to_bytes() == data
    as_array = BitMap([5, 6, 7]).serialize()
    assert DeletionVector([5, 6, 7]).to_bytes() == framed(bytes.fromhex("5e43f2d0") + as_array)


def test_runs_that_a_union_makes_are_found_when_it_is_written() -> None:
    union = DeletionVector(range(0, 100, 2)) | DeletionVector(range(1, 100, 2))
    assert union.to_bytes() == DeletionVector(range(100)).to_bytes()
    as_array = BitMap(range(0, 100, 2)) | BitMap(range(1, 100, 2))
    data = framed(bytes.fromhex("5e43f2d0") + as_array.serialize())
    assert len(data) == 228
    assert DeletionVector.from_bytes(data).to_bytes() == union.to_bytes()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_read(kind: Callable[[bytes], bytes]) -> None:
    data = DeletionVector([1, 70000]).to_bytes()
    assert list(DeletionVector.from_bytes(kind(data))) == [1, 70000]


@pytest.mark.parametrize("bits", KINDS)
def test_bytes_behind_the_last_bitmap_are_passed_over(bits: Literal[32, 64]) -> None:
    body = DeletionVector([1, 70000]).to_bytes(bits)[4:-4]
    assert list(DeletionVector.from_bytes(framed(body + b"behind"), 2)) == [1, 70000]


# -- positions in every form -----------------------------------------------------------------------

FORMS: dict[str, Callable[[list[int]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "iterator": iter,
    "int64": np.array,
    "big-endian": lambda values: np.array(values, ">i8"),
    "unsigned": lambda values: np.array(values, np.uint64),
    "objects": lambda values: np.array(values, object),
    "every other": lambda values: np.repeat(np.array(values), 2)[::2],
    "read-only": lambda values: np.frombuffer(np.array(values).tobytes(), np.int64),
    "numpy numbers": lambda values: [np.uint64(value) for value in values],
    "Arrow": lambda values: pa.array(values, pa.int64()),
    "Arrow unsigned": lambda values: pa.array(values, pa.uint64()),
    "slice of Arrow": lambda values: pa.array([None, *values, None], pa.int64())[1:-1],
    "chunks": lambda values: pa.chunked_array([values[:2], values[2:]], pa.int64()),
    "BitMap64": BitMap64,
    "vector": DeletionVector,
}


@pytest.mark.parametrize("form", FORMS)
def test_positions_may_come_in_any_form_and_order(form: str) -> None:
    positions = [70000, 5, 2**32 + 1, 5, 3, 2**40]
    vector = DeletionVector(FORMS[form](positions))
    assert list(vector) == [3, 5, 70000, 2**32 + 1, 2**40]


@pytest.mark.parametrize(
    "rows", [range(0), range(3), range(70_000), range(9, 0, -3), range(2**32 - 1, 2**32 + 2)]
)
def test_a_range_of_rows(rows: range) -> None:
    vector = DeletionVector(rows)
    assert list(vector) == sorted(rows)
    assert vector.to_bytes() == DeletionVector(list(rows)).to_bytes()


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_integers_of_every_width_are_positions(kind: str) -> None:
    assert list(DeletionVector(np.array([127, 0, 7], kind))) == [0, 7, 127]
    assert list(DeletionVector(pa.array(np.array([127, 0, 7], kind)))) == [0, 7, 127]


@pytest.mark.parametrize("kind", [BitMap, FrozenBitMap])
def test_a_bitmap_is_copied(kind: type[BitMap]) -> None:
    given_bitmap = kind([1, 2**32 - 1])
    vector = DeletionVector(given_bitmap)
    if isinstance(given_bitmap, BitMap):
        given_bitmap.add(7)
    assert list(vector) == [1, 2**32 - 1]


@pytest.mark.parametrize(
    "nothing",
    [(), [], np.array([]), np.array([], object), pa.array([]), pa.array([], pa.int8()), BitMap()],
    ids=["tuple", "list", "float64", "object", "null", "int8", "BitMap"],
)
def test_no_positions_are_a_vector_whatever_their_type(nothing: Any) -> None:
    vector = DeletionVector(nothing)
    assert (list(vector), vector.bits, vector.first, vector.last) == ([], 32, None, None)
    assert not vector


def test_an_array_may_change_afterwards() -> None:
    positions = np.array([1, 2, 3])
    vector = DeletionVector(positions)
    positions[:] = 9
    assert list(vector) == [1, 2, 3]


REFUSED = [
    ([-1], LimitError, "position -1 is not one of 0 to 9223372030412324864"),
    (np.array([3, -5], np.int8), LimitError, "position -5 is not one of"),
    (pa.array([3, -5]), LimitError, "position -5 is not one of"),
    ([LARGEST + 1], LimitError, "position 9223372030412324865 is not one of"),
    (np.array([LARGEST + 1]), LimitError, "position 9223372030412324865 is not one of"),
    ([1, 2**63], LimitError, "position 9223372036854775808 is not one of"),
    (np.array([2**64 - 1], np.uint64), LimitError, "position 18446744073709551615 is not one of"),
    (pa.array([2**63], pa.uint64()), LimitError, "position 9223372036854775808 is not one of"),
    ([2**70], LimitError, "position 1180591620717411303424 is not one of"),
    (range(-1, 2**40), LimitError, "position -1 is not one of"),
    (range(2**63, 2**63 + 2), LimitError, "position 9223372036854775809 is not one of"),
    (range(2**70, 2**70 + 9, 3), LimitError, "position 1180591620717411303430 is not one of"),
    ([1.0], UnsupportedError, "positions must be integers, found float"),
    ([1, True], UnsupportedError, "positions must be integers, found bool"),
    ([1, None], UnsupportedError, "positions must be integers, found NoneType"),
    (["1"], UnsupportedError, "positions must be integers, found str"),
    ("12", UnsupportedError, "positions must be integers, found str"),
    ([np.float32(1)], UnsupportedError, "positions must be integers, found float32"),
    ([np.True_], UnsupportedError, "positions must be integers, found bool"),
    (np.array([1.0]), UnsupportedError, "positions must be integers, found NumPy's float64"),
    (np.array([True]), UnsupportedError, "positions must be integers, found NumPy's bool"),
    (np.array(["a"]), UnsupportedError, "positions must be integers, found NumPy's <U1"),
    (np.array([1], "M8[s]"), UnsupportedError, "found NumPy's datetime64"),
    (np.array([[1]]), UnsupportedError, "positions must have one dimension, found 2"),
    (np.array(1), UnsupportedError, "positions must have one dimension, found 0"),
    (pa.array([1, None]), UnsupportedError, "positions must not be null, found 1 nulls"),
    (pa.array([1.0]), UnsupportedError, "positions must be integers, found Arrow's double"),
    (pa.array([True]), UnsupportedError, "positions must be integers, found Arrow's bool"),
    (pa.array([None]), UnsupportedError, "positions must be integers, found Arrow's null"),
    (pa.array([1]).dictionary_encode(), UnsupportedError, "found Arrow's dictionary"),
    (b"\1\2", UnsupportedError, "found bytes: from_bytes reads those"),
    (5, UnsupportedError, "positions must be an iterable, found int"),
    (None, UnsupportedError, "positions must be an iterable, found NoneType"),
]


@pytest.mark.parametrize(
    ("positions", "error", "message"), REFUSED, ids=[str(n) for n in range(len(REFUSED))]
)
def test_what_is_not_a_position_is_refused(
    positions: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        DeletionVector(positions)
    assert message in str(caught.value)


# -- kinds and limits ------------------------------------------------------------------------------


def test_the_last_position_of_each_kind() -> None:
    narrow = DeletionVector([LARGEST_32])
    assert (narrow.bits, list(DeletionVector.from_bytes(narrow.to_bytes()))) == (32, [LARGEST_32])
    assert DeletionVector([LARGEST_32 + 1]).bits == 64
    largest = DeletionVector([LARGEST])
    assert (largest.bits, largest.first, largest.last) == (64, LARGEST, LARGEST)
    with pytest.raises(LimitError, match="position 2147483648 is beyond 32 bits"):
        DeletionVector([LARGEST_32 + 1], bits=32)
    with pytest.raises(LimitError, match="position 2147483648 is beyond 32 bits"):
        DeletionVector([LARGEST_32 + 1]).to_bytes(32)
    with pytest.raises(LimitError, match="position 9223372030412324865"):
        DeletionVector([LARGEST + 1], bits=64)


@pytest.mark.parametrize("bits", [0, 16, "32", 33])
def test_an_unknown_kind_is_refused(bits: Any) -> None:
    with pytest.raises(OptionError, match=f"bits: found {bits!r}, expected 32 or 64"):
        DeletionVector([1], bits=bits)
    with pytest.raises(OptionError, match=f"bits: found {bits!r}, expected 32 or 64"):
        DeletionVector([1]).to_bytes(bits)


def test_a_kind_may_be_chosen_and_changed() -> None:
    wide_vector = DeletionVector([1], bits=64)
    assert wide_vector.bits == 64
    assert DeletionVector(wide_vector).bits == 32
    assert DeletionVector(wide_vector, bits=64).bits == 64
    assert DeletionVector.from_bytes(wide_vector.to_bytes(32)).bits == 32


@pytest.mark.parametrize("position", [LARGEST, (2**31 // 12) << 32])
def test_what_would_be_beyond_2_gib_is_refused_before_it_is_made(position: int) -> None:
    vector = DeletionVector([position])
    tracemalloc.start()
    started = time.perf_counter()
    with pytest.raises(LimitError, match="a deletion vector holds at most 2147483647 bytes, "):
        vector.to_bytes()
    elapsed = time.perf_counter() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert elapsed < 1
    assert peak < 1 << 20


def test_the_bytes_of_bitmaps_count_towards_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    vector = DeletionVector(range(0, 100, 2))
    size = len(vector.to_bytes())
    monkeypatch.setattr(vector_module, "_LARGEST_BYTES", size)
    assert len(vector.to_bytes()) == size
    monkeypatch.setattr(vector_module, "_LARGEST_BYTES", size - 1)
    with pytest.raises(LimitError, match=f"these positions need {size}"):
        vector.to_bytes()


# -- a set of positions ----------------------------------------------------------------------------


def test_kinds_do_not_matter_for_equality() -> None:
    assert DeletionVector([1, 2]) == DeletionVector([2, 1], bits=64)
    assert hash(DeletionVector([1, 2])) == hash(DeletionVector([2, 1], bits=64))
    assert DeletionVector([1, 2]) != DeletionVector([1, 3])
    assert DeletionVector([2**32]) != DeletionVector([0])
    assert DeletionVector([1]) != [1]


def test_a_union_leaves_its_operands() -> None:
    left, right = DeletionVector([1, 5]), DeletionVector([5, 2**32 + 1])
    union = left | right
    assert (list(union), union.bits) == ([1, 5, 2**32 + 1], 64)
    assert (list(left), left.bits) == ([1, 5], 32)
    assert list(right) == [5, 2**32 + 1]
    assert (left | DeletionVector([7])).bits == 32
    assert (left | DeletionVector([], bits=64)).bits == 64
    assert list(right.union(left)) == [1, 5, 2**32 + 1]
    assert list(DeletionVector([3 << 32]) | DeletionVector([1 << 32])) == [1 << 32, 3 << 32]


def test_a_union_is_of_vectors_only() -> None:
    with pytest.raises(UnsupportedError, match="union: found list, expected a DeletionVector"):
        DeletionVector([1]).union([2])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unsupported operand"):
        DeletionVector([1]) | [2]


def test_positions_in_a_vector_and_others() -> None:
    vector = DeletionVector([1, 2**32 + 2])
    assert 1 in vector
    assert np.uint8(1) in vector
    assert 2**32 + 2 in vector
    for absent in (0, 2, 2**32 + 1, 2**33 + 2, -1, 1 - 2**32, 2**64 + 1, True, 1.0, "1", None):
        assert absent not in vector


@pytest.mark.parametrize(
    ("positions", "text"),
    [
        ([], "DeletionVector([], bits=32)"),
        ([3, 1], "DeletionVector([1, 3], bits=32)"),
        ([2**32], "DeletionVector([4294967296], bits=64)"),
        (range(8), "DeletionVector([0, 1, 2, 3, 4, 5, 6, 7], bits=32)"),
        (range(9), "DeletionVector(<9 from 0 to 8>, bits=32)"),
    ],
)
def test_a_vector_shows_itself_in_one_line(positions: Any, text: str) -> None:
    assert repr(DeletionVector(positions)) == text


@pytest.mark.parametrize("positions", [[], [1, 70000], [5, LARGEST]])
def test_a_vector_can_be_pickled_and_copied(positions: list[int]) -> None:
    vector = DeletionVector(positions, bits=64)
    for again in (pickle.loads(pickle.dumps(vector)), copy.copy(vector), copy.deepcopy(vector)):
        assert again == vector
        assert (list(again), again.bits) == (positions, 64)


def test_a_vector_cannot_be_changed() -> None:
    vector = DeletionVector([1, 2**32])
    for name in ("bits", "cardinality", "first", "positions"):
        with pytest.raises(AttributeError):
            setattr(vector, name, 64)
    vector.to_numpy()[:] = 0
    assert list(vector) == [1, 2**32]


# Near the limits of containers, of the sign and of keys; far apart, in runs, and in between.
BORDERS = [0, 1 << 16, 1 << 31, 1 << 32, 1 << 33, 3 << 32, 1 << 45, LARGEST]
near_borders = st.builds(
    lambda border, distance: min(max(border + distance, 0), LARGEST),
    st.sampled_from(BORDERS),
    st.integers(-3, 3),
)
runs = st.builds(
    lambda start, length, step: set(range(start, min(start + length * step, LARGEST + 1), step)),
    near_borders,
    st.sampled_from([1, 5, 300, 4097, 70000]),
    st.sampled_from([1, 2, 3, 17]),
)
position_sets = st.builds(
    lambda points, parts: points.union(*parts),
    st.sets(near_borders | st.integers(0, LARGEST), max_size=20),
    st.lists(runs, max_size=2),
)
narrow_sets = position_sets.map(lambda drawn: {item for item in drawn if item <= LARGEST_32})
DENSE = 1 << 40  # a vector is written with every key below its last


def check(vector: DeletionVector, positions: set[int]) -> None:
    """Check that the vector and the set agree in everything."""
    ascending = sorted(positions)
    assert list(vector) == ascending
    array = vector.to_numpy()
    assert array.dtype == np.int64
    assert array.tolist() == ascending
    assert (len(vector), vector.cardinality) == (len(positions), len(positions))
    assert bool(vector) is bool(positions)
    ends = (ascending[0], ascending[-1]) if ascending else (None, None)
    assert (vector.first, vector.last) == ends


@given(position_sets)
def test_a_vector_holds_what_it_was_given(positions: set[int]) -> None:
    vector = DeletionVector(positions)
    check(vector, positions)
    assert vector.bits == (64 if max(positions, default=0) > LARGEST_32 else 32)


@given(narrow_sets, st.sampled_from(KINDS))
def test_bytes_of_both_kinds_hold_the_same_positions(
    positions: set[int], bits: Literal[32, 64]
) -> None:
    data = DeletionVector(positions).to_bytes(bits)
    read = DeletionVector.from_bytes(data, len(positions))
    check(read, positions)
    assert read.bits == bits
    assert read.to_bytes() == data


@given(position_sets.map(lambda drawn: {item for item in drawn if item < DENSE}))
def test_wide_vectors_are_read_as_they_were_written(positions: set[int]) -> None:
    data = DeletionVector(positions, bits=64).to_bytes()
    read = DeletionVector.from_bytes(data, len(positions))
    check(read, positions)
    assert read.to_bytes() == data


@given(position_sets)
def test_sparse_keys_are_read_as_they_are(positions: set[int]) -> None:
    keys = sorted({position >> 32 for position in positions})
    bitmaps = [
        (key, sorted(item & 0xFFFFFFFF for item in positions if item >> 32 == key)) for key in keys
    ]
    check(DeletionVector.from_bytes(wide(*bitmaps), len(positions)), positions)


@given(position_sets, position_sets)
def test_a_union_is_that_of_the_sets(left: set[int], right: set[int]) -> None:
    check(DeletionVector(left) | DeletionVector(right), left | right)


@given(position_sets, st.sets(near_borders | st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_contains_says_what_the_set_says(positions: set[int], asked: set[int]) -> None:
    vector = DeletionVector(positions)
    questions = [*asked, *sorted(positions)[:50]]
    expected = [question in positions for question in questions]
    answers = vector.contains(np.array(questions, np.int64))
    assert answers.dtype == bool
    assert answers.tolist() == expected
    assert vector.contains(pa.array(questions, pa.int64())).tolist() == expected
    assert [question in vector for question in questions] == expected
    unsigned = [question for question in questions if question >= 0] + [2**63, 2**64 - 1]
    answers = vector.contains(np.array(unsigned, np.uint64))
    assert answers.tolist() == [question in positions for question in unsigned]


@pytest.mark.parametrize("count", [1, 1000, 300_000])
@pytest.mark.parametrize("span", [400_000, 2**31, 2**45])
def test_contains_over_many_positions(count: int, span: int) -> None:
    # More than one block of questions; tables of every position and of where there are any.
    random = np.random.default_rng(count)
    positions = random.integers(0, span, count)
    asked = np.concatenate([random.integers(-10, span + 10, 40_000), positions[:10_000]])
    answers = DeletionVector(positions).contains(asked)
    assert answers.tolist() == np.isin(asked, positions).tolist()


def test_contains_in_a_batch_of_rows() -> None:
    positions = range(0, 3_000_000, 7)
    vector = DeletionVector(positions)
    batch = np.arange(1_000_000, 1_008_192)
    assert vector.contains(batch).tolist() == [row in positions for row in batch.tolist()]
    assert not vector.contains(batch + 3_000_000).any()


def test_contains_in_the_forms_of_arrays() -> None:
    vector = DeletionVector([2, 300])
    assert vector.contains(np.array([2, 44, -1], np.int8)).tolist() == [True, False, False]
    assert vector.contains(np.array([300, 3], ">u2")).tolist() == [True, False]
    assert vector.contains(np.arange(6)[::2]).tolist() == [False, True, False]
    assert vector.contains(pa.chunked_array([[2], [3, 300]])).tolist() == [True, False, True]
    assert vector.contains(np.array([])).tolist() == []
    assert DeletionVector().contains(np.arange(3)).tolist() == [False, False, False]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ([1.5], "positions must be integers, found float"),
        (1, "positions must be an iterable, found int"),
        (np.array([1.0]), "found NumPy's float64"),
        (np.array([True]), "found NumPy's bool"),
        (np.array(["1"], object), "positions must be integers, found str"),
        (np.array([[1]]), "positions must have one dimension, found 2"),
        (pa.array([1, None]), "positions must not be null"),
        (pa.array(["1"]), "found Arrow's string"),
    ],
    ids=["list", "int", "float", "bool", "object", "two dimensions", "null", "string"],
)
def test_contains_refuses_what_are_not_integers(asked: Any, message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        DeletionVector([1]).contains(asked)
    assert message in str(caught.value)


def test_contains_takes_any_iterable() -> None:
    assert DeletionVector([1, 2**40]).contains([0, 1, 2**40]).tolist() == [False, True, True]
    assert DeletionVector([1]).contains(range(3)).tolist() == [False, True, False]


@given(st.sets(st.integers(0, 100_000)), st.sets(st.integers(0, 100_000)))
def test_live_rows_are_those_that_are_not_deleted(deleted: set[int], rows: set[int]) -> None:
    vector = DeletionVector([*deleted, 2**32 + 1])
    given_rows = BitMap(rows)
    assert set(vector.live_rows(2**32, given_rows)) == rows - deleted
    assert set(given_rows) == rows
    assert set(vector.live_rows(1000)) == set(range(1000)) - deleted
    assert set(vector.live_rows(1000, given_rows)) == {row for row in rows if row < 1000} - deleted


def test_live_rows_of_anything_but_a_file_are_refused() -> None:
    for count in (-1, 2**32 + 1):
        with pytest.raises(LimitError, match=f"row_count: found {count}, expected 0 to 4294967296"):
            DeletionVector([1]).live_rows(count)
    with pytest.raises(UnsupportedError, match="rows: found list, expected AbstractBitMap"):
        DeletionVector([1]).live_rows(5, [1])  # type: ignore[arg-type]


def test_few_questions_to_a_long_run_take_little() -> None:
    vector = DeletionVector(range(2_000_000_000))
    tracemalloc.start()
    try:
        assert vector.contains(np.array([0, 1_999_999_999, 2_000_000_000])).tolist() == [
            True,
            True,
            False,
        ]
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert DeletionVector(range(5, 2**33 + 7)).cardinality == 2**33 + 2
    assert list(DeletionVector(range(2**32 - 1, 2**32 + 2))) == [2**32 - 1, 2**32, 2**32 + 1]


# -- parts of a file -------------------------------------------------------------------------------


def test_a_vector_is_read_from_a_part_of_a_file() -> None:
    data = DeletionVector([1, 70000]).to_bytes()
    source = BytesSource(b"before" + data + b"behind", "a.puffin")
    assert list(DeletionVector.read(Section(source, 6, len(data)), 2)) == [1, 70000]
    with pytest.raises(FormatError) as caught:
        DeletionVector.read(Section(source, 6, len(data)), 3)
    assert str(caught.value) == (
        "a.puffin: deletion vector of another cardinality at offset 6: found 2, expected 3"
    )
    with pytest.raises(FormatError) as caught:
        DeletionVector.read(Section(source, 6))
    assert str(caught.value) == (
        f"a.puffin: bad length of a deletion vector at offset 6: found {len(data) - 8}, "
        f"expected {len(data) - 2}"
    )


def test_positions_of_a_range_are_taken_from_the_keys_that_it_touches() -> None:
    bitmaps = positions.group([5, 9, 2**32, 2**32 + 7, 3 * 2**32 + 1])
    assert positions.between(bitmaps, 6, 2**32).tolist() == [9, 2**32]
    assert positions.between(bitmaps, 2**32 + 1, 3 * 2**32).tolist() == [2**32 + 7]
    assert positions.between(bitmaps, 9, 9).tolist() == [9]
    assert positions.between(bitmaps, 10, 2**32 - 1).tolist() == []
    assert positions.between(bitmaps, 0, LARGEST).tolist() == [
        *[5, 9, 2**32, 2**32 + 7, 3 * 2**32 + 1]
    ]


def test_a_vector_of_very_many_rows_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    vector = DeletionVector(range(1000, 1003))
    monkeypatch.setattr(display, "_MOST_DRAWN", 3)
    title, parts = picture(vector)
    assert (title, len(parts)) == ("Deletion vector of 32 bits", 2)
    monkeypatch.setattr(display, "_MOST_DRAWN", 2)
    title, (said,) = picture(vector)
    assert title == "Deletion vector of 32 bits"
    assert str(said) == "<p>Deletion vector of 32 bits: 3 rows from 1,000 to 1,002.</p>"
    whole = DeletionVector([0, 40])
    _, (_, spread) = picture(whole)
    assert spread == distribution(np.array([0, 40]), 0, 40, what="deleted rows")


@pytest.mark.parametrize("asked", [[2**70, -(2**70), -1, 1], [LARGEST + 1, -1, -2, 1]])
def test_positions_beyond_the_limits_are_not_contained(asked: list[int]) -> None:
    assert DeletionVector([1, 5]).contains(asked).tolist() == [False, False, False, True]
    far = DeletionVector([5, 2**33]).contains(asked)
    assert (far.tolist(), far.dtype) == ([False] * 4, np.dtype(bool))
    nowhere = DeletionVector([70]).contains(np.array([1, 2]))
    assert (nowhere.tolist(), nowhere.dtype) == ([False, False], np.dtype(bool))


def test_ranges_of_the_bitmaps_of_a_vector() -> None:
    for bits, positions_, bitmaps in (
        (32, [1], [(0, 8, 18)]),
        (64, [1], [(0, 20, 18)]),
        (64, [2**32, 2**32 + 9], [(0, 20, 8), (1, 32, 20)]),
    ):
        data = DeletionVector(positions_).to_bytes(bits=bits)  # type: ignore[arg-type]
        section = Section(BytesSource(data))
        kind, stored = vector.stored_bitmaps(section, data)
        assert kind == bits
        assert [(bitmap.key, bitmap.offset, bitmap.length) for bitmap in stored] == bitmaps


def test_a_negative_length_is_named_as_it_is() -> None:
    data = b"\xff\xff\xff\xff" + DeletionVector([1]).to_bytes()[4:]
    with pytest.raises(FormatError) as raised:
        DeletionVector.from_bytes(data, name="x")
    assert str(raised.value) == (
        "x: bad length of a deletion vector at offset 0: found -1, expected 22"
    )
