"""Partition columns of every type: our folders have the names that Java gives, and both are read.

Manifests hold the values, but not the folders, so that a reader has to make the same text of them.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid import DataType
from tests.golden.arrow_values import json_rows
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.interop.java_definitions import create_by_java, read_schema
from tests.tables.paimon.small_tables import create

OLD, NEW = datetime(1960, 1, 1, 1, 1, 1), datetime(2000, 1, 1)
VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 127],
    "BIGINT": [-(2**63), 2**63 - 1],
    "FLOAT": [-0.0, 0.1, 1e20, float("nan"), 1e7, 9999999.0, 0.001, 0.0001, 16777216.0],
    "DOUBLE": [0.0, 0.1, 1e21, float("-inf"), 1e7, 123456789.125, 0.001, 0.00099, 2.0**63],
    "DECIMAL(9, 8)": [Decimal("0.00000001"), Decimal("-0.0000001"), Decimal(0)],
    "DECIMAL(38, 10)": [Decimal("1e20"), Decimal("-1e-10"), Decimal(0)],
    "CHAR(5)": ["ab", "", "äöü"],
    "STRING": ["", " ", "a b=c/d", "%", "x:y", "{[]}", "null", "'\"", "\t\x7f", "😀", "\\?#*^~"],
    "DATE": [date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10)],
    "TIMESTAMP(0)": [OLD, NEW],
    "TIMESTAMP(3)": [OLD.replace(microsecond=1000), NEW, NEW.replace(hour=5), datetime(1, 1, 1)],
    "TIMESTAMP(6)": [OLD.replace(microsecond=1), OLD.replace(microsecond=120000), OLD, NEW],
    "TIMESTAMP_LTZ(3)": [NEW.replace(tzinfo=UTC), OLD.replace(microsecond=1000, tzinfo=UTC)],
}
NAMES = {kind: f"p{number}" for number, kind in enumerate(VALUES)}


def rows() -> pa.Table:
    """A value of each type in a row, and nulls once a type has none left."""
    columns = zip(*zip_longest(*VALUES.values()), strict=True)
    arrays = {
        NAMES[kind]: pa.array(values, DataType.parse(kind).to_arrow())
        for kind, values in zip(VALUES, columns, strict=True)
    }
    count = max(map(len, VALUES.values()))
    return pa.table({"id": pa.array(range(count), pa.int32()), **arrays})


def folders(path: Path) -> list[str]:
    return sorted(str(each_path.relative_to(path)) for each_path in path.glob("p0=*/**/bucket-0"))


@pytest.mark.parametrize("legacy", ["true", "false"])
def test_folders_are_those_of_java(
    java_paimon: JavaPaimon, newest_paimon: JavaPaimon, tmp_path: Path, legacy: str
) -> None:
    columns = {"id": "INT"} | {name: kind for kind, name in NAMES.items()}
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    options = {"partition.legacy-name": legacy}
    table = create(ours, columns, partition_keys=list(NAMES.values()), options=options)
    create_by_java(java_paimon, theirs, read_schema(ours))
    table.append(rows())
    java_paimon.write(theirs, rows())
    assert len(folders(ours)) == len(rows())
    assert folders(ours) == folders(theirs)
    expected = json_rows(rows())
    for path in (ours, theirs):
        opened = alcid.paimon(path)
        assert json_rows(opened.scan().to_arrow()) == expected
        for kind, name in NAMES.items():
            nulls = len(rows()) - len(VALUES[kind])
            assert opened.count(f"{name} IS NULL") == nulls, kind
    for java in (java_paimon, newest_paimon):
        assert json_rows(java.read(ours)) == expected


def test_every_character_is_escaped_as_by_java(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    values = [f"x{chr(number)}y" for number in range(1, 256)]
    table = java_paimon.create(tmp_path / "t", {"id": "INT", "p": "STRING"}, partition_keys=["p"])
    numbers = pa.array(range(len(values)), pa.int32())
    java_paimon.write(table, pa.table({"id": numbers, "p": values}))
    table_rows = alcid.paimon(table).scan().to_arrow().sort_by("id")
    assert table_rows["p"].to_pylist() == values
