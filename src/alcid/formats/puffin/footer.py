"""The footer of a Puffin file: where each blob lies, and what it is.

    "PFA1" | JSON, or one LZ4 frame of it | i32 its stored size | 4 bytes of flags | "PFA1"

    {"blobs":[{"type":"...","fields":[1],"snapshot-id":2,"sequence-number":1,"offset":4,"length":9,
     "compression-codec":"zstd","properties":{...}}],"properties":{...}}

Integers are little-endian. Bit 0 of the first flag byte says that the JSON is compressed; no other
bit has a meaning. Codec and properties are left out when there are none. The JSON is read strictly:
a member that is not of the expected type is an error.
"""

from __future__ import annotations

import json
import re
import reprlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from alcid.errors import FormatError, LimitError
from alcid.formats.puffin.compression import CODECS, compress, decompress
from alcid.formats.source import Section, Source


class JsonObject:
    """A JSON object whose members are taken one by one; `rest` is what was not taken.

    A key that is repeated counts as it comes last, as it does for most readers.

    >>> head = JsonObject.load(b'{"a": 1, "b": "x", "c": null}', "head", file="f", offset=4)
    >>> head.integer("a", 32), head.text("b"), head.rest
    (1, 'x', {'c': None})
    >>> head.integer("d", 32)
    Traceback (most recent call last):
    alcid.errors.FormatError: f: head: missing 'd' at offset 4
    """

    __slots__ = ("_file", "_name", "_offset", "rest")

    def __init__(self, value: object, name: str, *, file: str, offset: int) -> None:
        """Take `value`, which errors call `name`, from the JSON at `offset` of `file`."""
        self._name, self._file, self._offset = name, file, offset
        if not isinstance(value, dict):
            raise self.error("not an object", shown(value))
        self.rest: dict[str, Any] = value

    @classmethod
    def load(cls, data: bytes, name: str, *, file: str, offset: int) -> JsonObject:
        """The object that `data` is: JSON in UTF-8 and nothing else."""
        try:
            value = json.loads(data.decode("utf-8"), parse_constant=_refuse)
        except UnicodeDecodeError as error:
            problem = f"not UTF-8 ({error.reason}, byte {error.start} of it)"
        except RecursionError:
            problem = "nested too deeply"
        except ValueError as error:  # bad JSON, or a number of thousands of digits
            problem = f"not JSON ({error})"
        else:
            return cls(value, name, file=file, offset=offset)
        raise FormatError(f"{name}: {problem}", file=file, offset=offset)

    def child(self, value: object, name: str) -> JsonObject:
        """A value from within this object, which must be an object too."""
        return JsonObject(value, name, file=self._file, offset=self._offset)

    def error(self, problem: str, found: object = None, expected: object = None) -> FormatError:
        """An error of this object."""
        return FormatError(
            f"{self._name}: {problem}",
            file=self._file,
            offset=self._offset,
            found=found,
            expected=expected,
        )

    def take(self, key: str) -> object:
        """A member that must be there, of whatever type."""
        if key not in self.rest:
            raise self.error(f"missing {key!r}")
        return self.rest.pop(key)

    def array(self, key: str) -> list[object]:
        """A member that must be an array."""
        if not isinstance(value := self.take(key), list):
            raise self.error(f"bad {key!r}", shown(value), "an array")
        return value

    def text(self, key: str) -> str:
        """A member that must be a string."""
        return self._text(self.take(key), key)

    def integer(self, key: str, bits: int) -> int:
        """A member that must be a signed integer of so many bits: neither 1.0 nor true."""
        return self._integer(self.take(key), key, bits)

    def integers(self, key: str, bits: int) -> tuple[int, ...]:
        """A member that must be an array of such integers."""
        return tuple(self._integer(value, key, bits) for value in self.array(key))

    def strings(self, key: str) -> dict[str, str]:
        """A member that, if it is there, must be an object of strings."""
        value = self.rest.pop(key, {})
        if not isinstance(value, dict):
            raise self.error(f"bad {key!r}", shown(value), "an object of strings")
        return {self._text(k, key): self._text(v, f"{key}.{k}") for k, v in value.items()}

    def _integer(self, value: object, key: str, bits: int) -> int:
        if type(value) is not int or not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise self.error(f"bad {key!r}", shown(value), f"an integer of {bits} bits")
        return value

    def _text(self, value: object, key: str) -> str:
        if not isinstance(value, str):
            raise self.error(f"bad {shown(key)}", shown(value), "a string")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:  # half of a surrogate pair, written as an escape
                raise self.error(f"bad {shown(key)}", shown(value), "Unicode text") from None
        return value


def shown(value: object) -> str:
    """A value as an error shows it: in one short line."""
    return reprlib.repr(value)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


MAGIC = b"PFA1"
LARGEST_COMPRESSED = 4 << 20
"""Bytes of JSON that a compressed footer may hold: as objects they take 25 times as much."""

_END = struct.Struct("<i4s4s")
_FIXED = len(MAGIC) + _END.size
_FIRST_READ = 64 << 10
_LARGEST = (1 << 31) - 1  # the footer has 32 bits for the size of its JSON
_COMPRESSED = 1
_ESCAPE = re.compile(r"\\(?:u00[01][a-f]|.)")  # Java writes the hexadecimal digits as capitals


@dataclass(frozen=True, slots=True)
class Blob:
    """What the footer says of one blob."""

    type: str
    """What the bytes are, such as `deletion-vector-v1`; any text, known or not."""
    fields: tuple[int, ...]
    """Ids of the table's fields that it was computed from."""
    snapshot_id: int
    """The snapshot that it was computed from; -1: none."""
    sequence_number: int
    """The sequence number of that snapshot; -1: none."""
    offset: int
    """Where its bytes start in the file."""
    length: int
    """How many bytes are stored, which is after compression."""
    codec: str | None = None
    """How they are compressed: `zstd`, `lz4`, or None."""
    properties: dict[str, str] = field(default_factory=dict, hash=False)
    """What its writer adds for readers of its type."""
    extra: dict[str, Any] = field(default_factory=dict, hash=False)
    """Members of the JSON object that the format does not know. They are not written."""


@dataclass(frozen=True, slots=True)
class Footer:
    """A footer as it was read."""

    start: int
    """Where it starts, and the blobs end."""
    size: int
    """All of its bytes: what table metadata calls the footer size."""
    blobs: tuple[Blob, ...]
    properties: dict[str, str]
    extra: dict[str, Any]


def is_inside(blob: Blob, end: int) -> bool:
    """Whether a blob lies between the magic at the head and the footer, which starts at `end`."""
    return blob.offset >= len(MAGIC) and blob.length >= 0 and blob.offset + blob.length <= end


def read_footer(source: Source, footer_size: int | None = None) -> Footer:
    """Read and check the footer, and the magic at the head of the file.

    One read from the end takes all of a small file. A large one needs a second for the head, and a
    third if the footer is larger than 64 KiB and its size was not given.
    """
    whole, size = Section(source), source.size
    largest = size - len(MAGIC)
    if largest < _FIXED:
        least = f"at least {len(MAGIC) + _FIXED}"
        raise whole.error("too short for a Puffin file", 0, found=f"{size} bytes", expected=least)
    if footer_size is not None and not _FIXED <= footer_size <= largest:
        limits = f"{_FIXED} to {largest}"
        raise whole.error("bad footer size given", 0, found=footer_size, expected=limits)
    first = min(size, _FIRST_READ if footer_size is None else footer_size)
    data = whole.read(size - first, first)
    stored, flags, magic = _END.unpack_from(data, first - _END.size)
    if magic != MAGIC and whole.read(0, len(MAGIC)) == MAGIC:
        raise whole.error(
            "Puffin file that is cut off, or was not finished: bad tail magic",
            size - len(MAGIC),
            found=magic.hex(),
            expected=MAGIC.hex(),
        )
    _check_magic(whole, size - len(MAGIC), magic, "tail")
    _check_flags(whole, size - 8, flags)
    if not 0 <= stored <= largest - _FIXED:
        limits = f"0 to {largest - _FIXED}"
        raise whole.error("bad size of the footer's JSON", size - 12, found=stored, expected=limits)
    total = _FIXED + stored
    if footer_size is not None and total != footer_size:
        problem = "footer of another size than given"
        raise whole.error(problem, size - 12, found=total, expected=footer_size)
    start = size - total
    if total > first:
        data = whole.read(start, total - first) + data
    payload_at = len(data) - total + len(MAGIC)
    _check_magic(whole, start, data[payload_at - len(MAGIC) : payload_at], "footer")
    head = data[: len(MAGIC)] if first == size else whole.read(0, len(MAGIC))
    _check_magic(whole, 0, head, "head")

    payload, at = data[payload_at : payload_at + stored], start + len(MAGIC)
    if flags[0] & _COMPRESSED:
        payload = decompress("lz4", payload, LARGEST_COMPRESSED, file=source.name, offset=at)
    footer = JsonObject.load(payload, "footer", file=source.name, offset=at)
    blobs = tuple(
        _blob(footer.child(value, f"blob {number}"), start)
        for number, value in enumerate(footer.array("blobs"))
    )
    return Footer(start, total, blobs, footer.strings("properties"), footer.rest)


def write_footer(
    blobs: Sequence[Blob], properties: Mapping[str, str], *, compressed: bool = False
) -> bytes:
    r"""The footer, in the very bytes that Iceberg's Java code writes.

    >>> write_footer([], {})
    b'PFA1{"blobs":[]}\x0c\x00\x00\x00\x00\x00\x00\x00PFA1'
    """
    footer: dict[str, Any] = {"blobs": [_members(blob) for blob in blobs]}
    if properties:
        footer["properties"] = dict(properties)
    text = json.dumps(footer, separators=(",", ":"), ensure_ascii=False)
    payload = _ESCAPE.sub(_in_capitals, text).encode()
    if compressed:
        if len(payload) > LARGEST_COMPRESSED:
            limit = f"at most {LARGEST_COMPRESSED} bytes"
            raise LimitError(f"a compressed footer holds {limit}, found {len(payload)}")
        payload = compress("lz4", payload)
    if len(payload) > _LARGEST:
        raise LimitError(f"a footer holds less than 2 GiB of JSON, found {len(payload)} bytes")
    flags = bytes((_COMPRESSED if compressed else 0, 0, 0, 0))
    return b"".join((MAGIC, payload, _END.pack(len(payload), flags, MAGIC)))


def _in_capitals(escape: re.Match[str]) -> str:
    return escape[0] if len(escape[0]) == 2 else "\\u" + escape[0][2:].upper()


def _members(blob: Blob) -> dict[str, Any]:
    members: dict[str, Any] = {
        "type": blob.type,
        "fields": blob.fields,
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": blob.offset,
        "length": blob.length,
    }
    if blob.codec is not None:
        members["compression-codec"] = blob.codec
    if blob.properties:
        members["properties"] = blob.properties
    return members


def _check_magic(whole: Section, offset: int, found: bytes, which: str) -> None:
    if found != MAGIC:
        problem = f"not a Puffin file: bad {which} magic"
        raise whole.error(problem, offset, found=found.hex(), expected=MAGIC.hex())


def _check_flags(whole: Section, offset: int, flags: bytes) -> None:
    known = bytes((_COMPRESSED, 0, 0, 0))
    for byte, (value, allowed) in enumerate(zip(flags, known, strict=True)):
        if unknown := value & ~allowed:
            bit = unknown.bit_length() - 1
            raise whole.error(
                f"unknown flag: byte {byte}, bit {bit}", offset + byte, f"{value:#04x}"
            )


def _blob(members: JsonObject, end: int) -> Blob:
    """Take one blob from its JSON; the blobs end at `end`."""
    codec = members.rest.pop("compression-codec", None)
    if codec is not None and codec not in CODECS:
        expected = " or ".join(CODECS)
        raise members.error("unknown 'compression-codec'", shown(codec), expected)
    blob = Blob(
        type=members.text("type"),
        fields=members.integers("fields", 32),
        snapshot_id=members.integer("snapshot-id", 64),
        sequence_number=members.integer("sequence-number", 64),
        offset=members.integer("offset", 64),
        length=members.integer("length", 64),
        codec=codec,
        properties=members.strings("properties"),
        extra=members.rest,
    )
    if not is_inside(blob, end):
        location = f"{blob.length} bytes from {blob.offset}"
        raise members.error("range outside of the blobs", location, f"within {len(MAGIC)} to {end}")
    return blob
