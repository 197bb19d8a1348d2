"""The positions of deleted rows: of vectors, and of Parquet files with a row for each of them.

| column      | field id   | what                                                              |
|-------------|------------|-------------------------------------------------------------------|
| `file_path` | 2147483546 | the data file, as its manifest has it                             |
| `pos`       | 2147483545 | the position of the row in it, from 0                             |

A third column may hold the rows themselves, which nobody needs.

Equality deletes: Parquet files with the values of rows that are deleted.

A row of a data file is deleted if it has the values of some row there in all columns of the delete
file, which are told by their field ids. Null is equal to null, NaN to NaN, and -0.0 is not 0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from alcid._arrays import plain, split_by
from alcid.datafiles.parquet import ParquetScan
from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.source import ReadMany, read_each
from alcid.storage.threads import run_in_threads, wait_for_each
from alcid.tables.iceberg.deletes.plan import (
    PATH_FIELD,
    DeletePlan,
    open_deletes,
    read_vectors,
    stored_vectors,
)
from alcid.tables.iceberg.field_ids import read_columns
from alcid.tables.iceberg.locations import Places
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg.metadata.schema import Field
from alcid.tables.key_order import Column, join_columns, rank_rows

__all__ = [
    "EqualityDeletes",
    "Positions",
    "ReadFields",
    "equal_rows",
    "read_keys",
    "read_positions",
]

_POSITION_FIELD: Final = 2147483545
_COLUMNS: Final = {PATH_FIELD: pa.string(), _POSITION_FIELD: pa.int64()}


def read_positions(
    scan: ParquetScan, files: Mapping[str, int], *, read_ranges: ReadMany = read_each
) -> dict[int, DeletionVector]:
    """The deleted rows of data files, by their numbers.

    Args:
        scan: The delete file.
        files: The numbers of data files, by their paths; rows of others are passed over.
        read_ranges: Reads it.

    Raises:
        FormatError: It is damaged, or has a row without path or position.
    """
    found: dict[int, DeletionVector] = {}
    for group, rows in enumerate(scan.group_rows):
        if not rows:
            continue
        paths, positions = map(plain, read_columns(scan, _COLUMNS, read_ranges, [group]))
        if paths.null_count or positions.null_count:
            raise FormatError(
                f"row group {group} of a file of positions",
                file=scan.source.name,
                found="null",
                expected="a path and a position in each row",
            )
        coded = paths.dictionary_encode()
        known = [files.get(path, -1) for path in coded.dictionary.to_pylist()]
        numbers = np.array(known, np.int64)[coded.indices.to_numpy()]
        values = positions.to_numpy()
        if values.min() < 0:
            raise FormatError(
                "position of a deleted row",
                file=scan.source.name,
                found=values.min(),
                expected="0 or more",
            )
        order = np.argsort(numbers, kind="stable")
        order = order[np.searchsorted(numbers[order], 0) :]
        for some in split_by(order, numbers[order]) if len(order) else ():
            file, more = int(numbers[some[0]]), DeletionVector(values[some])
            found[file] = found[file] | more if file in found else more
    return found


class Positions:
    """The positions that vectors and delete files have, of data files by their numbers."""

    def __init__(self, entries: Entries, plan: DeletePlan, places: Places, *, remote: bool) -> None:
        """Read nothing yet."""
        self._data, self._deletes, self._plan = entries.data, entries.deletes, plan
        self._places, self._remote = places, remote
        self._rows: list[int] = entries.data["record_count"].to_pylist()
        self._of_delete_file: dict[int, dict[int, DeletionVector]] = {}
        self._known: dict[int, DeletionVector] = {}

    def load(self, files: Iterable[int]) -> None:
        """Read what some data files need: vectors in one round, then delete files, each once.

        Raises:
            FormatError: A delete file is damaged, or has a position beyond its data file.
        """
        missing = [file for file in files if file not in self._known]
        vectors = {file: row for file in missing if (row := self._plan.vector(file)) is not None}
        rows = [self._rows[file] for file in vectors]
        stored = stored_vectors(self._deletes, list(vectors.values()), rows)
        self._known.update(zip(vectors, read_vectors(self._places, stored), strict=True))
        others = [file for file in missing if file not in vectors]
        self._read_files([row for file in others for row in self._plan.positions(file)])
        self._known.update((file, self._union(file)) for file in others)

    def __getitem__(self, file: int) -> DeletionVector:
        """Those of a data file that is loaded."""
        return self._known[file]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The numbers of data files, by their paths."""
        return {path: file for file, path in enumerate(self._data["file_path"].to_pylist())}

    def _read_files(self, rows: Sequence[int]) -> None:
        missing = [row for row in dict.fromkeys(rows) if row not in self._of_delete_file]

        def read(scan: ParquetScan) -> dict[int, DeletionVector]:
            return read_positions(scan, self._numbers, read_ranges=self._places.read_ranges)

        scans = open_deletes(self._places, self._deletes, missing)
        every = wait_for_each(read, scans, remote=self._remote)
        self._of_delete_file.update(zip(missing, every, strict=True))

    def _union(self, file: int) -> DeletionVector:
        """What the delete files that apply say of a data file."""
        found = DeletionVector()
        for row in self._plan.positions(file):
            more = self._of_delete_file[row].get(file, DeletionVector())
            if more.last is not None and more.last >= self._rows[file]:
                raise FormatError(
                    f"deleted row of {self._data['file_path'][file]}",
                    file=self._deletes["file_path"][row].as_py(),
                    found=more.last,
                    expected=f"below {self._rows[file]}",
                )
            found |= more
        return found


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
