"""Indexes of many files that are asked together give the answers of single indexes."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid.errors import FormatError
from alcid.formats.file_index import BUILDERS, READERS
from alcid.formats.file_index.bitmap_search import BitmapSearch, usual_keys
from alcid.formats.file_index.bloom_filter import are_usual, may_have_any
from alcid.formats.file_index.container import Container, ContainerHeads, write_container
from alcid.formats.file_index.keys import Key, KeyColumn, key_type, read_column
from alcid.formats.file_index.reader import IndexReader
from alcid.formats.source import BytesSource, Range, Section
from alcid.index.bundle import (
    BundleSet,
    BundleWriter,
    FileEntry,
    PayloadKind,
    open_bundles,
    without_keys,
)
from alcid.index.bundle.probing import SMALL
from alcid.types import DataType

TYPES = ("INT", "BIGINT", "SMALLINT", "DATE", "STRING", "DOUBLE", "DECIMAL(12, 2)", "TIMESTAMP(6)")
BITMAP = PayloadKind.index("c", "bitmap")


def column_of(kind: str, values: Sequence[int]) -> KeyColumn:
    """Small numbers as values of a type; negative ones become null."""
    data_type = DataType.parse(kind)
    plain: list[Any] = [None if value < 0 else value for value in values]
    if kind == "STRING":
        plain = [None if value is None else f"t{value}" for value in plain]
    array = pa.array(plain, pa.string() if kind == "STRING" else pa.int32())
    if kind == "TIMESTAMP(6)":
        array = array.cast(pa.int64())
    return read_column(array.cast(data_type.to_arrow()), data_type)


def keys_of(kind: str, values: Sequence[int]) -> list[Key]:
    keys = column_of(kind, values).keys
    return keys.to_pylist() if isinstance(keys, pa.Array) else keys.tolist()  # type: ignore[no-any-return]


def reader_of(index_type: str, payload: bytes, kind: str) -> IndexReader:
    section = Section(BytesSource(payload), 0, len(payload))
    return READERS[index_type](section, key_type(DataType.parse(kind)))


@pytest.mark.parametrize("kind", TYPES)
def test_bloom_filters_of_any_size_are_asked_as_alone(kind: str) -> None:
    rng = np.random.default_rng(3)
    payloads = [
        BUILDERS["bloom-filter"](column_of(kind, rng.integers(0, 400, size).tolist()), fpp=fpp)
        for size in (1, 5, 80, 300)
        for fpp in (0.3, 0.01, 0.0001)
    ]
    assert are_usual(payloads).all()
    for literals in ([3], [3, 77], list(range(500, 510))):
        keys = keys_of(kind, literals)
        alone = [
            not reader_of("bloom-filter", payload, kind).is_in(keys).skip for payload in payloads
        ]
        assert may_have_any(payloads, keys, key_type(DataType.parse(kind))).tolist() == alone
    assert may_have_any([], keys_of(kind, [1]), key_type(DataType.parse(kind))).tolist() == []


@pytest.mark.parametrize(
    "payload", [b"", b"\0\0\0\1", b"\0\0\0\0\xff", b"\0\0\0\x41\xff", b"\xff\xff\xff\xff\xff"]
)
def test_filters_that_are_not_usual_are_left_to_their_reader(payload: bytes) -> None:
    usual = BUILDERS["bloom-filter"](column_of("INT", [1, 2]))
    assert are_usual([usual, payload, usual]).tolist() == [True, False, True]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", TYPES)
def test_a_search_without_a_result_means_that_no_row_matches(kind: str, version: int) -> None:
    rng = np.random.default_rng(5)
    for size in (1, 3, 40):
        values = rng.integers(-3, 60, size).tolist()
        payload = BUILDERS["bitmap"](column_of(kind, values), version=version)
        for literals in ([0], [1], [7], [20, 21], [100]):
            keys = keys_of(kind, literals)
            search = BitmapSearch(keys, key_type(DataType.parse(kind)))
            is_there = bool(reader_of("bitmap", payload, kind).is_in(keys).rows)
            # In version 1 only text is searched, after a checksum has proved it intact.
            is_known = kind == "STRING" or version == 2
            assert search.contains_none(payload, is_checked=True) == (is_known and not is_there)
            is_known = kind != "STRING" and version == 2
            assert search.contains_none(payload) == (is_known and not is_there)


def test_every_nan_is_found() -> None:
    kind = key_type(DataType.parse("DOUBLE"))
    nan = pa.array([float("nan"), 1.0])
    payload = BUILDERS["bitmap"](read_column(nan, DataType.parse("DOUBLE")))
    assert not BitmapSearch([kind.maximum], kind).contains_none(payload)
    assert BitmapSearch([0, -1], kind).contains_none(payload)


def test_a_bitmap_of_another_version_is_not_searched() -> None:
    for kind in ("INT", "STRING"):
        payload = BUILDERS["bitmap"](column_of(kind, [1, 2]))
        search = BitmapSearch(keys_of(kind, [9]), key_type(DataType.parse(kind)))
        assert search.contains_none(payload, is_checked=True)
        assert not search.contains_none(b"\3" + payload[1:], is_checked=True)
        assert not search.contains_none(b"", is_checked=True)


@pytest.mark.parametrize("kind", ["INT", "BIGINT", "DOUBLE", "DATE"])
@pytest.mark.parametrize("values", [[5], [1, 2, 2, 9, 9, 30], [-1, 4, -1, 8, 4]])
def test_what_a_reader_finds_damaged_is_not_usual(kind: str, values: list[int]) -> None:
    column = column_of(kind, values)
    payload = BUILDERS["bitmap"](column)
    keys = usual_keys(payload, column.key_type)
    assert keys is not None
    assert keys.tolist() == sorted(set(column.keys.tolist()))
    damaged = [payload[:end] for end in range(len(payload))]
    for position in range(len(payload)):
        for bit in (1, 0x80):
            flipped = bytearray(payload)
            flipped[position] ^= bit
            damaged.append(bytes(flipped))
    seen = 0
    for changed in damaged:
        if is_raised(changed, kind):
            seen += 1
            assert usual_keys(changed, column.key_type) is None
    assert seen > 20


def is_raised(payload: bytes, kind: str) -> bool:
    """Whether reading all keys of an index, but no bitmap, raises an error."""
    try:
        list(reader_of("bitmap", payload, kind).places())  # type: ignore[attr-defined]
    except FormatError:
        return True
    return False


def test_only_usual_dictionaries_are_read() -> None:
    numbers, nothing = column_of("INT", list(range(100))), column_of("INT", [-1, -1])
    build = BUILDERS["bitmap"]
    assert usual_keys(build(numbers, version=1), numbers.key_type) is None
    assert usual_keys(build(numbers, index_block_size=64), numbers.key_type) is None
    assert usual_keys(build(nothing), nothing.key_type) is None


def container(sizes: Mapping[tuple[str, str], int | None]) -> bytes:
    return write_container(
        {name: None if size is None else bytes(size) for name, size in sizes.items()}
    )


def test_heads_are_read_as_one_by_one() -> None:
    names = [("id", "bloom-filter"), ("größe", "bitmap"), ("größe", "bsi")]
    every = [
        container(dict(zip(names, sizes, strict=True)))
        for sizes in ((5, 6, 7), (70, 1, 300), (4, None, 4), (5, 6, 7))
    ]
    every += [container({("id", "bloom-filter"): 9}), container({}), container({names[1]: 2})]
    heads = ContainerHeads()
    for data in (*every, *every):
        for begin in (data, data[:20]):  # with all of it available, and with too little
            source = BytesSource(data)
            assert tuple(heads.read(source, begin)) == Container.open(source).entries


def test_a_head_of_a_known_shape_with_damage_says_so() -> None:
    names = {("id", "bloom-filter"): 5, ("id", "bitmap"): 6}
    good = container(names)
    heads = ContainerHeads()
    heads.read(BytesSource(good), good)
    for position in range(len(good) - 11):  # in the head
        damaged = bytearray(good)
        damaged[position] ^= 1
        data = bytes(damaged)
        try:
            expected: Any = Container.open(BytesSource(data)).entries
        except FormatError as error:
            expected = str(error)
        try:
            outcome: Any = tuple(heads.read(BytesSource(data), data))
        except FormatError as error:
            outcome = str(error)
        assert outcome == expected, position


def entries_of(heads: ContainerHeads, every: Sequence[bytes], most: int) -> list[Any]:
    """The entries of containers that are read together, by name; None: must be read alone."""
    entries: list[Any] = [None] * len(every)
    for like in heads.read_like([entry[:most] for entry in every], [len(entry) for entry in every]):
        for row, member in enumerate(like.members.tolist()):
            assert entries[member] is None
            pairs = zip(like.starts[row].tolist(), like.lengths[row].tolist(), strict=True)
            entries[member] = dict(zip(like.names, pairs, strict=True))
    return entries


def alone(data: bytes) -> dict[tuple[str, str], tuple[int, int]] | None:
    """The same with the plain reader; None if the container is damaged."""
    try:
        entries = Container.open(BytesSource(data)).entries
    except FormatError:
        return None
    return {(entry.column, entry.index_type): (entry.start, entry.length) for entry in entries}


def test_heads_that_are_alike_are_read_at_once_as_one_by_one() -> None:
    rng = np.random.default_rng(8)
    names = [("id", "bloom-filter"), ("größe", "bitmap"), ("größe", "bsi")]
    every = []
    for _ in range(200):
        taken = names[: rng.integers(0, 4)] if rng.random() < 0.3 else names
        every.append(container({name: int(rng.integers(0, 300)) for name in taken}))
    every += [container({names[0]: None, names[1]: 4}), b"", b"short", bytes(40)]
    for most in (1 << 20, 120, 60, 20):  # with all of them available, and with less and less
        entries = entries_of(ContainerHeads(), every, most)
        read = [number for number, pairs in enumerate(entries) if pairs is not None]
        assert [entries[number] for number in read] == [alone(every[number]) for number in read]
        assert len(read) > 190 if most == 1 << 20 else not read or most > 20


def test_of_heads_that_are_alike_none_with_damage_is_taken() -> None:
    good = container({("id", "bloom-filter"): 5, ("id", "bitmap"): 6})
    damaged = []
    for position in range(len(good) - 11):  # in the head
        for bit in (1, 0x80):
            flipped = bytearray(good)
            flipped[position] ^= bit
            damaged.append(bytes(flipped))
    damaged += [good + b"x", good[:-1]]
    every = [good, *damaged, good]
    entries = entries_of(ContainerHeads(), every, 1 << 20)
    assert entries[0] == entries[-1] == alone(good)
    for data, pairs in zip(every, entries, strict=True):
        assert pairs is None or pairs == alone(data)
    assert sum(pairs is None for pairs in entries) > 100


def test_the_first_of_many_heads_may_be_damaged() -> None:
    good = container({("id", "bloom-filter"): 5, ("id", "bitmap"): 6})
    heads = ContainerHeads()
    assert entries_of(heads, [good + b"x", good, good], 1 << 20) == [None, None, None]
    heads.read(BytesSource(good), good)  # as a reader of single heads does
    assert entries_of(heads, [good + b"x", good], 1 << 20) == [None, alone(good)]


class Reads:
    """Reads ranges, and counts the rounds and the requests."""

    def __init__(self) -> None:
        self.rounds: list[int] = []

    def __call__(self, ranges: Sequence[Range]) -> Sequence[bytes]:
        self.rounds.append(len(ranges))
        return [source.read(offset, length) for source, offset, length in ranges]


def bundle_of(payloads: Sequence[bytes | None]) -> bytes:
    data = io.BytesIO()
    with BundleWriter(data) as writer:
        for number, payload in enumerate(payloads):
            row = writer.add_file(FileEntry(f"{number}", 9, "1", 1))
            if number != 1:  # which has no index
                writer.add(row, BITMAP, payload)
    return data.getvalue()


def coverage_of(bundles: Sequence[bytes], count: int) -> Any:
    opened = open_bundles([BytesSource(data, f"{number}") for number, data in enumerate(bundles)])
    paths = [f"{number}" for number in range(count)]
    return BundleSet(opened, paths, [9] * count, ["1"] * count).coverage(BITMAP)


def test_bitmaps_of_a_bundle_are_searched_in_one_read() -> None:
    build = BUILDERS["bitmap"]
    kind = key_type(DataType.parse("INT"))
    payloads: list[bytes | None] = [
        build(column_of("INT", [1, 2])),
        None,
        build(column_of("INT", [3, 77])),
        build(column_of("INT", list(range(100, 400)))),  # of several blocks
        build(column_of("INT", [*range(100, 400), 77])),
        build(column_of("INT", list(range(100, 9_000)))),  # too large to be read whole
        None,  # nothing is written for it
    ]
    sizes = [len(payload or b"") for payload in payloads]
    assert sizes[3] > 1020
    assert sizes[5] > SMALL
    coverage = coverage_of([bundle_of(payloads)], len(payloads))
    reads = Reads()
    search = BitmapSearch([77], kind)
    answers = without_keys(coverage, np.arange(len(payloads)), search, reads)
    assert answers.tolist() == [True, False, False, True, False, False, False]
    assert reads.rounds == [1]
    some = without_keys(coverage, np.array([4, 0]), search, reads)
    assert some.tolist() == [False, True]


def test_a_damaged_block_says_nothing_of_its_file_alone() -> None:
    kind = key_type(DataType.parse("INT"))
    payloads = [BUILDERS["bitmap"](column_of("INT", [value, value + 1])) for value in range(4)]
    data = bytearray(bundle_of(payloads))
    at = data.index(payloads[2])
    data[at + 3] ^= 1
    coverage = coverage_of([bytes(data)], 4)
    answers = without_keys(coverage, np.arange(4), BitmapSearch([50], kind))
    assert answers.tolist() == [True, False, False, True]
