"""Equality deletes: Parquet files with the values of rows that are deleted.

A row of a data file is deleted if it has the values of some row there in all columns of the delete
file, which are told by their field ids. Null is equal to null, NaN to NaN, and -0.0 is not 0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.source import ReadMany, read_each
from alcid.iceberg_metadata.schema import Field
from alcid.parquet_file import ParquetScan
from alcid.plan.threads import run_in_threads, wait_for_each
from alcid.tables.iceberg.delete_entries import open_deletes
from alcid.tables.iceberg.delete_plan import DeletePlan
from alcid.tables.iceberg.id_columns import read_columns
from alcid.tables.iceberg.places import Places
from alcid.tables.paimon.key_order import Column, join_columns, rank_rows

__all__ = ["EqualityDeletes", "ReadFields", "equal_rows", "read_keys"]

ReadFields: TypeAlias = Callable[[int, Sequence[Field]], pa.Table]
"""Reads columns of a data file, by its number: all rows, with the types that the fields have."""


def read_keys(
    scan: ParquetScan, fields: Sequence[Field], *, read_ranges: ReadMany = read_each
) -> list[pa.ChunkedArray]:
    """The columns of a delete file that rows are compared by.

    Args:
        scan: The file.
        fields: The columns, as the table has them.
        read_ranges: Reads it.

    Raises:
        FormatError: It is damaged, or lacks one.
    """
    return read_columns(scan, {field.id: _type(field) for field in fields}, read_ranges)


def equal_rows(rows: Sequence[Column], deleted: Sequence[Sequence[Column]]) -> DeletionVector:
    """The places of rows that have the values of a deleted one in all columns.

    Args:
        rows: The columns of a data file.
        deleted: The same columns of each delete file.

    >>> one, two = [pa.array([1, 2, None])], [pa.array([5, None, 1])]
    >>> equal_rows(one, [two])
    DeletionVector([0, 2], bits=32)
    """
    joined = join_columns([*deleted, rows])
    count = len(rows[0])
    ranks = rank_rows(joined, len(joined[0]))
    wanted, own = ranks[:-count], ranks[len(ranks) - count :]
    if not count or not len(wanted):
        return DeletionVector()
    is_deleted = np.zeros(int(ranks.max()) + 1, bool)
    is_deleted[wanted] = True
    return DeletionVector(np.flatnonzero(is_deleted[own]))


class EqualityDeletes:
    """The rows of data files that equality deletes delete; each delete file is read once."""

    def __init__(
        self,
        deletes: pa.Table,
        plan: DeletePlan,
        fields: Mapping[int, Field],
        places: Places,
        read: ReadFields,
        *,
        remote: bool,
    ) -> None:
        """Read nothing yet.

        Args:
            deletes: The entries of delete files.
            plan: Which of them apply.
            fields: The columns that the table has or had, by their ids.
            places: What delete files are read from.
            read: Reads columns of a data file.
            remote: Whether each read waits for a network.
        """
        self._deletes, self._plan, self._fields = deletes, plan, fields
        self._places, self._read, self._remote = places, read, remote
        self._keys: dict[int, list[pa.ChunkedArray]] = {}

    def find(self, files: Sequence[int]) -> list[DeletionVector]:
        """The deleted rows of each of some data files.

        Raises:
            FormatError: A delete file is damaged.
        """
        self._load(row for file in files for row in self._plan.equality(file))
        return run_in_threads(self._find, files, waiting=self._remote)

    def _load(self, rows: Iterable[int]) -> None:
        missing = [row for row in dict.fromkeys(rows) if row not in self._keys]

        def read(pair: tuple[int, ParquetScan]) -> list[pa.ChunkedArray]:
            row, scan = pair
            return read_keys(scan, self._compared(row), read_ranges=self._places.read_ranges)

        scans = open_deletes(self._places, self._deletes, missing)
        every = wait_for_each(read, zip(missing, scans, strict=True), remote=self._remote)
        self._keys.update(zip(missing, every, strict=True))

    def _find(self, file: int) -> DeletionVector:
        groups: dict[tuple[Field, ...], list[int]] = {}
        for row in self._plan.equality(file):
            groups.setdefault(self._compared(row), []).append(row)
        found = DeletionVector()
        for fields, rows in groups.items():
            columns = self._read(file, fields).columns
            wanted = [_cast(one, field) for one, field in zip(columns, fields, strict=True)]
            found |= equal_rows(wanted, [self._keys[row] for row in rows])
        return found

    def _compared(self, row: int) -> tuple[Field, ...]:
        """The columns of a delete file, whichever way it orders them."""
        ids = self._deletes["equality_ids"][row].as_py() or ()
        return tuple(self._fields[number] for number in sorted(set(ids)))


def _type(field: Field) -> Any:
    """The Arrow type that values of a column are compared in."""
    assert field.data_type is not None, field.problem
    return field.data_type.to_arrow()


def _cast(values: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    return values if values.type == _type(field) else values.cast(_type(field))
