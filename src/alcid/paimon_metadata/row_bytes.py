"""Binary rows as the metadata keeps them: partitions, the keys at the ends of a file, and bounds.

number of columns   4 bytes, big-endian
row                 as in `alcid.formats.binary_row`

00 00 00 01   one column
00 00 00 00 00 00 00 00   no nulls
07 00 00 00 00 00 00 00   7
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from alcid.errors import FormatError
from alcid.formats.binary_row import binary_rows
from alcid.formats.binary_row.decoding import Salvaged, read_column, read_rows, salvage_column
from alcid.formats.binary_row.rows import Columns
from alcid.formats.binary_row.stored import Mask, Stored, StoredRows
from alcid.formats.binary_row.tails import Lengths, words_at
from alcid.types import DataType

__all__ = ["EMPTY", "pack_rows", "salvage_packed", "unpack_column", "unpack_rows"]

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
    """The columns of rows: see `read_rows` of `alcid.formats.binary_row.decoding`.

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
    bad: Mask = rows.present & (counts != count)
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


def _counts(rows: StoredRows) -> Lengths:
    """The number of columns of each row; -1 where it has not even the null bits."""
    counts = words_at(rows.data, rows.starts).astype(np.uint32).byteswap().astype(np.int64)
    return np.where(rows.lengths < len(EMPTY), -1, counts)
