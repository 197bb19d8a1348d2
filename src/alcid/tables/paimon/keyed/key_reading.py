"""The data files of a table with a primary key, read again: their keys, or all of their columns.

Files may be of older schemas: columns are the same if their ids are, and values become what the
table has now. A file of the thin mode has its keys among its other columns only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.casts import column_type
from alcid.tables.paimon.data_files import (
    DataScan,
    PlacedFile,
    open_data,
    read_present,
    stored_schema,
)
from alcid.tables.paimon.keyed.bucket import KeyedTable
from alcid.tables.paimon.keyed.key_files import KeyRun, join_runs
from alcid.tables.paimon.merge_on_read import (  # MOVED
    KIND,
    NUMBER,
    KeyRows,
    _as_now,
    _cast,
    _column,
    _key_as_now,
    read_key_rows,
)

__all__ = ["KeyReader"]


class KeyReader:
    """Reads files of a table; the footer of each once."""

    def __init__(self, keyed: KeyedTable) -> None:
        """Nothing is read yet."""
        self._keyed, self._stored = keyed, stored_schema(keyed.schema)
        self._scans: dict[str, DataScan] = {}

    def keys(self, placed: PlacedFile, deleted: DeletionVector | None = None) -> KeyRows:
        """What merging needs of the rows of a file; `deleted` take no part."""
        keyed, scan = self._keyed, self._open(placed)
        return read_key_rows(
            placed,
            deleted,
            schema=keyed.schema,
            schemas=keyed.schemas,
            options=keyed.options,
            read=lambda columns: self._read(scan, None, columns),
        )

    def keys_of(self, run: KeyRun, *, level: int = 0) -> KeyRows:
        """The same of rows that are not in a file yet, in types that can be merged with those."""
        schema, options = self._keyed.schema, self._keyed.options
        keys, order = (
            [
                _cast(run.rows.column(name), column_type(schema.types[name]), f"column {name}")
                for name in names
            ]
            for names in (schema.key_columns, options.sequence_field)
        )
        return KeyRows(keys, run.numbers, run.kinds, level, order)

    def runs(self, placed: PlacedFile) -> Iterator[KeyRun]:
        """All rows of a file in the columns of the table, a row group at a time."""
        for group, rows in enumerate(self._open(placed).group_rows):
            if rows:
                yield self._group(placed, group)

    def chosen(self, placed: PlacedFile, positions: npt.NDArray[np.int64]) -> KeyRun:
        """The rows of these positions, which ascend; row groups without one are not read.

        Raises:
            FormatError: The file has not so many rows.
        """
        if len(positions) and not 0 <= positions[0] <= positions[-1] < placed.file.rows:
            raise FormatError(
                "rows",
                file=placed.path,
                found=f"{positions[0]} to {positions[-1]}",
                expected=f"0 to {placed.file.rows - 1}",
            )
        parts = [KeyRun(self._stored.empty_table(), np.empty(0, np.int64), np.empty(0, np.int8))]
        first = 0
        for group, rows in enumerate(self._open(placed).group_rows):
            start, stop = np.searchsorted(positions, [first, first + rows])
            if start < stop:
                parts.append(self._group(placed, group).take(positions[start:stop] - first))
            first += rows
        return join_runs(parts)

    def _open(self, placed: PlacedFile) -> DataScan:
        if placed.path not in self._scans:
            scan = open_data(self._keyed.storage, placed, self._keyed.options)
            found, expected = sum(scan.group_rows), placed.file.rows
            if found != expected:
                raise FormatError("rows", file=placed.path, found=found, expected=expected)
            self._scans[placed.path] = scan
        return self._scans[placed.path]

    def _read(self, scan: DataScan, group: int | None, columns: Sequence[str]) -> pa.Table:
        """Columns as the file holds them, as far as it has them."""
        groups = None if group is None else [group]
        return read_present(scan, columns, self._keyed.storage, groups)

    def _group(self, placed: PlacedFile, group: int) -> KeyRun:
        scan, own = self._open(placed), self._keyed.schemas[placed.file.schema_id].by_id
        fields = self._keyed.schema.fields
        names = [own[one.id].name for one in fields if one.id in own]
        rows = self._read(scan, group, [NUMBER, KIND, *names])
        keys = self._keyed.schema.key_columns
        columns = [
            (_key_as_now if one.name in keys else _as_now)(
                _column(rows, own[one.id].name, placed), own[one.id], one, placed, stored.type
            )
            if one.id in own
            else pa.nulls(rows.num_rows, stored.type)
            for one, stored in zip(fields, self._stored, strict=True)
        ]
        return KeyRun(
            pa.Table.from_arrays(columns, schema=self._stored),
            _integers(rows, NUMBER, pa.int64(), placed),
            _integers(rows, KIND, pa.int8(), placed),
        )


def _integers(rows: pa.Table, name: str, arrow_type: Any, placed: PlacedFile) -> npt.NDArray[Any]:
    """Sequence numbers or kinds, of which no row lacks one."""
    values = _cast(_column(rows, name, placed), arrow_type, f"{placed.path}: column {name}")
    if values.null_count:
        raise FormatError(f"row without {name}", file=placed.path)
    found: npt.NDArray[Any] = values.to_numpy()
    return found
