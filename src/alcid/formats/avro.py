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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Final, NamedTuple

import fastavro
import zstandard

from alcid.errors import FormatError

MAGIC: Final = b"Obj\x01"
_SYNC: Final = 16
_LONGEST_VARINT: Final = 10
_DEEPEST: Final = 32
_PIECE: Final = 1 << 16
_PART: Final = 4 << 20  # content that becomes records at a time, unless one block has more
# Limits of the decompressed content. Entries of wide tables are mostly nulls, of which zstd makes
# next to nothing: 1,000 columns are 18 KB. But each entry has a file name of its own.
_LARGEST_RATIO: Final = 100
_LARGEST_ENTRY: Final = 256 << 10
_ENTRIES_PER_BYTE: Final = 1
_LARGEST: Final = 1 << 30
_ALWAYS: Final = 4 << 20
_ALWAYS_ENTRIES: Final = 64


class PlainContainer(NamedTuple):
    """The content of a container, checked and without compression."""

    schema: Any
    """The schema of its records."""
    parts: Iterator[bytes]
    """Containers of some of the blocks each, in order."""


def container_schema(data: bytes, *, file: str) -> Any:
    """The schema of a container, of which the beginning is enough.

    Raises:
        FormatError: It is damaged.
    """
    return _schema(_Reader(data, file).head()[0], file)


def _schema(metadata: Mapping[str, bytes], file: str) -> Any:
    try:
        return json.loads(metadata.get("avro.schema", b""))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"schema of an Avro file: no JSON: {error}", file=file) from None


def read_records(
    data: bytes,
    *,
    file: str,
    as_schema: Callable[[Any], Any] | None = None,
    read_as: Callable[[Any], Any] | None = None,
    most_records: int | None = None,
) -> tuple[Any, Iterator[dict[str, Any]]]:
    """The schema and the records of a container; the first record that is wrong ends them.

    Args:
        data: The container.
        file: Its name, for errors.
        as_schema: As for `plain_container`.
        read_as: Makes the schema to read records with out of that: fields that it leaves out are
            skipped, and no objects are made of them. None: all fields.
        most_records: As for `plain_container`.

    Raises:
        FormatError: It is damaged, or no writer of manifests would write it; the records raise it
            too.
    """
    schema, parts = plain_container(data, file=file, as_schema=as_schema, most_records=most_records)
    return schema, _records(parts, None if read_as is None else read_as(schema), file)


def _records(parts: Iterable[bytes], read_schema: Any, file: str) -> Iterator[dict[str, Any]]:
    for part in parts:
        try:
            yield from fastavro.reader(io.BytesIO(part), read_schema)  # type: ignore[misc]
        # Whatever a damaged schema or record leads to.
        except Exception as error:  # noqa: BLE001
            raise FormatError(f"damaged Avro file: {error!r}", file=file) from None


def plain_container(
    data: bytes,
    *,
    file: str,
    as_schema: Callable[[Any], Any] | None = None,
    most_records: int | None = None,
) -> PlainContainer:
    """The same records in containers without compression.

    In them every value takes a byte at least, so that records take memory in proportion. What is
    decompressed is limited by the number of records, which is limited by the bytes that there are.

    Args:
        data: The container.
        file: Its name, for errors.
        as_schema: Makes the schema that the container gets of its own; the bytes of records must
            mean the same by both.
        most_records: How many records it may have, if that is known: then any number of bytes may
            be decompressed, a block at a time. Else it is a manifest.

    Raises:
        FormatError: It is damaged, or no writer of manifests would write it; the parts raise it
            too.
    """
    reader = _Reader(data, file)
    metadata, sync = reader.head()
    schema, codec = metadata.get("avro.schema", b""), metadata.get("avro.codec", b"null")
    described = _schema(metadata, file)
    if as_schema is not None:
        described = as_schema(described)
        schema = json.dumps(described).encode()
    _check_type(described, (), file)
    head = {"avro.schema": schema, "avro.codec": b"null"}
    parts = [MAGIC, _long(len(head))]
    for name, value in head.items():
        parts += (_long(len(name)), name.encode(), _long(len(value)), value)
    parts += (_long(0), sync)
    limits = _Limits(len(data), most_records)
    blocks = _plain_blocks(reader, sync, codec.decode("latin-1"), limits, file)
    return PlainContainer(described, _gather(b"".join(parts), blocks))


def _gather(head: bytes, blocks: Iterable[list[bytes]]) -> Iterator[bytes]:
    """Containers of blocks, of about as many bytes each; one without blocks if there are none."""
    parts, size, is_first = [head], 0, True
    for block in blocks:
        parts += block
        size += sum(map(len, block))
        if size >= _PART:
            yield b"".join(parts)
            parts, size, is_first = [head], 0, False
    if size or is_first:
        yield b"".join(parts)


def _refuse_stated(
    blocks: Sequence[tuple[int, int, bytes]], limits: _Limits, file: str
) -> Iterator[tuple[int, int, bytes]]:
    """The blocks, unless what they state to hold is too much: then none is decompressed.

    Raises:
        FormatError: It is too much.
    """
    records = stated = 0
    for at, count, block in blocks:
        records = min(records + max(count, 0), limits.records)
        with suppress(zstandard.ZstdError):  # is found damaged when it is decompressed
            stated += max(zstandard.frame_content_size(block), 0)
        if stated > (allowed := limits.content(records, 0)):
            raise _too_much(allowed, file, at)
    return iter(blocks)


class _Limits(NamedTuple):
    """How many records a container may have, and how many bytes of them."""

    size: int
    """Of the container, in bytes."""
    most_records: int | None

    @property
    def records(self) -> int:
        if self.most_records is not None:
            return self.most_records
        return _ALWAYS_ENTRIES + _ENTRIES_PER_BYTE * self.size

    def content(self, records: int, before: int) -> int:
        """The bytes that a block may have, with so many records up to its end."""
        if self.most_records is not None:
            return _LARGEST
        most = _ALWAYS + _LARGEST_RATIO * self.size + _LARGEST_ENTRY * records
        return min(most, _LARGEST) - before


def _plain_blocks(
    reader: _Reader, sync: bytes, codec: str, limits: _Limits, file: str
) -> Iterator[list[bytes]]:
    """The blocks without compression.

    Args:
        reader: Stands behind the head.
        sync: What stands behind each block.
        codec: Of the blocks.
        limits: Of their records and bytes.
        file: Its name.
    """
    records = content_bytes = 0
    blocks = reader.blocks(sync)
    if limits.most_records is None and codec == "zstandard":
        blocks = _refuse_stated(list(blocks), limits, file)
    for at, count, block in blocks:
        left = limits.records - records
        entries = records + min(max(count, 0), left)
        content = _decompressed(codec, block, limits.content(entries, content_bytes), file, at)
        if not 0 <= count <= min(len(content), left):
            each = f"{len(content)}, a byte for each"
            expected = f"0 to {each if len(content) < left else left}"
            raise FormatError(
                "records of an Avro block", file=file, offset=at, found=count, expected=expected
            )
        records, content_bytes = entries, content_bytes + len(content)
        yield [_long(count), _long(len(content)), content, sync]


class _Reader:
    """Steps through a container; every length is compared with what is there."""

    def __init__(self, data: bytes, file: str) -> None:
        self._data, self._file, self._at = data, file, 0

    def head(self) -> tuple[dict[str, bytes], bytes]:
        """The metadata, and the bytes that stand behind each block."""
        if (magic := self._data[: len(MAGIC)]) != MAGIC:
            raise FormatError(
                "no Avro file", file=self._file, offset=0, found=magic, expected=MAGIC
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
            if (marker := self._take(_SYNC)) != sync:
                raise self._error("end of a block", marker.hex(), sync.hex())
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
        raise _too_much(allowed, file, at)
    return content


def _too_much(allowed: int, file: str, at: int) -> FormatError:
    problem, expected = "Avro block that holds too much", f"{allowed} bytes at most"
    return FormatError(problem, file=file, offset=at, expected=expected)


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
    name = short_name(kind["name"]) if isinstance(kind, dict) and "name" in kind else ""
    for inner in inner_types(kind):
        _check_type(inner, (*around, name), file)


def _problem(kind: Any, around: tuple[str, ...]) -> str:
    """What is wrong with a type, apart from those within it; `around` are names of outer ones."""
    match kind:
        case "null":
            return "null outside of a union"
        case str():
            return f"{kind!r} within itself" if short_name(kind) in around else ""
        case {"type": "record" | "error", "fields": []}:
            return "a record without fields"
        case {"type": "fixed", "size": size} if not isinstance(size, int) or size < 1:
            return f"{size!r} bytes"
        case {"logicalType": "decimal"}:  # as text it takes the square of its length in time
            return "a decimal"
        case list() | {"type": _}:
            return ""
    return f"found {kind!r:.40}"


def inner_types(kind: Any) -> list[Any]:
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


def short_name(name: object) -> str:
    """A name without its namespace, which references may leave out."""
    return str(name).rpartition(".")[2]


def _long(value: int) -> bytes:
    """A number that is not negative, as a zigzag varint."""
    value, encoded = value << 1, bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))
