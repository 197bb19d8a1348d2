"""Rows of every type that can be written to a Paimon table."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from alcid import DataType

TYPES: Mapping[str, tuple[str, list[Any]]] = {
    "flag": ("BOOLEAN", [True, None, False]),
    "tiny": ("TINYINT", [-128, 127, None]),
    "small": ("SMALLINT", [-32768, None, 1]),
    "whole": ("INT", [1, None, 3]),
    "big": ("BIGINT", [2**63 - 1, None, -1]),
    "f": ("FLOAT", [0.5, None, -1.5]),
    "d": ("DOUBLE", [math.inf, None, -0.5]),
    "money": ("DECIMAL(9, 2)", [Decimal("1.25"), None, Decimal("-0.01")]),
    "middle": ("DECIMAL(18, 4)", [Decimal("1.2500"), None, Decimal("-0.0001")]),
    "wide": ("DECIMAL(38, 10)", [Decimal("1e20"), None, Decimal("-1e-10")]),
    "c": ("CHAR(3)", ["äöü", None, "a"]),
    "v": ("VARCHAR(4)", ["äöüx", None, ""]),
    "text": ("STRING", ["x" * 40, None, ""]),
    "b": ("BINARY(3)", [b"abc", None, b"a"]),
    "raw": ("BYTES", [b"\xff" * 30, None, b""]),
    "day": ("DATE", [datetime.date(1500, 1, 1), None, datetime.date(9999, 12, 31)]),
    "at": ("TIME(3)", [datetime.time(1, 2, 3, 4000), None, datetime.time(0)]),
    "at6": ("TIME(6)", [datetime.time(1, 2, 3, 4000), None, datetime.time(0)]),
    "ts0": ("TIMESTAMP(0)", [datetime.datetime(1960, 1, 1, 1, 1, 1), None, None]),
    "ts3": ("TIMESTAMP(3)", [datetime.datetime(1960, 1, 1, 1, 1, 1, 1000), None, None]),
    "ts6": ("TIMESTAMP(6)", [datetime.datetime(1960, 1, 1, 1, 1, 1, 1), None, None]),
    "z3": ("TIMESTAMP_LTZ(3)", [datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC), None, None]),
    "z6": ("TIMESTAMP_LTZ(6)", [datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC), None, None]),
    "list": ("ARRAY<INT>", [[1, None], None, []]),
    "map": ("MAP<STRING, BIGINT>", [[("k", 1), ("n", None)], None, []]),
    "bag": ("MULTISET<STRING>", [[("k", 2)], None, []]),
    "row": ("ROW<x INT, y ARRAY<TIME(3)>>", [{"x": 1, "y": [datetime.time(1)]}, None, None]),
}


def every_type(nanoseconds: bool = False) -> tuple[dict[str, str], pa.Table]:
    """The columns of a table, and rows for it in the types of its reads."""
    columns = {name: kind for name, (kind, _) in TYPES.items()}
    values = {name: pa.array(some, read_type(kind)) for name, (kind, some) in TYPES.items()}
    if nanoseconds:
        columns["ts9"] = "TIMESTAMP(9)"
        values["ts9"] = pa.array([1, None, -1], pa.timestamp("ns"))
    return columns, pa.table(values)


def read_type(kind: str) -> Any:
    return pa.binary() if kind == "BINARY(3)" else DataType.parse(kind).to_arrow()
