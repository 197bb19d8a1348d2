"""Payloads in small blocks, each with its checksum, so that any part is checked before it is used.

    1020 bytes of the payload | u32 CRC-32 | 1020 bytes | u32 CRC-32 | ... | the rest | u32 CRC-32

The CRC is little-endian and follows what it covers, so a block is checked with one read and one
call. Blocks are small because a bloom filter is asked for few bits far apart, each of which costs
a block; below 1 KiB the calls cost more than the bytes (see docs/reference/bundle-format.md).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = [
    "BLOCK",
    "CONTENT",
    "RESIDUE",
    "block_count",
    "damaged_block",
    "seal",
    "stored",
    "unseal",
]

CONTENT = 1020
"""Bytes of the payload in a block; the last block may hold fewer."""
CRC_SIZE = 4
BLOCK = CONTENT + CRC_SIZE
"""Bytes of a block as it is stored."""
RESIDUE = 0x2144DF1C
"""The CRC-32 of any bytes that end with their own CRC-32."""

_CRCS = [0]
"""The CRC of so many whole blocks that are right; filled as far as it was needed."""

Length = TypeVar("Length", int, npt.NDArray[np.int64])


def block_count(length: Length) -> Length:
    """How many blocks hold a payload of `length` bytes."""
    return -(-length // CONTENT)


def stored(length: Length) -> Length:
    """How many bytes a payload of `length` bytes takes in its blocks.

    >>> stored(0), stored(1), stored(1020), stored(1021)
    (0, 5, 1024, 1029)
    """
    return length + CRC_SIZE * block_count(length)


def seal(payload: bytes | memoryview) -> Iterator[bytes | memoryview]:
    """A payload in its blocks, piece by piece.

    >>> b"".join(seal(b"123456789")).hex(" ", 4)
    '31 32333435 36373839 2639f4cb'
    """
    view = memoryview(payload)
    for start in range(0, len(view), CONTENT):
        content = view[start : start + CONTENT]
        yield content
        yield zlib.crc32(content).to_bytes(CRC_SIZE, "little")


def damaged_block(data: memoryview) -> int | None:
    """The number of the first block that is not what its CRC says, if there is one.

    One CRC over all blocks tells whether there is one: over blocks that are right it depends on
    their lengths alone, as that over one of them does. A flipped byte it notices always, and other
    damage but for one in 2^32.
    """
    if len(data) > CRC_SIZE and zlib.crc32(data) == _crc_of_sealed(*divmod(len(data), BLOCK)):
        return None
    crc = zlib.crc32
    for number, start in enumerate(range(0, len(data), BLOCK)):
        if crc(data[start : start + BLOCK]) != RESIDUE:
            return number
    return None


_ZEROS = b"".join(seal(bytes(CONTENT)))


@lru_cache(maxsize=4096)
def _crc_of_sealed(whole: int, rest: int) -> int:
    """The CRC of any blocks that are right: so many whole ones, and `rest` bytes of a last one."""
    while len(_CRCS) <= whole:
        _CRCS.append(zlib.crc32(_ZEROS, _CRCS[-1]))
    crc = _CRCS[whole]
    return zlib.crc32(b"".join(seal(bytes(rest - CRC_SIZE))), crc) if rest > CRC_SIZE else crc


def unseal(data: memoryview) -> bytes:
    """The payload of blocks that were checked; only the last may be short.

    >>> unseal(memoryview(b"".join(seal(bytes(3000))))) == bytes(3000)
    True
    """
    whole = len(data) // BLOCK
    blocks = np.frombuffer(data, np.uint8, whole * BLOCK).reshape(whole, BLOCK)
    rest = data[whole * BLOCK :]
    return blocks[:, :CONTENT].tobytes() + bytes(rest[:-CRC_SIZE])
