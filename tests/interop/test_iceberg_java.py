"""Iceberg's released Java reads our Puffin files and vectors, and we read those that it writes."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid import DeletionVector, ThetaSketch, puffin
from tests.golden.iceberg_jvm import IcebergJvm
from tests.golden.positions import SETS, WIDE_SETS, positions_of
from tests.interop.peers import Jvm

POSITIONS = {name: positions_of(rows) for name, rows in (SETS | WIDE_SETS).items()}
PROPERTIES = {"created-by": "alcid", "größe": '12 日本 🐧 \u2028 / \\ " \n \x01'}
PAYLOADS = [b"", b"abc", bytes(100_000), bytes(range(256)) * 40]


# -- Puffin ------------------------------------------------------------------------------------


def our_file(codecs: Sequence[str | None], properties: Mapping[str, str]) -> bytes:
    file = io.BytesIO()
    with puffin.create(file, properties=properties) as writer:
        for number, payload in enumerate(PAYLOADS):
            for codec in codecs:
                writer.add(
                    f"kind-{number}",
                    payload,
                    fields=[number, 2**31 - 1, -(2**31)],
                    snapshot_id=2**63 - 1 - number,
                    sequence_number=number - 2**63,
                    properties={"ndv": str(number)} if number else None,
                    codec=codec,
                )
    return file.getvalue()


def footer_text(data: bytes) -> str:
    """The JSON of a plain footer."""
    size = int.from_bytes(data[-12:-8], "little")
    return data[-12 - size : -12].decode()


def read_builder(java: IcebergJvm, data: bytes) -> Any:
    return java.iceberg.puffin.Puffin.read(java.iceberg.inmemory.InMemoryInputFile(data))


def contents(java: IcebergJvm, reader: Any) -> list[bytes]:
    """All blobs, in the order of their offsets."""
    lists = java.iceberg.relocated.com.google.common.collect.Lists
    pairs = lists.newArrayList(reader.readAll(reader.fileMetadata().blobs()))
    return [buffer_bytes(pair.second()) for pair in pairs]


def buffer_bytes(buffer: Any) -> bytes:
    begin = buffer.arrayOffset() + buffer.position()
    return bytes(buffer.array())[begin : begin + buffer.remaining()]


@pytest.mark.parametrize("codecs", [(), (None,), ("zstd",), (None, "zstd")], ids=str)
@pytest.mark.parametrize("properties", [{}, PROPERTIES], ids=["bare", "with_properties"])
def test_it_reads_our_file(
    iceberg_java: IcebergJvm, codecs: Sequence[str | None], properties: dict[str, str]
) -> None:
    data = our_file(codecs, properties)
    reader = read_builder(iceberg_java, data).build()
    metadata = reader.fileMetadata()
    assert dict(metadata.properties()) == properties
    # What it would write for what it read is what our footer has.
    parser = iceberg_java.iceberg.puffin.FileMetadataParser
    assert parser.toJson(metadata, False) == footer_text(data)
    assert contents(iceberg_java, reader) == [payload for payload in PAYLOADS for _ in codecs]
    reader.close()


def test_it_takes_the_sizes_that_we_state(iceberg_java: IcebergJvm) -> None:
    file = io.BytesIO()
    with puffin.create(file, properties=PROPERTIES) as writer:
        writer.add("kind", b"abc")
    builder = read_builder(iceberg_java, file.getvalue())
    builder = builder.withFileSize(writer.file_size).withFooterSize(writer.footer_size)
    reader = builder.build()
    assert contents(iceberg_java, reader) == [b"abc"]
    reader.close()


@pytest.mark.parametrize("codec", ["NONE", "ZSTD"])
def test_we_read_its_file(iceberg_java: IcebergJvm, codec: str) -> None:
    classes = iceberg_java.iceberg
    output = classes.inmemory.InMemoryOutputFile()
    properties = iceberg_java.ordered(PROPERTIES)
    writer = classes.puffin.Puffin.write(output).setAll(properties).build()
    chosen = getattr(classes.puffin.PuffinCompressionCodec, codec)
    for number, payload in enumerate(PAYLOADS):
        content = iceberg_java.java.nio.ByteBuffer.wrap(payload)
        arguments = ("kind", [number], number - 2, 2**63 - 1, content, chosen, {"n": str(number)})
        writer.add(classes.puffin.Blob(*arguments))
    writer.finish()
    data = bytes(output.toByteArray())
    with puffin.open(io.BytesIO(data), footer_size=writer.footerSize()) as reader:
        assert reader.properties == PROPERTIES
        assert [reader.read(blob) for blob in reader.blobs] == PAYLOADS
        for number, blob in enumerate(reader.blobs):
            assert (blob.type, blob.fields) == ("kind", (number,))
            assert (blob.snapshot_id, blob.sequence_number) == (number - 2, 2**63 - 1)
            assert blob.codec == (None if codec == "NONE" else "zstd")
            assert blob.properties == {"n": str(number)}
    if codec == "NONE":  # with zstd, every writer has its own bytes
        file = io.BytesIO()
        with puffin.create(file, properties=reader.properties) as ours:
            for blob, payload in zip(reader.blobs, PAYLOADS, strict=True):
                ours.add(
                    blob.type,
                    payload,
                    fields=blob.fields,
                    snapshot_id=blob.snapshot_id,
                    sequence_number=blob.sequence_number,
                    properties=blob.properties,
                )
        assert file.getvalue() == data
    writer.close()


def test_it_reads_the_sketch_of_a_statistics_file(iceberg_java: IcebergJvm) -> None:
    """As Spark does, with the DataSketches of its own jars."""
    sketch = ThetaSketch().union(ThetaSketch().update(pa.array(range(50_000))))
    kind = iceberg_java.iceberg.puffin.StandardBlobTypes.APACHE_DATASKETCHES_THETA_V1
    file = io.BytesIO()
    with puffin.create(file) as writer:
        properties = {"ndv": str(sketch.ndv)}
        writer.add(kind, sketch.to_bytes(), fields=[3], properties=properties, codec="zstd")
    reader = read_builder(iceberg_java, file.getvalue()).build()
    (blob,) = reader.fileMetadata().blobs()
    (content,) = contents(iceberg_java, reader)
    sketches = iceberg_java.gateway.jvm.org.apache.datasketches
    peer = sketches.theta.CompactSketch.wrap(sketches.memory.Memory.wrap(content))
    assert blob.properties()["ndv"] == str(int(peer.getEstimate()))
    assert peer.getEstimate() == sketch.estimate
    reader.close()


# -- deletion vectors --------------------------------------------------------------------------


def vectors_file(vectors: Mapping[str, Iterable[int]]) -> tuple[bytes, list[puffin.Blob]]:
    file = io.BytesIO()
    with puffin.create(file) as writer:
        blobs = [
            writer.add_deletion_vector(DeletionVector(positions), name)
            for name, positions in vectors.items()
        ]
    return file.getvalue(), blobs


def delete_file(java: IcebergJvm, path: str, size: int, blob: puffin.Blob) -> Any:
    """What a manifest says about a vector in a Puffin file."""
    spec = java.iceberg.PartitionSpec.unpartitioned()
    return (
        java.iceberg.FileMetadata.deleteFileBuilder(spec)
        .ofPositionDeletes()
        .withFormat("PUFFIN")
        .withPath(path)
        .withFileSizeInBytes(size)
        .withReferencedDataFile(blob.properties["referenced-data-file"])
        .withContentOffset(blob.offset)
        .withContentSizeInBytes(blob.length)
        .withRecordCount(int(blob.properties["cardinality"]))
        .build()
    )


def deleted(java: IcebergJvm, index: Any) -> list[int]:
    """The positions of an index, which Iceberg goes through one by one."""
    java_list = java.java.util.ArrayList()
    handle = Jvm(java.gateway).method("java.util.ArrayList", "add", "java.lang.Object")
    index.forEach(java.interface("LongConsumer", handle.bindTo(java_list)))
    return [int(text) for text in java_list.toString()[1:-1].split(", ") if text]


def test_it_loads_our_vectors_as_a_scan_does(iceberg_java: IcebergJvm) -> None:
    """By offset and size in the manifest; every vector of a file with many."""
    data, blobs = vectors_file(POSITIONS)
    files = iceberg_java.iceberg.inmemory.InMemoryFileIO()
    files.addFile("memory:ours.puffin", data)
    opens = Jvm(iceberg_java.gateway).method(
        "org.apache.iceberg.io.FileIO", "newInputFile", "org.apache.iceberg.DeleteFile"
    )
    function = iceberg_java.interface("Function", opens.bindTo(files))
    loader = iceberg_java.iceberg.data.BaseDeleteLoader(function)
    for blob, (name, positions) in zip(blobs, POSITIONS.items(), strict=True):
        java_file = delete_file(iceberg_java, "memory:ours.puffin", len(data), blob)
        index = loader.loadPositionDeletes([java_file], name)
        assert deleted(iceberg_java, index) == positions, name
        assert index.cardinality() == len(positions)


def check_both_directions(java: IcebergJvm, positions: list[int]) -> None:
    """The same bytes as Iceberg's; it reads ours, and we read its."""
    theirs = java.serialize(java.position_index(positions))
    data, (blob,) = vectors_file({"data.parquet": positions})
    ours = data[blob.offset : blob.offset + blob.length]
    assert ours == theirs
    java_file = delete_file(java, "memory:ours", len(data), blob)
    read = java.iceberg.deletes.PositionDeleteIndex.deserialize(ours, java_file)
    assert deleted(java, read) == positions
    assert DeletionVector.from_bytes(theirs, len(positions)).to_numpy().tolist() == positions


@pytest.mark.parametrize("name", POSITIONS)
def test_a_vector_in_both_directions(iceberg_java: IcebergJvm, name: str) -> None:
    check_both_directions(iceberg_java, POSITIONS[name])


def test_random_vectors_in_both_directions(iceberg_java: IcebergJvm) -> None:
    chance = np.random.default_rng(random.getrandbits(64))
    for _ in range(20):
        parts = []
        for _ in range(3):
            steps = chance.integers(1, chance.choice([2, 3, 50]), chance.integers(1, 9000))
            start = (int(chance.integers(0, 5)) << 32) + int(chance.integers(0, 2**18))
            parts.append(start + np.cumsum(steps))
        check_both_directions(iceberg_java, np.unique(np.concatenate(parts)).tolist())


def test_its_writer_makes_the_same_file(iceberg_java: IcebergJvm) -> None:
    classes, lang = iceberg_java.iceberg, iceberg_java.java.lang
    output = classes.inmemory.InMemoryOutputFile("memory:theirs.puffin")
    handles = lang.invoke.MethodHandles
    anything = lang.Class.forName("java.lang.Object")
    handle = handles.constant(lang.Class.forName("org.apache.iceberg.io.OutputFile"), output)
    no_earlier = handles.dropArguments(handles.constant(anything, None), 0, [anything])
    writer = classes.deletes.BaseDVFileWriter(
        iceberg_java.interface("Supplier", handle), iceberg_java.interface("Function", no_earlier)
    )
    path, positions = "s3://bucket/größe/data.parquet", POSITIONS["mixed_containers"]
    spec = classes.PartitionSpec.unpartitioned()
    writer.delete(path, iceberg_java.position_index(positions), spec, None)
    writer.close()
    data = bytes(output.toByteArray())
    with puffin.open(io.BytesIO(data)) as reader:
        (blob,) = reader.blobs
        assert reader.read_deletion_vector(blob).to_numpy().tolist() == positions
    file = io.BytesIO()
    with puffin.create(file, properties=reader.properties) as ours:
        assert ours.add_deletion_vector(DeletionVector(positions), path) == blob
    assert file.getvalue() == data
    (registered,) = writer.result().deleteFiles()
    assert registered.contentOffset() == blob.offset
    assert registered.contentSizeInBytes() == blob.length
    assert registered.recordCount() == len(positions)
