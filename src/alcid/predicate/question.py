"""The questions that an index can answer.

| question             | rows                                                    |
|----------------------|---------------------------------------------------------|
| `Nulls()`            | the null rows                                           |
| `NotNulls()`         | the others                                              |
| `Within(intervals)`  | rows whose key lies in one of them; no interval: no row |
| `Outside(intervals)` | non-null rows whose key lies in none of them            |
| `Anything()`         | any row: the index is not asked                         |

A question is `exact` when each of its rows matches the predicate it was made of; else the rows have
to be looked at, because keys, or the way Spark compares, cannot tell some of them apart.
Intervals are sorted, do not overlap, are not empty, and lie within the range of the column's keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from alcid.predicate.intervals import Interval

__all__ = ["Anything", "NotNulls", "Nulls", "Outside", "Question", "Within"]


@dataclass(frozen=True, slots=True)
class Nulls:
    """The null rows."""


@dataclass(frozen=True, slots=True)
class NotNulls:
    """The rows that are not null."""

    exact: bool = field(default=True, repr=False)


@dataclass(frozen=True, slots=True)
class Within:
    """The rows whose key lies in one of the intervals."""

    intervals: tuple[Interval, ...]
    exact: bool = field(default=True, repr=False)


@dataclass(frozen=True, slots=True)
class Outside:
    """The rows that are not null and whose key lies in none of the intervals."""

    intervals: tuple[Interval, ...]
    exact: bool = field(default=True, repr=False)


@dataclass(frozen=True, slots=True)
class Anything:
    """Any row."""


Question: TypeAlias = Nulls | NotNulls | Within | Outside | Anything
