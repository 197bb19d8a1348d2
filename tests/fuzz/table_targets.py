"""Deletion vectors, hash indexes, binary rows, roaring bitmaps; Puffin files and sketches."""

from __future__ import annotations

import io
import struct
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
from pyroaring import BitMap

from alcid import (
    DeletionVector,
    DeletionVectorFile,
    FormatError,
    HashIndex,
    ThetaSketch,
    puffin,
)
from alcid.formats import roaring
from alcid.formats.binary_row import binary_rows
from alcid.formats.binary_row.reader import read_rows, salvage_column
from alcid.formats.deletion_vector.file import vector_places
from alcid.formats.source import BytesSource, Section
from alcid.tables.paimon.metadata.statistics import salvage_packed, unpack_rows
from alcid.types import DataType
from tests.fuzz import repair
from tests.fuzz.target import Target, small
from tests.golden_files import arrow_array, golden_files

_LARGEST = 1 << 20  # bytes of a compressed blob
_FAR = 1 << 40  # every key below the last position is written
_COLUMNS = (
    *("INT", "STRING", "BIGINT", "DECIMAL(10, 2)", "DECIMAL(30, 2)", "BYTES", "BOOLEAN", "DOUBLE"),
    *("DATE", "TIMESTAMP(3)", "TIMESTAMP(9)", "TIME(3)", "FLOAT", "SMALLINT", "CHAR(3)"),
)
ROW_TYPES = tuple(map(DataType.parse, _COLUMNS))


def table_targets() -> list[Target]:
    """The targets of this module."""
    return [
        Target("deletion-vector", _read_vector, _vector_seeds, repair.vector),
        Target("deletion-vector-file", _read_vectors, _vector_file_seeds, repair.vector_file),
        Target("hash-index", _read_hashes, _hash_seeds),
        Target("binary-rows", _read_rows, _row_seeds),
        Target("roaring", _read_bitmap, _bitmap_seeds),
        Target("puffin", _read_puffin, _puffin_seeds, repair.puffin_file),
        Target("theta", _read_sketch, _sketch_seeds),
    ]


def _read_vector(data: bytes) -> None:
    vector = DeletionVector.from_bytes(data)
    assert vector.contains([vector.first or 0, vector.last or 0]).all() == bool(vector)
    _ = vector | DeletionVector([1, 2**61])
    if (vector.last or 0) < _FAR:
        assert DeletionVector.from_bytes(vector.to_bytes(), len(vector)) == vector


def _vector_seeds() -> list[bytes]:
    return small([golden.data for golden in golden_files("deletion_vector")])


def _read_vectors(data: bytes) -> None:
    with DeletionVectorFile.from_bytes(data) as file:
        ranges = [
            replace(vector_range, data_file=str(at))
            for at, (vector_range, _) in enumerate(file.scan())
        ]
        assert len(file.read_all(ranges)) == len(ranges)
    assert len(list(vector_places(Section(BytesSource(data))))) == len(ranges)


def _vector_file_seeds() -> list[bytes]:
    return small([golden.data for golden in golden_files("deletion_vector_file")])


def _read_hashes(data: bytes) -> None:
    index = HashIndex.from_bytes(data)
    assert index.contains(index.hashes).all()
    assert len(HashIndex.from_bytes(index.to_bytes())) == len(index)


def _hash_seeds() -> list[bytes]:
    return small([golden.data for golden in golden_files("hash_index")])


def _read_rows(data: bytes) -> None:
    """The first byte is the number of columns, the second chooses them; the rest are two rows."""
    count, first = (data[0] % 4, data[1]) if len(data) > 1 else (0, 0)
    types = [ROW_TYPES[(first + number) % len(ROW_TYPES)] for number in range(count)]
    middle = 2 + (len(data) - 2) // 2
    rows = [data[2:middle], None, data[middle:]]
    for number in range(count):
        values, damaged = salvage_column(rows, number, types)
        assert not damaged[1]
        salvage_packed(rows, number, types)
        with suppress(FormatError):
            assert read_rows(rows, types)[number].is_null().equals(values.is_null())
            assert not damaged.any()
    with suppress(FormatError):
        unpack_rows(rows, types)
    read_rows(rows, types)


def _row_seeds() -> list[bytes]:
    seeds = []
    for golden in golden_files("binary_rows"):
        types = [DataType.parse(text) for text in golden.json["types"]]
        if not types or len(types) > 3 or types[0] not in ROW_TYPES:
            continue
        arrays = [
            arrow_array([row["values"][number] for row in golden.json["rows"][:2]], data_type)
            for number, data_type in enumerate(types)
        ]
        head = bytes((len(types), ROW_TYPES.index(types[0])))
        seeds.append(head + b"".join(binary_rows(arrays, types)))
    texts = pa.array(["a longer text", "fig"])
    seeds.append(bytes((1, 1)) + b"".join(binary_rows([texts])))
    return small(seeds)


def _read_bitmap(data: bytes) -> None:
    section = Section(BytesSource(data))
    bitmap, used = roaring.parse(section, 0, memoryview(data), 1 << 32)
    assert bitmap.serialize() == data[:used]
    roaring.load(section, 0, len(data), (bitmap.max() if bitmap else 0) + 1)


def _bitmap_seeds() -> list[bytes]:
    sets = [(), (5,), range(0, 9000, 2), range(100_000), (1, 70_000, 2**31, 2**32 - 1)]
    far = [*range(0, 500_000, 65_536), *range(200_000, 200_100)]
    return [BitMap(rows, optimize=True).serialize() for rows in (*sets, far)]


def _read_puffin(data: bytes) -> None:
    with puffin.open(io.BytesIO(data), largest=_LARGEST) as reader:
        for blob in reader.blobs:
            with suppress(FormatError):  # the others must be readable as well
                reader.read(blob)
        for blob in reader.blobs:
            if blob.type == puffin.DELETION_VECTOR:
                reader.read_deletion_vector(blob)
            elif blob.type == puffin.THETA_SKETCH:
                reader.read_theta_sketch(blob)


def _puffin_seeds() -> list[bytes]:
    seeds = [golden.data for golden in golden_files("puffin")]
    for codec in ("zstd", "lz4"):
        file = io.BytesIO()
        with puffin.create(file, compress_footer=codec == "lz4") as writer:
            writer.add("first", b"a whale of a whale of a time " * 3, fields=[1], codec=codec)
            writer.add("second", b"", codec=codec)
            writer.add_deletion_vector(DeletionVector([3, 5, 1 << 33]), "a.parquet")
        seeds.append(file.getvalue())
    return small(seeds)


def _read_sketch(data: bytes) -> None:
    sketch = ThetaSketch.from_bytes(data)
    assert sketch.ndv >= 0
    assert ThetaSketch.from_bytes(sketch.to_bytes()) == sketch
    sketch.union(ThetaSketch().update(pa.array(range(9))))


def _sketch_seeds() -> list[bytes]:
    version_4 = struct.pack("<BBBBBBH", 1, 4, 3, 20, 1, 0x1A, 0x93CC) + bytes((2, 0, 1, 0, 0, 16))
    return small([*(golden.data for golden in golden_files("theta")), version_4])
