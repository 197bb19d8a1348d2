"""Packed rows of the metadata, and the statistics of data files that consist of them.

A packed row has the number of columns in front: partitions, the minimum and maximum keys of a file,
and bounds.

    00 00 00 01               one column; 4 bytes, big-endian
    00 00 00 00 00 00 00 00   no nulls; a row as in `alcid.formats.binary_row`
    07 00 00 00 00 00 00 00   7

The statistics of a data file:

    minimum       a packed row with the minimum of each column
    maximum       the same with the maxima
    null counts   of each column; null where unknown

A null bound is an unknown one. Readers skip files by bounds, so they must hold for every value of a
column. So `collect` writes none for three kinds of columns: columns with a NaN, which Java sorts
above all numbers and others leave out; binary, which Java does not bound; and types without an
order. Text may be truncated, the maximum so that no value exceeds it.

What is believed of statistics that others wrote is in `alcid.tables.manifest_bounds`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int64Array, plain
from alcid.errors import ColumnError, FormatError, OptionError, UnsupportedError
from alcid.formats.binary_row import binary_rows
from alcid.formats.binary_row.reader import (
    READABLE,
    Salvaged,
    Stored,
    StoredRows,
    read_column,
    read_rows,
    salvage_column,
)
from alcid.formats.binary_row.rows import Columns, RowColumn
from alcid.formats.binary_row.slots import words_at
from alcid.types import CHARACTER_TYPES, FLOAT_TYPES, TIME_TYPES, DataType

EMPTY: Final = bytes(12)
"""The row without columns: the partition of a table that has no partitions."""

_HEAD: Final = 4


def pack_rows(columns: Columns, types: Sequence[DataType]) -> list[bytes]:
    """Rows of these columns; a table has a number of rows even if it has no columns.

    Raises:
        UnsupportedError: A type that a row cannot have here, or a value that its type cannot hold.
        ColumnError: Columns of different lengths, no columns, or not as many types.
        LimitError: A row beyond 2 GiB.

    >>> pack_rows([pa.array([7], pa.int32())], [DataType("INT")])[0].hex(" ", 4)
    '00000001 00000000 00000000 07000000 00000000'
    """
    head = len(types).to_bytes(_HEAD, "big")
    return [head + row for row in binary_rows(columns, types)]


def unpack_rows(
    packed: Stored, types: Sequence[DataType], *, file: str = "<rows>"
) -> list[pa.Array]:
    """The columns of rows: see `read_rows` of `alcid.formats.binary_row.reader`.

    Raises:
        FormatError: Not as many columns as types, or a row that is damaged.
        LimitError: A column beyond the 2 GiB that an array of its Arrow type holds.

    >>> packed = bytes.fromhex("00000001 0000000000000000 0700000000000000")
    >>> unpack_rows([packed], [DataType("INT")])[0].to_pylist()
    [7]
    >>> unpack_rows([EMPTY], [])
    []
    """
    return read_rows(_unpack(packed, len(types), file), types, file=file)


def unpack_column(
    packed: Stored, column: int, types: Sequence[DataType], *, file: str = "<rows>"
) -> pa.Array:
    """One column of rows; arguments and errors are those of `unpack_rows`.

    Raises:
        UnsupportedError: The column is of a type that has no order.
    """
    return read_column(_unpack(packed, len(types), file), column, types, file=file)


def salvage_packed(packed: Stored, column: int, types: Sequence[DataType]) -> Salvaged:
    """One column of rows, as far as it can be read; a row with other columns is damaged.

    Raises:
        UnsupportedError: The column is of a type that has no order.
        LimitError: A column beyond the 2 GiB that an array of its Arrow type holds.

    >>> packed = bytes.fromhex("00000001 0000000000000000 0700000000000000")
    >>> values, damaged = salvage_packed([packed, EMPTY], 0, [DataType("INT")])
    >>> values.to_pylist(), damaged.tolist()
    ([7, None], [False, True])
    """
    rows = StoredRows.of(packed)
    bad = _counts(rows) != len(types)
    bad &= rows.present
    values, damaged = salvage_column(rows.without_head(_HEAD, bad), column, types)
    return Salvaged(values, damaged | bad)


def _unpack(packed: Stored, count: int, file: str) -> StoredRows:
    """The rows themselves.

    Raises:
        FormatError: A row of another number of columns.
    """
    rows = StoredRows.of(packed)
    counts = _counts(rows)
    bad: BoolArray = rows.present & (counts != count)
    if bad.any():
        row = int(bad.argmax())
        if counts[row] < 0:
            raise FormatError(
                f"row {row}: bytes",
                file=file,
                found=int(rows.lengths[row]),
                expected=f"at least {len(EMPTY)}",
            )
        raise FormatError(
            f"row {row}: number of columns", file=file, found=int(counts[row]), expected=count
        )
    return rows.without_head(_HEAD, bad)


def _counts(rows: StoredRows) -> Int64Array:
    """The number of columns of each row; -1 where it is too short for the null bits."""
    counts = words_at(rows.data, rows.starts).astype(np.uint32).byteswap().astype(np.int64)
    return np.where(rows.lengths < len(EMPTY), -1, counts)


Kind: TypeAlias = Literal["none", "counts", "truncate", "full"]

_BOUNDED: Final = READABLE - {"BINARY", "VARBINARY"}
_NULL_TYPE: Final = DataType("INT")
_TRUNCATE: Final = re.compile(r"truncate\(([0-9]+)\)")
_MAX_LENGTH: Final = (1 << 31) - 1
_LAST_CHARACTER: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class RowStats:
    """The statistics of some columns of one data file."""

    minimum: bytes
    """The packed row of the minima."""
    maximum: bytes
    null_counts: tuple[int | None, ...] | None
    """The nulls of each column; None: unknown."""


NO_STATS: Final = RowStats(EMPTY, EMPTY, ())
"""The statistics of no columns."""


@dataclass(frozen=True, slots=True)
class StatsMode:
    """What statistics a column has: none, its nulls, or also its bounds, truncated or full.

    >>> StatsMode.parse("Truncate(16)")
    StatsMode(kind='truncate', length=16)
    >>> StatsMode.parse("most")
    Traceback (most recent call last):
    alcid.errors.OptionError: found 'most', expected none, counts, truncate(<length>) or full
    """

    kind: Kind
    length: int = 0
    """Of `truncate`: the number of characters (code points)."""

    @classmethod
    def parse(cls, text: str) -> StatsMode:
        """Parse the value of `metadata.stats-mode` or `fields.<column>.stats-mode`.

        Raises:
            OptionError: No such mode.
        """
        lower = text.lower()
        truncate = _TRUNCATE.fullmatch(lower)
        if truncate and 0 < int(truncate[1]) <= _MAX_LENGTH:
            return cls("truncate", int(truncate[1]))
        for kind in get_args(Kind):
            if lower == kind != "truncate":
                return cls(kind)
        raise OptionError(f"found {text!r}, expected none, counts, truncate(<length>) or full")


FULL: Final = StatsMode("full")
"""The mode of the statistics of a key."""


def collect(
    rows: pa.Table | pa.RecordBatch, types: Sequence[DataType], modes: Sequence[StatsMode]
) -> RowStats:
    r"""The statistics of the columns of a file, in their order.

    Raises:
        ColumnError: Not as many types or modes as columns.
        UnsupportedError: A column whose bounds its type cannot hold.

    >>> table = pa.table({"name": ["pear", None, "fig"]})
    >>> stats = collect(table, [DataType.parse("STRING")], [StatsMode.parse("truncate(2)")])
    >>> stats.minimum[12:], stats.maximum[12:], stats.null_counts
    (b'fi\x00\x00\x00\x00\x00\x82', b'pf\x00\x00\x00\x00\x00\x82', (1,))
    """
    if not len(rows.columns) == len(types) == len(modes):
        counts = f"{len(rows.columns)} columns, {len(types)} types, {len(modes)} modes"
        raise ColumnError(f"statistics: found {counts}, expected as many of each")
    if not types:
        return NO_STATS
    pairs, kinds, null_counts = [], [], []
    for number, (data_type, mode) in enumerate(zip(types, modes, strict=True)):
        values = plain(rows.column(number))
        null_counts.append(None if mode.kind == "none" else values.null_count)
        pair = pa.nulls(2)
        if data_type.root in _BOUNDED and mode.kind in ("truncate", "full"):
            pair = _bounds(RowColumn(number, values, data_type), mode)
        pairs.append(pair)
        # Rows do not take all types here, but a null is stored alike for any type.
        kinds.append(data_type if data_type.root in READABLE else _NULL_TYPE)
    minimum, maximum = pack_rows(pairs, kinds)
    return RowStats(minimum, maximum, tuple(null_counts))


def _bounds(column: RowColumn, mode: StatsMode) -> pa.Array:
    """Minimum and maximum; nulls where there is no bound that holds."""
    values, data_type = column.array, column.data_type
    if values.null_count == len(values):
        return pa.nulls(2)
    if data_type.root in FLOAT_TYPES:
        values = values.cast(data_type.to_arrow())  # never narrower
        if pc.any(pc.is_nan(values)).as_py():
            return pa.nulls(2)
    minimum, maximum = pc.min_max(values).values()
    if data_type.root in FLOAT_TYPES:  # -0.0 equals 0.0 for Arrow, and lies below it for Java
        return pa.array([minimum.as_py() or -0.0, maximum.as_py() or 0.0], values.type)
    if data_type.root in CHARACTER_TYPES and mode.kind == "truncate":
        return _truncate(minimum.as_buffer(), maximum.as_buffer(), mode.length)
    pair = pa.array([minimum, maximum], values.type)
    return _whole(pair, column) if data_type.root in TIME_TYPES else pair


def _whole(pair: pa.Array, column: RowColumn) -> pa.Array:
    """Times and timestamps in the precision that data files of their type have.

    Raises:
        UnsupportedError: They are finer: a row would round the maximum, which is no bound then.
    """
    data_type = column.data_type
    kind = pa.time32("ms") if data_type.root == "TIME" else data_type.to_arrow()
    try:
        return pair.cast(kind)
    except pa.ArrowInvalid:
        problem = f"a bound is finer than {data_type} is stored, or beyond it"
        raise UnsupportedError(f"column {column.number}: {problem}") from None


def _truncate(minimum: pa.Buffer, maximum: pa.Buffer, length: int) -> pa.Array:
    try:
        lower, upper = (buffer.to_pybytes().decode() for buffer in (minimum, maximum))
    except UnicodeDecodeError:  # there are no characters to truncate at
        return pa.nulls(2)
    if len(upper) > length:
        cut = _next_text(upper[:length])
        if cut is None:
            return pa.nulls(2)
        upper = cut
    return pa.array([lower[:length], upper], pa.string())


def _next_text(text: str) -> str | None:
    r"""A text above all that begin with this one, and not longer; None if there is none.

    >>> _next_text("pear"), _next_text("b\U0010ffff"), _next_text("\U0010ffff")
    ('peas', 'c', None)
    """
    prefix = text.rstrip(chr(_LAST_CHARACTER))
    if not prefix:
        return None
    following = ord(prefix[-1]) + 1
    if following in _SURROGATES:  # are no characters
        following = _SURROGATES.stop
    return prefix[:-1] + chr(following)
