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
    for number, new_type in enumerate(TYPES):
        # Java does not say in ORC files of LTZ alone where it was, so it has to write instants.
        options = {"file.format": file_format, "orc.timestamp-ltz.legacy.type": "false"}
        table = java_paimon.create(tmp_path / f"t{number}", {"v": own}, options=options)
        java_paimon.write(table, pa.table({"v": pa.array(values, arrow_type)}))
        try:
            java_paimon.alter(table, "updateColumnType", "v", new_type)
            expected = java_paimon.read(table)
        except Py4JJavaError:  # a change that Paimon does not allow, or a value that it cannot cast
            continue
        try:
            rows = alcid.paimon(table).scan().to_arrow()
        except UnsupportedError:
            continue
        assert json_rows(rows) == json_rows(expected), new_type
        equal += 1
    assert equal, "no change at all is read"


EDGES = [1.5, -1.5, 127.9, 128.5, -129.2, 32768.7, 3e9, -3e9, 1e19, -1e19, -0.0, 1e300]
DOUBLES = [*EDGES, float("nan"), float("inf"), float("-inf"), 2.0**31, -(2.0**63), None]
LARGE = [0, 127, 128, -129, 32768, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63), 2**53 + 1, None]
DIGITS = [
    "1.5",
    "-1.99999",
    "128",
    "3000000000.12345",
    "99999999999999.99999",
    "0.00500",
    "-0.00005",
]
INSTANTS = [
    0,
    -1,
    -999,
    -1000,
    -1_000_000,
    -1_500_000,
    1_999_000,
    1_700_000_000_123_456,
    1000,
    None,
]
CENTURIES = [2_147_483_648_000_000, 253_402_300_799_999_999, -62_135_596_800_000_000]
LTZ = "WITH LOCAL TIME ZONE"
NARROWED: dict[str, tuple[Any, list[Any], list[str]]] = {
    "DOUBLE": (pa.float64(), DOUBLES, ["TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT"]),
    "FLOAT": (pa.float32(), DOUBLES, ["TINYINT", "SMALLINT", "INT", "BIGINT"]),
    "BIGINT": (
        pa.int64(),
        LARGE,
        ["TINYINT", "SMALLINT", "INT", "FLOAT", "DOUBLE", "DECIMAL(38, 19)", "VARCHAR(5)"],
    ),
    "INT": (
        pa.int32(),
        [1, 128, -129, 2**31 - 1, -(2**31), 16_777_217, None],
        ["TINYINT", "SMALLINT", "FLOAT", "DECIMAL(15, 2)", "TIMESTAMP(0)", "TIMESTAMP(6)"],
    ),
    "DECIMAL(20, 5)": (
        pa.decimal128(20, 5),
        [*map(Decimal, DIGITS), None],
        [
            *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "VARCHAR(5)"),
            *("DECIMAL(20, 4)", "DECIMAL(17, 2)", "DECIMAL(25, 7)", "DECIMAL(38, 0)"),
        ],
    ),
    "DECIMAL(38, 0)": (pa.decimal128(38, 0), [Decimal("-12"), None], ["STRING", "DECIMAL(38, 9)"]),
    "TIMESTAMP(6)": (
        pa.timestamp("us"),
        [*INSTANTS, *CENTURIES],
        [
            *("INT", "BIGINT", "DATE", "STRING"),
            *(f"TIMESTAMP({digits})" for digits in (0, 1, 2, 3, 4, 5)),
        ],
    ),
    "TIMESTAMP(3)": (
        pa.timestamp("ms"),
        [0, -1, -1500, 1_700_000_000_123, None],
        ["INT", "BIGINT", "DATE", "STRING", "TIMESTAMP(0)", "TIMESTAMP(2)", "TIMESTAMP(6)"],
    ),
    "TIMESTAMP(0)": (pa.timestamp("s"), [0, -1, 86_399, None], ["STRING", "DATE", "TIMESTAMP(9)"]),
    "TIMESTAMP(9)": (
        pa.timestamp("ns"),
        [1_700_000_000_123_456_789, 1_000_000_001, 86_400_000_000_000, None],
        ["INT", "BIGINT", "DATE", "STRING", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(7)"],
    ),
    f"TIMESTAMP(6) {LTZ}": (
        pa.timestamp("us", "UTC"),
        INSTANTS,
        [f"TIMESTAMP({digits}) {LTZ}" for digits in (0, 3, 5)],
    ),
    "BOOLEAN": (pa.bool_(), [True, False, None], ["FLOAT", "DOUBLE", "DECIMAL(5, 2)", "BIGINT"]),
    "STRING": (
        pa.string(),
        ["abcdefgh", "ab", "é€x\U0001f600yz", "", None],
        ["VARCHAR(5)", "VARBINARY(3)", "VARCHAR(1)"],
    ),
    "BYTES": (pa.binary(), [b"abcdef", b"", None], ["VARBINARY(3)", "VARCHAR(5)", "STRING"]),
}


NARROWED_TEXTS: dict[str, list[str | None]] = {
    "BOOLEAN": ["t", "TRUE", "y", "YeS", "1", "F", "false", "n", "nO", "0", None],
    "INT": ["1", "+5", "-0", "1.9", "-1.9", "1.", "00012", None],
    "TINYINT": ["127", "-128.9", None],
}
NARROWED |= {
    f"STRING to {kind}": (pa.string(), values, [kind]) for kind, values in NARROWED_TEXTS.items()
}


@pytest.mark.parametrize("own", NARROWED)
def test_values_that_do_not_fit_are_cast_as_java_casts_them(
    java_paimon: JavaPaimon, tmp_path: Path, own: str
) -> None:
    arrow_type, values, expected_values = NARROWED[own]
    own = own.partition(" to ")[0]
    columns = {f"c{number}": kind for number, kind in enumerate(expected_values)}
    table = java_paimon.create(tmp_path / "t", dict.fromkeys(columns, own))
    java_paimon.write(table, pa.table(dict.fromkeys(columns, pa.array(values, arrow_type))))
    for column, kind in columns.items():
        java_paimon.alter(table, "updateColumnType", column, kind)
    rows_read, expected = alcid.paimon(table).scan().to_arrow(), java_paimon.read(table)
    for column, kind in columns.items():
        rows = json_rows(rows_read.select([column])), json_rows(expected.select([column]))
        assert rows[0] == rows[1], kind


def test_predicates_see_the_values_of_the_table(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    java, indexes = java_paimon, {"file-index.bitmap.columns": "v,t"}
    table = java.create(tmp_path / "t", {"v": "DOUBLE", "t": "TIMESTAMP(3)"}, options=indexes)
    values = pa.array([11.1, 3e9, float("nan")], pa.float64())
    moments = pa.array([1999, -1, 86_400_000], pa.timestamp("ms"))
    java.write(table, pa.table({"v": values, "t": moments}))
    java.alter(table, "updateColumnType", "v", "INT")
    java.alter(table, "updateColumnType", "t", "STRING")
    opened = alcid.paimon(table)
    expected = {
        "v = 11": 1,
        "v = 2147483647": 1,
        "v = 0": 1,
        "v > 11": 1,
        "v < 11 OR v IS NULL": 1,
        "v IS NULL": 0,
        "t = '1970-01-01 00:00:01.999'": 1,
        "t < '1970'": 1,
        "t LIKE '%-02 00:00:00.000'": 1,
        "v = 11 AND t > '1970-01-01'": 1,
    }
    assert {where: opened.count(where) for where in expected} == expected


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
        rows_read = alcid.paimon(table).scan(columns=["r"]).to_arrow()
        assert json_rows(rows_read) == json_rows(java.read(table, columns=["r"]))
        return [value.as_py() for value in rows_read.column("r")]

    java.alter_within(table, "renameColumn", ["r", "x"], "q")
    assert rows() == [{"q": 1, "y": "a"}, None, {"q": None, "y": "b"}]
    java.alter_within(table, "dropColumn", ["r", "y"])
    java.alter_within(table, "addColumn", ["r", "y"], "STRING")
    assert rows() == [{"q": 1, "y": None}, None, {"q": None, "y": None}]
