"""Avro containers that are checked before a library makes records of them.

    "Obj" 1 | metadata: a map of bytes | sync: 16 bytes | block | block | ...
    block   long records | long bytes | the bytes, compressed by the codec | sync

Longs are zigzag varints. Schema, counts and sizes come from the file, and fastavro believes them: a
few bytes would become gigabytes of records, and a schema within itself ends the process.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import zstandard

from alcid.errors import FormatError

__all__ = ["MAGIC", "plain_container"]

MAGIC: Final = b"Obj\x01"
_SYNC: Final = 16
_LONGEST_VARINT: Final = 10
_DEEPEST: Final = 32
_PIECE: Final = 1 << 16
_ALWAYS_ALLOWED: Final = 4 << 20
_LARGEST_RATIO: Final = 100  # entries have file names of random digits, which take their bytes


def plain_container(data: bytes, *, file: str) -> bytes:
    """The same records in a container without compression.

    In it every value takes a byte at least, so that records take memory in proportion. The bytes
    that it decompresses are bounded by those that it has.

    Raises:
        FormatError: It is damaged, or no writer of manifests would write it.
    """
    reader = _Reader(data, file)
    metadata, sync = reader.head()
    schema, codec = metadata.get("avro.schema", b""), metadata.get("avro.codec", b"null")
    try:
        described = json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"schema of an Avro file: no JSON: {error}", file=file) from None
    _check_type(described, (), file)
    head = {"avro.schema": schema, "avro.codec": b"null"}
    parts = [MAGIC, _long(len(head))]
    for name, value in head.items():
        parts += (_long(len(name)), name.encode(), _long(len(value)), value)
    parts += (_long(0), sync)
    allowed = _ALWAYS_ALLOWED + _LARGEST_RATIO * len(data)
    for at, count, block in reader.blocks(sync):
        content = _decompressed(codec.decode("latin-1"), block, allowed, file, at)
        allowed -= len(content)
        if not 0 <= count <= len(content):
            expected = f"0 to {len(content)}, a byte for each"
            raise FormatError(
                "records of an Avro block", file=file, offset=at, found=count, expected=expected
            )
        parts += (_long(count), _long(len(content)), content, sync)
    return b"".join(parts)


class _Reader:
    """Steps through a container; every length is held against what is there."""

    def __init__(self, data: bytes, file: str) -> None:
        self._data, self._file, self._at = data, file, 0

    def head(self) -> tuple[dict[str, bytes], bytes]:
        """The metadata, and the bytes that stand behind each block."""
        if (found := self._data[: len(MAGIC)]) != MAGIC:
            raise FormatError(
                "no Avro file", file=self._file, offset=0, found=found, expected=MAGIC
            )
        self._at = len(MAGIC)
        metadata: dict[str, bytes] = {}
        while count := self._long():
            if count < 0:  # then the size of this part of the map follows
                count, _ = -count, self._long()
            if count > len(self._data):
                raise self._error("entries of the metadata", count)
            for _ in range(count):
                name = self._take(self._long()).decode("latin-1")
                metadata[name] = self._take(self._long())
        return metadata, self._take(_SYNC)

    def blocks(self, sync: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Where each block begins, how many records it says it has, and its stored bytes."""
        while self._at < len(self._data):
            at, count = self._at, self._long()
            block = self._take(self._long())
            if (found := self._take(_SYNC)) != sync:
                raise self._error("end of a block", found.hex(), sync.hex())
            yield at, count, block

    def _long(self) -> int:
        value = shift = 0
        for byte in self._data[self._at : self._at + _LONGEST_VARINT]:
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value >> 1 ^ -(value & 1)
        raise self._error("number", "no end of it")

    def _take(self, length: int) -> bytes:
        left = len(self._data) - self._at
        if not 0 <= length <= left:
            raise self._error("length", length, f"0 to {left}")
        self._at += length
        return self._data[self._at - length : self._at]

    def _error(self, problem: str, found: object, expected: object = None) -> FormatError:
        problem = f"damaged Avro file: {problem}"
        return FormatError(
            problem, file=self._file, offset=self._at, found=found, expected=expected
        )


def _decompressed(codec: str, block: bytes, allowed: int, file: str, at: int) -> bytes:
    """The content of a block, of `allowed` bytes at most."""
    match codec:
        case "null":
            return block
        case "deflate":
            inflater = zlib.decompressobj(-zlib.MAX_WBITS)
            try:
                content = inflater.decompress(block, allowed + 1)
            except zlib.error as error:
                problem = f"damaged Avro file: {error}"
                raise FormatError(problem, file=file, offset=at) from None
        case "zstandard":
            try:
                content = _zstd(zstandard.ZstdDecompressor().stream_reader(block), allowed)
            except zstandard.ZstdError as error:
                problem = f"damaged Avro file: {error}"
                raise FormatError(problem, file=file, offset=at) from None
        case _:
            known = "null, deflate or zstandard"
            raise FormatError("codec of an Avro file", file=file, found=codec, expected=known)
    if len(content) > allowed:
        problem, expected = "Avro block that holds too much", f"{allowed} bytes at most"
        raise FormatError(problem, file=file, offset=at, expected=expected)
    return content


def _zstd(stream: BinaryIO, allowed: int) -> bytes:
    """All that a stream holds, or more than `allowed`; it need not state its size."""
    content = io.BytesIO()
    while content.tell() <= allowed and (piece := stream.read(_PIECE)):
        content.write(piece)
    return content.getvalue()


def _check_type(kind: Any, around: tuple[str, ...], file: str) -> None:
    """Refuse what nests without end, and what takes no bytes, of which there can be any number."""
    problem = _problem(kind, around) if len(around) <= _DEEPEST else "nested too deeply"
    if problem:
        raise FormatError(f"schema of an Avro file: {problem}", file=file)
    name = _short(kind["name"]) if isinstance(kind, dict) and "name" in kind else ""
    for one in _inner(kind):
        _check_type(one, (*around, name), file)


def _problem(kind: Any, around: tuple[str, ...]) -> str:
    """What is wrong with a type, apart from those within it; `around` are names of outer ones."""
    match kind:
        case "null":
            return "null outside of a union"
        case str():
            return f"{kind!r} within itself" if _short(kind) in around else ""
        case {"type": "record" | "error", "fields": []}:
            return "a record without fields"
        case {"type": "fixed", "size": size} if not isinstance(size, int) or size < 1:
            return f"{size!r} bytes"
        case {"logicalType": "decimal"}:  # as text it takes the square of its length in time
            return "a decimal"
        case list() | {"type": _}:
            return ""
    return f"found {kind!r:.40}"


def _inner(kind: Any) -> list[Any]:
    """The types that a type is made of; null as one of a union takes a byte."""
    match kind:
        case list():
            return [branch for branch in kind if branch != "null"]
        case {"type": "record" | "error", "fields": list(fields)}:
            return [field.get("type") if isinstance(field, dict) else None for field in fields]
        case {"type": "array", "items": item} | {"type": "map", "values": item}:
            return [item]
        case {"type": "fixed" | "enum"} | str():
            return []
    return [kind["type"]]


def _short(name: object) -> str:
    """A name without its namespace, which references may leave out."""
    return str(name).rpartition(".")[2]


def _long(value: int) -> bytes:
    """A number that is not negative, as a zigzag varint."""
    value, found = value << 1, bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))
