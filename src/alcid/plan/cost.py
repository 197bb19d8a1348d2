"""What reading an index costs, and what it may save; in bytes, a request being worth some too.

The rule is rough on purpose: it must be right where index and data differ by a factor, and where
they do not, either is fine.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from alcid.plan.verdict import Mask
from alcid.predicate import Anything, Outside, Question, Within, points

__all__ = ["PAGE_ROWS", "can_answer", "expected_bytes", "is_worth_it", "listed_keys"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MOST_KEYS = 1024
"""More single values than this are not looked up one by one."""

PAGE_ROWS = 4096
"""Of Parquet pages, which have 2,000 to 20,000 rows."""

_HEADS = 8 << 10  # what is read to find one's way in an index
_CHEAP = 0.1  # an index of so little of the data's bytes is read on the chance


def listed_keys(question: Question) -> list[int | bytes] | None:
    """The single keys that a question is about, if they are few."""
    if not isinstance(question, Within | Outside):
        return None
    keys: list[int | bytes] = []
    for interval in question.intervals:
        few = points(interval, MOST_KEYS)
        if few is None or len(keys) + len(few) > MOST_KEYS:
            return None
        keys += few
    return keys


def can_answer(index_type: str, question: Question) -> bool:
    """Whether an index of this type gives rows for a question."""
    match index_type:
        case "range-bitmap" | "bsi":
            return not isinstance(question, Anything)
        case "bitmap":
            single = not isinstance(question, Within | Outside)
            return not isinstance(question, Anything) and (
                single or listed_keys(question) is not None
            )
    return False


def expected_bytes(
    index_type: str, question: Question, lengths: Integers, rows: Integers
) -> Integers:
    """What a positional index has to be read for a question, for each file."""
    if index_type == "bitmap":
        keys = listed_keys(question) or [0]
        needed = 2 * _HEADS + len(keys) * np.minimum(rows // 8, 2 * _HEADS)
    else:
        slices = np.ceil(np.log2(np.maximum(rows, 2))).astype(np.int64) + 1
        needed = 2 * _HEADS + slices * (rows // 8)
    found: Integers = np.minimum(lengths, needed)
    return found


def is_worth_it(cost: Integers, scan: Integers, share: Floats, *, rows_needed: bool) -> Mask:
    """For each file: whether an index is read.

    Args:
        cost: Bytes of the index, requests among them.
        scan: Bytes of the data that are read without it.
        share: Of the rows that are expected to match.
        rows_needed: The rows themselves are read afterwards; else they are only counted.
    """
    saved = scan * (1.0 - share) ** PAGE_ROWS if rows_needed else scan.astype(np.float64)
    worth: Mask = (cost <= saved) | (cost <= _CHEAP * scan)
    return worth
