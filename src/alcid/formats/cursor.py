"""A cursor that reads fields one after the other, big-endian, with every length checked."""

from __future__ import annotations

import struct

from alcid.errors import LimitError
from alcid.formats.source import Section

_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")
_U16 = struct.Struct(">H")
_LONGEST_UTF = 0xFFFF
_LARGEST_I32 = (1 << 31) - 1


class Cursor:
    """Reads a section from front to back, fetching `window` bytes at a time.

    A small window reads few bytes too many; a large one needs few requests.
    """

    __slots__ = ("_buffer", "_buffer_start", "position", "section", "window")

    def __init__(self, section: Section, position: int = 0, window: int = 512) -> None:
        """Start at `position` of `section`."""
        self.section, self.position, self.window = section, position, window
        self._buffer, self._buffer_start = b"", 0

    @classmethod
    def over(cls, section: Section, data: bytes, position: int) -> Cursor:
        """A cursor at `position` of a section whose bytes were read already."""
        cursor = cls(section, position)
        cursor._buffer = data
        return cursor

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        start = self.position - self._buffer_start
        if start < 0 or start + length > len(self._buffer):
            # The section checks the bounds: it is asked for `length` at least.
            available = max(self.section.length - self.position, 0)
            wanted = max(length, min(self.window, available))
            self._buffer = self.section.read(self.position, wanted)
            self._buffer_start, start = self.position, 0
        self.position += length
        return self._buffer[start : start + length]

    def skip(self, length: int) -> None:
        """Step over `length` bytes without reading them."""
        if length < 0 or self.position + length > self.section.length:
            raise self.section.error(
                "truncated",
                self.position,
                found=f"{max(self.section.length - self.position, 0)} bytes",
                expected=length,
            )
        self.position += length

    def u8(self) -> int:
        """One unsigned byte."""
        return self.take(1)[0]

    def i32(self) -> int:
        """Four bytes, signed."""
        return int(_I32.unpack(self.take(4))[0])

    def i64(self) -> int:
        """Eight bytes, signed."""
        return int(_I64.unpack(self.take(8))[0])

    def count(self, what: str, at_most: int | None = None) -> int:
        """Four bytes that must be a count: not negative, not above `at_most`."""
        value = self.i32()
        if value < 0 or (at_most is not None and value > at_most):
            limit = "not negative" if at_most is None else f"0 to {at_most}"
            raise self.section.error(f"bad {what}", self.position - 4, found=value, expected=limit)
        return value

    def version(self, what: str, known: int) -> None:
        """One byte that must be the `known` version."""
        if (version := self.u8()) != known:
            raise self.section.error(
                f"unknown {what} version", self.position - 1, found=version, expected=known
            )

    def flag(self, what: str) -> bool:
        """One byte that must be 0 or 1."""
        if (flag := self.u8()) > 1:
            raise self.section.error(
                f"bad {what} flag", self.position - 1, found=flag, expected="0 or 1"
            )
        return bool(flag)

    def utf(self) -> str:
        """A string as Java's `DataOutput.writeUTF` writes it: u16 length, modified UTF-8."""
        (length,) = _U16.unpack(self.take(2))
        start = self.position
        try:
            return decode_modified_utf8(self.take(length))
        except UnicodeDecodeError as error:
            raise self.section.error(
                "bad modified UTF-8", start + error.start, found=error.reason
            ) from None


class Writer:
    """Collects fields, big-endian, into bytes."""

    __slots__ = ("_parts", "length")

    def __init__(self) -> None:
        """Start empty."""
        self._parts: list[bytes] = []
        self.length = 0

    def raw(self, data: bytes) -> Writer:
        """Bytes as they are."""
        self._parts.append(data)
        self.length += len(data)
        return self

    def u8(self, value: int) -> Writer:
        """One unsigned byte."""
        return self.raw(bytes((value,)))

    def i32(self, *values: int) -> Writer:
        """Four bytes each, signed."""
        if values and max(values) > _LARGEST_I32:
            raise LimitError(f"{max(values)} does not fit the 32 bits that the format has for it")
        return self.raw(struct.pack(f">{len(values)}i", *values))

    def i64(self, *values: int) -> Writer:
        """Eight bytes each, signed."""
        return self.raw(struct.pack(f">{len(values)}q", *values))

    def utf(self, text: str) -> Writer:
        """A string as Java's `DataOutput.writeUTF` writes it."""
        data = encode_modified_utf8(text)
        return self.raw(_U16.pack(len(data))).raw(data)

    def to_bytes(self) -> bytes:
        """Everything written so far, which no format lets go beyond 2 GiB."""
        if self.length > _LARGEST_I32:
            raise LimitError(f"an index holds at most {_LARGEST_I32} bytes, found {self.length}")
        return b"".join(self._parts)


def encode_modified_utf8(text: str) -> bytes:
    r"""Java's modified UTF-8: NUL as two bytes, astral characters as two surrogates.

    >>> encode_modified_utf8("a\0é").hex()
    '61c080c3a9'
    """
    utf16 = text.encode("utf-16-be", "surrogatepass")
    units = "".join(chr(unit) for unit in struct.unpack(f">{len(utf16) // 2}H", utf16))
    data = units.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    if len(data) > _LONGEST_UTF:
        raise LimitError(f"a name of {len(data)} bytes is too long: at most {_LONGEST_UTF}")
    return data


def decode_modified_utf8(data: bytes) -> str:
    r"""The inverse of `encode_modified_utf8`.

    >>> decode_modified_utf8(b"a\xc0\x80")
    'a\x00'
    """
    units = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
