"""What is known of many files, or row groups, before any of their rows is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from alcid.predicate import And, Constant, Or, Predicate, Unknown

__all__ = ["Mask", "Verdict", "judge"]

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """For each file: whether a row of it may match, and whether every row does.

    >>> one, two = (
    ...     Verdict.same(2, possible=True),
    ...     Verdict(np.array([True, False]), np.zeros(2, bool)),
    ... )
    >>> (one & two).possible.tolist(), (one | two).possible.tolist()
    ([True, False], [True, True])
    """

    possible: Mask
    certain: Mask
    """Never where it is not possible, except for a file without rows."""

    @classmethod
    def same(cls, count: int, *, possible: bool, certain: bool = False) -> Verdict:
        """The same for all files."""
        return cls(np.full(count, possible), np.full(count, certain))

    def __and__(self, other: Verdict) -> Verdict:
        return Verdict(self.possible & other.possible, self.certain & other.certain)

    def __or__(self, other: Verdict) -> Verdict:
        return Verdict(self.possible | other.possible, self.certain | other.certain)


def judge(predicate: Predicate, count: int, leaf: Callable[[Predicate], Verdict]) -> Verdict:
    """The verdict on a normalized predicate, from those on its leaves.

    >>> from alcid.predicate import parse
    >>> judge(parse("a = 1 AND FALSE"), 1, lambda leaf: Verdict.same(1, possible=True)).possible
    array([False])
    """
    match predicate:
        case And(parts):
            found = Verdict.same(count, possible=True, certain=True)
            for part in parts:
                found &= judge(part, count, leaf)
            return found
        case Or(parts):
            found = Verdict.same(count, possible=False)
            for part in parts:
                found |= judge(part, count, leaf)
            return found
        case Constant(value):
            return Verdict.same(count, possible=bool(value), certain=bool(value))
        case Unknown():
            return Verdict.same(count, possible=True)
    return leaf(predicate)
