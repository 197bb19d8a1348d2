"""The chunks in which an ORC file keeps its footers.

    u24 little-endian: length of the chunk, shifted by 1; the lowest bit says that it is not
    compressed | chunk | u24 ...

Each holds as many bytes as the block size of the file, or fewer. Without a codec there are no
chunks. The data itself Arrow decompresses.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pyarrow as pa

from alcid.errors import FormatError, LimitError, UnsupportedError

__all__ = ["decompress_chunks", "plain_chunks"]

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
    place = size = 0
    while place < len(data):
        header = int.from_bytes(data[place : place + _HEADER], "little")
        place += _HEADER
        length, is_plain = header >> 1, header & 1
        chunk = data[place : place + length]
        if len(chunk) < length or not length:
            raise FormatError("damaged ORC chunk", file=file, found=len(chunk), expected=length)
        place += length
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
    parts = [data[place : place + block_size] for place in range(0, len(data), block_size)]
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
