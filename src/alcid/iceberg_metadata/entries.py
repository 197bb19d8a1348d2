"""The live files of a snapshot, as Arrow: one row for each data or delete file.

The columns are those of the metadata table `entries` (`sequence_number`, then the fields of
`data_file`); older runtimes lack some, which are null then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import FormatError

__all__ = ["DATA", "EQUALITY_DELETES", "POSITION_DELETES", "Entries"]

DATA: Final = 0
POSITION_DELETES: Final = 1
"""Files of positions, and deletion vectors in Puffin files."""
EQUALITY_DELETES: Final = 2

_REQUIRED: Final = {
    "sequence_number": pa.int64(),
    "content": pa.int32(),
    "file_path": pa.string(),
    "file_format": pa.string(),
    "spec_id": pa.int32(),
    "record_count": pa.int64(),
    "file_size_in_bytes": pa.int64(),
}
_COUNTS: Final = pa.map_(pa.int32(), pa.int64())
_BOUNDS: Final = pa.map_(pa.int32(), pa.binary())
_OPTIONAL: Final = {
    "column_sizes": _COUNTS,
    "value_counts": _COUNTS,
    "null_value_counts": _COUNTS,
    "nan_value_counts": _COUNTS,
    "lower_bounds": _BOUNDS,
    "upper_bounds": _BOUNDS,
    "key_metadata": pa.binary(),
    "split_offsets": pa.list_(pa.int64()),
    "equality_ids": pa.list_(pa.int32()),
    "sort_order_id": pa.int32(),
    "first_row_id": pa.int64(),
    "referenced_data_file": pa.string(),
    "content_offset": pa.int64(),
    "content_size_in_bytes": pa.int64(),
}
_PARTITION: Final = "partition"
_NOT_NEGATIVE: Final = (
    *("sequence_number", "record_count", "file_size_in_bytes"),
    *("content_offset", "content_size_in_bytes"),
)


@dataclass(frozen=True, slots=True)
class Entries:
    """The files of a snapshot; every column is one chunk."""

    data: pa.Table
    """The data files, by their path in ascending order."""
    deletes: pa.Table
    """The delete files."""

    @classmethod
    def of(cls, table: pa.Table, *, name: str = "<table>") -> Entries:
        """Check the rows of `entries`, and part them.

        Args:
            table: The live entries of one snapshot.
            name: Of the table, for errors.

        Raises:
            FormatError: A column is missing, of another type, or has a value that cannot be.
        """
        found = _normalised(table, f"entries of {name}")
        is_data = pc.equal(found["content"], DATA)
        data = found.filter(is_data)
        return cls(
            _one_chunk(data.take(pc.sort_indices(data["file_path"]))),
            _one_chunk(found.filter(pc.invert(is_data))),
        )

    @classmethod
    def none(cls) -> Entries:
        """No files: of a table to which nothing was ever committed.

        >>> len(Entries.none().data)
        0
        """
        return cls.of(pa.table({name: pa.nulls(0, kind) for name, kind in _REQUIRED.items()}))


def _normalised(table: pa.Table, file: str) -> pa.Table:
    """All columns, of the types that are expected, with values that can be."""
    columns = {}
    for name, kind in _REQUIRED.items():
        columns[name] = _column(table, name, kind, file)
        if columns[name].null_count:
            raise FormatError(name, file=file, found="null", expected="a value")
    columns[_PARTITION] = _partitions(table, file)
    for name, kind in _OPTIONAL.items():
        if name in table.column_names:
            columns[name] = _column(table, name, kind, file)
        else:
            columns[name] = pa.nulls(len(table), kind)
    for name in _NOT_NEGATIVE:
        least = pc.min(columns[name]).as_py()
        if least is not None and least < 0:
            raise FormatError(name, file=file, found=least, expected="0 or more")
    least, most = pc.min_max(columns["content"]).values()
    for found in (least.as_py(), most.as_py()):
        if found is not None and found not in (DATA, POSITION_DELETES, EQUALITY_DELETES):
            raise FormatError("content", file=file, found=found, expected="0, 1 or 2")
    return pa.table(columns)


def _column(table: pa.Table, name: str, kind: Any, file: str) -> pa.ChunkedArray:
    if name not in table.column_names:
        raise FormatError(f"column {name} is missing", file=file)
    column = table[name]
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except pa.ArrowException:
        raise FormatError(name, file=file, found=column.type, expected=kind) from None


def _partitions(table: pa.Table, file: str) -> pa.ChunkedArray:
    """The partition of each file; an unpartitioned table has no such column."""
    if _PARTITION not in table.column_names:
        return pa.chunked_array([pa.array([{}] * len(table), pa.struct([]))])
    column = table[_PARTITION]
    if not pa.types.is_struct(column.type):
        raise FormatError(_PARTITION, file=file, found=column.type, expected="a struct")
    return column


def _one_chunk(table: pa.Table) -> pa.Table:
    """The table with one chunk in each column, even if it is empty."""
    arrays = [
        column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        for column in table.columns
    ]
    return pa.Table.from_arrays(arrays, names=table.column_names)
