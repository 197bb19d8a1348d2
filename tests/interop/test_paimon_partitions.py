"""Where Paimon puts the files of a partition, for values of every type that it takes."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from tests.golden.paimon_tables_jvm import JavaPaimon

DAY, MOMENT = datetime.date, datetime.datetime
CASES: dict[str, tuple[str, Any, list[Any]]] = {
    "BOOLEAN": ("BOOLEAN", pa.bool_(), [True, False, None]),
    "TINYINT": ("TINYINT", pa.int8(), [-128, 5, None]),
    "BIGINT": ("BIGINT", pa.int64(), [-(2**63), 0, None]),
    "STRING": (
        "STRING",
        pa.string(),
        ["a b", "a=b/c:d%", "", " ", "é😀\x01\x7f", "{[]}^'\"#*?\\", "x" * 40, None],
    ),
    "characters": ("STRING", pa.string(), [f"x{chr(one)}y" for one in range(1, 256)]),
    "DATE": ("DATE", pa.date32(), [DAY(2025, 8, 1), DAY(1969, 12, 31), DAY(1, 1, 1), None]),
    "DECIMAL": ("DECIMAL(10, 2)", pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("0.00"), None]),
    "long DECIMAL": (
        "DECIMAL(38, 10)",
        pa.decimal128(38, 10),
        [Decimal("0.0000000001"), Decimal("12345678901234567890.5000000000")],
    ),
    "TIMESTAMP(0)": ("TIMESTAMP(0)", pa.timestamp("s"), [MOMENT(2025, 8, 1, 10, 0), None]),
    "TIMESTAMP(3)": (
        "TIMESTAMP(3)",
        pa.timestamp("ms"),
        [MOMENT(2025, 8, 1), MOMENT(2025, 8, 1, 10, 5, 7), MOMENT(2025, 8, 1, 1, 2, 3, 4000)],
    ),
    "TIMESTAMP(6)": (
        "TIMESTAMP(6)",
        pa.timestamp("us"),
        [MOMENT(999, 8, 1, 0, 0, 1), MOMENT(2025, 8, 1, 1, 2, 3, 4), MOMENT(1969, 1, 1)],
    ),
    "FLOAT": ("FLOAT", pa.float32(), [1.5, 0.1, 1e10, -1e-5, float("inf"), 16777216.0]),
    "DOUBLE": (
        "DOUBLE",
        pa.float64(),
        [0.0, -0.0, 0.001, 9999999.0, 1e7, 1.25e-4, 1e300, float("nan"), -float("inf"), 123456.7],
    ),
}


@pytest.mark.parametrize("legacy", [True, False], ids=["legacy", "new"])
@pytest.mark.parametrize("name", CASES)
def test_files_are_found(java_paimon: JavaPaimon, tmp_path: Path, name: str, legacy: bool) -> None:
    data_type, arrow_type, values = CASES[name]
    options = {} if legacy else {"partition.legacy-name": "false"}
    table = java_paimon.create(
        tmp_path / "t", {"id": "INT", "p": data_type}, partition_keys=["p"], options=options
    )
    rows = pa.table(
        {"id": pa.array(range(len(values)), pa.int32()), "p": pa.array(values, arrow_type)}
    )
    java_paimon.write(table, rows)
    opened = alcid.paimon(table)
    found = opened.scan().to_arrow().sort_by("id")
    assert str(found["p"].to_pylist()) == str(
        java_paimon.read(table).sort_by("id")["p"].to_pylist()
    )
    assert found["id"].to_pylist() == list(range(len(values)))
