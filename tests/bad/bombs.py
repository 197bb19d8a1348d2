"""Files that state far more than they hold, and the error that refuses each."""

from __future__ import annotations

import io
import json
import struct
import zlib
from typing import Any, NamedTuple

import lz4.frame
import pyarrow as pa
import zstandard
from pyroaring import BitMap

from alcid import puffin
from alcid.formats.file_index.container import write_container
from alcid.formats.puffin.footer import Blob
from alcid.index.bundle import FileEntry, FileTable
from alcid.index.bundle.format import BUNDLE, FILES, VERSION_PROPERTY, closing_properties
from tests.bad.avro import container, long, record
from tests.test_deletion_vector_damage import NARROW, narrow, plain, u16, wide

__all__ = ["BOMBS", "Bomb"]

MEGABYTE = 1 << 20
MUCH = 300 * MEGABYTE
DEEP = 100_000


class Bomb(NamedTuple):
    """A file, and the beginning of its error."""

    data: bytes
    error: str


def puffin_file(frame: bytes, codec: str) -> bytes:
    """A file of one blob."""
    blob = {"type": "x", "fields": [], "snapshot-id": -1, "sequence-number": -1, "offset": 4}
    stored = {"length": len(frame), "compression-codec": codec}
    return _with_footer(frame, json.dumps({"blobs": [blob | stored]}).encode())


def _with_footer(blobs: bytes, footer: bytes, flags: int = 0) -> bytes:
    return b"".join(
        (b"PFA1", blobs, b"PFA1", footer, struct.pack("<ii", len(footer), flags), b"PFA1")
    )


def zstd_zeros(size: int) -> bytes:
    return zstandard.ZstdCompressor().compress(bytes(size))


def zstd_without_size(size: int) -> bytes:
    compressor = zstandard.ZstdCompressor(write_content_size=False)
    return compressor.compress(bytes(size))


def lz4_zeros(size: int) -> bytes:
    frame: bytes = lz4.frame.compress(bytes(size), store_size=True)
    return frame


def deflated(size: int) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(bytes(size)) + compressor.flush()


def stream(table: pa.Table, compression: str | None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def compressed_files() -> bytes:
    """The table of files, with an unknown column that has one long value."""
    table = FileTable.of([FileEntry("a.parquet", 1, "v", 1)]).table
    later = pa.array([bytes(MUCH)], pa.large_binary())
    return stream(table.append_column("later", later), "zstd")


def bundle_of(files: bytes) -> bytes:
    """A bundle without payloads, whose table of files is `files`."""
    file, properties = io.BytesIO(), {VERSION_PROPERTY: "1.0"}
    with puffin.create(file, properties=properties) as writer:
        crc = {"crc32": f"{zlib.crc32(files):08x}"}
        blob = writer.add(FILES, files, codec="zstd", properties=crc)
        end = blob.offset + blob.length
        last = Blob(BUNDLE, (), -1, -1, end, 0, properties={"files": "1"})
        writer.add(BUNDLE, b"", properties=closing_properties([blob], last, properties))
    return file.getvalue()


def overlapping_bitmaps(version: int) -> bytes:
    """Many keys, each with the same large bitmap."""
    bitmap, keys = BitMap(range(0, 4_000_000, 2)).serialize(), range(2000)
    head = struct.pack(">BiiB", version, 2**31 - 1, len(keys), 0)
    if version == 1:
        return head + b"".join(struct.pack(">ii", key, 0) for key in keys) + bitmap
    entries = b"".join(struct.pack(">iii", key, 0, len(bitmap)) for key in keys)
    block = struct.pack(">i", len(keys)) + entries
    return head + struct.pack(">iiii", 1, 0, 0, len(block)) + block + bitmap


def linked() -> bytes:
    """A list of records, nested as deeply as it has bytes."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "next", "type": ["null", "r"]}]}
    return container(schema, (1, b"\x02" * DEEP + b"\0"))


def doubling() -> bytes:
    """Records of two records each, thirty levels deep, with nothing at the end."""
    kind: Any = record("null")
    for number in range(30):
        inner = kind | {"name": f"r{number}"}
        kind = record(inner, f"r{number}")
    return container(kind, (1, b""))


def nested_json(before: bytes) -> bytes:
    return b"{" + before + b'"x":' + b"[" * DEEP + b"]" * DEEP + b"}"


def nested_type(depth: int) -> bytes:
    kind: Any = "INT"
    for _ in range(depth):
        kind = {"type": "ARRAY", "element": kind}
    schema = {"version": 3, "id": 0, "highestFieldId": 0, "partitionKeys": [], "primaryKeys": []}
    fields = [{"id": 0, "name": "c", "type": kind}]
    return json.dumps({**schema, "options": {}, "fields": fields}).encode()


def bsi_of_zeros(rows: int) -> bytes:
    """An index of this many rows, all of them 0."""
    existing = BitMap(range(rows), optimize=True).serialize()
    head = struct.pack(">BiB", 1, rows, 1) + struct.pack(">Bqq", 1, 0, 0)
    return write_container({("c", "bsi"): head + existing + struct.pack(">i", 0) + b"\0"})


def vector_file(length: int) -> bytes:
    return b"\1" + struct.pack(">i", length) + NARROW + bytes(20)


def range_bitmap(rows: int, cardinality: int, dictionary: int) -> bytes:
    return struct.pack(">iBiiiii", 21, 1, rows, cardinality, 0, 9, dictionary) + bytes(64)


ARRAY_OF_NULLS = record({"type": "array", "items": "null"})
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10**6, "scale": 2}
ITSELF = {"type": "record", "name": "r", "fields": [{"name": "f", "type": "r"}]}
BYTES = record("bytes")
SCHEMA = "FormatError: bad: schema of an Avro file: "
TOO_MUCH = "FormatError: bad: Avro block that holds too much at offset "
FAR = 2**31 - 1

BOMBS: dict[str, Bomb] = {
    # Frames that hold much.
    "zstd.puffin": Bomb(
        puffin_file(zstd_zeros(MUCH), "zstd"), "LimitError: <BytesIO>: zstd frame at offset 4: it"
    ),
    "zstd-without-size.puffin": Bomb(
        puffin_file(zstd_without_size(MUCH), "zstd"),
        "FormatError: <BytesIO>: zstd frame: does not state its content size at offset 4",
    ),
    "lz4.puffin": Bomb(
        puffin_file(lz4_zeros(MUCH), "lz4"), "LimitError: <BytesIO>: lz4 frame at offset 4: it"
    ),
    "lz4-footer.puffin": Bomb(
        _with_footer(b"", lz4_zeros(MUCH), 1), "LimitError: <BytesIO>: lz4 frame at offset 8: it"
    ),
    "zstd-block.manifest": Bomb(
        container(BYTES, (1, zstd_without_size(MUCH)), codec="zstandard"), TOO_MUCH
    ),
    "deflate-block.manifests": Bomb(
        container(BYTES, (1, deflated(MUCH)), codec="deflate"), TOO_MUCH
    ),
    "many-blocks.indexes": Bomb(
        container(BYTES, *[(1, zstd_zeros(4 * MEGABYTE))] * 100, codec="zstandard"), TOO_MUCH
    ),
    # A frame within a frame: the blob of a bundle, and the buffers of the stream in it.
    "compressed-buffers.files": Bomb(
        compressed_files(),
        "FormatError: bad: table of files: not an Arrow stream (compressed buffers) at offset 0",
    ),
    "nested.bundle": Bomb(
        bundle_of(compressed_files()),
        "FormatError: bad: table of files: not an Arrow stream (compressed buffers) at offset 4",
    ),
    # Counts that no bytes back up.
    "records-of-nothing.manifest": Bomb(
        container(record("null"), (1 << 40, b"")), f"{SCHEMA}null outside of a union"
    ),
    "records-without-bytes.manifest": Bomb(
        container(record("int"), (1 << 40, b"\0")),
        "FormatError: bad: records of an Avro block at offset 126: found 1099511627776, expected"
        " 0 to 1, a byte for each",
    ),
    "nulls.manifest": Bomb(
        container(ARRAY_OF_NULLS, (1, long(1 << 40) + b"\0")), f"{SCHEMA}null outside of a union"
    ),
    "block-of-2-63-bytes.manifest": Bomb(
        container(BYTES)[:-16] + b"s" * 16 + long(1) + long(2**63 - 1),
        "FormatError: bad: damaged Avro file: length at offset 139: found 9223372036854775807,"
        " expected 0 to 0",
    ),
    "vector-of-2-31-bytes.vectors": Bomb(
        vector_file(FAR), "FormatError: bad: bad length of a deletion vector at offset 1: found"
    ),
    "bitmaps-2-63.vector": Bomb(
        wide((0, [1]), count=2**63 - 1), "FormatError: bad: bad count of bitmaps at offset 8: found"
    ),
    "key-2-31.vector": Bomb(
        wide((FAR, [1])), "FormatError: bad: bad key of a bitmap at offset 16: found 2147483647"
    ),
    "hashes.theta": Bomb(
        struct.pack("<BBBHBHIf", 2, 3, 3, 0, 0x1A, 0x93CC, 2**32 - 1, 1.0),
        "FormatError: bad: theta sketch of another length at offset 34359738376: found 16 bytes",
    ),
    "keys.bitmap": Bomb(
        struct.pack(">BiiB", 1, FAR, FAR, 0), "FormatError: bad: truncated at offset "
    ),
    "keys.range-bitmap": Bomb(range_bitmap(FAR, FAR, 32), "FormatError: bad: "),
    "dictionary.range-bitmap": Bomb(
        range_bitmap(10, 5, FAR), "FormatError: bad: bad dictionary length at offset "
    ),
    # Roaring containers with wrong counts.
    "containers.vector": Bomb(
        narrow(plain((0, 1, u16(1)), count=65536)), "FormatError: bad: bad roaring bitmap ("
    ),
    "cardinality.vector": Bomb(
        narrow(plain((0, 65536, u16(1)))), "FormatError: bad: bad roaring bitmap ("
    ),
    # FileIO that point backwards, or all to the same bytes.
    "same-bitmap.bitmap": Bomb(
        overlapping_bitmaps(1), "FormatError: bad: bitmaps that overlap at offset "
    ),
    "same-bitmap-2.bitmap": Bomb(
        overlapping_bitmaps(2), "FormatError: bad: bitmaps that overlap at offset "
    ),
    # Rows that a few bytes state, and that a page would count one by one.
    "rows.page": Bomb(bsi_of_zeros(FAR), "answered"),
    "deleted-rows.page": Bomb(narrow(BitMap(range(FAR), optimize=True).serialize()), "answered"),
    # Content that is nested without end, or as deeply as it is long.
    "itself.manifest": Bomb(container(ITSELF, (1, b"\0")), f"{SCHEMA}'r' within itself"),
    "linked.manifest": Bomb(linked(), f"{SCHEMA}'r' within itself"),
    "doubling.manifest": Bomb(doubling(), f"{SCHEMA}null outside of a union"),
    "deep-schema.manifest": Bomb(
        container(b'{"type":"array","items":' * DEEP, (1, b"")), f"{SCHEMA}no JSON: "
    ),
    "decimal.manifest": Bomb(
        container(record(DECIMAL), (1, long(MEGABYTE) + b"\x7f" * MEGABYTE)), f"{SCHEMA}a decimal"
    ),
    "deep.puffin": Bomb(
        _with_footer(b"", nested_json(b'"blobs":[],')),
        "FormatError: <BytesIO>: footer: nested too deeply at offset 8",
    ),
    "deep.metadata": Bomb(
        nested_json(b'"format-version":2,'), "FormatError: metadata of bad: not J"
    ),
    "deep.snapshot": Bomb(nested_json(b""), "FormatError: bad: no JSON: "),
    "deep.schema": Bomb(nested_json(b""), "FormatError: bad: no JSON: "),
    "deep-type.schema": Bomb(nested_type(400), "FormatError: bad: "),
}
