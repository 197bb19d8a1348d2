"""Types as Spark writes them, in `simpleString()` or in DDL. Needs no Spark."""

from __future__ import annotations

import re
from typing import Any, Final

from alcid.errors import UnsupportedError
from alcid.types.data_type import MAX_LENGTH, DataType, quote
from alcid.types.text import Grammar, TypeReader, decimal, fixed, nested, precise, row, sized

__all__ = ["parse_spark", "to_spark"]

_MICROS: Final = 6  # the finest that Spark's times and timestamps are


def _string(reader: TypeReader) -> dict[str, Any]:
    if reader.accept("COLLATE") and not reader.accept("UTF8_BINARY"):
        raise reader.error("'UTF8_BINARY': an index compares strings by their bytes")
    return {"root": "VARCHAR", "length": MAX_LENGTH}


_SPARK: Final[Grammar] = {
    "BOOLEAN": fixed("BOOLEAN"),
    **dict.fromkeys(("TINYINT", "BYTE"), fixed("TINYINT")),
    **dict.fromkeys(("SMALLINT", "SHORT"), fixed("SMALLINT")),
    **dict.fromkeys(("INT", "INTEGER"), fixed("INT")),
    **dict.fromkeys(("BIGINT", "LONG"), fixed("BIGINT")),
    **dict.fromkeys(("FLOAT", "REAL"), fixed("FLOAT")),
    "DOUBLE": fixed("DOUBLE"),
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC"), decimal),
    "STRING": _string,
    **dict.fromkeys(("CHAR", "CHARACTER"), sized("CHAR", None)),
    "VARCHAR": sized("VARCHAR", None),
    "BINARY": fixed("VARBINARY", length=MAX_LENGTH),
    "DATE": fixed("DATE"),
    "TIME": precise("TIME", _MICROS),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), fixed("TIMESTAMP_LTZ", precision=_MICROS)),
    "TIMESTAMP_NTZ": fixed("TIMESTAMP", precision=_MICROS),
    "ARRAY": nested("ARRAY"),
    "MAP": nested("MAP", inner_types=2),
    "STRUCT": row,
    "VARIANT": fixed("VARIANT"),
}
_OTHER_NAMES: Final = {
    **dict.fromkeys(("BINARY", "VARBINARY", "BLOB"), "binary"),
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP_LTZ": "timestamp",
}


def parse_spark(text: str) -> DataType:
    """Read a type as Spark writes it."""
    return TypeReader(text, _SPARK, "Spark type").read()


def to_spark(data_type: DataType) -> str:
    """The Spark type that holds the values of `data_type`."""
    children = [to_spark(child) for child in data_type.children]
    match data_type.root:
        case "DECIMAL":
            return f"decimal({data_type.precision},{data_type.scale})"
        case "VARCHAR" if data_type.length == MAX_LENGTH:
            return "string"
        case "CHAR" | "VARCHAR":
            return f"{data_type.root.lower()}({data_type.length})"
        case "TIME":
            if data_type.precision > _MICROS:
                raise UnsupportedError(
                    f"{data_type} has no Spark type: time ends at time({_MICROS})"
                )
            return f"time({data_type.precision})"
        case "ARRAY" | "VECTOR":
            return f"array<{children[0]}>"
        case "MAP":
            return f"map<{children[0]},{children[1]}>"
        case "MULTISET":  # the element and how often it occurs
            return f"map<{children[0]},int>"
        case "ROW":
            fields = zip(data_type.names, children, strict=True)
            return f"struct<{','.join(f'{_name(name)}:{child}' for name, child in fields)}>"
        case root:
            return _OTHER_NAMES.get(root, root.lower())


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else quote(name)
