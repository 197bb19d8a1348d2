"""Avro containers with any content."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["container", "long", "record"]

_SYNC = b"0123456789abcdef"


def long(value: int) -> bytes:
    """A zigzag varint, also for numbers of more than 64 bits."""
    value, encoded = value << 1 if value >= 0 else (-value << 1) - 1, bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))


def record(*types: Any) -> dict[str, Any]:
    """A record `r` with these fields."""
    fields = [{"name": f"f{number}", "type": kind} for number, kind in enumerate(types)]
    return {"type": "record", "name": "r", "fields": fields}


def container(schema: Any, *blocks: tuple[int, bytes], codec: str = "null") -> bytes:
    """A file of blocks, each a count of records and stored bytes."""
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    metadata = {b"avro.schema": text, b"avro.codec": codec.encode()}
    parts = [b"Obj\x01", long(len(metadata))]
    for name, value in metadata.items():
        parts += (long(len(name)), name, long(len(value)), value)
    parts += (long(0), _SYNC)
    for count, block in blocks:
        parts += (long(count), long(len(block)), block, _SYNC)
    return b"".join(parts)
