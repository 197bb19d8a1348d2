"""A column for every type that a table of Paimon may have, with four values, one of them null."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.golden.values import Json, binary, f32, f64, timestamp

ALL_TYPES: dict[str, Json] = {
    "c_boolean": "BOOLEAN",
    "c_tinyint": "TINYINT",
    "c_smallint": "SMALLINT",
    "c_int": "INT",
    "c_bigint": "BIGINT",
    "c_float": "FLOAT",
    "c_double": "DOUBLE",
    "c_decimal": "DECIMAL(10,2)",
    "c_decimal_18": "DECIMAL(18,4)",
    "c_decimal_30": "DECIMAL(30,5)",
    "c_char": "CHAR(4)",
    "c_varchar": "VARCHAR(20)",
    "c_string": "STRING",
    "c_binary": "BINARY(3)",
    "c_varbinary": "VARBINARY(20)",
    "c_bytes": "BYTES",
    "c_date": "DATE",
    "c_time": "TIME(3)",
    "c_timestamp_0": "TIMESTAMP(0)",
    "c_timestamp_3": "TIMESTAMP(3)",
    "c_timestamp_6": "TIMESTAMP(6)",
    "c_timestamp_9": "TIMESTAMP(9)",
    "c_zoned_3": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "c_zoned_6": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "c_zoned_9": "TIMESTAMP(9) WITH LOCAL TIME ZONE",
}
NESTED: dict[str, tuple[Json, Any, list[Any]]] = {
    "c_array": (
        {"type": "ARRAY", "element": "INT"},
        pa.list_(pa.int32()),
        [[1, None, 3], [], None, [7]],
    ),
    "c_map": (
        {"type": "MAP", "key": "STRING NOT NULL", "value": "BIGINT"},
        pa.map_(pa.string(), pa.int64()),
        [[("a", 1), ("b", None)], [], None, [("c", -1)]],
    ),
    "c_row": (
        {
            "type": "ROW",
            "fields": [
                {"id": 100, "name": "x", "type": "INT"},
                {"id": 101, "name": "y", "type": {"type": "ARRAY", "element": "STRING"}},
            ],
        },
        pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]),
        [{"x": 1, "y": ["p"]}, {"x": None, "y": None}, None, {"x": 2, "y": []}],
    ),
}
MOMENTS = [timestamp(-1, 999_999), timestamp(1_700_000_000_123, 456_789), None, timestamp(0)]


def all_values(kind: str) -> list[Json]:
    """Four values of a type, the third of them null."""
    if kind.startswith("TIMESTAMP"):
        unit = 10 ** (9 - int(kind[10]))
        counts = [
            None if item is None else (item["millis"] * 10**6 + item["nano_of_millis"]) // unit
            for item in MOMENTS
        ]
        return [None if n is None else timestamp(*divmod(n * unit, 10**6)) for n in counts]
    root = kind.split("(", 1)[0]
    values: dict[str, list[Json]] = {
        "BOOLEAN": [True, False, None, True],
        "TINYINT": [-128, 127, None, 0],
        "SMALLINT": [-(2**15), 2**15 - 1, None, 0],
        "INT": [-(2**31), 2**31 - 1, None, 0],
        "BIGINT": [-(2**63), 2**63 - 1, None, 0],
        "FLOAT": [f32(float("nan")), f32(-0.0), None, f32(1.5)],
        "DOUBLE": [f64(float("nan")), f64(-0.0), None, f64(float("-inf"))],
        "CHAR": ["abcd", "éèêë", None, "    "],
        "VARCHAR": ["", "seven..", None, "eight..."],
        "STRING": ["longer than sixteen characters", "\U0001f426", None, "a"],
        "BINARY": [binary(b"abc"), binary(b"\0\xff\x80"), None, binary(b"\0\0\0")],
        "VARBINARY": [binary(b""), binary(b"\xff" * 17), None, binary(b"x")],
        "BYTES": [binary(b"\0"), binary(b"\xff" * 18), None, binary(b"")],
        "DATE": [-1, 20_000, None, 0],
        "TIME": [0, 86_399_999, None, 1],
    }
    if root == "DECIMAL":
        precision, scale = map(int, kind[8:-1].split(","))
        nines = "9" * (precision - scale) + "." + "9" * scale
        return [nines, f"-{nines}", None, f"0.{'0' * scale}"]
    return values[root]
