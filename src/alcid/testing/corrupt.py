"""Damage: every byte of a file flipped, every place where it may be cut off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Damage", "flips", "truncations"]


class Damage(NamedTuple):
    """Damaged bytes, and what was done to them."""

    what: str
    data: bytes


def flips(data: bytes) -> Iterator[Damage]:
    """Each byte with all of its bits turned over, and with its lowest bit turned over.

    All bits make a number negative or huge; the lowest one makes it wrong by one.

    >>> [(damage.what, damage.data.hex()) for damage in flips(bytes.fromhex("00ff"))]
    [('byte 0 ^ 0xff', 'ffff'), ('byte 0 ^ 0x01', '01ff'),
     ('byte 1 ^ 0xff', '0000'), ('byte 1 ^ 0x01', '00fe')]
    """
    for position, byte in enumerate(data):
        for mask in (0xFF, 0x01):
            damaged = data[:position] + bytes((byte ^ mask,)) + data[position + 1 :]
            yield Damage(f"byte {position} ^ {mask:#04x}", damaged)


def truncations(data: bytes) -> Iterator[Damage]:
    """Every proper prefix, the empty one too.

    >>> [damage.data for damage in truncations(b"abc")]
    [b'', b'a', b'ab']
    """
    for length in range(len(data)):
        yield Damage(f"cut to {length} bytes", data[:length])
