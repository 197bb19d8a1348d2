"""The bundles of a table and its files: a plain model in Python says which entries are fresh."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import DamagedIndexWarning
from alcid.errors import AlcidWarning
from alcid.formats.file_index import BUILDERS
from alcid.formats.file_index.keys import key_type, read_column
from alcid.formats.puffin import Blob
from alcid.formats.source import BytesSource, Range, read_each
from alcid.index.bundle import (
    Bundle,
    BundleSet,
    BundleWriter,
    FileEntry,
    PayloadKind,
    State,
    merge,
    open_bundles,
    prefetch,
    reader,
)
from alcid.testing import CountingSource
from tests.index.bundle.bundles import (
    BIGINT,
    KINDS,
    File,
    content,
    data_files,
    expected,
    some_files,
    write,
)
from tests.index.bundle.test_bundle import with_version

PATHS = [f"p{number}" for number in range(6)]
bundles_of_files = st.lists(data_files(st.sampled_from(PATHS)), max_size=4)
listings = st.dictionaries(
    st.sampled_from(PATHS), st.tuples(st.integers(1, 2), st.sampled_from(["", "v2"]))
)
Listing = dict[str, tuple[int, str]]


def opened(bundles: Sequence[Sequence[File]], listing: Listing) -> BundleSet:
    sources = [BytesSource(write(files)) for files in bundles]
    sizes, versions = [size for size, _ in listing.values()], [v for _, v in listing.values()]
    return BundleSet(open_bundles(sources), list(listing), sizes, versions)


def is_fresh(file: File, listing: Listing) -> bool:
    return listing.get(file.entry.path) == (file.entry.size, file.entry.version)


@given(bundles_of_files, listings)
def test_the_newest_fresh_payload_is_taken(bundles: list[list[File]], listing: Listing) -> None:
    bundle_set = opened(bundles, listing)
    for kind in KINDS:
        coverage = bundle_set.coverage(kind)
        for number, path in enumerate(listing):
            having = [f for b in bundles for f in b if f.entry.path == path and kind in f.payloads]
            fresh = [file for file in having if is_fresh(file, listing)]
            payload = coverage.payload(number)
            if fresh:
                assert coverage.states[number] == State.FRESH
                assert payload is not None
                assert payload.read(0, payload.size) == fresh[-1].payloads[kind]
            else:
                assert coverage.states[number] == (State.STALE if having else State.ABSENT)
                assert payload is None


@given(bundles_of_files, listings)
def test_statistics_and_rows_are_those_of_the_newest(
    bundles: list[list[File]], listing: Listing
) -> None:
    bundle_set = opened(bundles, listing)
    fresh = [file for files in bundles for file in files if is_fresh(file, listing)]
    rows = {file.entry.path: file.entry.rows for file in fresh}
    crcs = {file.entry.path: file.entry.footer_crc for file in fresh}
    schemas = {file.entry.path: file.entry.schema for file in fresh}
    assert bundle_set.rows.to_pylist() == [rows.get(path) for path in listing]
    assert bundle_set.footer_crcs.to_pylist() == [crcs.get(path) for path in listing]
    assert bundle_set.schemas.to_pylist() == [schemas.get(path) for path in listing]
    values_by_group: dict[tuple[str, str], dict[str, str]] = {}
    for file, facts in zip(fresh, expected(fresh), strict=True):
        statistics = facts["statistics"]
        assert isinstance(statistics, dict)
        for group, value in statistics.items():
            values_by_group.setdefault(group, {})[file.entry.path] = value
    gathered = {
        (column, str(group.data_type)): {
            path: repr(value)
            for path, value in zip(listing, group.values, strict=True)
            if value.is_valid
        }
        for column in ("a", "b", "size")
        for group in bundle_set.statistics(column)
    }
    assert gathered == values_by_group


@given(bundles_of_files, listings)
def test_a_merge_is_worth_a_build_of_what_is_live(
    bundles: list[list[File]], listing: Listing
) -> None:
    data = io.BytesIO()
    count = merge(opened(bundles, listing), data)
    live = []
    for path in listing:
        fresh = [f for b in bundles for f in b if f.entry.path == path and is_fresh(f, listing)]
        if fresh:
            statistics = [facts["statistics"] for facts in expected(fresh)]
            payloads = {kind: payload for file in fresh for kind, payload in file.payloads.items()}
            facts = expected([File(fresh[-1].entry, payloads)])[0]
            facts["statistics"] = {k: v for columns in statistics for k, v in columns.items()}  # type: ignore[attr-defined]
            live.append(facts)
    assert content(Bundle.open(BytesSource(data.getvalue()))) == live
    assert count == len(live)


def test_a_merge_has_the_very_bytes_of_a_build() -> None:
    files = some_files(9)
    listing = {file.entry.path: (file.entry.size, file.entry.version) for file in files[:7]}
    parts = [[files[8], *files[::2][:4]], files[1::2]]
    data = io.BytesIO()
    assert merge(opened(parts, listing), data) == 7
    assert data.getvalue() == write(files[:7])


def test_a_merge_of_nothing_is_an_empty_bundle() -> None:
    data = io.BytesIO()
    assert merge(BundleSet([], [], [], []), data) == 0
    assert data.getvalue() == write([])


def test_a_merge_keeps_the_newest_of_other_blobs() -> None:
    sources = []
    for number in range(3):
        data = io.BytesIO()
        with BundleWriter(data) as writer:
            writer.add_file(FileEntry(f"p{number}", 1, "1", 5))
            column = "a" if number < 2 else "b"
            blob = Blob("theta", (), -1, -1, 0, 0, "zstd", {"column": column, "n": str(number)})
            writer.add_blob(blob, b"sketch %d" % number)
        sources.append(BytesSource(data.getvalue()))
    merged = io.BytesIO()
    merge(BundleSet(open_bundles(sources), ["p1"], [1], ["1"]), merged)
    bundle = Bundle.open(BytesSource(merged.getvalue()))
    others = [(blob.properties, bundle.read_blob(blob)) for blob in bundle.others]
    assert others == [
        ({"column": "a", "n": "1"}, b"sketch 1"),
        ({"column": "b", "n": "2"}, b"sketch 2"),
    ]


def test_a_merge_may_leave_kinds_out_and_say_what_it_replaces() -> None:
    files = some_files(3)
    listing = {file.entry.path: (file.entry.size, file.entry.version) for file in files}
    data = io.BytesIO()
    merge(opened([files], listing), data, kinds=KINDS[:2], replaces=["a.puffin", "b.puffin"])
    bundle = Bundle.open(BytesSource(data.getvalue()))
    assert bundle.replaces == ("a.puffin", "b.puffin")
    left = [replace(f, payloads={kind: f.payloads[kind] for kind in KINDS[:2]}) for f in files]
    assert content(bundle) == expected(left)
    assert Bundle.open(BytesSource(write(files))).replaces == ()


def test_the_lengths_of_payloads_are_known_without_reading_them() -> None:
    files = some_files(3)
    listing = {file.entry.path: (file.entry.size, file.entry.version) for file in files[:2]}
    bundle_set = opened([files[1:]], {"new": (1, ""), **listing})
    assert bundle_set.coverage(KINDS[3]).lengths.tolist() == [
        0,
        0,
        len(files[1].payloads[KINDS[3]]),
    ]


def test_listings_come_as_arrow_or_python() -> None:
    files = some_files()
    paths, versions = [f.entry.path for f in files], [f.entry.version for f in files]
    sizes = [file.entry.size for file in files]
    bundles = open_bundles([BytesSource(write(files))])
    for listing in (
        (paths, sizes, versions),
        (pa.array(paths), np.array(sizes, np.int32), pa.array(versions, pa.large_string())),
        (pa.chunked_array([paths[:1], paths[1:]]), np.array(sizes), pa.chunked_array([versions])),
    ):
        bundle_set = BundleSet(bundles, *listing)
        assert bundle_set.coverage(KINDS[0]).states.tolist() == [State.FRESH] * 3
        assert bundle_set.rows.to_pylist() == [0, 10, 20]


def test_an_index_is_asked_where_it_is() -> None:
    files = some_files()
    listing = {file.entry.path: (file.entry.size, file.entry.version) for file in files}
    empty = PayloadKind.index("m[k]", "bitmap")
    files_with_empty_index = [File(files[0].entry, {empty: b""})]
    coverage = opened([files_with_empty_index], listing).coverage(empty)
    reader = coverage.index(0, key_type(BIGINT))
    assert reader is not None
    assert reader.is_in([1]).skip
    assert coverage.index(1, key_type(BIGINT)) is None


def test_a_later_major_version_is_left_out_with_a_warning() -> None:
    with pytest.warns(AlcidWarning, match="found a bundle of version '2.0'") as caught:
        assert open_bundles([BytesSource(with_version("2.0"), "x.bundle")]) == []
    assert caught[0].category is not DamagedIndexWarning


def test_a_set_reads_each_directory_once() -> None:
    sources = [CountingSource(BytesSource(write(some_files()))) for _ in range(3)]
    bundles = open_bundles(sources)
    listing = [file.entry for file in some_files()]
    bundle_set = BundleSet(
        bundles, [f.path for f in listing], [f.size for f in listing], [f.version for f in listing]
    )
    for _ in range(2):
        for kind in KINDS:
            bundle_set.coverage(kind)
        bundle_set.statistics("id")
    assert [len(source.reads) for source in sources] == [1, 1, 1]


def test_many_bundles_are_opened_in_two_rounds() -> None:
    large = [
        File(
            FileEntry(f"{number:09d} {hashlib.sha256(b'%d' % number).hexdigest()}", 1, "1", 1),
            {PayloadKind.pages("id"): b"12345"},
        )
        for number in range(7_000)
    ]
    contents = [write(some_files()), write(large), write(some_files())]
    sources = [CountingSource(BytesSource(data)) for data in contents]
    rounds: list[list[tuple[int, int]]] = []

    def read_many(ranges: Sequence[Range]) -> list[bytes]:
        rounds.append([(offset, length) for _, offset, length in ranges])
        return read_each(ranges)

    bundles = open_bundles(sources, read_many=read_many)
    tail = 256 << 10
    first = [(0, len(contents[0])), (len(contents[1]) - tail, tail), (0, 4), (0, len(contents[2]))]
    assert len(rounds) == 2
    assert rounds[0] == first
    assert len(rounds[1]) == 1
    assert [bundle.file_count for bundle in bundles] == [3, 7_000, 3]
    taken = [len(source.take()) for source in sources]
    bundle_set = BundleSet(bundles, [file.entry.path for file in large], [1] * 7_000, ["1"] * 7_000)
    assert bundle_set.coverage(PayloadKind.pages("id")).states.tolist() == [State.FRESH] * 7_000
    assert taken == [1, 3, 1]
    assert [source.reads for source in sources] == [[], [], []]


def test_a_short_answer_when_opening_is_read_again() -> None:
    source = CountingSource(BytesSource(write(some_files())))
    (bundle,) = open_bundles([source], read_many=lambda ranges: [b"short" for _ in ranges])
    assert content(bundle) == expected(some_files())


def test_files_and_directories_that_are_very_large_are_read_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader, "_TAIL", 3_000)
    monkeypatch.setattr(reader, "_LARGEST_TOGETHER", 100)
    files = some_files(40)
    source = CountingSource(BytesSource(write(files)))
    bundle = Bundle.open(source)
    assert content(bundle) == expected(files)
    lengths = [length for _, length in source.reads]
    assert lengths[:2] == [3_000, 4]
    assert lengths.count(40 * 12 + 4) == len(KINDS)  # each directory by itself


def test_indexes_of_many_files_are_read_in_one_round() -> None:
    kind, values = PayloadKind.index("id", "bitmap"), [pa.array([n, n + 1, None]) for n in range(5)]
    files = [
        File(
            FileEntry(str(number), 1, "1", 3),
            {kind: BUILDERS["bitmap"](read_column(array, BIGINT))},
        )
        for number, array in enumerate(values)
    ]
    source = CountingSource(BytesSource(write(files)))
    bundle_set = BundleSet(open_bundles([source]), list("01234"), [1] * 5, ["1"] * 5)
    coverage = bundle_set.coverage(kind)
    payloads = [payload for n in range(5) if (payload := coverage.payload(n)) is not None]
    source.take()
    rounds: list[int] = []

    def read_many(ranges: Sequence[Range]) -> list[bytes]:
        rounds.append(len(ranges))
        return read_each(ranges)

    prefetch([(payload, [(0, payload.size)]) for payload in payloads], read_many)
    assert (rounds, len(source.take())) == ([5], 5)
    answers = []
    for number, payload in enumerate(payloads):
        index = coverage.index(number, key_type(BIGINT), payload)
        assert index is not None
        answers.append(list(index.is_in([3]).rows or ()))
    assert answers == [[], [], [1], [0], []]
    assert source.reads == []


def test_statistics_that_only_an_older_bundle_has_are_taken() -> None:
    (first, *_) = some_files()
    bare = File(replace(first.entry, statistics={}), {})
    listing = {first.entry.path: (first.entry.size, first.entry.version)}
    (statistics,) = opened([[first], [bare]], listing).statistics("id")
    assert statistics.values.field("max").to_pylist() == [5]
    data = io.BytesIO()
    merge(opened([[first], [bare]], listing), data)
    assert content(Bundle.open(BytesSource(data.getvalue()))) == expected([first])


def test_a_merge_reads_in_rounds_that_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alcid.index.bundle.merging.ROUND_BYTES", 60)
    files = [
        File(FileEntry(str(n), 1, "1", 1), {PayloadKind.pages("id"): bytes([n]) * 15})
        for n in range(8)
    ]
    rounds: list[int] = []

    def read_many(ranges: Sequence[Range]) -> list[bytes]:
        rounds.append(len(ranges))
        return read_each(ranges)

    data = io.BytesIO()
    listing = {file.entry.path: (1, "1") for file in files}
    merge(opened([files[::2], files[1::2]], listing), data, read_many=read_many)
    assert rounds == [3, 3, 2]
    assert data.getvalue() == write(files)
