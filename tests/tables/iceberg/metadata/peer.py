"""The transforms of pyiceberg, for comparison with others."""

from __future__ import annotations

from typing import Any

__all__ = ["pyiceberg_transform"]


def pyiceberg_transform(transform: str, kind: str, value: Any) -> Any:
    """pyiceberg's result for a value; days and microseconds are numbers."""
    from pyiceberg import types
    from pyiceberg.transforms import parse_transform

    source = {
        "int": types.IntegerType(),
        "long": types.LongType(),
        "date": types.DateType(),
        "timestamp": types.TimestampType(),
        "string": types.StringType(),
        "binary": types.BinaryType(),
    }.get(kind) or types.DecimalType(38, 4)
    return parse_transform(transform).transform(source)(value)
