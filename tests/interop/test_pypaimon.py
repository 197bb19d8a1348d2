"""Exchange with pypaimon: 32-bit deletion vectors, the hash index, the hashes of keys.

It runs in a separate environment, and makes its tables there. If our index file is to be read
from a table, it replaces one that pypaimon wrote.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

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
from alcid.formats.binary_row import EMPTY_ROW_HASH, hash_rows
from alcid.formats.buckets.routing import assigner_of, fixed_bucket
from alcid.types import DataType
from tests.golden.binary_row_cases import EDGES
from tests.golden.positions import SETS, positions_of
from tests.golden.values import Json
from tests.interop.peers import PyPaimon
from tests.interop.random_rows import KEY_TYPES, arrow_columns, random_rows

VECTOR_OPTIONS = {
    "bucket": "-1",
    "data-evolution.enabled": "true",
    "row-tracking.enabled": "true",
    "deletion-vectors.enabled": "true",
}
NANOSECONDS = "TIMESTAMP(9)"  # its rows hold Python's datetime, which has none


def int_table(**columns: Iterable[int]) -> pa.Table:
    """Columns of INT, never null, as keys must be."""
    arrays = [pa.array(list(values), pa.int32()) for values in columns.values()]
    return pa.table(
        arrays, schema=pa.schema([pa.field(name, pa.int32(), nullable=False) for name in columns])
    )


def ranges_of(ranges: Iterable[DeletionVectorRange]) -> list[list[Any]]:
    return [[part.data_file, part.offset, part.length, part.cardinality] for part in ranges]


# -- deletion vectors --------------------------------------------------------------------------


def test_it_reads_our_vectors(pypaimon: PyPaimon) -> None:
    positions = {name: positions_of(rows) for name, rows in SETS.items()}
    written = DeletionVectorFile.write(
        {name: DeletionVector(rows) for name, rows in positions.items()}, bits=32
    )
    path = pypaimon.new_path()
    path.write_bytes(written.data)
    answer = pypaimon.ask("read_vectors", path=str(path), ranges=ranges_of(written.ranges))
    assert answer == positions


@pytest.mark.parametrize("name", SETS)
def test_we_read_its_vectors(pypaimon: PyPaimon, name: str) -> None:
    """It makes no runs: it has arrays and bitsets where others write something shorter."""
    positions = positions_of(SETS[name])
    data = bytes.fromhex(pypaimon.ask("vector_bytes", positions=positions))
    vector = DeletionVector.from_bytes(data, len(positions))
    assert vector.bits == 32
    assert vector.to_numpy().tolist() == positions


def test_a_table_whose_vectors_it_wrote_and_we_extend(pypaimon: PyPaimon) -> None:
    table = pypaimon.create(int_table(id=[]), (), VECTOR_OPTIONS)
    for first, end in ((0, 5000), (5000, 5300)):
        pypaimon.write(table, int_table(id=range(first, end)))
    deleted = {*range(40, 90), *range(0, 5000, 7), 5000, 5299}
    pypaimon.ask("delete", table=table, row_ids=sorted(deleted))

    (index,) = pypaimon.ask("index_files", table=table)
    ranges = [DeletionVectorRange(*item) for item in index["ranges"]]
    with DeletionVectorFile.open(index["path"]) as file:
        vectors = file.read_all(ranges)
        assert [vector for _, vector in file.scan()] == list(vectors.values())
    small, large = sorted(vectors, key=lambda name: len(vectors[name]))
    assert list(vectors[small]) == [0, 299]
    assert list(vectors[large]) == sorted(deleted - {5000, 5299})

    more = {small: DeletionVector(range(100, 200)), large: DeletionVector([1, 4999])}
    written = DeletionVectorFile.write({name: vectors[name] | more[name] for name in more})
    path = pypaimon.new_path()
    path.write_bytes(written.data)
    commit = {"path": str(path), "size": len(written.data), "ranges": ranges_of(written.ranges)}
    pypaimon.ask("replace_vectors", table=table, **commit)
    deleted |= {1, 4999, *range(5100, 5200)}
    rows = pypaimon.ask("column", table=table, column="id")
    assert sorted(rows["0"]) == sorted(set(range(5300)) - deleted)


# -- hash index --------------------------------------------------------------------------------


def test_a_table_whose_hash_index_it_wrote_and_we_extend(pypaimon: PyPaimon) -> None:
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "400"}
    table = pypaimon.create(int_table(id=[], v=[]), ["id"], options)
    pypaimon.write(table, int_table(id=range(1000), v=range(1000)))
    keys = pypaimon.ask("column", table=table, column="id")
    assert {bucket: len(hashes) for bucket, hashes in keys.items()} == {
        "0": 400,
        "1": 400,
        "2": 200,
    }
    paths = {}
    for index in pypaimon.ask("index_files", table=table):
        paths[index["bucket"]] = Path(index["path"])
        data = paths[index["bucket"]].read_bytes()
        ours = HashIndex(hash_rows([pa.array(keys[str(index["bucket"])], pa.int32())]))
        assert HashIndex.from_bytes(data).hashes.tolist() == ours.hashes.tolist()
        assert ours.to_bytes() == data  # both in ascending order

    # No row has these keys, but our file says that they belong to a bucket that is full.
    added = pa.array(range(5000, 5050), pa.int32())
    grown = HashIndex.from_bytes(paths[1].read_bytes()).union(hash_rows([added]))
    paths[1].write_bytes(grown.to_bytes())
    pypaimon.write(table, int_table(id=[*added.to_pylist(), 9000], v=range(51)))
    after = pypaimon.ask("column", table=table, column="id")
    assert sorted(set(after["1"]) - set(keys["1"])) == added.to_pylist()
    assert sorted(set(after["2"]) - set(keys["2"])) == [9000]


# -- hashes of rows ----------------------------------------------------------------------------


def is_one_byte_longer(data_type: str, value: Json) -> bool:
    """Whether pypaimon gives a long decimal a byte more than Java: -128, -32768 and so on.

    >>> is_one_byte_longer("DECIMAL(20, 2)", "-1.28"), is_one_byte_longer("DECIMAL(5, 2)", "-1.28")
    (True, False)
    """
    if not data_type.startswith("DECIMAL") or DataType.parse(data_type).precision <= 18:
        return False
    negated = -int(value.replace(".", ""))
    return negated > 0 and negated.bit_count() == 1 and negated.bit_length() % 8 == 0


def check_hashes(pypaimon: PyPaimon, types: Sequence[str], rows: Sequence[Sequence[Json]]) -> None:
    rows = [row for row in rows if not any(map(is_one_byte_longer, types, row))]
    table = pa.table(
        arrow_columns(types, rows), names=[f"c{number}" for number in range(len(types))]
    )
    ours = hash_rows(table, [DataType.parse(data_type) for data_type in types])
    assert ours.dtype == np.int32
    arguments = {"arrow": pypaimon.arrow_file(table), "types": list(types)}
    assert ours.tolist() == pypaimon.ask("hashes", **arguments)


@pytest.mark.parametrize("data_type", [name for name in EDGES if NANOSECONDS not in name])
def test_hashes_of_edge_values(pypaimon: PyPaimon, data_type: str) -> None:
    check_hashes(pypaimon, [data_type], [[value] for value in EDGES[data_type]])


@pytest.mark.parametrize("types", KEY_TYPES, ids=",".join)
def test_hashes_of_2000_random_keys(pypaimon: PyPaimon, types: list[str]) -> None:
    """Keys hold no null; for one in a long decimal it would reserve no space, as Java does."""
    types = [data_type.replace(NANOSECONDS, "TIMESTAMP(6)") for data_type in types]
    check_hashes(pypaimon, types, random_rows(types, 2000))


def test_the_hash_of_no_columns(pypaimon: PyPaimon) -> None:
    assert pypaimon.ask("empty_row_hash") == EMPTY_ROW_HASH


# -- buckets -----------------------------------------------------------------------------------


def random_hashes(count: int) -> list[int]:
    chance = np.random.default_rng(random.getrandbits(64))
    edges = [-(2**31), 2**31 - 1, 0, -1]
    return [*edges, *chance.integers(-(2**31), 2**31, count).tolist()]


@pytest.mark.parametrize(("channels", "assigners"), [(1, 1), (5, 3), (8, 8), (100, 7)])
def test_the_assigner_of_a_key(pypaimon: PyPaimon, channels: int, assigners: int) -> None:
    hashes = random_hashes(300)
    for partition in hashes[:20]:
        arguments = {"channels": channels, "assigners": assigners}
        theirs = pypaimon.ask("assigners", partition_hash=partition, hashes=hashes, **arguments)
        assert assigner_of(partition, hashes, **arguments).tolist() == theirs


def test_the_owner_of_a_bucket(pypaimon: PyPaimon) -> None:
    routing = Routing(12, 4)
    for channel in range(12):
        ours = [bucket for bucket in range(50) if routing.owns(channel, bucket)]
        arguments = {"assigners": 4, "assigner": channel}
        assert pypaimon.ask("own_buckets", buckets=50, **arguments) == ours


@pytest.mark.parametrize("buckets", [1, 7, 128, 32_768])
def test_the_bucket_of_a_fixed_number(pypaimon: PyPaimon, buckets: int) -> None:
    hashes = random_hashes(1000)
    theirs = pypaimon.ask("fixed_buckets", hashes=hashes, buckets=buckets)
    assert fixed_bucket(hashes, buckets).tolist() == theirs


@pytest.mark.parametrize("target", [1, 40, 10_000])
def test_keys_fill_the_same_buckets(pypaimon: PyPaimon, target: int) -> None:
    """Without a limit, beyond which the choice is random."""
    hashes = random_hashes(500)
    hashes += hashes[::3]
    theirs = pypaimon.ask("assign", hashes=hashes, target=target, limit=-1)
    assigner = BucketAssigner(BucketOptions(target_row_num=target))
    assert assigner.assign(hashes[:100]).tolist() == theirs[:100]
    assert assigner.assign(hashes[100:]).tolist() == theirs[100:]
