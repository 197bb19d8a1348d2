"""A question put to an index, whatever its format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from alcid.formats.file_index.keys import Key
from alcid.formats.file_index.reader import IndexReader
from alcid.formats.selection import ANY, Selection, no_row
from alcid.predicate.intervals import Interval, points
from alcid.predicate.question import Anything, NotNulls, Nulls, Outside, Question, Within

__all__ = ["ask"]

_MOST_POINTS = 1024


def ask(reader: IndexReader, question: Question) -> Selection:
    """Put a question to an index."""
    match question:
        case Nulls():
            return _exact(reader.is_null(), True)
        case NotNulls(exact):
            return _exact(reader.is_not_null(), exact)
        case Within(intervals, exact):
            return _exact(_within(reader, intervals), exact)
        case Outside(intervals, exact):
            return _exact(_outside(reader, intervals), exact)
        case Anything():
            return ANY


def _exact(answer: Selection, exact: bool) -> Selection:
    """The rows of an index hold exactly the keys asked for, so that the question decides."""
    return ANY if answer.rows is None else Selection(answer.rows, exact)


def _outside(reader: IndexReader, intervals: Sequence[Interval]) -> Selection:
    """Rows in none of the intervals."""
    listed = [points(interval, _MOST_POINTS) for interval in intervals]
    if None not in listed:
        return reader.is_not_in([key for keys in listed for key in keys or ()])
    return _within(reader, _gaps(intervals))


def _gaps(intervals: Sequence[Interval]) -> list[Interval]:
    """What lies between sorted intervals, before the first and behind the last."""
    gaps: list[Interval] = []
    if intervals[0][0] is not None:
        gaps.append((None, intervals[0][0]))
    gaps.extend((left[1], right[0]) for left, right in pairwise(intervals))
    if intervals[-1][1] is not None:
        gaps.append((intervals[-1][1], None))
    return gaps


def _within(reader: IndexReader, intervals: Iterable[Interval]) -> Selection:
    """Rows in any of the intervals; single keys are asked for together."""
    selection, keys = no_row(), list[Key]()
    for interval in intervals:
        listed = points(interval, _MOST_POINTS)
        if listed is None or len(listed) > 1:
            answer = reader.between(*interval)
            if answer.rows is not None:
                selection |= answer
                continue
            if listed is None:
                return ANY
        keys.extend(listed)
    return selection | reader.is_in(keys) if keys else selection
