"""Reading ranges together: few requests for many ranges, none of them too long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Run", "merge"]


@dataclass(frozen=True, slots=True)
class Run:
    """Bytes that are read together, and the ranges that lie in them."""

    begin: int
    end: int
    members: tuple[tuple[int, int, int], ...]
    """Offset, length and the position among the ranges that were asked for."""

    def pieces(self, largest: int) -> list[tuple[int, int]]:
        """Offsets and lengths of requests of one size, each up to `largest` bytes long.

        >>> Run(10, 30, ()).pieces(8)
        [(10, 7), (17, 7), (24, 6)]
        """
        count = -(-(self.end - self.begin) // largest)
        step = -(-(self.end - self.begin) // count)
        return [(begin, min(step, self.end - begin)) for begin in range(self.begin, self.end, step)]


def merge(ranges: Iterable[tuple[int, int, int]], gap: int) -> list[Run]:
    """Join ranges (offset, length, position) that overlap or lie at most `gap` bytes apart.

    >>> [(run.begin, run.end) for run in merge([(50, 10, 0), (0, 10, 1), (12, 4, 2)], gap=2)]
    [(0, 16), (50, 60)]
    """
    runs: list[Run] = []
    members: list[tuple[int, int, int]] = []
    begin = end = 0
    for one in sorted(ranges):
        offset, length, _ = one
        if members and offset - end <= gap:
            end = max(end, offset + length)
        else:
            if members:
                runs.append(Run(begin, end, tuple(members)))
                members = []
            begin, end = offset, offset + length
        members.append(one)
    if members:
        runs.append(Run(begin, end, tuple(members)))
    return runs
