"""Arrow types <-> ours."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyarrow import types

from alcid.errors import UnsupportedError
from alcid.types.data_type import MAX_LENGTH, DataType

__all__ = ["from_arrow", "to_arrow"]

# Unsigned integers go to the next wider type, as Spark reads them from Parquet.
_FROM_ARROW: Final[dict[Any, DataType]] = {
    pa.bool_(): DataType("BOOLEAN"),
    pa.int8(): DataType("TINYINT"),
    pa.int16(): DataType("SMALLINT"),
    pa.int32(): DataType("INT"),
    pa.int64(): DataType("BIGINT"),
    pa.uint8(): DataType("SMALLINT"),
    pa.uint16(): DataType("INT"),
    pa.uint32(): DataType("BIGINT"),
    pa.uint64(): DataType("DECIMAL", precision=20),
    pa.float16(): DataType("FLOAT"),
    pa.float32(): DataType("FLOAT"),
    pa.float64(): DataType("DOUBLE"),
    pa.date32(): DataType("DATE"),
    pa.date64(): DataType("DATE"),
    **dict.fromkeys(
        (pa.string(), pa.large_string(), pa.string_view()), DataType("VARCHAR", length=MAX_LENGTH)
    ),
    **dict.fromkeys(
        (pa.binary(), pa.large_binary(), pa.binary_view()), DataType("VARBINARY", length=MAX_LENGTH)
    ),
}
_TO_ARROW: Final[dict[str, Any]] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "VARBINARY": pa.binary(),
    "BLOB": pa.large_binary(),
    "DATE": pa.date32(),
    "VARIANT": pa.struct(
        [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)]
    ),
}
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def from_arrow(arrow_type: Any) -> DataType:
    """The type of an Arrow column.

    Raises:
        UnsupportedError: null, durations, intervals, unions; decimals that Paimon does not have.
    """
    known = _FROM_ARROW.get(arrow_type)
    if known is not None:
        return known
    if isinstance(arrow_type, pa.BaseExtensionType):
        return from_arrow(arrow_type.storage_type)
    if types.is_dictionary(arrow_type) or types.is_run_end_encoded(arrow_type):
        return from_arrow(arrow_type.value_type)
    if types.is_fixed_size_binary(arrow_type):
        return DataType("BINARY", length=arrow_type.byte_width)
    if types.is_decimal(arrow_type):
        return DataType("DECIMAL", precision=arrow_type.precision, scale=arrow_type.scale)
    if types.is_time(arrow_type):
        return DataType("TIME", precision=_DIGITS[arrow_type.unit])
    if types.is_timestamp(arrow_type):
        root = "TIMESTAMP" if arrow_type.tz is None else "TIMESTAMP_LTZ"
        return DataType(root, precision=_DIGITS[arrow_type.unit])
    if types.is_map(arrow_type):
        key, value = from_arrow(arrow_type.key_type), from_arrow(arrow_type.item_type)
        return DataType("MAP", children=(key, value))
    if types.is_struct(arrow_type):
        return DataType(
            "ROW",
            names=tuple(field.name for field in arrow_type),
            children=tuple(from_arrow(field.type) for field in arrow_type),
        )
    if types.is_nested(arrow_type) and not types.is_union(arrow_type):  # every kind of list
        return DataType("ARRAY", children=(from_arrow(arrow_type.value_type),))
    raise UnsupportedError(f"Arrow type {arrow_type} has no counterpart among Paimon's types")


def to_arrow(data_type: DataType) -> Any:
    """The canonical Arrow type of `data_type`."""
    children = [to_arrow(child) for child in data_type.children]
    match data_type.root:
        case "DECIMAL":
            return pa.decimal128(data_type.precision, data_type.scale)
        case "BINARY":
            return pa.binary(data_type.length)
        case "TIME":  # never seconds: Paimon keeps milliseconds of the day, whatever the precision
            unit = _unit(data_type.precision)
            return pa.time64(unit) if unit in ("us", "ns") else pa.time32("ms")
        case "TIMESTAMP":
            return pa.timestamp(_unit(data_type.precision))
        case "TIMESTAMP_LTZ":
            return pa.timestamp(_unit(data_type.precision), tz="UTC")
        case "ARRAY":
            return pa.list_(children[0])
        case "VECTOR":
            return pa.list_(children[0], data_type.length)
        case "MAP":
            return pa.map_(*children)
        case "MULTISET":  # the element and how often it occurs
            return pa.map_(children[0], pa.int32())
        case "ROW":
            return pa.struct(list(zip(data_type.names, children, strict=True)))
        case root:
            return _TO_ARROW[root]


def _unit(precision: int) -> str:
    """The coarsest unit that holds `precision` digits after the second."""
    return next(unit for unit, digits in _DIGITS.items() if precision <= digits)
