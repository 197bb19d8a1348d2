"""The first byte in which two sources differ, and the region that it lies in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcid.byte_map import Region
from alcid.cli.diff.report import ByteDifference
from alcid.errors import FormatError
from alcid.formats.source import Section

__all__ = ["first_byte", "locate"]

_STEP = 1 << 20


def first_byte(a: Section, b: Section) -> int | None:
    """The offset of the first byte that is not the same, or where the shorter one ends.

    >>> from alcid.formats.source import BytesSource
    >>> first_byte(Section(BytesSource(b"abc")), Section(BytesSource(b"abd")))
    2
    """
    both = min(a.length, b.length)
    for start in range(0, both, _STEP):
        size = min(_STEP, both - start)
        left, right = (np.frombuffer(one.read(start, size), np.uint8) for one in (a, b))
        different = np.flatnonzero(left != right)
        if len(different):
            return start + int(different[0])
    return None if a.length == b.length else both


def locate(a: Section, b: Section, draw: Callable[[], Region]) -> ByteDifference | None:
    """The first byte that differs, with its place in what `draw` draws of A."""
    offset = first_byte(a, b)
    if offset is None:
        return None
    try:
        found = draw().at(a.start + offset)
    except FormatError:  # the comparison of contents says more
        found = ()
    return ByteDifference(a.start + offset, tuple(region.name for region in found[1:]))
