"""Columns whose type was changed: each value is the one that Paimon's Java reads, or an error."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError

import alcid
from alcid.errors import UnsupportedError
from tests.golden.arrow_values import json_rows
from tests.golden.paimon_tables_jvm import JavaPaimon

MOMENT = datetime.datetime
BEFORE_1970 = MOMENT(1969, 12, 31, 23, 59, 59, 999999)
UTC = datetime.UTC
VALUES: dict[str, tuple[str, Any, list[Any]]] = {
    "INT": ("INT", pa.int32(), [1, -5, 100, None]),
    "large INT": ("INT", pa.int32(), [2_000_000_000]),
    "BIGINT": ("BIGINT", pa.int64(), [1, -5, None]),
    "large BIGINT": ("BIGINT", pa.int64(), [2**33]),
    "FLOAT": ("FLOAT", pa.float32(), [1.0, 0.1, -0.0, 3e8, None]),
    "DOUBLE": ("DOUBLE", pa.float64(), [1.0, 0.1, -0.0, 1e-7, float("nan"), float("inf"), None]),
    "whole DOUBLE": ("DOUBLE", pa.float64(), [1.0, -3.0, None]),
    "DECIMAL": ("DECIMAL(10, 4)", pa.decimal128(10, 4), [Decimal("1.2345"), Decimal("0"), None]),
    "small DECIMAL": ("DECIMAL(20, 10)", pa.decimal128(20, 10), [Decimal("0.0000000001")]),
    "number as STRING": ("STRING", pa.string(), ["1", "-3", None]),
    "day as STRING": ("STRING", pa.string(), ["2020-01-02", "1969-12-31"]),
    "moment as STRING": ("STRING", pa.string(), ["2020-01-02 03:04:05.123456", None]),
    "truth as STRING": ("STRING", pa.string(), ["true", "FALSE", "1"]),
    "VARCHAR": ("VARCHAR(10)", pa.string(), ["abcdefgh", "ab", "", None]),
    "CHAR": ("CHAR(5)", pa.string(), ["abcde", "ab", None]),
    "BOOLEAN": ("BOOLEAN", pa.bool_(), [True, False, None]),
    "DATE": ("DATE", pa.date32(), [datetime.date(2020, 1, 2), datetime.date(1969, 12, 31), None]),
    "TIMESTAMP": ("TIMESTAMP(6)", pa.timestamp("us"), [MOMENT(2020, 1, 2), BEFORE_1970, None]),
    "LTZ": (
        "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        pa.timestamp("us", "UTC"),
        [MOMENT(2020, 1, 2, 3, 4, tzinfo=UTC), None],
    ),
    "BYTES": ("BYTES", pa.binary(), [b"abc", b"", b"abcdef", None]),
}
TYPES = (
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN"),
    *("DECIMAL(10, 4)", "DECIMAL(10, 2)", "DECIMAL(25, 4)"),
    *("STRING", "VARCHAR(3)", "CHAR(3)", "BYTES", "VARBINARY(3)", "BINARY(3)"),
    *("DATE", "TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)"),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE",
)


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
@pytest.mark.parametrize("name", VALUES)
def test_changed_types(
    java_paimon: JavaPaimon, tmp_path: Path, name: str, file_format: str
) -> None:
    own, arrow_type, values = VALUES[name]
    equal = 0
    for number, wanted in enumerate(TYPES):
        table = java_paimon.create(
            tmp_path / f"t{number}", {"v": own}, options={"file.format": file_format}
        )
        java_paimon.write(table, pa.table({"v": pa.array(values, arrow_type)}))
        try:
            java_paimon.alter(table, "updateColumnType", "v", wanted)
            expected = java_paimon.read(table)
        except Py4JJavaError:  # a change that Paimon does not allow, or a value that it cannot cast
            continue
        try:
            found = alcid.paimon(table).scan().to_arrow()
        except UnsupportedError:
            continue
        assert json_rows(found) == json_rows(expected), wanted
        equal += 1
    assert equal, "no change at all is read"


ROW = {
    "type": "ROW",
    "fields": [{"id": 2, "name": "x", "type": "INT"}, {"id": 3, "name": "y", "type": "STRING"}],
}


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_fields_within_a_row_are_renamed_dropped_and_added_again(
    java_paimon: JavaPaimon, tmp_path: Path, file_format: str
) -> None:
    java, table = java_paimon, tmp_path / "t"
    java.create(table, {"i": "INT", "r": ROW}, options={"file.format": file_format})
    kind = pa.struct([("x", pa.int32()), ("y", pa.string())])
    values = pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}], kind)
    java.write(table, pa.table({"i": pa.array([1, 2, 3], pa.int32()), "r": values}))

    def rows() -> list[Any]:
        found = alcid.paimon(table).scan(columns=["r"]).to_arrow()
        assert json_rows(found) == json_rows(java.read(table, columns=["r"]))
        return [value.as_py() for value in found.column("r")]

    java.alter_within(table, "renameColumn", ["r", "x"], "q")
    assert rows() == [{"q": 1, "y": "a"}, None, {"q": None, "y": "b"}]
    java.alter_within(table, "dropColumn", ["r", "y"])
    java.alter_within(table, "addColumn", ["r", "y"], "STRING")
    assert rows() == [{"q": 1, "y": None}, None, {"q": None, "y": None}]
