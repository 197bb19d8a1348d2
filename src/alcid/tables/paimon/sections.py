"""Files of a bucket that have to be merged with each other, as their key ranges overlap.

    level 0          [ 5 .. 9 ]
    level 5   [ 1 .. 6 ][ 8 .. 12 ]   [ 20 .. 30 ]
              '------ a section -----' '- another -'

No key of one section is in another, so that each is merged alone; and a section that is one sorted
file needs no merging at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from alcid.errors import FormatError
from alcid.formats.arrays import IntArray, split_by
from alcid.tables.checked import value_text
from alcid.tables.paimon.key_order import Column, join_columns, rank_rows

__all__ = ["is_raw", "plan_sections"]


def plan_sections(
    buckets: npt.ArrayLike, minimum_keys: Sequence[Column], maximum_keys: Sequence[Column]
) -> list[IntArray]:
    """The numbers of the files of each section, ascending; sections by bucket and key.

    Args:
        buckets: For each file an integer that tells its partition and bucket.
        minimum_keys: The columns of the trimmed primary key: in each, the value of every file.
        maximum_keys: The same of the greatest key.

    Raises:
        FormatError: The least key of a file is above its greatest.
        UnsupportedError: A key is of a type that has no order.

    >>> import pyarrow as pa
    >>> least, greatest = pa.array([20, 1, 5, 1]), pa.array([30, 6, 9, 9])
    >>> [files.tolist() for files in plan_sections([7, 7, 7, 8], [least], [greatest])]
    [[1, 2], [0], [3]]
    """
    bucket_of_file = np.unique(np.asarray(buckets), return_inverse=True)[1]
    count = len(bucket_of_file)
    if not count:
        return []
    ranks = rank_rows(join_columns([minimum_keys, maximum_keys]), 2 * count)
    least, greatest = ranks[:count], ranks[count:]
    wrong = np.flatnonzero(least > greatest)
    if len(wrong):
        raise _turned_round(int(wrong[0]), minimum_keys, maximum_keys)
    # Buckets get ranges of ranks of their own, one behind the other.
    begin, end = (bucket_of_file * (2 * count) + rank for rank in (least, greatest))
    order = np.argsort(begin, kind="stable")
    furthest = np.maximum.accumulate(end[order])
    new = np.zeros(count, np.int64)
    new[1:] = begin[order][1:] > furthest[:-1]
    section_of_file = np.empty(count, np.int64)
    section_of_file[order] = np.cumsum(new)
    files = np.argsort(section_of_file, kind="stable")
    return split_by(files, section_of_file[files])


def is_raw(section: IntArray, levels: IntArray, delete_rows: IntArray) -> bool:
    """Whether every row of a section is a row of the table.

    A file of level 0 is never sure to be: some writers count no deletes, or repeat a key.

    Args:
        section: The numbers of its files.
        levels: The level of every file of the table.
        delete_rows: How many rows of every file delete; negative if unknown.

    >>> levels, delete_rows = np.array([5, 0, 4]), np.array([0, 0, -1])
    >>> [is_raw(np.array([file]), levels, delete_rows) for file in range(3)]
    [True, False, False]
    """
    return len(section) == 1 and bool(levels[section[0]] > 0 and delete_rows[section[0]] == 0)


def _turned_round(
    file: int, minimum_keys: Sequence[Column], maximum_keys: Sequence[Column]
) -> FormatError:
    least, greatest = (
        f"({', '.join(value_text(column[file]) for column in columns)})"
        for columns in (minimum_keys, maximum_keys)
    )
    return FormatError(f"least key of data file {file}", found=least, expected=f"<= {greatest}")
