"""A Parquet file, put together in memory from pages of others.

    PAR1 | chunks of the first leaf, of the next ... | footer | u32 its length | PAR1

Each segment becomes a row group. Pages are copied as they are; only the footer is new:

    FileMetaData  1 version  2 schema  3 rows  4 row groups  5 ARROW:schema  6 writer
    RowGroup      1 chunks  2 bytes  3 rows
    ColumnChunk   2 offset  3: 1 type  2 encodings  3 path  4 codec  5 values  6, 7 bytes  9 offset

All row groups have the same shape, so they are made as one array of bytes, in which the numbers
that differ have a fixed width: a varint may be longer than it must be.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array, UInt8Array, without_extensions
from alcid.datafiles.parquet.decoding import (
    Int96Unit,
    arrow_file,
    int96_as,
    int96_unit,
    naming_damage,
)
from alcid.datafiles.parquet.schema import Field
from alcid.datafiles.parquet.thrift import varint
from alcid.errors import FormatError, LimitError

_MAGIC = b"PAR1"
DATA_START = len(_MAGIC)
"""Where the chunks begin."""
_WIDTH = 5  # bytes of a varint of fixed width: 35 bits, the lowest of them for the sign
_MOST_BYTES = 1 << 34
_WORTH_THREADS = 1 << 20  # bytes; below, to hand pages to threads takes longer than it saves
_HOLE = b"\x80" * (_WIDTH - 1) + b"\x00"
_SHIFTS = np.arange(0, 7 * _WIDTH, 7)


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """The parts of a footer that only depend on the columns."""

    head: bytes
    group: UInt8Array
    """A row group."""
    holes: Int64Array
    """The bytes in it that are numbers: five for each leaf, two at the end."""
    tail: bytes


def assemble(
    fields: tuple[Field, ...],
    codecs: Int64Array,
    values: Int64Array,
    lengths: Int64Array,
    rows: Int64Array,
    parts: Iterable[memoryview],
) -> pa.Buffer:
    """The bytes of a file.

    They are in memory of Arrow's own, so that its threads need nothing of Python to let go of them:
    if the interpreter ends at that moment, that would end the process.

    Args:
        fields: The columns.
        codecs: Of each chunk: a row for each leaf, a column for each row group.
        values: Of each chunk.
        lengths: Of each chunk, in bytes.
        rows: Of each row group.
        parts: The chunks, those of the first leaf first.
    """
    shape = _shape(fields)
    ends = DATA_START + np.cumsum(lengths).reshape(lengths.shape)
    if ends.max(initial=0) >= _MOST_BYTES:
        raise LimitError(f"column {fields[0].name}: a row group of {ends.max()} bytes")
    count = len(rows)
    chunks = np.stack([codecs, values, lengths, lengths, ends - lengths], axis=2)
    by_group = np.swapaxes(chunks, 0, 1).reshape(count, 5 * len(codecs))
    numbers = np.concatenate([by_group, np.stack([rows, rows], axis=1)], axis=1)
    groups = np.tile(shape.group, (count, 1))
    digits = (2 * numbers)[:, :, None] >> _SHIFTS & 0x7F
    groups[:, shape.holes] |= digits.astype(np.uint8).reshape(count, len(shape.holes))
    footer = b"".join(
        [
            shape.head,
            b"\x16" + varint(2 * int(rows.sum())),
            b"\x19" + _list_head(count, 12),
            groups.tobytes(),
            shape.tail,
        ]
    )
    end = footer + len(footer).to_bytes(4, "little") + _MAGIC
    begin = DATA_START + int(lengths.sum())
    data = pa.allocate_buffer(begin + len(end))
    view = memoryview(data).cast("B")
    view[:DATA_START] = _MAGIC
    position = DATA_START
    for part in parts:
        view[position : position + len(part)] = part
        position += len(part)
    view[begin:] = end
    return data


@lru_cache(maxsize=64)
def _shape(fields: tuple[Field, ...]) -> _Shape:
    elements = [element for field in fields for element in field.elements]
    root = b"\x48\x06schema\x15" + varint(2 * len(fields)) + b"\x00"
    head = b"".join([b"\x15\x04\x19", _list_head(len(elements) + 1, 12), root, *elements])
    leaves = [leaf for field in fields for leaf in field.leaves]
    group = bytearray(b"\x19" + _list_head(len(leaves), 12))
    holes: list[int] = []

    def hole(header: bytes) -> None:
        group.extend(header)
        holes.extend(range(len(group), len(group) + _WIDTH))
        group.extend(_HOLE)

    for leaf in leaves:
        group.extend(b"\x26\x00\x1c\x15" + varint(2 * leaf.physical_type) + b"\x19\x05")
        group.extend(b"\x19" + _list_head(len(leaf.path), 8))
        for name in leaf.path:
            group.extend(varint(len(name)) + name)
        for header in (b"\x15", b"\x16", b"\x16", b"\x16", b"\x26"):
            hole(header)
        group.extend(b"\x00\x00")
    hole(b"\x16")  # the bytes of the row group, which nobody needs: the rows again
    hole(b"\x16")
    group.extend(b"\x00")
    created_by = fields[0].created_by
    tail = b"\x28"
    if fields[0].arrow:
        value = base64.b64encode(_joined([field.arrow for field in fields]))
        tail = b"\x19\x1c\x18\x0cARROW:schema\x18" + varint(len(value)) + value + b"\x00\x18"
    tail += varint(len(created_by)) + created_by + b"\x00"
    return _Shape(head, np.frombuffer(bytes(group), np.uint8), np.array(holes), tail)


def _joined(schemas: Iterable[bytes]) -> bytes:
    """One serialised Arrow schema of several, each of one field."""
    fields = [pa.ipc.read_schema(pa.py_buffer(schema)).field(0) for schema in schemas]
    joined: bytes = pa.schema(fields).serialize().to_pybytes()
    return joined


def _list_head(count: int, kind: int) -> bytes:
    return bytes((count << 4 | kind,)) if count < 15 else bytes((0xF0 | kind,)) + varint(count)


def decode(data: pa.Buffer, file: str) -> pa.Table:
    """Let Arrow read the file, as if the columns were read from the original.

    Raises:
        FormatError: Arrow cannot read it; the error names `file`.
    """
    with naming_damage(file):
        opened = arrow_file(pa.BufferReader(data))
        return without_extensions(opened.read(use_threads=data.size > _WORTH_THREADS))


def arrow_schema(fields: tuple[Field, ...], file: str) -> pa.Schema:
    """The names and types that Arrow gives columns, read from a file without rows.

    Raises:
        FormatError: The schemas of Parquet and of Arrow contradict each other.
    """
    try:
        return _arrow_schema(fields, int96_unit())
    except FormatError as error:
        raise FormatError(error.problem, file=file) from None


@lru_cache(maxsize=64)
def _arrow_schema(fields: tuple[Field, ...], unit: Int96Unit) -> pa.Schema:
    leaves = sum(len(field.leaves) for field in fields)
    none = np.zeros((leaves, 0), np.int64)
    with int96_as(unit):
        return decode(assemble(fields, none, none, none, none[0], ()), "").schema
