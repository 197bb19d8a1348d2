"""The statistics of a data file in its manifest: the bounds of its columns, and their nulls.

    minimum       a packed row (`row_bytes`) of the least value of each column
    maximum       the same of the greatest
    null counts   for each column; null where not known

A null bound is one that is not known. Readers trust bounds: they must hold for every value of a
column. Three kinds of columns have none therefore: with a NaN, which Java sorts above all numbers
and others leave out; of binary, which Java does not bound; and of types that have no order. Text
may be cut, the greatest value so that it still is not exceeded.

Binary rows as the metadata keeps them: partitions, the keys at the ends of a file, and bounds.

number of columns   4 bytes, big-endian
row                 as in `alcid.formats.binary_row`

00 00 00 01   one column
00 00 00 00 00 00 00 00   no nulls
07 00 00 00 00 00 00 00   7
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

__all__ = [
    "EMPTY",
    "FULL",
    "NO_STATS",
    "RowStats",
    "StatsMode",
    "collect",
    "pack_rows",
    "salvage_packed",
    "unpack_column",
    "unpack_rows",
]

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
    """One column of rows, as far as it can be read; a row of other columns counts as damaged.

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
    """The number of columns of each row; -1 where it has not even the null bits."""
    counts = words_at(rows.data, rows.starts).astype(np.uint32).byteswap().astype(np.int64)
    return np.where(rows.lengths < len(EMPTY), -1, counts)


Kind: TypeAlias = Literal["none", "counts", "truncate", "full"]

_BOUNDED: Final = READABLE - {"BINARY", "VARBINARY"}
_NULL_TYPE: Final = DataType("INT")
_TRUNCATE: Final = re.compile(r"truncate\(([0-9]+)\)")
_LONGEST: Final = (1 << 31) - 1
_LAST_CHARACTER: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class RowStats:
    """The statistics of some columns of one data file."""

    minimum: bytes
    """The packed row of the least values."""
    maximum: bytes
    null_counts: tuple[int | None, ...] | None
    """How many rows are null, for each column; None: not known."""


NO_STATS: Final = RowStats(EMPTY, EMPTY, ())
"""Of no columns at all."""


@dataclass(frozen=True, slots=True)
class StatsMode:
    """What is kept of a column: nothing, its nulls, or its bounds too, cut or in full.

    >>> StatsMode.parse("Truncate(16)")
    StatsMode(kind='truncate', length=16)
    >>> StatsMode.parse("most")
    Traceback (most recent call last):
    alcid.errors.OptionError: found 'most', expected none, counts, truncate(<length>) or full
    """

    kind: Kind
    length: int = 0
    """Of `truncate`: the characters that are kept of a text, which are code points."""

    @classmethod
    def parse(cls, text: str) -> StatsMode:
        """Read the value of `metadata.stats-mode` or `fields.<column>.stats-mode`.

        Raises:
            OptionError: No such mode.
        """
        lower = text.lower()
        found = _TRUNCATE.fullmatch(lower)
        if found and 0 < int(found[1]) <= _LONGEST:
            return cls("truncate", int(found[1]))
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
        found = f"{len(rows.columns)} columns, {len(types)} types, {len(modes)} modes"
        raise ColumnError(f"statistics: found {found}, expected as many of each")
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
        # A null of a type that rows do not take here is stored like that of any other.
        kinds.append(data_type if data_type.root in READABLE else _NULL_TYPE)
    minimum, maximum = pack_rows(pairs, kinds)
    return RowStats(minimum, maximum, tuple(null_counts))


def _bounds(column: RowColumn, mode: StatsMode) -> pa.Array:
    """The least and the greatest value; nulls where there is none that holds."""
    values, data_type = column.array, column.data_type
    if values.null_count == len(values):
        return pa.nulls(2)
    if data_type.root in FLOAT_TYPES:
        values = values.cast(data_type.to_arrow())  # never narrower
        if pc.any(pc.is_nan(values)).as_py():
            return pa.nulls(2)
    least, most = pc.min_max(values).values()
    if data_type.root in FLOAT_TYPES:  # -0.0 equals 0.0 for Arrow, and lies below it for Java
        return pa.array([least.as_py() or -0.0, most.as_py() or 0.0], values.type)
    if data_type.root in CHARACTER_TYPES and mode.kind == "truncate":
        return _cut_pair(least.as_buffer(), most.as_buffer(), mode.length)
    pair = pa.array([least, most], values.type)
    return _whole(pair, column) if data_type.root in TIME_TYPES else pair


def _whole(pair: pa.Array, column: RowColumn) -> pa.Array:
    """Times and timestamps that are not finer than what data files of their type keep.

    Raises:
        UnsupportedError: They are: a row would keep less of the greatest, which then is no bound.
    """
    data_type = column.data_type
    kind = pa.time32("ms") if data_type.root == "TIME" else data_type.to_arrow()
    try:
        return pair.cast(kind)
    except pa.ArrowInvalid:
        problem = f"a bound is finer than {data_type} is stored, or beyond it"
        raise UnsupportedError(f"column {column.number}: {problem}") from None


def _cut_pair(least: pa.Buffer, most: pa.Buffer, length: int) -> pa.Array:
    try:
        lower, upper = (buffer.to_pybytes().decode() for buffer in (least, most))
    except UnicodeDecodeError:  # has no characters to be cut at
        return pa.nulls(2)
    if len(upper) > length:
        cut = _next_text(upper[:length])
        if cut is None:
            return pa.nulls(2)
        upper = cut
    return pa.array([lower[:length], upper], pa.string())


def _next_text(text: str) -> str | None:
    r"""A text above all that begin with this one, not longer; None if there is none.

    >>> _next_text("pear"), _next_text("b\U0010ffff"), _next_text("\U0010ffff")
    ('peas', 'c', None)
    """
    kept = text.rstrip(chr(_LAST_CHARACTER))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    if following in _SURROGATES:  # are no characters
        following = _SURROGATES.stop
    return kept[:-1] + chr(following)
