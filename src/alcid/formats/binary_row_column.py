"""A column of binary rows: whether its types can be those of a key, and its slots by blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyarrow import types

from alcid.errors import UnsupportedError
from alcid.formats.binary_row_slots import INTEGERS, MisfitError, Slots, read_slots
from alcid.formats.column import plain
from alcid.types import DataType

__all__ = ["RowColumn"]


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
        if not (_fits(arrow_type, self.data_type) or types.is_null(arrow_type)):
            raise UnsupportedError(
                f"column {self.number}: Arrow's {arrow_type} cannot be read as {self.data_type}"
            )

    def slots(self, start: int, count: int) -> Slots:
        """The slots of `count` rows from `start` on."""
        array = plain(self.array.slice(start, count))
        if types.is_null(array.type):
            array = pa.nulls(len(array), self.data_type.to_arrow())
        try:
            return read_slots(array, self.data_type)
        except MisfitError as misfit:
            row = start + misfit.position
            raise UnsupportedError(
                f"column {self.number}: the value of row {row} does not fit {self.data_type}"
            ) from None


_BYTES: Final = (
    *(types.is_string, types.is_large_string, types.is_binary, types.is_large_binary),
    types.is_fixed_size_binary,
)
_ARROW_TYPES: Final[dict[str, tuple[Callable[[Any], bool], ...]]] = {
    "BOOLEAN": (types.is_boolean,),
    **dict.fromkeys(INTEGERS, (types.is_integer,)),
    "FLOAT": (types.is_float16, types.is_float32),
    "DOUBLE": (types.is_floating,),
    **dict.fromkeys(("CHAR", "VARCHAR", "BINARY", "VARBINARY"), _BYTES),
    "DATE": (types.is_date,),
    "TIME": (types.is_time,),
    "TIMESTAMP": (types.is_timestamp,),
    "TIMESTAMP_LTZ": (types.is_timestamp,),
    "DECIMAL": (types.is_decimal, types.is_integer),
}


def _fits(arrow_type: Any, data_type: DataType) -> bool:
    if not any(is_kind(arrow_type) for is_kind in _ARROW_TYPES[data_type.root]):
        return False
    return data_type.root != "DECIMAL" or getattr(arrow_type, "scale", 0) == data_type.scale
