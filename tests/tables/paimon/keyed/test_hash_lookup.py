"""Keys are looked up in hash indexes range by range, with the same result as in all of them."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import PaimonTable
from alcid._arrays import Int32Array
from alcid.errors import FormatError
from alcid.formats.hash_index import HashIndex, read_hashes_between
from alcid.formats.source import BytesSource
from alcid.tables.paimon.data_files import table_paths
from alcid.tables.paimon.keyed import hash_lookup
from alcid.tables.paimon.keyed.bucket import Buckets, KeyedTable, buckets_of
from alcid.tables.paimon.keyed.hash_lookup import NEW_KEY, HashIndexes
from alcid.tables.paimon.keyed.memory import MemoryBounds
from alcid.tables.paimon.keyed.upsert import keyed_table
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.statistics import EMPTY
from alcid.tables.paimon.metadata.table_state import HASH, IndexEntry
from tests.tables.paimon.small_tables import commit, create

LIMITS = np.iinfo(np.int32)


def indexed(folder: Path, by_bucket: dict[int, Int32Array]) -> tuple[KeyedTable, Buckets]:
    """A table with hash indexes as Java writes them, in no order, and no data files."""
    options = {"bucket": "-1", "deletion-vectors.enabled": "true"}
    table: PaimonTable = create(folder, {"id": "INT"}, primary_keys=["id"], options=options)
    entries = []
    for number, hashes in by_bucket.items():
        data = hashes.astype(">i4").tobytes()
        table.storage.put(f"index/hash-{number}", data)
        entries.append(IndexEntry(EMPTY, number, HASH, f"hash-{number}", len(data), len(hashes)))
    commit(table, Change(kind="APPEND", index_added=entries))
    table.refresh()
    keyed = keyed_table(table, "upsert")
    return keyed, buckets_of(table.snapshot.state, table_paths(keyed.schema, keyed.options))


def random_hashes(count: int, buckets: int) -> dict[int, Int32Array]:
    random = np.random.default_rng(count)
    hashes = np.unique(random.integers(LIMITS.min, LIMITS.max, count, np.int32, endpoint=True))
    hashes = np.union1d(hashes, [LIMITS.min, -1, 0, LIMITS.max]).astype(np.int32)
    return dict(enumerate(np.array_split(random.permutation(hashes), buckets)))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[KeyedTable, Buckets]:
    return indexed(tmp_path_factory.mktemp("table"), random_hashes(3000, 5))


@given(
    hash_bytes=st.integers(100, 20_000),
    probes=st.lists(st.integers(LIMITS.min, LIMITS.max) | st.integers(0, 2999), max_size=60),
    times=st.integers(1, 3),
)
def test_any_number_of_ranges_finds_the_same(
    table: tuple[KeyedTable, Buckets], hash_bytes: int, probes: list[int], times: int
) -> None:
    keyed, buckets = table
    bucket_of = {
        hash_: number for number, own in random_hashes(3000, 5).items() for hash_ in own.tolist()
    }
    known = sorted(bucket_of)
    hashes = [known[probe] if 0 <= probe < 3000 else probe for probe in probes]
    hashes += [LIMITS.min, -1, 0, LIMITS.max]
    indexes = HashIndexes(replace(keyed, memory=MemoryBounds(hash_bytes=hash_bytes)), buckets)
    assert indexes.fits == (indexes.ranges == 1) == (hash_bytes >= 4 * len(known))
    found: list[int] = []
    for _ in range(times):
        found = indexes.find(EMPTY, np.array(hashes, np.int32)).tolist()
        assert found == [bucket_of.get(hash_, NEW_KEY) for hash_ in hashes]
        assert sum(loaded.size for loaded in indexes._loaded.values()) <= hash_bytes
    numbers = indexes.range_numbers(EMPTY, np.array(known, np.int32))
    assert set(numbers.tolist()) == set(range(indexes.ranges)) or indexes.ranges > 500
    assert np.all(np.diff(numbers) >= 0)
    copy = pickle.loads(pickle.dumps(indexes))
    assert copy._loaded == {}
    assert copy.find(EMPTY, np.array(hashes, np.int32)).tolist() == found


def test_a_range_reads_its_files_once(table: tuple[KeyedTable, Buckets]) -> None:
    keyed, buckets = table
    indexes = HashIndexes(replace(keyed, memory=MemoryBounds(hash_bytes=3100)), buckets)
    assert indexes.ranges == 4
    hashes = np.sort(np.concatenate(list(random_hashes(3000, 5).values())))
    read = list[Any]()

    def read_seen(source: Any, least: int, greatest: int) -> Int32Array:
        read.append((least, greatest))
        return read_hashes_between(source, least, greatest)

    with patch.object(hash_lookup, "read_hashes_between", read_seen):
        for part in np.array_split(hashes, 40):
            assert (indexes.find(EMPTY, part) >= 0).all()
    quarter = 1 << 30
    assert read == [
        bounds
        for first in range(-2, 2)
        for bounds in [(first * quarter, (first + 1) * quarter - 1)] * 5
    ]


def test_tables_without_hash_indexes_have_no_known_keys(tmp_path: Path) -> None:
    keyed, buckets = indexed(tmp_path, {0: np.array([7], np.int32)})
    indexes = HashIndexes(keyed, buckets)
    assert indexes.find(b"another", np.array([7], np.int32)).tolist() == [NEW_KEY]
    assert indexes.range_numbers(b"another", np.array([7, -7], np.int32)).tolist() == [0, 0]


def test_memory_of_a_range_is_that_of_its_hashes(tmp_path: Path) -> None:
    count = 2_000_000
    keyed, buckets = indexed(tmp_path, random_hashes(count, 16))
    probes = np.random.default_rng(1).integers(LIMITS.min, LIMITS.max, 1 << 16, np.int32)
    peaks = {}
    for hash_bytes in (4 * count + 100, count):
        indexes = HashIndexes(replace(keyed, memory=MemoryBounds(hash_bytes=hash_bytes)), buckets)
        order = np.argsort(indexes.range_numbers(EMPTY, probes), kind="stable")
        tracemalloc.start()
        try:
            for part in np.array_split(probes[order], 64):
                for _ in range(30):  # enough probes to build a map
                    indexes.find(EMPTY, part)
            peaks[hash_bytes] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    whole, range_ = peaks.values()
    assert whole < 3.5 * 4 * count, whole
    # Of four ranges one is in memory, and one more until the garbage collector has run.
    assert range_ < 0.7 * whole, range_


@given(
    hashes=st.lists(st.integers(LIMITS.min, LIMITS.max)),
    ends=st.tuples(st.integers(LIMITS.min, LIMITS.max), st.integers(LIMITS.min, LIMITS.max)),
    chunk=st.sampled_from([4, 9, 1000]),
)
def test_hashes_of_a_range_are_read_chunk_by_chunk(
    hashes: list[int], ends: tuple[int, int], chunk: int
) -> None:
    least, greatest = sorted(ends)
    source = BytesSource(np.array(hashes, ">i4").tobytes())
    found = read_hashes_between(source, least, greatest, chunk=chunk).tolist()
    assert found == sorted({hash_ for hash_ in hashes if least <= hash_ <= greatest})
    assert found == [one for one in HashIndex(hashes).hashes.tolist() if least <= one <= greatest]


def test_a_torn_file_has_no_range() -> None:
    with pytest.raises(FormatError, match="truncated hash at offset 4"):
        read_hashes_between(BytesSource(b"123456"), 0, 1)
