"""Paimon's released Java reads the table indexes that we write: vectors, hash index, key hashes.

Golden files show that we read what it writes. Here its own classes open our files, also as part of
whole tables, and random values go through both.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

from alcid import (
    BucketAssigner,
    BucketOptions,
    DeletionVector,
    DeletionVectorFile,
    DeletionVectorRange,
    HashIndex,
    Routing,
)
from alcid.formats.binary_row import EMPTY_ROW_HASH, binary_rows, hash_rows
from alcid.formats.buckets.routing import fixed_bucket
from alcid.types import DataType
from tests.golden.binary_row_cases import EDGES
from tests.golden.java_deletion_vectors import java_vector
from tests.golden.make_table_index_java import Keys
from tests.golden.paimon_jvm import PaimonJvm
from tests.golden.positions import SETS, WIDE_SETS, positions_of
from tests.golden.values import Json
from tests.interop.java_tables import (
    commit_vectors,
    create_table,
    file_meta,
    read_ids,
    write_ids,
)
from tests.interop.random_rows import KEY_TYPES, arrow_columns, random_rows

Bits = Literal[32, 64]
KINDS: list[Bits] = [32, 64]
POSITIONS: dict[Bits, dict[str, list[int]]] = {
    32: {name: positions_of(rows) for name, rows in SETS.items()},
    64: {name: positions_of(rows) for name, rows in (SETS | WIDE_SETS).items()},
}
VECTORS = {"bucket": "-1", "deletion-vectors.enabled": "true"}


def vector_files(jvm: PaimonJvm, path: Path, target_size: int = 2**21) -> tuple[Any, Path]:
    """Paimon's reader and writer of files of vectors, and the folder where they are."""
    options = VECTORS | {"deletion-vector.index-file.target-size": f"{target_size} b"}
    table = create_table(jvm, path / "table", {"id": "INT"}, options)
    (path / "table" / "index").mkdir()
    empty = jvm.paimon.data.BinaryRow.EMPTY_ROW
    return table.store().newIndexFileHandler().dvIndex(empty, 0), path / "table" / "index"


def random_positions(chance: np.random.Generator, bits: Bits) -> list[int]:
    """Some runs and some scattered rows, in one or more containers and keys."""
    positions: set[int] = set()
    for _ in range(chance.integers(1, 6)):
        key = int(chance.integers(0, 4)) << 32 if bits == 64 else 0
        start = key + int(chance.integers(0, 400_000))
        positions.update(range(start, start + int(chance.integers(0, 3000))))
        positions.update((start + chance.integers(0, 70_000, chance.integers(0, 6000))).tolist())
    return sorted(positions)


# -- deletion vectors --------------------------------------------------------------------------


@pytest.mark.parametrize("bits", KINDS)
def test_it_reads_every_vector_of_our_file(jvm: PaimonJvm, tmp_path: Path, bits: Bits) -> None:
    files, folder = vector_files(jvm, tmp_path)
    expected = POSITIONS[bits]
    written = DeletionVectorFile.write(
        {name: DeletionVector(positions) for name, positions in expected.items()}, bits=bits
    )
    (folder / "ours").write_bytes(written.data)
    vectors = files.readAllDeletionVectors(file_meta(jvm, "ours", written))
    assert set(vectors) == set(expected)
    for part in written.ranges:
        vector, positions = vectors[part.data_file], expected[part.data_file]
        assert vector.equals(java_vector(jvm, bits, positions)), part
        assert (vector.getCardinality(), part.cardinality) == (len(positions), len(positions))


def test_it_reads_a_file_of_both_kinds(jvm: PaimonJvm, tmp_path: Path) -> None:
    files, folder = vector_files(jvm, tmp_path)
    kinds = {
        f"{name}-{bits}": (bits, POSITIONS[bits][name])
        for name in ("few", "empty", "scattered", "high")
        for bits in KINDS
    }
    written = DeletionVectorFile.write(
        {name: DeletionVector(positions, bits=bits) for name, (bits, positions) in kinds.items()}
    )
    (folder / "ours").write_bytes(written.data)
    vectors = files.readAllDeletionVectors(file_meta(jvm, "ours", written))
    assert set(vectors) == set(kinds)
    for name, (bits, positions) in kinds.items():
        assert vectors[name].equals(java_vector(jvm, bits, positions)), name


@pytest.mark.parametrize("bits", KINDS)
def test_it_reads_one_vector_by_its_range(jvm: PaimonJvm, tmp_path: Path, bits: Bits) -> None:
    vectors = {name: DeletionVector(POSITIONS[bits][name]) for name in ("run", "few", "scattered")}
    written = DeletionVectorFile.write(vectors, bits=bits)
    path = tmp_path / "ours"
    path.write_bytes(written.data)
    for part in reversed(written.ranges):
        location = jvm.paimon.table.source.DeletionFile(str(path), part.offset, part.length, None)
        files = jvm.paimon.fs.local.LocalFileIO()
        vector = jvm.paimon.deletionvectors.DeletionVector.read(files, location)
        assert vector.equals(java_vector(jvm, bits, POSITIONS[bits][part.data_file]))


@pytest.mark.parametrize("bits", KINDS)
def test_it_writes_the_same_file(jvm: PaimonJvm, tmp_path: Path, bits: Bits) -> None:
    """Byte for byte, at the same offsets; also for random positions."""
    files, folder = vector_files(jvm, tmp_path)
    chance = np.random.default_rng(random.getrandbits(64))
    expected = {f"data-{number}": random_positions(chance, bits) for number in range(20)}
    expected |= POSITIONS[bits]
    theirs = jvm.java.util.LinkedHashMap()
    for name, positions in expected.items():
        theirs.put(name, java_vector(jvm, bits, positions))
    meta = files.writeSingleFile(theirs)
    written = DeletionVectorFile.write(
        {name: DeletionVector(positions) for name, positions in expected.items()}, bits=bits
    )
    data = (folder / meta.fileName()).read_bytes()
    assert written.data == data
    ranges = tuple(ranges_of(meta))
    assert written.ranges == ranges
    with DeletionVectorFile.open(folder / meta.fileName()) as file:
        read = file.read_all(ranges)
    assert {name: vector.to_numpy().tolist() for name, vector in read.items()} == expected
    assert {vector.bits for vector in read.values()} == {bits}


def ranges_of(meta: Any) -> list[DeletionVectorRange]:
    return [
        DeletionVectorRange(name, item.offset(), item.length(), item.cardinality())
        for name, item in meta.dvRanges().items()
    ]


@pytest.mark.parametrize("target", [1, 500, 9000, 2**21])
@pytest.mark.parametrize("bits", KINDS)
def test_it_rolls_files_where_we_do(
    jvm: PaimonJvm, tmp_path: Path, bits: Bits, target: int
) -> None:
    files, folder = vector_files(jvm, tmp_path, target)
    names = ["few", "run", "scattered", "zero", "empty", "one", "mixed_containers"]
    written_positions = {
        f"{number}-{name}": POSITIONS[bits][name] for number, name in enumerate(names * 2)
    }
    theirs = jvm.java.util.LinkedHashMap()
    for name, positions in written_positions.items():
        theirs.put(name, java_vector(jvm, bits, positions))
    expected = [
        ((folder / meta.fileName()).read_bytes(), tuple(ranges_of(meta)))
        for meta in files.writeWithRolling(theirs)
    ]
    vectors = {name: DeletionVector(positions) for name, positions in written_positions.items()}
    ours = DeletionVectorFile.roll(vectors, bits=bits, target_size=target)
    assert [(written.data, written.ranges) for written in ours] == expected


@pytest.mark.parametrize("bits", KINDS)
def test_it_merges_as_we_unite(jvm: PaimonJvm, bits: Bits) -> None:
    chance = np.random.default_rng(random.getrandbits(64))
    interface = jvm.paimon.deletionvectors.DeletionVector
    for _ in range(10):
        first, second = random_positions(chance, bits), random_positions(chance, bits)
        merged = interface.deserializeFromBytes(DeletionVector(first).to_bytes(bits))
        other = interface.deserializeFromBytes(DeletionVector(second).to_bytes(bits))
        merged.merge(other)
        union = DeletionVector(first) | DeletionVector(second)
        assert merged.equals(interface.deserializeFromBytes(union.to_bytes(bits)))
        assert merged.getCardinality() == len(union) == len({*first, *second})
        data = bytes(interface.serializeToBytes(merged))
        assert DeletionVector.from_bytes(data) == union


@pytest.mark.parametrize("bits", KINDS)
def test_it_skips_the_rows_of_our_vectors(jvm: PaimonJvm, tmp_path: Path, bits: Bits) -> None:
    """A table of two data files, with a file of vectors that we wrote and Java committed."""
    path = tmp_path / "table"
    table = create_table(jvm, path, {"id": "INT"}, VECTORS)
    write_ids(jvm, table, range(300))
    (first,) = path.glob("bucket-0/data-*")
    write_ids(jvm, table, range(300, 340))
    (second,) = set(path.glob("bucket-0/data-*")) - {first}
    vectors = {
        first.name: DeletionVector([0, 7, *range(100, 250), 299]),
        second.name: DeletionVector(range(0, 40, 2)),
    }
    commit_vectors(jvm, path, DeletionVectorFile.write(vectors, bits=bits))
    expected = [*range(1, 7), *range(8, 100), *range(250, 299), *range(301, 340, 2)]
    assert sorted(read_ids(jvm, table)) == expected


# -- hash index --------------------------------------------------------------------------------


def int_array(jvm: PaimonJvm, values: Sequence[int]) -> Any:
    """An `int[]`, made from a buffer, so that one call is enough."""
    buffer = jvm.java.nio.ByteBuffer.wrap(np.array(values, ">i4").tobytes()).asIntBuffer()
    array = jvm.gateway.new_array(jvm.gateway.jvm.int, len(values))
    buffer.get(array)
    return array


def test_it_reads_and_writes_our_hash_index(jvm: PaimonJvm, tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = create_table(jvm, path, {"id": "INT NOT NULL"}, {"bucket": "-1"})
    (path / "index").mkdir()
    empty = jvm.paimon.data.BinaryRow.EMPTY_ROW
    file = table.store().newIndexFileHandler().hashIndex(empty, 0)
    chance = np.random.default_rng(random.getrandbits(64))
    for count in (0, 1, 20_000):
        hashes = np.unique(chance.integers(-(2**31), 2**31, count, dtype=np.int32))
        ours = HashIndex(hashes)
        (path / "index" / "ours").write_bytes(ours.to_bytes())
        meta = jvm.paimon.index.IndexFileMeta("HASH", "ours", 4 * len(ours), len(ours), None, None)
        read = file.readList(meta).toString()[1:-1]
        assert [int(text) for text in read.split(", ") if text] == hashes.tolist()
        shuffled = chance.permutation(hashes).tolist()
        written = path / "index" / file.write(int_array(jvm, shuffled)).fileName()
        index = HashIndex.from_bytes(written.read_bytes())
        assert (index.hashes.tolist(), index.duplicates) == (hashes.tolist(), 0)


def test_a_table_whose_hash_index_it_wrote_and_we_extend(jvm: PaimonJvm, tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = create_table(jvm, path, {"id": "INT NOT NULL"}, {"bucket": "-1"})
    buckets = {number: number * number % 3 for number in range(300)}
    write_ids(jvm, table, buckets, buckets)
    handler = table.store().newIndexFileHandler()
    files = {
        entry.bucket(): path / "index" / entry.indexFile().fileName()
        for entry in handler.scanEntries()
    }
    assert sorted(files) == sorted(set(buckets.values()))
    for bucket, file in files.items():
        keys = pa.array([key for key in buckets if buckets[key] == bucket], pa.int32())
        assert HashIndex.from_bytes(file.read_bytes()) == HashIndex(hash_rows([keys]))

    # The assigner knows keys without a row, if it reads what we wrote.
    added = hash_rows([pa.array(range(5000, 5050), pa.int32())])
    files[1].write_bytes(HashIndex.from_bytes(files[1].read_bytes()).union(added).to_bytes())
    indexes = {bucket: HashIndex.from_bytes(file.read_bytes()) for bucket, file in files.items()}
    chance = np.random.default_rng(random.getrandbits(64))
    new = chance.integers(-(2**31), 2**31, 1500, dtype=np.int32)
    present = hash_rows([pa.array(list(buckets), pa.int32())])
    hashes = chance.permutation(np.concatenate((added, present, new, new[::5])))
    for routing in (Routing(1, 1), Routing(4, 2)):
        channels = routing.channel(EMPTY_ROW_HASH, hashes)
        for channel in range(routing.channels):
            own_hashes = hashes[channels == channel]
            ours = BucketAssigner(BucketOptions(target_row_num=220), channel, routing)
            for bucket, index in indexes.items():
                ours.restore(bucket, index)
            numbers = (routing.channels, routing.assigners, channel, 220, -1)
            theirs = jvm.paimon.index.HashBucketAssigner(
                table.snapshotManager(), "ours", handler, *numbers
            )
            empty = jvm.paimon.data.BinaryRow.EMPTY_ROW
            assigned = [theirs.assign(empty, key) for key in own_hashes.tolist()]
            assert ours.assign(own_hashes).tolist() == assigned
            if routing.channels == 1:
                bucket_of = dict(zip(own_hashes.tolist(), assigned, strict=True))
                assert {bucket_of[key] for key in added.tolist()} == {1}
                assert [bucket_of[key] for key in present.tolist()] == list(buckets.values())


# -- hashes of rows ----------------------------------------------------------------------------


def check_rows(jvm: PaimonJvm, types: list[str], rows: list[list[Json]]) -> None:
    kinds = [DataType.parse(name) for name in types]
    columns = arrow_columns(types, rows)
    made, hashes = binary_rows(columns, kinds), hash_rows(columns, kinds)
    assert made.hashes().tolist() == hashes.tolist()
    buckets, function = fixed_bucket(hashes, 7), jvm.paimon.bucket.DefaultBucketFunction()
    for number, row in enumerate(Keys(jvm, types).binary_rows(rows)):
        assert made[number] == bytes(row.toBytes()), (types, rows[number])
        assert hashes[number] == row.hashCode(), (types, rows[number])
        assert buckets[number] == function.bucket(row, 7)


def test_rows_of_edge_values_and_nulls(jvm: PaimonJvm) -> None:
    """Four columns at a time; every type is used."""
    chance = random.Random(random.getrandbits(64))
    names = chance.sample(list(EDGES), len(EDGES))
    for first in range(0, len(names), 4):
        types = names[first : first + 4]
        rows = [[chance.choice([*EDGES[name], None]) for name in types] for _ in range(50)]
        check_rows(jvm, types, rows)


@pytest.mark.parametrize("types", KEY_TYPES, ids=",".join)
def test_rows_of_random_values(jvm: PaimonJvm, types: list[str]) -> None:
    check_rows(jvm, types, random_rows(types, 150))
