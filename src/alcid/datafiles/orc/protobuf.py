"""Messages of Protocol Buffers, in which ORC describes its files: numbered fields in any order.

08 96 01       field 1, wire type 0: the number 150
1a 03 4f5243   field 3, wire type 2: three bytes

An ORC file keeps its footers in chunks:

    u24 little-endian: length of the chunk, shifted by 1; the lowest bit says that it is not
    compressed | chunk | u24 ...

Each holds as many bytes as the block size of the file, or fewer. Without a codec there are no
chunks. The data itself is decompressed by Arrow.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from alcid.errors import FormatError, LimitError, UnsupportedError

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_MOST_BITS = 64


class Message:
    """A message whose parts are parsed on demand.

    >>> message = Message(bytes.fromhex("08 96 01  1a 03 4f5243  12 02 05 07"), "a.orc")
    >>> message.number(1), message.number(9), message.parts(3), message.numbers(2)
    (150, 0, [b'ORC'], [5, 7])
    """

    __slots__ = ("_fields", "_file")

    def __init__(self, data: bytes, file: str) -> None:
        """Split a message of `file` into its fields.

        Raises:
            FormatError: It is no message.
        """
        self._file = file
        self._fields: dict[int, list[int | bytes]] = {}
        position, end = 0, len(data)
        while position < end:
            tag, position = self._varint(data, position)
            kind = tag & 7
            value: int | bytes
            if kind == _VARINT:
                value, position = self._varint(data, position)
            else:
                length, position = (
                    self._varint(data, position)
                    if kind == _BYTES
                    else (_FIXED.get(kind, -1), position)
                )
                if not 0 <= length <= end - position:
                    raise self._error(f"field {tag >> 3}: wire type {kind}, {length} bytes")
                value, position = data[position : position + length], position + length
            self._fields.setdefault(tag >> 3, []).append(value)

    def __iter__(self) -> Iterator[tuple[int, int | bytes]]:
        """All fields with their values, as `encode_message` takes them."""
        return ((field, value) for field, values in self._fields.items() for value in values)

    def has(self, field: int) -> bool:
        """Whether there is such a field."""
        return field in self._fields

    def number(self, field: int) -> int:
        """A number that is not negative; 0 if there is none. The last counts."""
        value = self._fields.get(field, [0])[-1]
        if not isinstance(value, int):
            raise self._error(f"field {field}: bytes, where a number is expected")
        return value

    def numbers(self, field: int) -> list[int]:
        """A list of numbers, packed into bytes or not."""
        numbers: list[int] = []
        for value in self._fields.get(field, []):
            if isinstance(value, int):
                numbers.append(value)
                continue
            position = 0
            while position < len(value):
                number, position = self._varint(value, position)
                numbers.append(number)
        return numbers

    def parts(self, field: int) -> list[bytes]:
        """The bytes of a field that is repeated: messages, or texts."""
        parts: list[bytes] = []
        for value in self._fields.get(field, []):
            if isinstance(value, int):
                raise self._error(f"field {field}: a number, where bytes are expected")
            parts.append(value)
        return parts

    def messages(self, field: int) -> list[Message]:
        """The messages of a field that is repeated."""
        return [Message(part, self._file) for part in self.parts(field)]

    def texts(self, field: int) -> list[str]:
        """The texts of a field that is repeated."""
        try:
            return [part.decode() for part in self.parts(field)]
        except UnicodeDecodeError:
            raise self._error(f"field {field}: not UTF-8") from None

    def _varint(self, data: bytes, position: int) -> tuple[int, int]:
        """A number of seven bits a byte, the lowest first, and the place behind it."""
        value = 0
        for shift in range(0, _MOST_BITS, 7):
            if position == len(data):
                raise self._error("it ends within a number")
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> _MOST_BITS:
                    break
                return value, position
        raise self._error("a number of more than 64 bits")

    def _error(self, found: str) -> FormatError:
        return FormatError("damaged ORC metadata", file=self._file, found=found)


def unzigzag(number: int) -> int:
    """A signed number, of which the lowest bit is the sign.

    >>> [unzigzag(number) for number in (0, 1, 2, 3)]
    [0, -1, 1, -2]
    """
    return (number >> 1) ^ -(number & 1)


def encode_message(fields: Iterable[tuple[int, int | bytes]]) -> bytes:
    """A message of numbers that are not negative, and of bytes: texts, or other messages.

    >>> encode_message([(1, 150), (3, b"ORC")]).hex(" ")
    '08 96 01 1a 03 4f 52 43'
    """
    parts = []
    for field, value in fields:
        if isinstance(value, int):
            parts += [_encode_varint(field << 3 | _VARINT), _encode_varint(value)]
        else:
            parts += [_encode_varint(field << 3 | _BYTES), _encode_varint(len(value)), value]
    return b"".join(parts)


def _encode_varint(number: int) -> bytes:
    groups = []
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])


_HEADER = 3
_LARGEST = 64 << 20  # bytes of a footer
_SNAPPY_LENGTH = 5  # bytes of a varint of 32 bits


def decompress_chunks(data: bytes, codec: int, block_size: int, file: str) -> bytes:
    """What a run of chunks holds.

    >>> decompress_chunks(bytes.fromhex("07 00 00 4f5243"), 1, 1024, "a.orc")
    b'ORC'

    Args:
        data: The chunks.
        codec: As the postscript numbers it: 0 none, 1 zlib, 2 Snappy, 4 LZ4, 5 Zstandard.
        block_size: The bytes that a chunk may hold.
        file: Where they come from, for errors.

    Raises:
        FormatError: They are damaged.
        LimitError: They hold more than 64 MiB.
        UnsupportedError: The codec is another.
    """
    if not codec:
        return data
    if codec not in _CODECS:
        raise UnsupportedError(f"{file}: ORC codec {codec}, expected one of 0, 1, 2, 4, 5")
    name, decode = _CODECS[codec]
    parts: list[bytes] = []
    position = size = 0
    while position < len(data):
        header = int.from_bytes(data[position : position + _HEADER], "little")
        position += _HEADER
        length, is_plain = header >> 1, header & 1
        chunk = data[position : position + length]
        if len(chunk) < length or not length:
            raise FormatError("damaged ORC chunk", file=file, found=len(chunk), expected=length)
        position += length
        try:
            part = chunk if is_plain else decode(chunk, block_size)
        except (pa.ArrowException, OSError, ValueError, zlib.error) as error:
            raise FormatError(f"damaged {name} chunk: {error}", file=file) from None
        size += len(part)
        if len(part) > block_size or size > _LARGEST:
            raise LimitError(
                f"{file}: {name} chunks of an ORC footer: found {size} bytes, "
                f"expected up to {_LARGEST}, {block_size} in each"
            )
        parts.append(part)
    return b"".join(parts)


def plain_chunks(data: bytes, codec: int, block_size: int) -> bytes:
    """A run of chunks that are not compressed.

    >>> plain_chunks(b"ORC", 1, 1024).hex(" ")
    '07 00 00 4f 52 43'
    """
    if not codec:
        return data
    parts = [data[begin : begin + block_size] for begin in range(0, len(data), block_size)]
    return b"".join((len(part) << 1 | 1).to_bytes(_HEADER, "little") + part for part in parts)


def _zlib(chunk: bytes, most: int) -> bytes:
    decoder = zlib.decompressobj(-zlib.MAX_WBITS)
    content = decoder.decompress(chunk, most)
    if not decoder.eof:
        raise ValueError("it does not end")
    return content


def _snappy(chunk: bytes, most: int) -> bytes:
    size = shift = 0
    for byte in chunk[:_SNAPPY_LENGTH]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > most:
        raise ValueError(f"it states {size} bytes")
    return bytes(pa.Codec("snappy").decompress(chunk, size, asbytes=True))


def _lz4(chunk: bytes, most: int) -> bytes:
    import lz4.block

    try:
        return bytes(lz4.block.decompress(chunk, uncompressed_size=most))
    except lz4.block.LZ4BlockError as error:
        raise ValueError(error) from None


def _zstd(chunk: bytes, most: int) -> bytes:
    import zstandard

    try:
        size = zstandard.frame_content_size(chunk)
        # A size that the frame states is allocated, whatever is allowed.
        if size <= most:
            return zstandard.ZstdDecompressor().decompress(chunk, max_output_size=most)
    except zstandard.ZstdError as error:
        raise ValueError(error) from None
    raise ValueError(f"it states {size} bytes")


_CODECS: dict[int, tuple[str, Callable[[bytes, int], bytes]]] = {
    1: ("zlib", _zlib),
    2: ("Snappy", _snappy),
    4: ("LZ4", _lz4),
    5: ("Zstandard", _zstd),
}
