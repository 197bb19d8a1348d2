"""From binary rows back to Arrow columns: partitions, keys and statistics are stored as such rows.

The layout is that of `alcid.formats.binary_row.rows`. Every length and offset is checked against
the row that it stands in. The first byte, the kind of the row, is not looked at, nor are bytes that
a slot does not use; short text is also read from the variable part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from alcid.errors import ColumnError, UnsupportedError
from alcid.formats.binary_row.column_reader import READABLE, ColumnReader
from alcid.formats.binary_row.stored import Mask, Stored, StoredRows
from alcid.types import DataType

__all__ = ["Salvaged", "read_column", "read_rows", "salvage_column"]


def read_rows(
    rows: Stored | StoredRows, types: Sequence[DataType], *, file: str = "<rows>"
) -> list[pa.Array]:
    """Every column, of the Arrow type that its type stands for.

    A column of a type that has no order (ARRAY, MAP, ROW ...) is passed over: nulls of Arrow's type
    null take its place.

    Args:
        rows: The rows; where there is none, each column is null.
        types: The types of all columns.
        file: Where the rows come from, for errors.

    Raises:
        FormatError: A row too short, a length or offset beyond it, or a value beyond its type.
        LimitError: A column beyond the 2 GiB that an array of its Arrow type holds.

    >>> row = bytes.fromhex("0000000000000000 0700000000000000 6669670000000083")
    >>> types = [DataType("INT"), DataType.parse("STRING")]
    >>> [column.to_pylist() for column in read_rows([row], types)]
    [[7], ['fig']]
    """
    stored = _stored(rows)
    return [
        ColumnReader(stored, number, types, file).read()
        if data_type.root in READABLE
        else pa.nulls(len(stored))
        for number, data_type in enumerate(types)
    ]


def read_column(
    rows: Stored | StoredRows, column: int, types: Sequence[DataType], *, file: str = "<rows>"
) -> pa.Array:
    """One column of rows; arguments and errors are those of `read_rows`.

    Raises:
        UnsupportedError: The column is of a type that has no order.

    >>> row = bytes.fromhex("0001000000000000 0000000000000000")
    >>> read_column([row, None], 0, [DataType("BIGINT")]).to_pylist()
    [None, None]
    """
    _check(column, types)
    return ColumnReader(_stored(rows), column, types, file).read()


class Salvaged(NamedTuple):
    """A column of rows of which some may be damaged."""

    values: pa.Array
    damaged: Mask
    """Where something is wrong; the value is null there."""


def salvage_column(rows: Stored | StoredRows, column: int, types: Sequence[DataType]) -> Salvaged:
    """One column of rows, as far as it can be read: for what is a hint, and no answer.

    Raises:
        UnsupportedError: The column is of a type that has no order.
        LimitError: A column beyond the 2 GiB that an array of its Arrow type holds.

    >>> row = bytes.fromhex("0000000000000000 0700000000000000")
    >>> values, damaged = salvage_column([row, row[:9]], 0, [DataType("INT")])
    >>> values.to_pylist(), damaged.tolist()
    ([7, None], [False, True])
    """
    _check(column, types)
    reader = ColumnReader(_stored(rows), column, types, None)
    return Salvaged(reader.read(), reader.damaged)


def _stored(rows: Stored | StoredRows) -> StoredRows:
    return rows if isinstance(rows, StoredRows) else StoredRows.of(rows)


def _check(column: int, types: Sequence[DataType]) -> None:
    if not 0 <= column < len(types):
        raise ColumnError(f"column {column}: the rows have {len(types)}")
    if types[column].root not in READABLE:
        raise UnsupportedError(f"column {column}: {types[column]} has no order and is not read")
