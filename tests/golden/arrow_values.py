"""Values in their JSON form as Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from tests.golden.values import Json


def arrow_array(data_type: str, values: Sequence[Json]) -> Any:
    """An Arrow array of a column.

    >>> arrow_array("TIMESTAMP(6)", [{"millis": -1, "nano_of_millis": 999000}, None]).cast("int64")
    <pyarrow.lib.Int64Array object at ...>
    [
      -1,
      null
    ]
    """
    import pyarrow as pa

    root = data_type.split("(", 1)[0]
    if root == "TIMESTAMP":
        unit, divisor = _unit(int(data_type.split("(")[1][0]))
        zone = "UTC" if "ZONE" in data_type else None
        ticks = [
            None
            if value is None
            else (value["millis"] * 10**6 + value["nano_of_millis"]) // divisor
            for value in values
        ]
        return pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, zone))
    if root == "DECIMAL":
        precision, scale = (int(part) for part in data_type[8:-1].split(","))
        decimals = [None if value is None else Decimal(value) for value in values]
        return pa.array(decimals, pa.decimal128(precision, scale))
    if root in ("FLOAT", "DOUBLE"):
        return _floats(root, values)
    plain: dict[str, tuple[Any, Callable[[Json], Json]]] = {
        "BOOLEAN": (pa.bool_(), bool),
        "TINYINT": (pa.int8(), int),
        "SMALLINT": (pa.int16(), int),
        "INT": (pa.int32(), int),
        "BIGINT": (pa.int64(), int),
        "DATE": (pa.date32(), int),
        **dict.fromkeys(("CHAR", "VARCHAR", "STRING"), (pa.string(), str)),
        **dict.fromkeys(
            ("BINARY", "VARBINARY", "BYTES"),
            (pa.binary(), lambda value: bytes.fromhex(value["hex"])),
        ),
    }
    kind, convert = plain[root]
    return pa.array([None if value is None else convert(value) for value in values], kind)


def _floats(root: str, values: Sequence[Json]) -> Any:
    """Floats by their bits, so that the payload of a NaN stays."""
    import pyarrow as pa

    key, bits, kind = (
        ("f32", pa.uint32(), pa.float32())
        if root == "FLOAT"
        else ("f64", pa.uint64(), pa.float64())
    )
    raw = [None if value is None else int(value[key], 16) for value in values]
    return pa.array(raw, bits).view(kind)


def _unit(precision: int) -> tuple[str, int]:
    if precision == 0:
        return "s", 10**9
    if precision <= 3:
        return "ms", 10**6
    return ("us", 10**3) if precision <= 6 else ("ns", 1)
