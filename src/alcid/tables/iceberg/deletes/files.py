"""Read delete files: position deletes, deletion vectors and equality deletes.

A position delete file is a Parquet file with a row for each deleted row:

| column      | field id   | contents                                                          |
|-------------|------------|-------------------------------------------------------------------|
| `file_path` | 2147483546 | the path of the data file, as in its manifest                     |
| `pos`       | 2147483545 | the position of the row in it, from 0                             |

A third column with the deleted rows is ignored.

An equality delete file is a Parquet file with values. A row of a data file is deleted if it equals
some row there in all columns of the delete file, which are matched by field id. Null equals null,
NaN equals NaN, and -0.0 does not equal 0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.entries import Entries
from alcid.tables.iceberg.metadata.schema import Field
from alcid.tables.key_order import Column, join_columns, rank_rows

_POSITION_FIELD: Final = 2147483545
_COLUMNS: Final = {PATH_FIELD: pa.string(), _POSITION_FIELD: pa.int64()}


def read_positions(
    scan: ParquetScan, files: Mapping[str, int], *, read_ranges: ReadMany = read_each
) -> dict[int, DeletionVector]:
    """Read the deleted rows of data files from a position delete file.

    Args:
        scan: The delete file.
        files: The numbers of data files by path; rows of other files are ignored.
        read_ranges: Reads byte ranges.

    Raises:
        FormatError: The file is damaged, or has a row without path or position.
    """
    vectors: dict[int, DeletionVector] = {}
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
        file_numbers = [files.get(path, -1) for path in coded.dictionary.to_pylist()]
        numbers = np.array(file_numbers, np.int64)[coded.indices.to_numpy()]
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
        for rows_of_file in split_by(order, numbers[order]) if len(order) else ():
            file, vector = int(numbers[rows_of_file[0]]), DeletionVector(values[rows_of_file])
            vectors[file] = vectors[file] | vector if file in vectors else vector
    return vectors


class Positions:
    """The positions deleted by vectors and position deletes, by the number of the data file."""

    def __init__(
        self, entries: Entries, plan: DeletePlan, file_io: FileIO, *, remote: bool
    ) -> None:
        """Prepare to read the delete files of a plan."""
        self._data, self._deletes, self._plan = entries.data, entries.deletes, plan
        self._file_io, self._remote = file_io, remote
        self._rows: list[int] = entries.data["record_count"].to_pylist()
        self._by_delete_file: dict[int, dict[int, DeletionVector]] = {}
        self._loaded: dict[int, DeletionVector] = {}

    def load(self, files: Iterable[int]) -> None:
        """Read the vectors of some data files in one round, then position deletes, each file once.

        Raises:
            FormatError: A delete file is damaged, or has a position beyond its data file.
        """
        missing = [file for file in files if file not in self._loaded]
        vectors = {file: row for file in missing if (row := self._plan.vector(file)) is not None}
        rows = [self._rows[file] for file in vectors]
        stored = stored_vectors(self._deletes, list(vectors.values()), rows)
        self._loaded.update(zip(vectors, read_vectors(self._file_io, stored), strict=True))
        others = [file for file in missing if file not in vectors]
        self._read_files([row for file in others for row in self._plan.positions(file)])
        self._loaded.update((file, self._union(file)) for file in others)

    def __getitem__(self, file: int) -> DeletionVector:
        """The positions of a loaded data file."""
        return self._loaded[file]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The numbers of data files, by their paths."""
        return {path: file for file, path in enumerate(self._data["file_path"].to_pylist())}

    def _read_files(self, rows: Sequence[int]) -> None:
        missing = [row for row in dict.fromkeys(rows) if row not in self._by_delete_file]

        def read(scan: ParquetScan) -> dict[int, DeletionVector]:
            return read_positions(scan, self._numbers, read_ranges=self._file_io.read_ranges)

        scans = open_deletes(self._file_io, self._deletes, missing)
        by_file = wait_for_each(read, scans, remote=self._remote)
        self._by_delete_file.update(zip(missing, by_file, strict=True))

    def _union(self, file: int) -> DeletionVector:
        """The union of the position deletes that apply to a data file."""
        deleted = DeletionVector()
        for row in self._plan.positions(file):
            vector = self._by_delete_file[row].get(file, DeletionVector())
            if vector.last is not None and vector.last >= self._rows[file]:
                raise FormatError(
                    f"deleted row of {self._data['file_path'][file]}",
                    file=self._deletes["file_path"][row].as_py(),
                    found=vector.last,
                    expected=f"below {self._rows[file]}",
                )
            deleted |= vector
        return deleted


ReadFields: TypeAlias = Callable[[int, Sequence[Field]], pa.Table]
"""Reads all rows of some columns of a data file, given its number, in the types of the fields."""


def read_keys(
    scan: ParquetScan, fields: Sequence[Field], *, read_ranges: ReadMany = read_each
) -> list[pa.ChunkedArray]:
    """Read the columns of an equality delete file.

    Args:
        scan: The file.
        fields: The columns in the table.
        read_ranges: Reads byte ranges.

    Raises:
        FormatError: The file is damaged, or a column is missing.
    """
    return read_columns(scan, {field.id: _type(field) for field in fields}, read_ranges)


def equal_rows(rows: Sequence[Column], deleted: Sequence[Sequence[Column]]) -> DeletionVector:
    """The positions of rows that equal a deleted row in all columns.

    Args:
        rows: The columns of a data file.
        deleted: The same columns of each delete file.

    >>> rows, deleted = [pa.array([1, 2, None])], [pa.array([5, None, 1])]
    >>> equal_rows(rows, [deleted])
    DeletionVector([0, 2], bits=32)
    """
    joined = join_columns([*deleted, rows])
    count = len(rows[0])
    ranks = rank_rows(joined, len(joined[0]))
    deleted_ranks, row_ranks = ranks[:-count], ranks[len(ranks) - count :]
    if not count or not len(deleted_ranks):
        return DeletionVector()
    is_deleted = np.zeros(int(ranks.max()) + 1, bool)
    is_deleted[deleted_ranks] = True
    return DeletionVector(np.flatnonzero(is_deleted[row_ranks]))


_CHUNK_ROWS: Final = 1 << 21
"""Rows of equality delete files that are in memory at a time."""


class EqualityDeletes:
    """The rows of data files deleted by equality deletes, which are read a chunk at a time.

    Delete files of up to `_CHUNK_ROWS` rows in all are read once. Of more, the columns of a data
    file are read for each chunk that applies to it.
    """

    def __init__(
        self,
        deletes: pa.Table,
        plan: DeletePlan,
        fields: Mapping[int, Field],
        file_io: FileIO,
        read: ReadFields,
        *,
        remote: bool,
    ) -> None:
        """Prepare to read the delete files of a plan.

        Args:
            deletes: The entries of delete files.
            plan: Which of them apply to a data file.
            fields: The columns of all schemas by id.
            file_io: Opens delete files.
            read: Reads columns of a data file.
            remote: Whether reads go over a network.
        """
        self._deletes, self._plan, self._fields = deletes, plan, fields
        self._file_io, self._read, self._remote = file_io, read, remote
        self._keys: dict[int, list[pa.ChunkedArray]] = {}

    def find(self, files: Sequence[int]) -> list[DeletionVector]:
        """The deleted rows of some data files.

        Raises:
            FormatError: A delete file is damaged.
        """
        applied = {file: self._plan.equality(file) for file in files}
        deleted = dict.fromkeys(files, DeletionVector())
        for chunk in self._chunks(row for rows in applied.values() for row in rows):
            self._load(chunk)
            pairs = [
                (file, compared)
                for file, rows in applied.items()
                if (compared := [row for row in rows if row in chunk])
            ]
            vectors = run_in_threads(self._find, pairs, waiting=self._remote)
            for (file, _), vector in zip(pairs, vectors, strict=True):
                deleted[file] |= vector
        return [deleted[file] for file in files]

    def _chunks(self, rows: Iterable[int]) -> list[set[int]]:
        """The delete files in chunks, where a larger one is alone."""
        counts = self._deletes["record_count"].to_pylist()
        chunks: list[set[int]] = []
        size = 0
        for row in dict.fromkeys(rows):
            if not chunks or size + counts[row] > _CHUNK_ROWS:
                chunks.append(set())
                size = 0
            chunks[-1].add(row)
            size += counts[row]
        return chunks

    def _load(self, rows: Collection[int]) -> None:
        """Have the keys of some delete files in memory, and forget others where these are many."""
        counts = self._deletes["record_count"].to_pylist()
        if sum(counts[row] for row in {*self._keys, *rows}) > _CHUNK_ROWS:
            self._keys = {row: keys for row, keys in self._keys.items() if row in rows}
        missing = [row for row in rows if row not in self._keys]

        def read(pair: tuple[int, ParquetScan]) -> list[pa.ChunkedArray]:
            row, scan = pair
            return read_keys(scan, self._compared(row), read_ranges=self._file_io.read_ranges)

        scans = open_deletes(self._file_io, self._deletes, missing)
        keys = wait_for_each(read, zip(missing, scans, strict=True), remote=self._remote)
        self._keys.update(zip(missing, keys, strict=True))

    def _find(self, pair: tuple[int, Sequence[int]]) -> DeletionVector:
        """The rows of a data file that some delete files delete."""
        file, rows_of_file = pair
        groups: dict[tuple[Field, ...], list[int]] = {}
        for row in rows_of_file:
            groups.setdefault(self._compared(row), []).append(row)
        deleted = DeletionVector()
        for fields, rows in groups.items():
            columns = self._read(file, fields).columns
            values = [_cast(column, field) for column, field in zip(columns, fields, strict=True)]
            deleted |= equal_rows(values, [self._keys[row] for row in rows])
        return deleted

    def _compared(self, row: int) -> tuple[Field, ...]:
        """The columns of an equality delete file, in a fixed order."""
        ids = self._deletes["equality_ids"][row].as_py() or ()
        return tuple(self._fields[number] for number in sorted(set(ids)))


def _type(field: Field) -> Any:
    """The Arrow type in which values of a column are compared."""
    assert field.data_type is not None, field.problem
    return field.data_type.to_arrow()


def _cast(values: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    return values if values.type == _type(field) else values.cast(_type(field))
