"""Checksums and lengths made right, so that a mutant is refused for what it says, not for these."""

from __future__ import annotations

import io
import json
import struct
import zlib
from dataclasses import replace
from typing import Any

from alcid.errors import AlcidError
from alcid.formats import puffin
from alcid.formats.puffin.footer import MAGIC, write_footer
from alcid.index.bundle.directory import CONTENT, Directory, stored
from alcid.index.bundle.format import BUNDLE, CRC_PROPERTY, DIRECTORY, FILES, closing_properties

__all__ = ["bundle", "puffin_file", "vector", "vector_file"]

_AROUND = 8
_END = struct.Struct("<i4s4s")


def vector(data: bytes) -> bytes:
    """A deletion vector with the length and the checksum of its body."""
    body = data[4:-4]
    return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def vector_file(data: bytes) -> bytes:
    """An index file whose vectors have correct checksums; the last one has the remaining length."""
    parts, at = [b"\1"], 1
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big") + _AROUND
        end = at + size if at + size + _AROUND <= len(data) else len(data)
        parts.append(vector(data[at:end]))
        at = end
    return b"".join(parts)


def puffin_file(data: bytes) -> bytes:
    """A file with correct magics, footer size and checksums of its vectors."""
    footer = data.rfind(MAGIC, 4, -_END.size)
    if footer < 0:
        return data
    payload = data[footer + len(MAGIC) : -_END.size]
    flags = bytes((data[-8] & 1, 0, 0, 0))
    blobs = bytearray(MAGIC + data[len(MAGIC) : footer])
    for blob in _blobs(payload):
        match blob:
            case {"type": puffin.DELETION_VECTOR, "offset": int(at), "length": int(length)}:
                if at >= 4 and length >= _AROUND and at + length <= len(blobs):
                    blobs[at : at + length] = vector(bytes(blobs[at : at + length]))
    return b"".join((blobs, MAGIC, payload, _END.pack(len(payload), flags, MAGIC)))


def _blobs(payload: bytes) -> list[Any]:
    try:
        footer = json.loads(payload)
    except (ValueError, RecursionError):
        return []
    blobs = footer.get("blobs") if isinstance(footer, dict) else None
    return blobs if isinstance(blobs, list) else []


def bundle(data: bytes) -> bytes:
    """A bundle with correct checksums of its footer, table of files, directories and blocks."""
    data = puffin_file(data)
    try:
        with puffin.open(io.BytesIO(data), largest=1 << 20) as reader:
            return _rebuilt(data, reader)
    except (AlcidError, ValueError):  # not even a Puffin file, or properties that are not numbers
        return data


def _rebuilt(data: bytes, reader: puffin.PuffinReader) -> bytes:
    if not reader.blobs or reader.blobs[-1].type != BUNDLE:
        return data
    content = bytearray(data[: len(data) - reader.footer_size])
    blobs = list(reader.blobs)
    directories = next((blob for blob in blobs if blob.type == DIRECTORY), None)
    for number, blob in enumerate(blobs):
        if blob.type == FILES:
            crc = {CRC_PROPERTY: f"{zlib.crc32(reader.read(blob)):08x}"}
            blobs[number] = replace(blob, properties=blob.properties | crc)
        elif "directory" in blob.properties and directories is not None:
            at = directories.offset + int(blob.properties["directory"])
            entries = min(int(blob.properties.get("entries", "0")), len(content) // 12)
            _mend_series(content, at, entries, blob)
    last = blobs.pop()
    properties = closing_properties(blobs, last, reader.properties)
    footer = write_footer((*blobs, replace(last, properties=properties)), reader.properties)
    return bytes(content) + footer


def _mend_series(content: bytearray, at: int, entries: int, blob: puffin.Blob) -> None:
    """Checksums of one directory, and of the blocks of the payloads that it names."""
    size = Directory.size(entries)
    if at < 0 or at + size > len(content):
        return
    body = content[at : at + size - 4]
    content[at + size - 4 : at + size] = zlib.crc32(body).to_bytes(4, "little")
    begin = blob.offset
    for length in struct.unpack_from(f"<{entries}I", body, 4 * entries):
        end = begin + stored(length)
        if end > len(content):
            return
        for block in range(begin, end, CONTENT + 4):
            last = min(block + CONTENT + 4, end) - 4
            crc = zlib.crc32(content[block:last])
            content[last : last + 4] = crc.to_bytes(4, "little")
        begin = end
