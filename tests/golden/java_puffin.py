"""Puffin files of Iceberg's Java: written from blobs, and read again with all metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.golden.iceberg_jvm import VERSION, IcebergJvm
from tests.golden.positions import SETS, WIDE_SETS, positions_of
from tests.golden.values import Json, save

WRITER: dict[str, Json] = {"writer": "iceberg-java", "version": VERSION}


@dataclass(frozen=True)
class Blob:
    """The input of the writer."""

    type: str
    data: bytes
    fields: list[int] = field(default_factory=list)
    snapshot_id: int = -1
    sequence_number: int = -1
    codec: str = "NONE"
    properties: dict[str, str] = field(default_factory=dict)


_ODD = {"größe": "日本語 🐧", "slash/and\"quote'": "back\\slash\n\t\x01\x1f\x7f\u2028", "": ""}
_LONG = b"".join(number.to_bytes(4) for number in range(2000))
FILES: dict[str, tuple[dict[str, str], list[Blob]]] = {
    "empty": ({}, []),
    "only_properties": ({"created-by": "golden", "b": "2", "a": "1"}, []),
    "one_plain": ({"created-by": "golden"}, [Blob("some-type", b"abcdefghi", [1], 2, 1)]),
    "several_plain": (
        {"created-by": "golden"},
        [
            Blob("first", b"\x00\xff", [1, 2, 3], 2**63 - 1, 2**63 - 1),
            Blob("nothing", b"", [2**31 - 1], 0, 0),
            Blob("third", bytes(range(256)), [], -(2**63), 7, properties={"z": "1", "a": "2"}),
            Blob("PFA1", b"PFA1PFA1PFA1", [5], properties={"looks": "like magic"}),
        ],
    ),
    "several_zstd": (
        {"created-by": "golden"},
        [
            Blob("short", b"abc", [1], 5, 1, "ZSTD"),
            Blob("nothing", b"", [1], 5, 1, "ZSTD"),
            Blob("plain between", b"xyz" * 9, [2], 5, 1),
            Blob("numbers", _LONG, [3], 5, 1, "ZSTD", {"count": "2000"}),
            Blob("zeros", bytes(100_000), [4], 5, 1, "ZSTD"),
        ],
    ),
    "odd_texts": (_ODD, [Blob("típ 🐧", b"1", [1], 1, 1, properties=_ODD)]),
}
VECTORS = {
    "file:/data/part-0.parquet": "few",
    "s3://lake/über/日本.parquet": "three_keys",
    "file:/data/part-2.parquet": "four_containers_of_runs",
}


def write_puffins(jvm: IcebergJvm, folder: Path, temporary: Path) -> None:
    """Every case, and a file by the writer of deletion vectors."""
    for name, (properties, blobs) in FILES.items():
        path = temporary / f"{name}.puffin"
        building = jvm.iceberg.puffin.Puffin.write(jvm.iceberg.Files.localOutput(str(path)))
        writer = building.setAll(jvm.ordered(properties)).build()
        for blob in blobs:
            writer.write(_java_blob(jvm, blob))
        writer.finish()
        sizes = {"footer_size": writer.footerSize(), "file_size": writer.fileSize()}
        writer.close()
        facts = puffin_facts(jvm, path)
        assert facts["footer_size"] == sizes["footer_size"]
        save(folder, name, facts, path.read_bytes())
    write_vectors(jvm, folder, temporary / "vectors.puffin")


def _java_blob(jvm: IcebergJvm, blob: Blob) -> Any:
    fields = jvm.java.util.ArrayList()
    for number in blob.fields:
        fields.add(number)
    return jvm.iceberg.puffin.Blob(
        blob.type,
        fields,
        blob.snapshot_id,
        blob.sequence_number,
        jvm.java.nio.ByteBuffer.wrap(bytearray(blob.data)),
        getattr(jvm.iceberg.puffin.PuffinCompressionCodec, blob.codec),
        jvm.ordered(blob.properties),
    )


def write_vectors(jvm: IcebergJvm, folder: Path, path: Path) -> None:
    """A file by Iceberg's writer of deletion vectors, given position after position."""
    handles = jvm.java.lang.invoke.MethodHandles
    output = jvm.iceberg.Files.localOutput(str(path))
    kind = jvm.java.lang.Class.forName("org.apache.iceberg.io.OutputFile")
    nothing = handles.constant(jvm.java.lang.Class.forName("java.lang.Object"), None)
    writer = jvm.iceberg.deletes.BaseDVFileWriter(
        jvm.interface("Supplier", handles.constant(kind, output)),
        jvm.interface("Function", handles.dropArguments(nothing, 0, _classes(jvm))),
    )
    specs = {data_file: (SETS | WIDE_SETS)[name] for data_file, name in VECTORS.items()}
    for data_file, spec in specs.items():
        for position in positions_of(spec):
            writer.delete(data_file, position, jvm.iceberg.PartitionSpec.unpartitioned(), None)
    writer.close()
    entries = [
        {
            "referenced_data_file": file.referencedDataFile(),
            "content_offset": file.contentOffset(),
            "content_size_in_bytes": file.contentSizeInBytes(),
            "record_count": file.recordCount(),
            "file_size_in_bytes": file.fileSizeInBytes(),
        }
        for file in writer.result().deleteFiles()
    ]
    facts = puffin_facts(jvm, path, specs.__getitem__)
    save(folder, "deletion_vectors", facts | {"delete_files": entries}, path.read_bytes())


def _classes(jvm: IcebergJvm) -> Any:
    result = jvm.java.util.ArrayList()
    result.add(jvm.java.lang.Class.forName("java.lang.Object"))
    return result


def read_puffin(jvm: IcebergJvm, path: Path) -> tuple[dict[str, str], list[tuple[Any, bytes]]]:
    """Properties, and each blob with its payload, as Iceberg reads them; blobs in footer order."""
    reader = jvm.iceberg.puffin.Puffin.read(jvm.iceberg.Files.localInput(str(path))).build()
    metadata = reader.fileMetadata()
    blobs = []
    for blob in metadata.blobs():
        single = jvm.java.util.ArrayList()
        single.add(blob)
        buffer = reader.readAll(single).iterator().next().second()
        blobs.append((blob, bytes(buffer.array())[: buffer.remaining()]))
    properties = dict(metadata.properties())
    reader.close()
    return properties, blobs


def puffin_facts(
    jvm: IcebergJvm, path: Path, positions: Callable[[str], Json] | None = None
) -> dict[str, Json]:
    """What Iceberg reads from a file; with `positions`, which a deletion vector must have."""
    properties, blobs = read_puffin(jvm, path)
    listed: list[Json] = []
    for blob, payload in blobs:
        facts: dict[str, Json] = {
            "type": blob.type(),
            "fields": list(blob.inputFields()),
            "snapshot_id": blob.snapshotId(),
            "sequence_number": blob.sequenceNumber(),
            "offset": blob.offset(),
            "length": blob.length(),
            "codec": blob.compressionCodec(),
            "properties": dict(blob.properties()),
            "payload_size": len(payload),
            "payload_sha256": hashlib.sha256(payload).hexdigest(),
        }
        if len(payload) <= 500:
            facts["payload"] = {"hex": payload.hex()}
        if positions is not None:
            facts["positions"] = positions(blob.properties()["referenced-data-file"])
        listed.append(facts)
    data = path.read_bytes()
    payload_size = int.from_bytes(data[-12:-8], "little")
    facts = {"kind": "puffin", **WRITER, "footer_size": payload_size + 16}
    return facts | {"properties": properties, "blobs": listed}
