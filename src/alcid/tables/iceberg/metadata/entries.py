"""The live files of a snapshot, as Arrow: one row for each data or delete file.

The columns are those of the metadata table `entries` (`sequence_number`, then the fields of
`data_file`); older runtimes lack some, which are null then.

One key of many maps at once: how manifests keep what they know of columns, by field id.

Bounds of columns as manifests have them: single values as bytes, those of a column at once.

    boolean                  1 byte, 00 or 01
    int, date, float         4 bytes, little-endian
    long, timestamp, double  8 bytes; 4 in files of before the column was widened from int or float
    decimal                  the unscaled number, big-endian, in 1 to 16 bytes
    string, fixed, binary    as they are, often cut

Bytes of another length, or that are no value of the type, count as not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, IntArray, UInt8Array, byte_offsets
from alcid.errors import FormatError
from alcid.types import DataType

__all__ = ["DATA", "EQUALITY_DELETES", "POSITION_DELETES", "Entries", "decoded_bounds", "value_of"]

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


def value_of(maps: pa.MapArray, key: int) -> pa.Array:
    """What each map has at a key; null where it has not.

    >>> counts = pa.array([[(1, 7), (2, 8)], None, [(2, 9)]], pa.map_(pa.int32(), pa.int64()))
    >>> value_of(counts, 2).to_pylist()
    [8, None, 9]
    """
    places = np.full(len(maps), -1)
    offsets = maps.offsets.to_numpy()
    first = offsets[0] if len(maps) else 0
    keys = maps.keys.slice(first, offsets[-1] - first if len(maps) else 0)
    found = np.flatnonzero(keys.to_numpy() == key) + first
    places[np.searchsorted(offsets, found, "right") - 1] = found
    missing = (places < 0) | pc.is_null(maps).to_numpy(zero_copy_only=False)
    return maps.items.take(pa.array(places, mask=missing))


_STORED: Final[dict[str, tuple[str, ...]]] = {
    "BOOLEAN": ("u1",),
    "INT": ("<i4",),
    "DATE": ("<i4",),
    "BIGINT": ("<i8", "<i4"),
    "TIMESTAMP": ("<i8",),
    "TIMESTAMP_LTZ": ("<i8",),
    "FLOAT": ("<f4",),
    "DOUBLE": ("<f8", "<f4"),
}
"""What a value is stored as; the second is of before its column was widened."""
_LONGEST_DECIMAL: Final = 16
_MOST_DIGITS: Final = 38


def decoded_bounds(values: pa.Array, data_type: DataType) -> pa.Array:
    """The bounds of a column, of its Arrow type, but text as bytes; null where not known.

    Columns that have no order are of Arrow's null type.

    >>> stored = pa.array([bytes.fromhex("07000000"), bytes(8), b"?", None], pa.binary())
    >>> decoded_bounds(stored, DataType("BIGINT")).to_pylist()
    [7, 0, None, None]
    """
    if data_type.root in ("VARCHAR", "VARBINARY"):
        return values.cast(pa.binary())
    if data_type.root == "DECIMAL":
        return _decimals(_Stored.of(values), data_type)
    if data_type.root in _STORED:
        return _fixed(_Stored.of(values), data_type)
    return pa.nulls(len(values))


@dataclass(frozen=True, slots=True)
class _Stored:
    """Where the bytes of each value lie; those of null have no length."""

    data: UInt8Array
    starts: IntArray
    lengths: IntArray

    @classmethod
    def of(cls, values: pa.Array) -> _Stored:
        present = values.cast(pa.large_binary()).fill_null(b"")
        offsets = byte_offsets(present)
        data = np.frombuffer(present.buffers()[2] or b"", np.uint8)
        return cls(data, offsets[:-1], np.diff(offsets))


def _fixed(stored: _Stored, data_type: DataType) -> pa.Array:
    dtypes = [np.dtype(one) for one in _STORED[data_type.root]]
    numbers = np.zeros(len(stored.starts), dtypes[0])
    known = np.zeros(len(numbers), bool)
    for dtype in dtypes:
        rows = np.flatnonzero(stored.lengths == dtype.itemsize)
        found = stored.data[stored.starts[rows, None] + np.arange(dtype.itemsize)]
        with np.errstate(invalid="ignore"):  # a NaN that signals, when it is widened
            numbers[rows] = found.view(dtype).reshape(-1).astype(dtypes[0])
        known[rows] = True
    if data_type.root == "BOOLEAN":
        return pa.array(numbers == 1, mask=~known | (numbers > 1))
    return pa.array(numbers, mask=~known).view(data_type.to_arrow())


def _decimals(stored: _Stored, data_type: DataType) -> pa.Array:
    known = (stored.lengths > 0) & (stored.lengths <= _LONGEST_DECIMAL)
    rows = np.flatnonzero(known)
    starts = stored.starts[rows, None]
    places = starts + stored.lengths[rows, None] + np.arange(-_LONGEST_DECIMAL, 0)
    sign = np.where(stored.data[starts] & 0x80, 0xFF, 0).astype(np.uint8)
    numbers = np.zeros((len(known), _LONGEST_DECIMAL), np.uint8)
    numbers[rows] = np.where(places < starts, sign, stored.data[np.maximum(places, starts)])
    buffers = [_bits(known), pa.py_buffer(np.ascontiguousarray(numbers[:, ::-1]))]
    widest = pa.decimal128(_MOST_DIGITS, data_type.scale)
    found = pa.Array.from_buffers(widest, len(known), buffers)
    # From text, since arithmetic would round.
    end = Decimal(f"{10**data_type.precision - 1}E-{data_type.scale}")
    fits = pc.and_(
        pc.less_equal(found, pa.scalar(end, widest)),
        pc.greater_equal(found, pa.scalar(end.copy_negate(), widest)),
    )
    return pc.if_else(fits, found, None).cast(data_type.to_arrow())


def _bits(mask: BoolArray) -> Any:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))
