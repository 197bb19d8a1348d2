"""The two codecs of Puffin files: one zstd frame, or one LZ4 frame, that states its content size.

    zstd  28 b5 2f fd | u8 descriptor | window, content size | blocks | u32 checksum
    lz4   04 22 4d 18 | u8 flags | u8 block size | u64 content size | u8 checksum of the header
                      | blocks | u32 0 | u32 checksum

Reading is exact and bounded: nothing is allocated before the stated size is found within what the
caller allows, the frame must fill the bytes given, and hold what it states. A frame that hides more
than it states is stopped where the statement ends.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from alcid.errors import FormatError, LimitError, OptionError

CODECS = ("lz4", "zstd")

_ZSTD_MAGIC = bytes.fromhex("28b52ffd")
_LZ4_MAGIC = bytes.fromhex("04224d18")
_LZ4_SIZE_END = 14
_LZ4_HAS_SIZE, _LZ4_HAS_DICTIONARY = 0x08, 0x01
# The library leaves out a size of zero, which a reader could not tell from an unknown one.
_LZ4_EMPTY = bytes.fromhex("04224d186c4000000000000000000900000000055dcc02")


def compress(codec: str, data: bytes | memoryview) -> bytes:
    """One frame with content size and checksum.

    >>> compress("zstd", b"abc").hex(" ", -4)
    '28b52ffd 24031900 00616263 990977ad'
    >>> decompress("lz4", compress("lz4", b"abc"), 3)
    b'abc'
    """
    if codec not in CODECS:
        raise OptionError(f"unknown codec {codec!r}: expected one of {', '.join(CODECS)}")
    if codec == "zstd":
        import zstandard

        return zstandard.ZstdCompressor(write_checksum=True).compress(data)
    import lz4.frame

    if not len(data):
        return _LZ4_EMPTY
    frame: bytes = lz4.frame.compress(data, store_size=True, content_checksum=True)
    return frame


def decompress(
    codec: str, data: bytes, largest: int, *, file: str | None = None, offset: int = 0
) -> bytes:
    """The content of the frame that `data` is; of an LZ4 frame it is held twice for a moment.

    Args:
        codec: One of `CODECS`.
        data: The frame, from its first byte to its last.
        largest: The content size above which the frame is refused.
        file: Where the frame comes from, for errors.
        offset: Where it starts there.
    """

    def error(problem: str, found: object = None, expected: object = None) -> FormatError:
        return FormatError(
            f"{codec} frame: {problem}", file=file, offset=offset, found=found, expected=expected
        )

    if codec not in CODECS:
        raise FormatError("unknown codec", file=file, offset=offset, found=repr(codec))
    size_of, decode = (_zstd_size, _zstd) if codec == "zstd" else (_lz4_size, _lz4)
    size = size_of(data, error)
    if size > largest:
        where = (
            f"{codec} frame at offset {offset}: it holds {size} bytes, and {largest} are allowed"
        )
        raise LimitError(where if file is None else f"{file}: {where}")
    return decode(data, size, error)


_Error = Callable[..., FormatError]


def _zstd_size(data: bytes, error: _Error) -> int:
    import zstandard

    _check_magic(data, _ZSTD_MAGIC, error)
    try:
        header = zstandard.get_frame_parameters(data)
    except zstandard.ZstdError as problem:
        raise error(f"bad header ({problem})") from None
    if header.dict_id:
        raise error("needs a dictionary", found=header.dict_id, expected="none")
    if header.content_size == zstandard.CONTENTSIZE_UNKNOWN:
        raise error("does not state its content size")
    return header.content_size


def _zstd(data: bytes, size: int, error: _Error) -> bytes:
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    try:
        if size:
            return decompressor.decompress(data, allow_extra_data=False)
        # That call does not look into a frame which states that it is empty.
        stream = decompressor.decompressobj()
        content = stream.decompress(data)
    except zstandard.ZstdError as problem:
        raise error(f"damaged ({problem})") from None
    return _checked(content, size, stream.eof, stream.unused_data, error)


def _lz4_size(data: bytes, error: _Error) -> int:
    _check_magic(data, _LZ4_MAGIC, error)
    flags = data[4] if len(data) >= _LZ4_SIZE_END else 0
    if flags & _LZ4_HAS_DICTIONARY:
        raise error("needs a dictionary")
    if not flags & _LZ4_HAS_SIZE:
        raise error("does not state its content size")
    return int(struct.unpack_from("<Q", data, 6)[0])


def _lz4(data: bytes, size: int, error: _Error) -> bytes:
    import lz4.frame

    decompressor = lz4.frame.LZ4FrameDecompressor()
    try:
        # One byte more than stated is enough to see that there is more.
        content: bytes = decompressor.decompress(data, max_length=size + 1)
    except RuntimeError as problem:
        raise error(f"damaged ({problem})") from None
    return _checked(content, size, decompressor.eof, decompressor.unused_data or b"", error)


def _check_magic(data: bytes, magic: bytes, error: _Error) -> None:
    if data[:4] != magic:
        raise error("bad magic", found=data[:4].hex() or "nothing", expected=magic.hex())


def _checked(content: bytes, size: int, is_whole: bool, unused: bytes, error: _Error) -> bytes:
    if len(content) > size:
        raise error("holds more than it states", expected=f"{size} bytes")
    if not is_whole:
        raise error("cut off")
    if len(content) < size:
        raise error("holds less than it states", found=len(content), expected=f"{size} bytes")
    if unused:
        raise error("other bytes behind it", found=f"{len(unused)} bytes", expected="none")
    return content
