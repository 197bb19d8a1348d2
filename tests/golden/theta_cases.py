"""Columns whose distinct values are sketched, with their rows divided among Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.golden.binary_row_cases import decimal_text
from tests.golden.payload_columns import LTZ
from tests.golden.values import Json, binary, f32, f64, timestamp


@dataclass(frozen=True)
class Column:
    """A column as a function of row numbers; the same in all tasks of a table."""

    iceberg_type: str
    data_type: str  # as golden files name types
    value: Callable[[int], Json]


def _double(row: int) -> float:
    return {0: 0.0, 1: -0.0, 2: float("nan"), 3: float("inf")}.get(row, row % 70 * 0.5 - 20)


def _text(row: int) -> Json:
    return None if row % 7 == 3 else "" if row % 3 == 0 else f"k{row % 40} é"


def _bytes(row: int) -> Json:
    return None if row % 11 == 0 else binary(b"" if row % 5 == 0 else str(row % 60).encode())


BIGINT = Column("bigint", "BIGINT", lambda row: row)
TYPES: dict[str, Column] = {
    "c_bigint": BIGINT,
    "c_int": Column("int", "INT", lambda row: row % 50 - 25),
    "c_string": Column("string", "STRING", _text),
    "c_decimal": Column("decimal(12,2)", "DECIMAL(12, 2)", lambda row: decimal_text(row - 150, 2)),
    "c_wide_decimal": Column(
        "decimal(38,10)",
        "DECIMAL(38, 10)",
        lambda row: decimal_text((row - 150) * 10**25 + row, 10),
    ),
    "c_double": Column("double", "DOUBLE", lambda row: f64(_double(row))),
    "c_float": Column("float", "FLOAT", lambda row: f32(_double(row))),
    "c_boolean": Column("boolean", "BOOLEAN", lambda row: row % 2 == 0),
    "c_date": Column("date", "DATE", lambda row: row % 40 - 20),
    "c_timestamp": Column(
        "timestamp",
        f"TIMESTAMP(6){LTZ}",
        lambda row: timestamp((row - 100) * 86_400_001, row % 3 * 1000),
    ),
    "c_timestamp_ntz": Column(
        "timestamp_ntz",
        "TIMESTAMP(6)",
        lambda row: timestamp((row - 100) * 86_400_001, 7000),
    ),
    "c_binary": Column("binary", "BYTES", _bytes),
    "c_null": Column("bigint", "BIGINT", lambda _: None),
}
TYPES_TASKS = [[0, 100], [100, 200], [150, 300]]  # the rows of each task

# Bigints 0, 1, 2, ...: below, at and above the 4,096 that a sketch keeps; one or more tasks.
BIGINT_TASKS: dict[str, list[list[int]]] = {
    "bigint_0_one_task": [[0, 0]],
    "bigint_1_one_task": [[0, 1]],
    "bigint_100_one_task": [[0, 100]],
    "bigint_4096_two_tasks": [[0, 2048], [2048, 4096]],
    "bigint_4097_one_task": [[0, 4097]],
    "bigint_5000_one_task": [[0, 5000]],
    "bigint_5000_two_tasks": [[0, 2500], [2500, 5000]],
    "bigint_8000_one_task": [[0, 8000]],  # more than 4,096 are left, so the union cuts
    "bigint_100000_one_task": [[0, 100_000]],
    "bigint_100000_three_tasks": [[0, 40_000], [30_000, 70_000], [70_000, 100_000]],
}
