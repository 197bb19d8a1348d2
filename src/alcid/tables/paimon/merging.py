"""Merging on read as deletion vectors: of the rows of one key only the newest is kept.

    key  number  kind              key  number  kind
     1     7      +I    loses        1    9      +U    seen
     2     8      +I    loses        2   10      -D    deletes key 2

All that loses, and all that deletes, becomes a deleted position of its file: then files are read
as if each stood for itself. Do not use it for merge engines other than `deduplicate`, where a row
is made of several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.errors import FormatError, UnsupportedError
from alcid.formats.arrays import IntArray, plain
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.paimon.key_order import Column, join_columns, rank_rows
from alcid.tables.paimon.keyed.row_kinds import are_deletes

__all__ = ["KeyRows", "losers"]

_MOST_KIND = 3


@dataclass(frozen=True, slots=True, eq=False)
class KeyRows:
    """What merging needs of the rows of one file."""

    keys: Sequence[Column]
    """The columns of the trimmed primary key."""
    sequence_numbers: npt.NDArray[Any] | Column
    kinds: npt.NDArray[Any] | Column
    """0 for +I, 1 for -U, 2 for +U, 3 for -D."""
    level: int
    sequence: Sequence[Column] = ()
    """The columns of `sequence.field`."""
    deleted: DeletionVector | None = None
    """Rows that take no part, as if they were not in the file."""
    name: str | None = None
    """What errors call the file."""

    def __len__(self) -> int:
        return len(self.sequence_numbers)


def losers(
    files: Sequence[KeyRows], *, descending: bool = False, ignore_delete: bool = False
) -> list[DeletionVector]:
    """For each file the rows that are not rows of the table, those deleted before among them.

    Of a key, the row with the greatest sequence fields is newest, then the one with the greatest
    sequence number, then of the lowest level, then of the last file, then the last.

    Args:
        files: All files of a section, or of several sections of one bucket, in manifest order.
        descending: `sequence.field.sort-order`: lesser sequence fields are newer, null is oldest.
        ignore_delete: Rows that delete take no part, rather than delete older ones.

    Raises:
        FormatError: A row has no sequence number or kind, or the columns are not of one length.
        UnsupportedError: A key or sequence field is of a type that has no order, or of several.

    >>> old = KeyRows([pa.array([1, 2, 3])], np.array([6, 7, 8]), np.array([0, 0, 0]), level=5)
    >>> new = KeyRows([pa.array([1, 2])], np.array([9, 10]), np.array([2, 3]), level=0)
    >>> losers([old, new])
    [DeletionVector([0, 1], bits=32), DeletionVector([1], bits=32)]
    """
    # Older files first, so that among equal rows the last of all is newest.
    order = sorted(range(len(files)), key=lambda number: (-files[number].level, number))
    oldest_first = [files[number] for number in order]
    ends = np.cumsum([_checked_length(file) for file in oldest_first], dtype=np.int64)
    if not len(ends) or not ends[-1]:
        return [file.deleted or DeletionVector() for file in files]
    deletes = np.concatenate([_deletes(file) for file in oldest_first])
    present = ~np.concatenate([_deleted_before(file) for file in oldest_first])
    if ignore_delete:
        present &= ~deletes
    newest = _newest(oldest_first, np.flatnonzero(present), descending=descending)
    hidden = np.ones(len(present), bool)
    hidden[newest] = deletes[newest]
    vectors = dict(zip(order, np.split(hidden, ends[:-1]), strict=True))
    return [
        DeletionVector(np.flatnonzero(vectors[number])) | (file.deleted or DeletionVector())
        for number, file in enumerate(files)
    ]


def _newest(files: Sequence[KeyRows], rows: IntArray, *, descending: bool) -> IntArray:
    """Of the given rows, counted through all files, the newest of each key."""
    keys = rank_rows(join_columns([file.keys for file in files]), sum(map(len, files)))[rows]
    numbers = np.concatenate([_integers(file, file.sequence_numbers) for file in files])[rows]
    repeated = np.bincount(keys)[keys] > 1
    alone, left = rows[~repeated], np.flatnonzero(repeated)
    sequence = [
        column.take(pa.array(rows[left])) for column in join_columns([f.sequence for f in files])
    ]
    ages = [rank_rows(sequence, len(left), descending=descending), numbers[left], rows[left]]
    return np.concatenate([alone, rows[left][_greatest(keys[left], ages)]])


def _greatest(keys: IntArray, ages: Sequence[IntArray]) -> IntArray:
    """The place of the greatest row of each key, compared by one age after the other."""
    left = np.arange(len(keys))
    for age in ages:
        of_key, found = keys[left], age[left]
        greatest = np.full(int(keys.max(initial=0)) + 1, np.iinfo(age.dtype).min, age.dtype)
        np.maximum.at(greatest, of_key, found)
        left = left[found == greatest[of_key]]
    return left


def _deleted_before(file: KeyRows) -> npt.NDArray[np.bool_]:
    if file.deleted is None:
        return np.zeros(len(file), bool)
    return file.deleted.contains(np.arange(len(file)))


def _deletes(file: KeyRows) -> npt.NDArray[np.bool_]:
    """True for -U and -D."""
    kinds = _integers(file, file.kinds)
    wrong = np.flatnonzero((kinds < 0) | (kinds > _MOST_KIND))
    if len(wrong):
        row, found = int(wrong[0]), int(kinds[wrong[0]])
        raise FormatError(f"kind of row {row}", file=file.name, found=found, expected="0 to 3")
    return are_deletes(kinds)


def _integers(file: KeyRows, values: npt.NDArray[Any] | Column) -> npt.NDArray[np.int64]:
    """Sequence numbers or kinds, of which no row lacks one."""
    if not isinstance(values, np.ndarray):
        array = plain(values)
        if array.null_count:
            raise FormatError("row without sequence number or kind", file=file.name)
        values = array.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "iu":
        raise UnsupportedError(f"sequence numbers and kinds: found {values.dtype}, expected int64")
    return values.astype(np.int64, copy=False)


def _checked_length(file: KeyRows) -> int:
    count = len(file)
    for column in (*file.keys, *file.sequence, file.kinds):
        if len(column) != count:
            raise FormatError(
                "columns of several lengths", file=file.name, found=len(column), expected=count
            )
    return count
