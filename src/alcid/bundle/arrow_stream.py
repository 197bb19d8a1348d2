"""Arrow IPC streams that take no more memory than they have bytes.

Buffers of a batch may each be compressed and state their own size, which Arrow believes: few bytes
become gigabytes. Whether they are stands in the head of the batch, a FlatBuffers table:

    message    u8 kind of the head (field 1) | head (field 2): 2 a dictionary, 3 a batch
    dictionary batch (field 1)
    batch      compression (field 3), absent if there is none
"""

from __future__ import annotations

import struct
from typing import Final

import pyarrow as pa

__all__ = ["read_stream"]

_DICTIONARY: Final = 2
_BATCH: Final = 3
_COMPRESSION: Final = 3


def read_stream(data: bytes) -> pa.Table:
    """The table of a stream, checked in full, each column in one chunk.

    Raises:
        pa.ArrowException: It is damaged, or has compressed buffers.
        OSError: It is cut off.
        UnicodeDecodeError: A name is no UTF-8, which Arrow does not look at.

    >>> sink = pa.BufferOutputStream()
    >>> with pa.ipc.new_stream(sink, pa.schema([("a", pa.int8())])) as writer:
    ...     writer.write_table(pa.table({"a": pa.array([7], pa.int8())}))
    >>> read_stream(sink.getvalue().to_pybytes()).to_pydict()
    {'a': [7]}
    """
    messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(data))
    for message in messages:
        if _is_compressed(message.metadata.to_pybytes()):
            raise pa.ArrowInvalid("compressed buffers")
    table = pa.ipc.open_stream(pa.BufferReader(data)).read_all()
    table.validate(full=True)  # before anything else: chunks are joined without a look at them
    return table.combine_chunks()


def _is_compressed(message: bytes) -> bool:
    """Whether a message is a batch with compressed buffers; Arrow has checked its offsets."""
    table = _u32(message, 0)
    kind, head = _field(message, table, 1), _field(message, table, 2)
    if not kind or not head or message[kind] not in (_DICTIONARY, _BATCH):
        return False
    batch = head + _u32(message, head)
    if message[kind] == _DICTIONARY:
        inner = _field(message, batch, 1)
        if not inner:
            return False
        batch = inner + _u32(message, inner)
    return bool(_field(message, batch, _COMPRESSION))


def _field(message: bytes, table: int, number: int) -> int:
    """Where a field of a table is; 0 if it is absent."""
    fields = table - int(struct.unpack_from("<i", message, table)[0])
    size, place = _u16(message, fields), 4 + 2 * number
    offset = _u16(message, fields + place) if place < size else 0
    return table + offset if offset else 0


def _u16(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<H", data, at)[0])


def _u32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", data, at)[0])
