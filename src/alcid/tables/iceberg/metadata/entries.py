"""The live files of a snapshot as Arrow tables, with a row for each data or delete file.

The columns are those of the metadata table `entries` (`sequence_number`, then the fields of
`data_file`); some are null with older runtimes. Metrics are maps by field id. They are most of what
manifests say of tables with many columns, so those of large tables are only read of the columns
that are asked for (`with_metrics`). Bounds are single values in binary:

    boolean                  1 byte, 00 or 01
    int, date, float         4 bytes, little-endian
    long, timestamp, double  8 bytes; 4 in files from before a promotion from int or float
    decimal                  the unscaled value, big-endian, in 1 to 16 bytes
    string, fixed, binary    as they are, often truncated

Bytes of another length, or that are not a value of the type, count as unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, IntArray, UInt8Array, byte_offsets
from alcid.errors import FormatError
from alcid.types import DataType

DATA: Final = 0
POSITION_DELETES: Final = 1
"""Position delete files, and deletion vectors in Puffin files."""
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
METRICS: Final = (
    *("value_counts", "null_value_counts", "nan_value_counts"),
    *("lower_bounds", "upper_bounds"),
)
"""The maps by field id that are read when they are asked for."""
ReadMetrics: TypeAlias = Callable[[Collection[int]], pa.Table]
"""Reads the columns of `METRICS`, each with the entries of some field ids."""
_PARTITION: Final = "partition"
_NOT_NEGATIVE: Final = (
    *("sequence_number", "record_count", "file_size_in_bytes"),
    *("content_offset", "content_size_in_bytes"),
)


@dataclass(frozen=True, slots=True)
class Entries:
    """The files of a snapshot; every column has one chunk."""

    data: pa.Table
    """The data files, sorted by path; metrics are missing if they are read when asked for."""
    deletes: pa.Table
    """The delete files."""
    read_metrics: ReadMetrics | None = None
    """Reads metrics of the data files; None if `data` has those of all columns."""
    _order: pa.Array | None = None
    """For each data file, its number among those that `read_metrics` gives."""

    @classmethod
    def of(
        cls, table: pa.Table, *, name: str = "<table>", read_metrics: ReadMetrics | None = None
    ) -> Entries:
        """Check the rows of `entries`, and split them into data and delete files.

        Args:
            table: The live entries of a snapshot.
            name: The name of the table in errors.
            read_metrics: Reads the metrics of columns, with a row for each data file of the table
                in its order; by default the table has them.

        Raises:
            FormatError: A column is missing, of another type, or has an invalid value.
        """
        entries = _normalised(table, f"entries of {name}")
        is_data = pc.equal(entries["content"], DATA)
        data = entries.filter(is_data)
        order = pc.sort_indices(data["file_path"])
        return cls(
            _one_chunk(data.take(order)),
            _one_chunk(entries.filter(pc.invert(is_data))),
            read_metrics,
            None if read_metrics is None else order.cast(pa.uint32()),
        )

    def with_deletes(self, deletes: pa.Table, *, name: str = "<table>") -> Entries:
        """The same data files with other delete files."""
        checked = _normalised(deletes, f"entries of {name}")
        return replace(self, deletes=_one_chunk(checked))

    def with_metrics(self, field_ids: Collection[int]) -> pa.Table:
        """The data files with the metrics of some columns, or of more.

        Raises:
            FormatError: A manifest is damaged.
            FileGoneError: The snapshot has expired.
        """
        if self.read_metrics is None:
            return self.data
        metrics = self.read_metrics(field_ids).take(self._order)
        columns = {name: self.data[name] for name in self.data.column_names}
        for name in METRICS:
            columns[name] = _column(metrics, name, _OPTIONAL[name], "metrics").combine_chunks()
        return _one_chunk(pa.table(columns))

    @classmethod
    def none(cls) -> Entries:
        """The entries of a table before its first commit.

        >>> len(Entries.none().data)
        0
        """
        return cls.of(pa.table({name: pa.nulls(0, kind) for name, kind in _REQUIRED.items()}))


def _normalised(table: pa.Table, file: str) -> pa.Table:
    """All columns, cast to the expected types and with valid values."""
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
        minimum = pc.min(columns[name]).as_py()
        if minimum is not None and minimum < 0:
            raise FormatError(name, file=file, found=minimum, expected="0 or more")
    minimum, maximum = pc.min_max(columns["content"]).values()
    for content in (minimum.as_py(), maximum.as_py()):
        if content is not None and content not in (DATA, POSITION_DELETES, EQUALITY_DELETES):
            raise FormatError("content", file=file, found=content, expected="0, 1 or 2")
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
    """The value of each map for a key; null where it is missing.

    >>> counts = pa.array([[(1, 7), (2, 8)], None, [(2, 9)]], pa.map_(pa.int32(), pa.int64()))
    >>> value_of(counts, 2).to_pylist()
    [8, None, 9]
    """
    positions = np.full(len(maps), -1)
    offsets = maps.offsets.to_numpy()
    first = offsets[0] if len(maps) else 0
    keys = maps.keys.slice(first, offsets[-1] - first if len(maps) else 0)
    matches = np.flatnonzero(keys.to_numpy() == key) + first
    positions[np.searchsorted(offsets, matches, "right") - 1] = matches
    missing = (positions < 0) | pc.is_null(maps).to_numpy(zero_copy_only=False)
    return maps.items.take(pa.array(positions, mask=missing))


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
"""The stored types of a value; the second is from before a promotion."""
_LONGEST_DECIMAL: Final = 16
_MOST_DIGITS: Final = 38


def decoded_bounds(values: pa.Array, data_type: DataType) -> pa.Array:
    """Decode the bounds of a column to its Arrow type, or bytes for strings; null where unknown.

    Columns without an order are of Arrow's null type.

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
    """The bytes of each value; those of null have no length."""

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
    dtypes = [np.dtype(name) for name in _STORED[data_type.root]]
    numbers = np.zeros(len(stored.starts), dtypes[0])
    is_valid = np.zeros(len(numbers), bool)
    for dtype in dtypes:
        rows = np.flatnonzero(stored.lengths == dtype.itemsize)
        raw = stored.data[stored.starts[rows, None] + np.arange(dtype.itemsize)]
        with np.errstate(invalid="ignore"):  # a signalling NaN that is widened
            numbers[rows] = raw.view(dtype).reshape(-1).astype(dtypes[0])
        is_valid[rows] = True
    if data_type.root == "BOOLEAN":
        return pa.array(numbers == 1, mask=~is_valid | (numbers > 1))
    return pa.array(numbers, mask=~is_valid).view(data_type.to_arrow())


def _decimals(stored: _Stored, data_type: DataType) -> pa.Array:
    is_valid = (stored.lengths > 0) & (stored.lengths <= _LONGEST_DECIMAL)
    rows = np.flatnonzero(is_valid)
    starts = stored.starts[rows, None]
    positions = starts + stored.lengths[rows, None] + np.arange(-_LONGEST_DECIMAL, 0)
    sign = np.where(stored.data[starts] & 0x80, 0xFF, 0).astype(np.uint8)
    numbers = np.zeros((len(is_valid), _LONGEST_DECIMAL), np.uint8)
    numbers[rows] = np.where(positions < starts, sign, stored.data[np.maximum(positions, starts)])
    buffers = [_bits(is_valid), pa.py_buffer(np.ascontiguousarray(numbers[:, ::-1]))]
    widest = pa.decimal128(_MOST_DIGITS, data_type.scale)
    decimals = pa.Array.from_buffers(widest, len(is_valid), buffers)
    # From text, since arithmetic would round.
    end = Decimal(f"{10**data_type.precision - 1}E-{data_type.scale}")
    fits = pc.and_(
        pc.less_equal(decimals, pa.scalar(end, widest)),
        pc.greater_equal(decimals, pa.scalar(end.copy_negate(), widest)),
    )
    return pc.if_else(fits, decimals, None).cast(data_type.to_arrow())


def _bits(mask: BoolArray) -> Any:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))
