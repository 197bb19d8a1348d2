"""Every golden Puffin file and theta sketch: read, and written again with its bytes."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pytest

from alcid import DeletionVector, ThetaSketch, puffin
from alcid.types import DataType
from tests.golden.positions import positions_of
from tests.golden_files import Golden, Json, arrow_array, golden_files, golden_id

PUFFINS = golden_files("puffin")


@pytest.mark.parametrize("golden", PUFFINS, ids=golden_id)
def test_a_puffin_file_says_what_its_writer_said(golden: Golden) -> None:
    with puffin.open(io.BytesIO(golden.data), footer_size=golden.json["footer_size"]) as reader:
        assert list(reader.properties.items()) == list(golden.json["properties"].items())
        blobs = [facts_of(blob) for blob in reader.blobs]
        for blob, facts in zip(reader.blobs, golden.json["blobs"], strict=True):
            content = reader.read(blob)
            assert len(content) == facts["payload_size"]
            assert hashlib.sha256(content).hexdigest() == facts["payload_sha256"]
            if "positions" in facts:
                vector = reader.read_deletion_vector(blob)
                assert vector.to_numpy().tolist() == positions_of(facts["positions"])
            elif blob.type == puffin.THETA_SKETCH:
                sketch = reader.read_theta_sketch(blob)
                assert str(sketch.ndv) == blob.properties["ndv"]
    assert blobs == [{name: facts[name] for name in blobs[0]} for facts in golden.json["blobs"]]


def facts_of(blob: puffin.Blob) -> dict[str, object]:
    return {
        "type": blob.type,
        "fields": list(blob.fields),
        "snapshot_id": blob.snapshot_id,
        "sequence_number": blob.sequence_number,
        "offset": blob.offset,
        "length": blob.length,
        "codec": blob.codec,
        "properties": blob.properties,
    }


def write_again(reader: puffin.PuffinReader, file: Path | BinaryIO) -> None:
    """Write everything that a reader returns for a file."""
    with puffin.create(file, properties=reader.properties) as writer:
        for blob in reader.blobs:
            writer.add(
                blob.type,
                reader.read(blob),
                fields=blob.fields,
                snapshot_id=blob.snapshot_id,
                sequence_number=blob.sequence_number,
                properties=blob.properties,
                codec=blob.codec,
            )


@pytest.mark.parametrize("golden", PUFFINS, ids=golden_id)
def test_a_puffin_file_is_written_with_its_bytes(golden: Golden) -> None:
    copy = io.BytesIO()
    with puffin.open(io.BytesIO(golden.data)) as reader:
        write_again(reader, copy)
    if not any(blob.codec for blob in reader.blobs):  # encoders of zstd differ
        assert copy.getvalue() == golden.data
    with puffin.open(copy) as again:
        for theirs, ours in zip(golden.json["blobs"], again.blobs, strict=True):
            content = hashlib.sha256(again.read(ours)).hexdigest()
            assert content == theirs["payload_sha256"]


@pytest.mark.parametrize(
    "golden",
    [golden for golden in PUFFINS if "delete_files" in golden.json],
    ids=golden_id,
)
def test_deletes_of_iceberg_are_written_with_their_bytes_and_manifest(golden: Golden) -> None:
    file = io.BytesIO()
    with puffin.create(file, properties=golden.json["properties"]) as writer:
        for blob in golden.json["blobs"]:
            vector = DeletionVector(positions_of(blob["positions"]), bits=64)
            writer.add_deletion_vector(vector, blob["properties"]["referenced-data-file"])
    assert file.getvalue() == golden.data
    stated = {
        (
            blob.properties["referenced-data-file"],
            blob.offset,
            blob.length,
            int(blob.properties["cardinality"]),
            writer.file_size,
        )
        for blob in writer.blobs
    }
    assert stated == {
        (
            entry["referenced_data_file"],
            entry["content_offset"],
            entry["content_size_in_bytes"],
            entry["record_count"],
            entry["file_size_in_bytes"],
        )
        for entry in golden.json["delete_files"]
    }


def rows_of(task: Json, data_type: DataType) -> pa.Array:
    if "range" in task:
        return pa.array(np.arange(*task["range"]))
    return arrow_array(task["values"], data_type)


@pytest.mark.parametrize("golden", golden_files("theta"), ids=golden_id)
def test_a_sketch_has_the_bytes_that_iceberg_stores_for_the_same_tasks(golden: Golden) -> None:
    data_type = DataType.parse(golden.json["data_type"])
    sketch = ThetaSketch()
    for task in golden.json["tasks"]:
        sketch = sketch.union(ThetaSketch().update(rows_of(task, data_type)))
    assert sketch.to_bytes() == golden.data
    read = ThetaSketch.from_bytes(golden.data)
    assert read == sketch
    assert read.to_bytes() == golden.data
    assert (len(read), read.estimate, read.ndv) == (
        golden.json["retained"],
        golden.json["estimate"],
        golden.json["ndv"],
    )
    assert read.theta == golden.json["theta"] / 2**63
