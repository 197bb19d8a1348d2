"""What holds for every storage: the same listing, bytes and errors."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.errors import (
    FileGoneError,
    FormatError,
    NameTakenError,
    StorageError,
)
from alcid.formats.source import BytesSource, Range, Section
from alcid.storage import Storage

DATA = random.Random(7).randbytes(50_000)
ODD_NAMES = [
    "a b.parquet",
    "dt=2024-01-01/part#1.parquet",
    "dt=2024-01-01/what?.parquet",
    "pct=%2F/100%.parquet",
    "q=a::b/c&d+e.parquet",
    "über/日本.parquet",
]


def test_listing_gives_paths_sizes_and_versions_sorted_by_path(storage: Storage) -> None:
    names = ["b.parquet", "a/z.parquet", "a/b/c.parquet", "a.txt"]
    for length, name in enumerate(names):
        storage.put(name, DATA[:length])
    listing = storage.list()
    assert listing.paths.to_pylist() == ["a.txt", "a/b/c.parquet", "a/z.parquet", "b.parquet"]
    assert listing.sizes.tolist() == [3, 2, 1, 0]
    assert listing.sizes.dtype == np.int64
    assert len(listing) == 4
    for path, size, version in zip(
        listing.paths.to_pylist(), listing.sizes, listing.versions.to_pylist(), strict=True
    ):
        assert storage.stat(path) == (size, version)
        assert version.isdigit() or version.startswith('"')


def test_listing_of_a_folder_and_a_suffix(storage: Storage) -> None:
    for name in ["a/1.parquet", "a/2.csv", "ab/3.parquet", "a/b/4.parquet"]:
        storage.put(name, b"x")
    assert storage.list("a").paths.to_pylist() == ["a/1.parquet", "a/2.csv", "a/b/4.parquet"]
    assert storage.list("a", suffix=".parquet").paths.to_pylist() == [
        "a/1.parquet",
        "a/b/4.parquet",
    ]


def test_listing_passes_over_hidden_names_except_below_a_hidden_folder(storage: Storage) -> None:
    names = ["_SUCCESS", ".x.crc", "_alcid/1.puffin", "_alcid/.2.tmp", "a/_temporary/0/b", "_k=1/c"]
    for name in [*names, "a/d", "e._COPYING_"]:
        storage.put(name, b"x")
    assert storage.list().paths.to_pylist() == ["_k=1/c", "a/d"]
    assert storage.list("_alcid").paths.to_pylist() == ["_alcid/1.puffin"]
    everything = storage.list(hidden=True).paths.to_pylist()
    assert everything == sorted([*names, "a/d", "e._COPYING_"])


def test_a_folder_that_does_not_exist_has_no_files(storage: Storage) -> None:
    listing = storage.list("_alcid")
    assert (len(listing), listing.paths.to_pylist(), listing.sizes.tolist()) == (0, [], [])


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_stay_as_they_are(storage: Storage, name: str) -> None:
    storage.put(name, DATA)
    assert storage.list().paths.to_pylist() == [name]
    assert storage.source(name).read(100, 50) == DATA[100:150]
    assert storage.source(name).name == f"{storage.location}/{name}"
    storage.delete([name])
    assert not storage.exists(name)


def test_ranges_in_any_order_overlapping_adjacent_and_empty(storage: Storage) -> None:
    storage.put("a", DATA)
    ranges = [
        (40_000, 10_000),
        (0, 10),
        (10, 10),
        (5, 30),
        (0, 0),
        (50_000, 0),
        (0, 10),
        (49_999, 1),
    ]
    expected = [DATA[offset : offset + length] for offset, length in ranges]
    assert storage.source("a").read_ranges(ranges) == expected
    assert storage.source("a", len(DATA)).read_ranges(ranges) == expected
    assert storage.read_many([("a", *range_) for range_ in ranges]) == expected


def test_one_round_over_many_files_keeps_the_order(storage: Storage) -> None:
    for number in range(12):
        storage.put(f"f{number}", DATA[number * 1000 :])
    draw = random.Random(3)
    requests = [
        (f"f{draw.randrange(12)}", draw.randrange(9000), draw.randrange(99)) for _ in "x" * 60
    ]
    expected = [
        DATA[int(f[1:]) * 1000 :][offset : offset + length] for f, offset, length in requests
    ]
    assert storage.read_many(requests) == expected
    assert storage.read_many([]) == []


def test_one_round_over_sources_of_many_files(storage: Storage) -> None:
    for number in range(5):
        storage.put(f"f{number}", DATA[number * 1000 :])
    sources = [storage.source(f"f{number}", len(DATA) - number * 1000) for number in range(5)]
    draw = random.Random(4)
    chosen = [(draw.randrange(5), draw.randrange(9000), draw.randrange(99)) for _ in "x" * 40]
    ranges = [Range(sources[number], offset, length) for number, offset, length in chosen]
    expected = [DATA[number * 1000 + offset :][:length] for number, offset, length in chosen]
    assert storage.read_ranges(ranges) == expected
    assert storage.read_ranges(ranges[:1]) == expected[:1]
    assert storage.read_ranges([]) == []


def test_a_round_reads_sources_of_others_too(storage: Storage, tmp_path: Path) -> None:
    storage.put("a", DATA)
    other = Storage.open(tmp_path / "other")
    other.put("a", DATA[::-1])
    own, theirs, plain = storage.source("a"), other.source("a"), BytesSource(b"0123456789")
    before, theirs_before = storage.traffic, other.traffic
    parts = storage.read_ranges(
        [
            Range(plain, 2, 3),
            Range(own, 10, 5),
            Range(theirs, 0, 4),
            Range(own, 15, 5),
            Range(storage.source("a"), 20, 5),
            Range(plain, 0, 0),
        ]
    )
    assert parts == [b"234", DATA[10:15], DATA[::-1][:4], DATA[15:20], DATA[20:25], b""]
    assert (storage.traffic - before).reads == 1  # side by side, in one file
    assert (other.traffic - theirs_before).reads == 1


def test_a_round_checks_every_range(storage: Storage) -> None:
    storage.put("a", b"0123456789")
    sized, unknown = storage.source("a", 10), storage.source("a")
    for offset, length in ((-1, 1), (0, -1), (5, 6), (11, 1), (1 << 63, 1), (0, 1 << 70)):
        with pytest.raises(FormatError, match="range outside of the file"):
            storage.read_ranges([Range(sized, 0, 1), Range(sized, offset, length)])
    for offset, length in ((-1, 1), (1 << 60, 1), (1 << 63, 1)):
        with pytest.raises(FormatError, match="range outside of the file"):
            storage.read_ranges([Range(sized, 0, 1), Range(unknown, offset, length)])
    with pytest.raises(FileGoneError):
        storage.read_ranges([Range(sized, 0, 1), Range(storage.source("no"), 0, 1)])


def test_the_gap_is_wider_over_a_network(storage: Storage) -> None:
    assert storage.gap == (1 << 20 if storage.remote else 16 << 10)


def test_a_range_longer_than_one_request_is_put_together(storage: Storage) -> None:
    data = DATA * 400  # 20 MB, three requests over a network
    storage.put("long", data)
    before = storage.traffic
    assert storage.source("long", len(data)).read(1, len(data) - 1) == data[1:]
    done = storage.traffic - before
    assert (done.reads, done.bytes_read) == (3 if storage.remote else 1, len(data) - 1)


def test_a_file_that_is_not_there_is_gone_and_named(storage: Storage) -> None:
    source = storage.source("no/such.parquet", 100)
    with pytest.raises(FileGoneError) as caught:
        source.read(0, 10)
    assert isinstance(caught.value, FileNotFoundError)
    assert str(caught.value) == f"{source.name}: could not be read: no such file or folder"
    with pytest.raises(FileGoneError):
        _ = storage.source("no/such.parquet").size
    with pytest.raises(FileGoneError):
        storage.read_many([("no/such.parquet", 0, 1)])
    assert not storage.exists("no/such.parquet")
    assert storage.traffic.retries == 0


def test_a_file_removed_after_a_read_is_gone(storage: Storage) -> None:
    storage.put("a", DATA)
    source = storage.source("a", len(DATA))
    assert source.read(0, 5) == DATA[:5]
    storage.delete(["a"])
    with pytest.raises(FileGoneError):
        source.read(0, 5)


def test_a_range_outside_of_the_file_is_an_error(storage: Storage) -> None:
    storage.put("a", b"0123456789")
    for offset, length in ((-1, 1), (0, -1), (5, 6), (11, 1)):
        with pytest.raises(FormatError, match="range outside of the file"):
            storage.source("a", 10).read(offset, length)
    for offset, length in ((5, 6), (10, 1), (99, 1)):  # the size is not known
        with pytest.raises(StorageError, match=r"bytes at offset|not satisfiable|past end of file"):
            storage.read_many([("a", offset, length)])


def test_a_put_never_replaces(storage: Storage) -> None:
    storage.put("_alcid/x.puffin", b"first")
    storage.put("_alcid/x.puffin", b"first")  # as after an answer that was lost
    for other in (b"other", b"longer than before", b""):
        with pytest.raises(NameTakenError) as caught:
            storage.put("_alcid/x.puffin", other)
        assert isinstance(caught.value, FileExistsError)
        assert str(caught.value) == f"{storage.location}/_alcid/x.puffin: exists already"
    assert storage.source("_alcid/x.puffin").read(0, 5) == b"first"
    assert storage.list("_alcid", hidden=True).paths.to_pylist() == ["_alcid/x.puffin"]


def test_delete_passes_over_what_is_not_there(storage: Storage) -> None:
    for name in "abc":
        storage.put(name, b"x")
    storage.delete(["a", "none", "b"])
    assert storage.list().paths.to_pylist() == ["c"]


@pytest.mark.parametrize("path", ["/etc/passwd", "../a", "a/../../b", "a//b", "./a", "a/", "a\0b"])
def test_a_path_does_not_lead_out_of_the_storage(storage: Storage, path: str) -> None:
    for use in (
        lambda: storage.source(path),
        lambda: storage.read_many([(path, 0, 1)]),
        lambda: storage.put(path, b""),
        lambda: storage.delete([path]),
        lambda: storage.exists(path),
        lambda: storage.list(path),
    ):
        with pytest.raises(StorageError, match="not a path below its storage"):
            use()


def test_a_pickled_storage_opens_the_same_files(storage: Storage) -> None:
    storage.put("a", DATA)
    again = pickle.loads(pickle.dumps(storage))
    assert again.location == storage.location
    assert again.source("a").read(7, 7) == DATA[7:14]
    assert again.traffic.bytes_read == 7
    source = pickle.loads(pickle.dumps(storage.source("a", len(DATA))))
    assert (source.size, source.read(1, 2)) == (len(DATA), DATA[1:3])


def test_a_location_may_be_a_file(storage: Storage) -> None:
    storage.put("a", DATA)
    options = storage.__reduce__()[1]
    assert isinstance(options, tuple)
    whole = Storage.open(f"{storage.location}/a", options[1])
    assert whole.source("").size == len(DATA)
    assert whole.source("").read(3, 4) == DATA[3:7]


def test_traffic_counts_what_was_asked(storage: Storage) -> None:
    storage.put("a", DATA)
    storage.list()
    before = storage.traffic
    storage.source("a", len(DATA)).read_ranges([(0, 10), (10, 10), (15, 10)])
    step = storage.traffic - before
    assert (step.reads, step.bytes_read, step.lists, step.puts) == (1, 25, 0, 0)
    assert before.puts == 1
    assert before.bytes_written == len(DATA)
    assert before.lists == 1
    assert storage.traffic.requests == before.requests + step.requests


def test_formats_read_from_a_storage(storage: Storage) -> None:
    assert Section(storage.source("none", 10), 2, 3).length == 3
    storage.put("a", DATA)
    assert Section(storage.source("a")).section(10).read(5, 5) == DATA[15:20]


@given(
    ranges=st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]), st.integers(0, len(DATA)), st.integers(0, 20_000)
        ).map(lambda drawn: (drawn[0], drawn[1], min(drawn[2], len(DATA) - drawn[1]))),
        max_size=30,
    ),
    gap=st.integers(0, 3000),
    largest=st.integers(1000, 60_000),
    remote=st.booleans(),
)
def test_any_ranges_equal_slices(
    tmp_path_factory: pytest.TempPathFactory,
    ranges: list[tuple[str, int, int]],
    gap: int,
    largest: int,
    remote: bool,
) -> None:
    storage = Storage.open(tmp_path_factory.getbasetemp() / "slices")
    for name in "ab":
        storage.put(name, DATA if name == "a" else DATA[::-1])
    backend = storage._backend
    backend.gap, backend.largest, backend.remote = gap, largest, remote
    files = {"a": DATA, "b": DATA[::-1]}
    expected = [files[name][offset : offset + length] for name, offset, length in ranges]
    assert storage.read_many(ranges) == expected
    sources = {name: storage.source(name, len(DATA)) for name in "ab"}
    assert expected == storage.read_ranges(
        [Range(sources[name], *range_) for name, *range_ in ranges]
    )
    only = [range_ for range_ in ranges if range_[0] == "a"]
    assert storage.source("a").read_ranges(range_[1:] for range_ in only) == [
        DATA[offset : offset + length] for _, offset, length in only
    ]


def test_starts_of_files_are_their_sizes_and_first_bytes(storage: Storage) -> None:
    sizes = {"a": 0, "b/c": 1, "b/d": 99, "b/e": 100, "f": 101, "g": 5_000}
    for path, size in sizes.items():
        storage.put(path, DATA[:size])
    paths = [*sizes, "b/missing", "missing/too"]
    before = storage.traffic
    heads = storage.read_heads(paths, 100, {"b/d": 99, "g": 5_000})
    spent = storage.traffic - before
    expected = [(size, DATA[: min(size, 100)]) for size in sizes.values()]
    assert heads == [*expected, None, None]
    assert spent.bytes_read == sum(len(data) for _, data in expected)
    assert storage.read_heads([], 100, {}) == []


def test_starts_do_not_lead_out_of_the_storage(storage: Storage) -> None:
    with pytest.raises(StorageError, match="not a path below its storage"):
        storage.read_heads(["../a"], 10, {})
