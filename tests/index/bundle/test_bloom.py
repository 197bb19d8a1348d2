"""Bloom filters of many files in one round of reads, with the answers of single filters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid._arrays import Int64Array, UInt8Array
from alcid.formats.file_index import BUILDERS
from alcid.formats.file_index.bloom_filter import (
    BloomFilterReader,
    are_usual,
    hash_keys,
    may_have_any,
    probe_filters,
)
from alcid.formats.file_index.keys import Key, key_type, read_column
from alcid.formats.source import BytesSource, Range, Section, read_each
from alcid.index.bundle import (
    BundleSet,
    FileEntry,
    PayloadKind,
    open_bundles,
    probe,
    probing,
)
from alcid.index.bundle.directory import BLOCK, seal
from alcid.testing import CountingSource
from alcid.types import DataType
from tests.index.bundle.bundles import BIGINT, STRING, File, write

BLOOM = PayloadKind.index("c", "bloom-filter")


def bloom_of(values: Sequence[object], data_type: DataType, **options: float) -> bytes:
    keys = read_column(pa.array(values, data_type.to_arrow()), data_type)
    return BUILDERS["bloom-filter"](keys, **options)


def bundles_of(parts: Sequence[Sequence[bytes]]) -> tuple[BundleSet, list[CountingSource]]:
    """Bundles of the files 0, 1, 2 ... with these filters, and a file `none` without a filter."""
    sources, number = [], 0
    for part in parts:
        files = []
        for payload in part:
            files.append(File(FileEntry(str(number), 1, "1", 5), {BLOOM: payload}))
            number += 1
        sources.append(CountingSource(BytesSource(write(files), "x.bundle")))
    paths = [*map(str, range(number)), "none"]
    bundle_set = BundleSet(open_bundles(sources), paths, [1] * len(paths), ["1"] * len(paths))
    bundle_set.coverage(BLOOM)
    for source in sources:
        source.take()
    return bundle_set, sources


filters = st.builds(
    lambda values, fpp, items: bloom_of(
        values, BIGINT, fpp=fpp, **({"items": items} if items else {})
    ),
    st.lists(st.integers(0, 50), max_size=20),
    st.sampled_from([0.5, 0.1, 0.01, 1e-12, 1e-40]),
    st.sampled_from([0, 10, 20_000]),
)


@given(
    st.lists(st.lists(filters, max_size=4), max_size=3),
    st.lists(st.integers(0, 60), min_size=1, max_size=3),
    st.data(),
)
def test_each_filter_answers_as_it_would_alone(
    parts: list[list[bytes]], keys: list[Key], data: st.DataObject
) -> None:
    bundle_set, _ = bundles_of(parts)
    coverage, count = bundle_set.coverage(BLOOM), sum(map(len, parts)) + 1
    files = np.array(data.draw(st.lists(st.integers(0, count - 1), unique=True)), np.int64)
    answer = probe(coverage, files, keys, key_type(BIGINT))
    alone = []
    for file in files.tolist():
        reader = coverage.index(file, key_type(BIGINT))
        alone.append(reader is None or not reader.is_in(keys).skip)
    assert answer.may_match.tolist() == alone
    assert answer.damage == {}


def test_text_is_probed_too_in_chunks_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "_MOST_BITS", 200)  # 64 of them may be looked at for each key
    bundle_set, _ = bundles_of([[bloom_of([f"name {n}"], STRING, fpp=1e-9) for n in range(20)]])
    answer = probe(
        bundle_set.coverage(BLOOM), np.arange(21), [b"name 3", b"name 9"], key_type(STRING)
    )
    assert np.flatnonzero(answer.may_match).tolist() == [3, 9, 20]


def test_one_round_reads_one_block_for_each_bit() -> None:
    large = bloom_of(range(50_000), BIGINT)
    bundle_set, sources = bundles_of([[large] * 3, [large] * 2])
    rounds: list[int] = []

    def read_many(ranges: Sequence[Range]) -> list[bytes]:
        rounds.append(len(ranges))
        return read_each(ranges)

    files = np.arange(6)
    answer = probe(bundle_set.coverage(BLOOM), files, [123], key_type(BIGINT), read_many)
    assert answer.may_match.tolist() == [True] * 6
    assert rounds == [25]  # five functions, five filters
    assert [len(source.reads) for source in sources] == [15, 10]
    assert {length for source in sources for _, length in source.reads} == {BLOCK}
    assert (
        probe(bundle_set.coverage(BLOOM), files[5:], [123], key_type(BIGINT), read_many).damage
        == {}
    )
    assert len(rounds) == 1


@pytest.mark.parametrize("gap", [0, 5_000, 1 << 20])
@pytest.mark.parametrize("rounds", [1, 2])
def test_reading_together_or_in_two_rounds_answers_the_same(gap: int, rounds: int) -> None:
    parts = [[bloom_of(range(n, n + 9000, 3), BIGINT) for n in range(4)], [bloom_of([7], BIGINT)]]
    bundle_set, _ = bundles_of(parts)
    coverage, files = bundle_set.coverage(BLOOM), np.arange(6)
    for keys in ([7], [8, 9_001], [-1], [5, 10_000, 20_000], [10**9], list(range(40_000, 40_020))):
        plain = probe(coverage, files, keys, key_type(BIGINT))
        other = probe(coverage, files, keys, key_type(BIGINT), gap=gap, rounds=rounds)
        assert other.may_match.tolist() == plain.may_match.tolist(), keys
        assert (other.damage, plain.damage) == ({}, {})


def test_damage_keeps_the_file_and_is_named() -> None:
    values = bloom_of(range(50_000), BIGINT)
    files = [File(FileEntry(str(number), 1, "1", 5), {BLOOM: values}) for number in range(3)]
    data = bytearray(write(files))
    (bundle,) = open_bundles([BytesSource(data)])
    series = bundle.series(BLOOM)
    assert series is not None
    start, end = (
        series.start + series.directory.starts[1],
        series.start + series.directory.starts[2],
    )
    data[start:end] = bytes(int(end - start))
    bundle_set = BundleSet(
        open_bundles([BytesSource(data, "x.bundle")]), list("012"), [1] * 3, ["1"] * 3
    )
    absent = next(
        key
        for key in range(10**6, 10**6 + 100)
        if not probe(bundle_set.coverage(BLOOM), np.array([0]), [key], key_type(BIGINT)).may_match[
            0
        ]
    )
    answer = probe(bundle_set.coverage(BLOOM), np.array([2, 1, 0]), [absent], key_type(BIGINT))
    assert answer.may_match.tolist() == [False, True, False]
    assert list(answer.damage) == [1]
    error = answer.damage[1]
    assert error.problem == "damaged block of bloom-filter of 'c'"
    assert error.file == "x.bundle"
    assert error.offset is not None
    assert start <= error.offset < end


@pytest.mark.parametrize(
    "payload", [bytes(4), bytes.fromhex("00000000ff"), bytes.fromhex("ffffffffff"), b"\x7f" * 9]
)
def test_what_cannot_be_a_filter_keeps_the_file(payload: bytes) -> None:
    good = bloom_of([1], BIGINT)
    bundle_set, _ = bundles_of([[good, payload, good]])
    answer = probe(bundle_set.coverage(BLOOM), np.arange(4), [1], key_type(BIGINT))
    assert answer.may_match.tolist() == [True] * 4
    assert list(answer.damage) == [1]
    assert "x.bundle: bloom-filter of 'c', file 1" in str(answer.damage[1])


def test_a_filter_of_many_functions_and_one_that_was_not_written() -> None:
    many = bloom_of([1], BIGINT, items=10, fpp=1e-30)
    assert int.from_bytes(many[:4], "big") > 64
    bundle_set, _ = bundles_of([[many, b""]])
    for key, expected in ((1, [True, False, True]), (2, [False, False, True])):
        answer = probe(bundle_set.coverage(BLOOM), np.arange(3), [key], key_type(BIGINT))
        assert answer.may_match.tolist() == expected
        assert answer.damage == {}


def test_a_block_of_another_length_is_damage() -> None:
    payloads = [bloom_of([n], BIGINT, items=10_000) for n in range(3)]
    bundle_set, _ = bundles_of([payloads])

    def read_many(ranges: Sequence[Range]) -> list[bytes]:
        blocks = read_each(ranges)
        per_file = len(blocks) // 3
        return [*([b"".join(seal(b"short"))] * per_file), *blocks[per_file:]]

    answer = probe(bundle_set.coverage(BLOOM), np.arange(3), [2], key_type(BIGINT), read_many)
    assert answer.may_match.tolist() == [True, False, True]
    assert list(answer.damage) == [0]


def test_another_block_may_still_show_that_a_damaged_filter_has_no_key() -> None:
    bundle_set, _ = bundles_of([[bloom_of([1], BIGINT, items=10_000)]])

    def read_many(ranges: Sequence[Range]) -> list[bytes]:
        first, *rest = read_each(ranges)
        return [bytes(len(first)), *rest]

    answer = probe(bundle_set.coverage(BLOOM), np.arange(1), [2], key_type(BIGINT), read_many)
    assert (answer.may_match.tolist(), list(answer.damage)) == ([False], [0])


def test_no_key_is_in_no_file() -> None:
    bundle_set, _ = bundles_of([[bloom_of([1], BIGINT)]])
    answer = probe(bundle_set.coverage(BLOOM), np.arange(2), [], key_type(BIGINT))
    assert answer.may_match.tolist() == [False, True]


@given(
    st.lists(filters, max_size=5),
    st.lists(st.integers(0, 60), max_size=4, unique=True),
    st.integers(1, 3),
    st.integers(1, 70),
)
def test_a_single_probe_equals_the_batch_however_it_reads(
    payloads: list[bytes], keys: list[Key], first: int, then: int
) -> None:
    """Compared with a plain check of every bit: single, stacked and bundled filters."""
    hashes = hash_keys(keys, key_type(BIGINT))
    expected = np.array(
        [
            [
                all(_has_bit(payload, position) for position in _bits_of(payload, hash_))
                for hash_ in hashes
            ]
            for payload in payloads
        ],
        np.bool_,
    ).reshape(len(payloads), len(keys))
    functions = np.array([int.from_bytes(payload[:4], "big") for payload in payloads], np.int64)
    bits = np.array([8 * (len(payload) - 4) for payload in payloads], np.int64)

    def read_bytes(rows: Int64Array, offsets: Int64Array) -> UInt8Array:
        pairs = zip(rows.tolist(), offsets.tolist(), strict=True)
        return np.array([payloads[row][4 + offset] for row, offset in pairs], np.uint8)

    batch = probe_filters(functions, bits, hashes, read_bytes, first=first, then=then)
    assert batch.tolist() == expected.tolist()
    for payload, row in zip(payloads, expected, strict=True):
        reader = BloomFilterReader(Section(BytesSource(payload)), key_type(BIGINT))
        assert reader.may_have(hashes).tolist() == row.tolist()
        assert reader.is_in(keys).skip == (not row.any())
    usual = np.flatnonzero(are_usual(payloads))
    stacked = may_have_any([payloads[row] for row in usual], keys, key_type(BIGINT))
    assert stacked.tolist() == expected[usual].any(axis=1).tolist()
    coverage = bundles_of([payloads])[0].coverage(BLOOM)
    for rounds in (1, 2):
        result = probe(coverage, np.arange(len(payloads)), keys, key_type(BIGINT), rounds=rounds)
        assert result.may_match.tolist() == expected.any(axis=1).tolist()


def _bits_of(payload: bytes, hash_: np.uint64) -> Iterator[int]:
    """Paimon's double hashing, one function after the other, in plain Python."""
    low, high = int(hash_) & 0xFFFFFFFF, int(hash_) >> 32
    for _ in range(int.from_bytes(payload[:4], "big")):
        low = (low + high) & 0xFFFFFFFF
        yield (low ^ 0xFFFFFFFF if low >> 31 else low) % (8 * (len(payload) - 4))


def _has_bit(payload: bytes, position: int) -> bool:
    return bool(payload[4 + (position >> 3)] >> (position & 7) & 1)
