"""Values in their JSON form as Arrow arrays, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from tests.golden.values import Json, binary, f32, f64, timestamp


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
        "TIME": (pa.time32("ms"), int),
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


def json_rows(table: Any) -> list[list[Json]]:
    """The rows of an Arrow table in their JSON form, sorted by it; a row within is `{"row": ...}`.

    >>> import pyarrow as pa
    >>> json_rows(pa.table({"a": [2, None], "b": [["x"], [None]]}))
    [[2, ['x']], [None, [None]]]
    """
    import json

    columns = [_json_values(column.combine_chunks()) for column in table.columns]
    return sorted(map(list, zip(*columns, strict=True)), key=json.dumps)


def _json_values(array: Any) -> list[Json]:
    import pyarrow as pa

    kind = array.type
    if pa.types.is_timestamp(kind):
        ticks = 10 ** {"s": 9, "ms": 6, "us": 3, "ns": 0}[kind.unit]
        return [
            None if count is None else timestamp(*divmod(count * ticks, 10**6))
            for count in array.cast(pa.int64()).to_pylist()
        ]
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return list(array.cast(pa.int32()).to_pylist())
    if pa.types.is_nested(kind):
        return _nested_values(array)
    forms: dict[Any, Callable[[Any], Json]] = {pa.float32(): f32, pa.float64(): f64}
    form = forms.get(kind)
    if pa.types.is_decimal(kind):
        form = str
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        form = binary
    values = array.to_pylist()
    return values if form is None else [None if item is None else form(item) for item in values]


def _nested_values(array: Any) -> list[Json]:
    import pyarrow as pa

    kind = array.type
    if pa.types.is_struct(kind):
        parts = [_json_values(part) for part in array.flatten()]
        rows = ({"row": list(items)} for items in zip(*parts, strict=True))
        return [
            row if valid else None
            for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)
        ]
    if pa.types.is_map(kind):
        items = list(
            map(list, zip(_json_values(array.keys), _json_values(array.items), strict=True))
        )
    else:
        items = _json_values(array.values)
    lists: list[Json] = [items[start:end] for start, end in pairwise(array.offsets.to_pylist())]
    if pa.types.is_map(kind):
        lists = [{"map": pairs} for pairs in lists]
    return [
        item if valid else None
        for item, valid in zip(lists, array.is_valid().to_pylist(), strict=True)
    ]
