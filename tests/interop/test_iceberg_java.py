"""Iceberg's released Java reads our Puffin files and vectors, and we read those that it writes."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from alcid.formats import puffin
from alcid.formats.deletion_vector import DeletionVector
from tests.golden.positions import SETS, WIDE_SETS, positions_of
from tests.interop.peers import Jvm

POSITIONS = {name: positions_of(given) for name, given in (SETS | WIDE_SETS).items()}
PROPERTIES = {"created-by": "alcid", "größe": '12 日本 🐧 \u2028 / \\ " \n \x01'}
DELETES = "org.apache.iceberg.deletes"
PAYLOADS = [b"", b"abc", bytes(100_000), bytes(range(256)) * 40]


def footer_of(data: bytes) -> str:
    """The JSON of a plain footer."""
    size = int.from_bytes(data[-12:-8], "little")
    return data[-12 - size : -12].decode()


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


def java_reader(jvm: Jvm, data: bytes) -> Any:
    iceberg = jvm.org.apache.iceberg
    return iceberg.puffin.Puffin.read(iceberg.inmemory.InMemoryInputFile(data)).build()


def contents(jvm: Jvm, reader: Any) -> list[bytes]:
    """All blobs, in the order of their places."""
    lists = jvm.org.apache.iceberg.relocated.com.google.common.collect.Lists
    pairs = lists.newArrayList(reader.readAll(reader.fileMetadata().blobs()))
    return [buffer_bytes(pair.second()) for pair in pairs]


def buffer_bytes(buffer: Any) -> bytes:
    begin = buffer.arrayOffset() + buffer.position()
    return bytes(buffer.array())[begin : begin + buffer.remaining()]


@pytest.mark.parametrize("codecs", [(), (None,), ("zstd",), (None, "zstd")], ids=str)
@pytest.mark.parametrize("properties", [{}, PROPERTIES], ids=["bare", "with_properties"])
def test_it_reads_our_file(
    iceberg_jvm: Jvm, codecs: Sequence[str | None], properties: dict[str, str]
) -> None:
    data = our_file(codecs, properties)
    reader = java_reader(iceberg_jvm, data)
    metadata = reader.fileMetadata()
    assert dict(metadata.properties()) == properties
    # What it would write of what it read is what stands in our footer.
    parser = iceberg_jvm.org.apache.iceberg.puffin.FileMetadataParser
    assert parser.toJson(metadata, False) == footer_of(data)
    assert contents(iceberg_jvm, reader) == [payload for payload in PAYLOADS for _ in codecs]
    reader.close()


@pytest.mark.parametrize("codec", ["NONE", "ZSTD"])
def test_we_read_its_file(iceberg_jvm: Jvm, codec: str) -> None:
    iceberg, util = iceberg_jvm.org.apache.iceberg, iceberg_jvm.java.util
    output = iceberg.inmemory.InMemoryOutputFile()
    writer = iceberg.puffin.Puffin.write(output).setAll(PROPERTIES).build()
    chosen = getattr(iceberg.puffin.PuffinCompressionCodec, codec)
    for number, payload in enumerate(PAYLOADS):
        fields = util.ArrayList()
        fields.add(number)
        buffer = iceberg_jvm.java.nio.ByteBuffer.wrap(payload)
        given = ("kind", fields, number - 2, 2**63 - 1, buffer, chosen, {"n": str(number)})
        writer.add(iceberg.puffin.Blob(*given))
    writer.finish()
    writer.close()
    data = bytes(output.toByteArray())
    with puffin.open(io.BytesIO(data), footer_size=writer.footerSize()) as reader:
        assert reader.properties == PROPERTIES
        assert [reader.read(blob) for blob in reader.blobs] == PAYLOADS
        for number, blob in enumerate(reader.blobs):
            assert (blob.type, blob.fields) == ("kind", (number,))
            assert (blob.snapshot_id, blob.sequence_number) == (number - 2, 2**63 - 1)
            assert blob.codec == (None if codec == "NONE" else "zstd")
            assert blob.properties == {"n": str(number)}
    if codec == "NONE":  # of zstd, every writer has its own bytes
        again = io.BytesIO()
        with puffin.create(again, properties=reader.properties) as ours:
            for blob, payload in zip(reader.blobs, PAYLOADS, strict=True):
                ids = {"snapshot_id": blob.snapshot_id, "sequence_number": blob.sequence_number}
                ours.add(blob.type, payload, fields=blob.fields, properties=blob.properties, **ids)
        assert again.getvalue() == data


def test_it_takes_the_footer_size_that_we_state(iceberg_jvm: Jvm) -> None:
    file = io.BytesIO()
    with puffin.create(file, properties=PROPERTIES) as writer:
        writer.add("kind", b"abc")
    iceberg = iceberg_jvm.org.apache.iceberg
    given = iceberg.puffin.Puffin.read(iceberg.inmemory.InMemoryInputFile(file.getvalue()))
    reader = given.withFileSize(writer.file_size).withFooterSize(writer.footer_size).build()
    assert contents(iceberg_jvm, reader) == [b"abc"]
    reader.close()


# -- deletion vectors --------------------------------------------------------------------------


def delete_file(jvm: Jvm, path: str, data: bytes, blob: puffin.Blob) -> Any:
    """What a manifest says of a vector in a Puffin file."""
    iceberg = jvm.org.apache.iceberg
    builder = iceberg.FileMetadata.deleteFileBuilder(iceberg.PartitionSpec.unpartitioned())
    return (
        builder.ofPositionDeletes()
        .withFormat("PUFFIN")
        .withPath(path)
        .withFileSizeInBytes(len(data))
        .withReferencedDataFile(blob.properties["referenced-data-file"])
        .withContentOffset(blob.offset)
        .withContentSizeInBytes(blob.length)
        .withRecordCount(int(blob.properties["cardinality"]))
        .build()
    )


def deleted(jvm: Jvm, index: Any) -> list[int]:
    """The positions of an index, which Iceberg goes through one by one."""
    found = jvm.java.util.ArrayList()
    add = jvm.method("java.util.ArrayList", "add", "java.lang.Object").bindTo(found)
    index.forEach(jvm.function("LongConsumer", add))
    return [int(text) for text in found.toString()[1:-1].split(", ") if text]


def java_index(jvm: Jvm, positions: Iterable[int]) -> Any:
    """An index that Iceberg made, position by position."""
    lang = jvm.java.lang
    made = lang.Class.forName(f"{DELETES}.BitmapPositionDeleteIndex").getDeclaredConstructor(
        jvm.gateway.new_array(lang.Class, 0)
    )
    made.setAccessible(True)
    index = made.newInstance(jvm.gateway.new_array(lang.Object, 0))
    delete = jvm.method(f"{DELETES}.PositionDeleteIndex", "delete", "long").bindTo(index)
    jvm.numbers(positions).forEach(jvm.function("Consumer", delete))
    return index


def vectors_file(vectors: Mapping[str, Iterable[int]]) -> tuple[bytes, list[puffin.Blob]]:
    file = io.BytesIO()
    with puffin.create(file) as writer:
        blobs = [
            writer.add_deletion_vector(DeletionVector(positions), name)
            for name, positions in vectors.items()
        ]
    return file.getvalue(), blobs


def test_it_loads_our_vectors_as_a_scan_does(iceberg_jvm: Jvm) -> None:
    """By offset and size of the manifest; every one of a file of many."""
    data, blobs = vectors_file(POSITIONS)
    iceberg = iceberg_jvm.org.apache.iceberg
    files = iceberg.inmemory.InMemoryFileIO()
    files.addFile("memory:ours.puffin", data)
    opens = iceberg_jvm.method(
        "org.apache.iceberg.io.FileIO", "newInputFile", "org.apache.iceberg.DeleteFile"
    ).bindTo(files)
    loader = iceberg.data.BaseDeleteLoader(iceberg_jvm.function("Function", opens))
    for blob, (name, positions) in zip(blobs, POSITIONS.items(), strict=True):
        wanted = iceberg_jvm.java.util.ArrayList()
        wanted.add(delete_file(iceberg_jvm, "memory:ours.puffin", data, blob))
        index = loader.loadPositionDeletes(wanted, name)
        assert deleted(iceberg_jvm, index) == positions, name
        assert index.cardinality() == len(positions)


@pytest.mark.parametrize("name", POSITIONS)
def test_it_writes_the_same_vector(iceberg_jvm: Jvm, name: str) -> None:
    data = buffer_bytes(java_index(iceberg_jvm, POSITIONS[name]).serialize())
    assert DeletionVector(POSITIONS[name]).to_bytes(bits=64) == data
    assert DeletionVector.from_bytes(data).to_numpy().tolist() == POSITIONS[name]


def test_random_vectors_in_both_directions(iceberg_jvm: Jvm) -> None:
    chance = np.random.default_rng(random.getrandbits(64))
    for _ in range(20):
        parts = [
            (int(chance.integers(0, 5)) << 32)
            + chance.integers(0, int(chance.integers(1, 2**18)))
            + np.cumsum(chance.integers(1, chance.choice([2, 3, 50]), chance.integers(1, 9000)))
            for _ in range(3)
        ]
        positions = np.unique(np.concatenate(parts)).tolist()
        ours = DeletionVector(positions)
        index = java_index(iceberg_jvm, positions)
        assert ours.to_bytes(bits=64) == buffer_bytes(index.serialize())
        data, (blob,) = vectors_file({"a.parquet": positions})
        place = delete_file(iceberg_jvm, "memory:ours", data, blob)
        content = data[blob.offset : blob.offset + blob.length]
        read = iceberg_jvm.org.apache.iceberg.deletes.PositionDeleteIndex.deserialize(
            content, place
        )
        assert deleted(iceberg_jvm, read) == positions


def test_its_writer_makes_the_same_file(iceberg_jvm: Jvm) -> None:
    iceberg = iceberg_jvm.org.apache.iceberg
    output = iceberg.inmemory.InMemoryOutputFile("memory:theirs.puffin")
    place = iceberg_jvm.constant("org.apache.iceberg.io.OutputFile", output)
    nothing = iceberg_jvm.constant("java.lang.Object", None)
    methods, lang = iceberg_jvm.java.lang.invoke.MethodHandles, iceberg_jvm.java.lang
    parameter = iceberg_jvm.gateway.new_array(lang.Class, 1)
    parameter[0] = lang.Class.forName("java.lang.Object")
    writer = iceberg.deletes.BaseDVFileWriter(
        iceberg_jvm.function("Supplier", place),
        iceberg_jvm.function("Function", methods.dropArguments(nothing, 0, parameter)),
    )
    path, positions = "s3://bucket/größe/data.parquet", POSITIONS["mixed_containers"]
    spec = iceberg.PartitionSpec.unpartitioned()
    writer.delete(path, java_index(iceberg_jvm, positions), spec, None)
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
