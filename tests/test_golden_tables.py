"""Every golden file of the table indexes: read as its writer meant it, and written unchanged."""

from __future__ import annotations

import hashlib

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
from alcid.formats.binary_row import binary_rows, hash_rows
from alcid.formats.buckets import assigner_of
from alcid.types import DataType
from tests.golden.positions import positions_of
from tests.golden_files import Golden, Json, arrow_array, golden_files, golden_id

FILES = {golden_id(golden): golden for golden in golden_files("deletion_vector_file")}


def is_exact(facts: Json) -> bool:
    """Whether it can be written in one way only; not if a container kept its original kind."""
    return bool(facts.get("exact", True))


@pytest.mark.parametrize("golden", golden_files("deletion_vector"), ids=golden_id)
def test_a_vector_is_read_and_written_with_its_bytes(golden: Golden) -> None:
    positions, bits = positions_of(golden.json["positions"]), golden.json["bits"]
    vector = DeletionVector.from_bytes(golden.data, golden.json["cardinality"])
    assert vector.to_numpy().tolist() == positions
    assert vector.bits == bits
    ours = DeletionVector(positions, bits=bits)
    assert ours == vector
    if is_exact(golden.json):
        assert vector.to_bytes() == golden.data
        assert ours.to_bytes() == golden.data


def ranges_of(golden: Golden) -> list[DeletionVectorRange]:
    return [
        DeletionVectorRange(
            vector["data_file"], vector["offset"], vector["length"], vector["cardinality"]
        )
        for vector in golden.json["vectors"]
    ]


def vectors_of(golden: Golden) -> dict[str, DeletionVector]:
    return {
        vector["data_file"]: DeletionVector(positions_of(vector["positions"]), bits=vector["bits"])
        for vector in golden.json["vectors"]
    }


@pytest.mark.parametrize("golden", golden_files("deletion_vector_file"), ids=golden_id)
def test_a_vector_file_is_read_and_written_with_its_bytes(golden: Golden) -> None:
    expected, ranges = vectors_of(golden), ranges_of(golden)
    with DeletionVectorFile.from_bytes(golden.data) as file:
        assert [file.read(item) for item in ranges] == list(expected.values())
        assert file.read_all(ranges) == expected
        assert [vector for _, vector in file.scan()] == list(expected.values())
    if is_exact(golden.json):
        written = DeletionVectorFile.write(expected)
        assert written.data == golden.data
        assert list(written.ranges) == ranges


@pytest.mark.parametrize("golden", golden_files("deletion_vector_roll"), ids=golden_id)
def test_vectors_are_rolled_where_their_writer_rolls(golden: Golden) -> None:
    parts = [FILES[f"{golden.path.parent.name}/{name}"] for name in golden.json["parts"]]
    vectors = {name: vector for part in parts for name, vector in vectors_of(part).items()}
    written = list(DeletionVectorFile.roll(vectors, target_size=golden.json["target_size"]))
    assert [part.data for part in written] == [part.data for part in parts]
    assert [list(part.ranges) for part in written] == [ranges_of(part) for part in parts]


@pytest.mark.parametrize("golden", golden_files("hash_index"), ids=golden_id)
def test_a_hash_index_is_read_whatever_its_order(golden: Golden) -> None:
    stored = golden.json["stored"]
    index = HashIndex.from_bytes(golden.data)
    assert index.hashes.tolist() == sorted(set(stored))
    assert index.duplicates == len(stored) - len(set(stored))
    assert index.to_bytes() == np.array(sorted(set(stored)), ">i4").tobytes()
    if "keys" in golden.json:
        keys = pa.array(range(*golden.json["keys"]["range"]), pa.int64())
        assert HashIndex(hash_rows([keys])) == index
    elif "rows" in golden.json:
        assert HashIndex(hash_rows(*key_columns(golden))) == index


def key_columns(golden: Golden) -> tuple[list[pa.Array], list[DataType]]:
    types = [DataType.parse(text) for text in golden.json["types"]]
    rows = golden.json["rows"]
    return [
        arrow_array([row[number] for row in rows], data_type)
        for number, data_type in enumerate(types)
    ], types


@pytest.mark.parametrize("golden", golden_files("binary_rows"), ids=golden_id)
def test_rows_have_the_bytes_and_hashes_of_their_writer(golden: Golden) -> None:
    types = [DataType.parse(text) for text in golden.json["types"]]
    rows = golden.json["rows"]
    columns = [
        arrow_array([row["values"][number] for row in rows], data_type)
        for number, data_type in enumerate(types)
    ]
    table = pa.Table.from_arrays(columns, names=list(map(str, range(len(types)))))
    if not types:
        table = pa.table({"a": pa.nulls(len(rows))}).select([])
    written, hashes = binary_rows(table, types), [row["hash"] for row in rows]
    assert hash_rows(table, types).tolist() == hashes
    assert written.hashes().tolist() == hashes
    listed = [written[number] for number in range(len(rows))]
    assert hashlib.sha256(b"".join(listed)).hexdigest() == golden.json["sha256"]
    for row, data in zip(rows, listed, strict=True):
        assert row.get("bytes", data.hex()) == data.hex()


@pytest.mark.parametrize("golden", golden_files("assigner"), ids=golden_id)
def test_rows_are_routed_as_their_writer_routes_them(golden: Golden) -> None:
    for partition_hash, key_hash, channels, assigners, _, expected in golden.json["rows"]:
        assert assigner_of(partition_hash, key_hash, channels, assigners) == expected


@pytest.mark.parametrize("golden", golden_files("assignments"), ids=golden_id)
def test_keys_get_the_buckets_that_their_writer_gives_them(golden: Golden) -> None:
    for row in golden.json["rows"]:
        options = BucketOptions(target_row_num=row["target_row_num"])
        routing = Routing(row["assigners"], row["assigners"])
        assigner = BucketAssigner(options, row["assigner"], routing)
        assert assigner.assign(row["hashes"]).tolist() == row["buckets"]
