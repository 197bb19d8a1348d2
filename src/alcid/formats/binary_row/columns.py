"""The columns of binary rows: whether they can be those of a key, and their slots by blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyarrow import types as arrow_types

from alcid.errors import ColumnError, UnsupportedError
from alcid.formats.arrays import plain
from alcid.formats.binary_row.slots import INTEGERS, MisfitError, Slots, read_slots
from alcid.types import DataType

__all__ = ["Columns", "RowColumn", "row_columns"]

Columns: TypeAlias = (
    "Sequence[pa.Array | pa.ChunkedArray] | pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch"
)


def row_columns(
    columns: Columns, types: Sequence[DataType | str] | None
) -> tuple[int, list[RowColumn]]:
    """The number of rows, and the columns of the types given, or else of those that Arrow's mean.

    Raises:
        ColumnError: No columns, columns of different lengths, or not as many types.
        UnsupportedError: Not an Arrow column, or none that a key can have.
    """
    arrays, row_count = _arrays(columns)
    if types is None:
        types = [_type_of(number, array) for number, array in enumerate(arrays)]
    if len(types) != len(arrays):
        raise ColumnError(f"types: found {len(types)}, expected {len(arrays)}")
    parsed = [DataType.parse(kind) if isinstance(kind, str) else kind for kind in types]
    pairs = zip(arrays, parsed, strict=True)
    return row_count, [RowColumn(number, *pair) for number, pair in enumerate(pairs)]


def _arrays(columns: Columns) -> tuple[Sequence[Any], int]:
    if isinstance(columns, pa.Table | pa.RecordBatch):
        return columns.columns, columns.num_rows
    if isinstance(columns, pa.Array | pa.ChunkedArray):
        return [columns], len(columns)
    if not len(columns):
        raise ColumnError("no columns: give a table without any, which has a number of rows")
    for number, array in enumerate(columns):
        if not isinstance(array, pa.Array | pa.ChunkedArray):
            found = type(array).__name__
            raise UnsupportedError(f"column {number}: found {found}, expected an Arrow array")
        if len(array) != len(columns[0]):
            lengths = f"found {len(array)} rows, expected {len(columns[0])}"
            raise ColumnError(f"column {number}: {lengths}")
    return columns, len(columns[0])


def _type_of(number: int, array: pa.Array | pa.ChunkedArray) -> DataType:
    try:
        return DataType.from_arrow(array.type)
    except UnsupportedError as error:
        raise UnsupportedError(f"column {number}: {error}") from None


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column of binary rows.

    Raises:
        UnsupportedError: No key has such a type, or it does not fit the array.

    >>> RowColumn(1, pa.array([[7]]), DataType.parse("ARRAY<BIGINT>"))
    Traceback (most recent call last):
    alcid.errors.UnsupportedError: column 1: a key cannot be of type ARRAY<BIGINT>
    """

    number: int
    array: pa.Array | pa.ChunkedArray
    data_type: DataType

    def __post_init__(self) -> None:
        if self.data_type.root not in _ARROW_TYPES:
            raise UnsupportedError(
                f"column {self.number}: a key cannot be of type {self.data_type}"
            )
        arrow_type = plain(self.array.slice(0, 0)).type
        if not (_fits(arrow_type, self.data_type) or arrow_types.is_null(arrow_type)):
            raise UnsupportedError(
                f"column {self.number}: Arrow's {arrow_type} cannot be read as {self.data_type}"
            )

    def slots(self, start: int, count: int) -> Slots:
        """The slots of `count` rows from `start` on."""
        array = plain(self.array.slice(start, count))
        if arrow_types.is_null(array.type):
            array = pa.nulls(len(array), self.data_type.to_arrow())
        try:
            return read_slots(array, self.data_type)
        except MisfitError as misfit:
            row = start + misfit.position
            raise UnsupportedError(
                f"column {self.number}: the value of row {row} does not fit {self.data_type}"
            ) from None


_BYTES: Final = (
    *(
        arrow_types.is_string,
        arrow_types.is_large_string,
        arrow_types.is_binary,
        arrow_types.is_large_binary,
    ),
    arrow_types.is_fixed_size_binary,
)
_ARROW_TYPES: Final[dict[str, tuple[Callable[[Any], bool], ...]]] = {
    "BOOLEAN": (arrow_types.is_boolean,),
    **dict.fromkeys(INTEGERS, (arrow_types.is_integer,)),
    "FLOAT": (arrow_types.is_float16, arrow_types.is_float32),
    "DOUBLE": (arrow_types.is_floating,),
    **dict.fromkeys(("CHAR", "VARCHAR", "BINARY", "VARBINARY"), _BYTES),
    "DATE": (arrow_types.is_date,),
    "TIME": (arrow_types.is_time,),
    "TIMESTAMP": (arrow_types.is_timestamp,),
    "TIMESTAMP_LTZ": (arrow_types.is_timestamp,),
    "DECIMAL": (arrow_types.is_decimal, arrow_types.is_integer),
}


def _fits(arrow_type: Any, data_type: DataType) -> bool:
    if not any(is_kind(arrow_type) for is_kind in _ARROW_TYPES[data_type.root]):
        return False
    return data_type.root != "DECIMAL" or getattr(arrow_type, "scale", 0) == data_type.scale
