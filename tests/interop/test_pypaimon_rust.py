"""Exchange with pypaimon-rust, which reads and writes whole tables.

It writes deletion vectors of 32 bits only, even if `deletion-vectors.bitmap64` is set, and reads
both kinds. It cannot commit a file of vectors made elsewhere; Paimon's Java does that.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid import DeletionVector, DeletionVectorFile, HashIndex
from alcid.formats.binary_row import hash_rows
from alcid.types import DataType
from tests.golden.paimon_jvm import PaimonJvm
from tests.golden.payload_columns import LTZ
from tests.interop.java_tables import commit_vectors
from tests.interop.random_rows import KEY_TYPES, arrow_columns, random_rows
from tests.interop.rust_tables import RustWarehouse

EVOLUTION = {"data-evolution.enabled": "true", "row-tracking.enabled": "true"}


@pytest.fixture
def warehouse(tmp_path: Path) -> RustWarehouse:
    return RustWarehouse(tmp_path)


def id_batch(ids: Iterable[int]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(ids, pa.int32())], names=["id"])


def write_two_files(warehouse: RustWarehouse, path: Path) -> list[str]:
    """A long data file with ids from 0, and a short one with ids from 5000; returns their names."""
    warehouse.write(id_batch(range(5000)))
    warehouse.write(id_batch(range(5000, 5300)))
    files = sorted(path.glob("bucket-0/*.parquet"), key=lambda file: file.stat().st_size)
    return [file.name for file in reversed(files)]


@pytest.mark.parametrize("deleted", [[7], [0, 4999, 5000, 5299], range(40, 5100)], ids=len)
def test_we_read_the_vectors_it_wrote(warehouse: RustWarehouse, deleted: Iterable[int]) -> None:
    path = warehouse.create("id INT", {"deletion-vectors.enabled": "true", **EVOLUTION})
    write_two_files(warehouse, path)
    warehouse.delete(deleted)
    (index,) = path.glob("index/index-*")
    with DeletionVectorFile.open(index) as file:
        vectors = [vector for _, vector in file.scan()]
    per_file = [
        [number for number in deleted if number < 5000],
        [number - 5000 for number in deleted if number >= 5000],
    ]
    assert {vector.bits for vector in vectors} == {32}
    assert sorted(map(list, vectors)) == sorted(filter(None, per_file))


@pytest.mark.parametrize("bits", [32, 64])
def test_it_skips_the_rows_of_our_vectors(
    warehouse: RustWarehouse, jvm: PaimonJvm, bits: Literal[32, 64]
) -> None:
    path = warehouse.create("id INT", {"deletion-vectors.enabled": "true", "bucket": "-1"})
    long, short = write_two_files(warehouse, path)
    deleted = [*range(3), *range(700, 2000), *range(2001, 4999, 2)]
    vectors = {long: DeletionVector(deleted), short: DeletionVector([0, 299])}
    written = DeletionVectorFile.write(vectors, bits=bits)
    commit_vectors(jvm, path, written)
    assert warehouse.ids() == sorted(set(range(5300)) - {*deleted, 5000, 5299})


# -- hash index --------------------------------------------------------------------------------


def bucket_ids(path: Path) -> dict[int, set[int]]:
    return {
        int(bucket.name.removeprefix("bucket-")): {
            number
            for file in bucket.glob("*.parquet")
            for number in pq.read_table(file).column("id").to_pylist()
        }
        for bucket in path.glob("bucket-*")
    }


def test_a_table_whose_hash_index_it_wrote_and_we_change(warehouse: RustWarehouse) -> None:
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "400"}
    path = warehouse.create("id INT NOT NULL, PRIMARY KEY (id)", options)
    warehouse.write(id_batch(range(1000)))
    keys = bucket_ids(path)
    assert {bucket: len(hashes) for bucket, hashes in keys.items()} == {0: 400, 1: 400, 2: 200}
    indexes = {file: HashIndex.from_bytes(file.read_bytes()) for file in path.glob("index/index-*")}
    ours = {
        bucket: HashIndex(hash_rows([pa.array(sorted(ids), pa.int32())]))
        for bucket, ids in keys.items()
    }
    assert sorted(index.hashes.tolist() for index in indexes.values()) == sorted(
        index.hashes.tolist() for index in ours.values()
    )

    # Of these keys no row exists, but our file says that they belong to a bucket that is full. Its
    # manifest tells how many hashes there are, so that others have to go.
    added = pa.array(range(5000, 5050), pa.int32())
    (full,) = (file for file in indexes if indexes[file].hashes.tolist() == ours[1].hashes.tolist())
    full.write_bytes(HashIndex(ours[1].hashes[50:]).union(hash_rows([added])).to_bytes())
    warehouse.write(id_batch([*added.to_pylist(), 9000]))
    after = bucket_ids(path)
    assert sorted(after[1] - keys[1]) == added.to_pylist()
    assert sorted(after[2] - keys[2]) == [9000]


@pytest.mark.parametrize("types", KEY_TYPES, ids=",".join)
def test_hashes_of_random_keys(warehouse: RustWarehouse, types: list[str]) -> None:
    """A hash of every key is kept, in the file of its bucket."""
    types = [kind for kind in types if not kind.startswith("TIME(")]  # its SQL has no such type
    columns = arrow_columns(types, random_rows(types, 1000))
    names = [f"c{number}" for number in range(len(types))]
    fields = [
        f"{name} {kind.replace(LTZ, ' WITH TIME ZONE')} NOT NULL"
        for name, kind in zip(names, types, strict=True)
    ]
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "1000000"}
    path = warehouse.create(f"{', '.join(fields)}, PRIMARY KEY ({', '.join(names)})", options)
    warehouse.write(pa.record_batch(columns, names=names))
    (index,) = path.glob("index/index-*")
    ours = HashIndex(hash_rows(columns, [DataType.parse(kind) for kind in types]))
    assert HashIndex.from_bytes(index.read_bytes()).hashes.tolist() == ours.hashes.tolist()
