"""pyiceberg reads the Puffin files and deletion vectors that we write.

It writes neither, so this goes one way. It checks no length, magic or checksum of a vector, and
makes a bitmap for every key up to the largest: no test gives it a key of many thousands.
"""

from __future__ import annotations

import io
from typing import Any

import pytest
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from alcid import DeletionVector, puffin
from tests.golden.positions import SETS, WIDE_SETS, positions_of

POSITIONS = {name: positions_of(drawn) for name, drawn in (SETS | WIDE_SETS).items()}
PROPERTIES = {"created-by": "alcid", "größe": "12 日本 🐧 \\u2028 /"}


def read_by_it(file: io.BytesIO) -> Any:
    return PuffinFile(file.getvalue())


@pytest.mark.parametrize("properties", [{}, PROPERTIES], ids=["bare", "with_properties"])
def test_it_reads_a_file_without_blobs(properties: dict[str, str]) -> None:
    file = io.BytesIO()
    with puffin.create(file, properties=properties):
        pass
    footer = read_by_it(file).footer
    assert (footer.blobs, footer.properties) == ([], properties)


def test_it_reads_blobs_of_every_codec_it_knows() -> None:
    data = [b"", b"abc", bytes(100_000), bytes(range(256)) * 40]
    file = io.BytesIO()
    with puffin.create(file, properties=PROPERTIES) as writer:
        blobs = [
            writer.add(
                f"kind-{number}",
                payload,
                fields=[number, 2**31 - 1],
                snapshot_id=2**63 - 1 - number,
                sequence_number=number,
                properties={"ndv": str(number)} if number else None,
                codec=codec,
            )
            for number, payload in enumerate(data)
            for codec in (None, "zstd")
        ]
    puffin_file = read_by_it(file)
    assert puffin_file.footer.properties == PROPERTIES
    assert [puffin_file.get_blob_payload(blob) for blob in puffin_file.footer.blobs] == [
        payload for payload in data for _ in range(2)
    ]
    for read, blob in zip(puffin_file.footer.blobs, blobs, strict=True):
        assert read.model_dump() == {
            "type": blob.type,
            "fields": list(blob.fields),
            "snapshot-id": blob.snapshot_id,
            "sequence-number": blob.sequence_number,
            "offset": blob.offset,
            "length": blob.length,
            **({} if blob.codec is None else {"compression-codec": blob.codec}),
            "properties": blob.properties,
        }


def positions(vector: Any) -> list[int]:
    return [(key << 32) + low for key, bitmap in enumerate(vector._bitmaps) for low in bitmap]


@pytest.mark.parametrize("name", POSITIONS)
def test_it_reads_our_vector(name: str) -> None:
    file = io.BytesIO()
    with puffin.create(file) as writer:
        writer.add_deletion_vector(DeletionVector(POSITIONS[name]), "s3://bucket/data.parquet")
    (vector,) = deletion_vectors_from_puffin_file(read_by_it(file))
    assert vector.referenced_data_file == "s3://bucket/data.parquet"
    assert positions(vector) == POSITIONS[name]
    if (
        POSITIONS[name] and POSITIONS[name][0] < 2**32
    ):  # it makes no column from an empty first bitmap
        assert vector.to_vector().to_pylist() == POSITIONS[name]


def test_it_finds_each_of_many_vectors() -> None:
    file = io.BytesIO()
    with puffin.create(file) as writer:
        for name, rows in POSITIONS.items():
            writer.add_deletion_vector(DeletionVector(rows), name)
    vectors = deletion_vectors_from_puffin_file(read_by_it(file))
    assert {vector.referenced_data_file: positions(vector) for vector in vectors} == POSITIONS
