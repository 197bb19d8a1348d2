"""Where the parts of a serialised roaring bitmap lie; what they hold is `alcid.formats.roaring`'s.

It is for whoever shows bytes. To read rows, `load` and `parse` are right, and check more.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from alcid.formats.roaring import (
    CONTAINER_BYTES,
    FEWEST_WITH_OFFSETS,
    LARGEST_ARRAY,
    RUN_COOKIE,
)

__all__ = ["RoaringContainer", "RoaringLayout"]

ContainerKind: TypeAlias = Literal["array", "bitset", "runs"]


@dataclass(frozen=True, slots=True)
class RoaringContainer:
    """The rows that share their upper 16 bits."""

    key: int
    cardinality: int
    kind: ContainerKind
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class RoaringLayout:
    """The parts of a bitmap that was found right; offsets count from its first byte."""

    has_runs: bool
    containers: tuple[RoaringContainer, ...]
    flags_at: int
    """Where the flags of run containers begin, or would."""
    keys_at: int
    offsets_at: int | None
    """None if there are none: with runs and fewer than four containers."""

    @classmethod
    def of(cls, data: bytes) -> RoaringLayout:
        """The layout of exactly the bytes of one bitmap, which `parse` has accepted.

        >>> from pyroaring import BitMap
        >>> RoaringLayout.of(BitMap([1, 5]).serialize()).containers
        (RoaringContainer(key=0, cardinality=2, kind='array', offset=16, length=4),)
        """
        cookie, less_one = struct.unpack_from("<HH", data)
        has_runs = cookie == RUN_COOKIE
        count = less_one + 1 if has_runs else struct.unpack_from("<I", data, 4)[0]
        keys_at = 4 + (count + 7) // 8 if has_runs else 8
        flags = np.unpackbits(np.frombuffer(data, np.uint8, keys_at - 4, 4), bitorder="little")
        described = np.frombuffer(data, "<u2", 2 * count, keys_at).reshape(count, 2).tolist()
        at = keys_at + 4 * count
        with_offsets = not has_runs or count >= FEWEST_WITH_OFFSETS
        offsets_at = at if with_offsets else None
        at += 4 * count * with_offsets
        containers = []
        for number, (key, fewer) in enumerate(described):
            kind: ContainerKind = "array" if fewer < LARGEST_ARRAY else "bitset"
            length = 2 * (fewer + 1) if kind == "array" else CONTAINER_BYTES
            if has_runs and flags[number]:
                kind, length = "runs", 2 + 4 * int.from_bytes(data[at : at + 2], "little")
            containers.append(RoaringContainer(key, fewer + 1, kind, at, length))
            at += length
        return cls(has_runs, tuple(containers), 4, keys_at, offsets_at)
