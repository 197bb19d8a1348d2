"""Mutants of inputs: changes that byte formats are sensitive to, chosen at random from a seed."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

__all__ = ["mutate"]

_NUMBERS = (0, 1, -1, 2, 7, 8, 127, 128, 255, 256, 4096, 65535, 65536, 1 << 24)
_EDGES = tuple(
    sign * (1 << bits) + by for bits in (15, 31, 63) for sign in (1, -1) for by in (0, -1)
)
_LAYOUTS = {"B": 8, ">H": 16, "<H": 16, ">I": 32, "<I": 32, ">Q": 64, "<Q": 64}
_MOST_STEPS = 4


def mutate(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """`data` with one to four changes; some take a piece of one of the `others`."""
    for _ in range(rng.randint(1, _MOST_STEPS)):
        data = rng.choice(_STEPS)(data, others, rng)
    return data


def _flip(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return (
        data[:at]
        + bytes(byte ^ 1 << rng.randrange(8) for byte in data[at : at + 1])
        + data[at + 1 :]
    )


def _number(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    """A number that is often a limit replaces another; or a number becomes slightly wrong."""
    layout = rng.choice(list(_LAYOUTS))
    size, mask = struct.calcsize(layout), (1 << _LAYOUTS[layout]) - 1
    at = rng.randrange(max(len(data) - size, 0) + 1)
    if rng.random() < 0.5 and len(data) >= at + size:
        value = struct.unpack_from(layout, data, at)[0] + rng.randint(-8, 8)
    else:
        value = rng.choice((*_NUMBERS, *_EDGES, len(data), len(data) - at))
    return data[:at] + struct.pack(layout, value & mask) + data[at + size :]


def _cut(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 2, 4, 8, rng.randrange(len(data) + 1))) :]


def _insert(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice((1, 2, 4, 8, 16))) + data[at:]


def _repeat(data: bytes, _: Sequence[bytes], rng: random.Random) -> bytes:
    at, length = rng.randrange(len(data) + 1), rng.choice((4, 8, 12, 16, 64))
    return data[:at] + data[at : at + length] * rng.randint(2, 5) + data[at + length :]


def _splice(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """A piece of another input, at the same offset or at any."""
    other = rng.choice(others)
    begin = rng.randrange(len(other) + 1)
    piece = other[begin : begin + rng.randrange(64)]
    at = begin if rng.random() < 0.5 else rng.randrange(len(data) + 1)
    return data[:at] + piece + data[at + len(piece) :]


_STEPS = (_flip, _number, _number, _number, _cut, _insert, _repeat, _splice)
