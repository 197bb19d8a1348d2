"""Tables as we define them: Java writes the same schema, and all systems write to them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.interop.java_definitions import create_by_java, read_schema
from tests.interop.peers import PyPaimon
from tests.interop.rust_tables import RustWarehouse
from tests.tables.paimon.every_type import every_type
from tests.tables.paimon.small_tables import create

ARROW = pa.schema(
    [
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        pa.field("whole", pa.int32(), nullable=False),
        ("big", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("money", pa.decimal128(9, 2)),
        ("wide", pa.decimal128(38, 10)),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("second", pa.timestamp("s")),
        ("milli", pa.timestamp("ms")),
        ("micro", pa.timestamp("us")),
        ("zoned", pa.timestamp("us", "UTC")),
        ("list", pa.list_(pa.int32())),
        ("map", pa.map_(pa.string(), pa.int64())),
        ("row", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.struct([("z", pa.string())])))])),
        ("dt", pa.string()),
    ]
)
OPTIONS = {"bucket": "2", "file-index.bitmap.columns": "text", "deletion-vectors.enabled": "true"}
KEYS: dict[str, tuple[list[str], list[str], dict[str, str]]] = {
    "append": ([], [], {}),
    "partitioned": ([], ["dt", "day"], {"file-index.bitmap.columns": "text"}),
    "key": (["big"], [], OPTIONS),
    "key in partitions": (["dt", "big"], ["dt"], {"bucket": "-1", "sequence.field": "micro"}),
}


@pytest.mark.parametrize("keys", KEYS)
def test_the_schema_is_what_java_writes_for_the_same_definition(
    java_paimon: JavaPaimon, newest_paimon: JavaPaimon, tmp_path: Path, keys: str
) -> None:
    primary_key, partition_by, options = KEYS[keys]
    alcid.create_table(
        tmp_path / "ours",
        ARROW,
        primary_key=primary_key,
        partition_by=partition_by,
        options=options,
    )
    ours = read_schema(tmp_path / "ours")
    for java, name in ((java_paimon, "1.4.2"), (newest_paimon, "2.0.0")):
        create_by_java(java, tmp_path / name, ours)
        assert read_schema(tmp_path / name) == ours


def test_types_that_arrow_does_not_have_are_written_as_java_writes_them(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    columns, _ = every_type(nanoseconds=True)
    create(tmp_path / "ours", columns, options={})
    ours = read_schema(tmp_path / "ours")
    create_by_java(java_paimon, tmp_path / "theirs", ours)
    assert read_schema(tmp_path / "theirs") == ours
    assert {field["name"] for field in ours["fields"]} == set(columns)


# -- everybody writes to tables that we made ---------------------------------------------------


def rows_from(first: int) -> pa.Table:
    """A row of values, and one of nulls where they are allowed."""
    old = datetime(1960, 1, 1, 1, 1, 1)
    values: dict[str, list[Any]] = {
        "flag": [True, None],
        "tiny": [-1, None],
        "small": [300, None],
        "whole": [first, first + 1],
        "big": [first, 2**40 + first],
        "f": [0.5, None],
        "d": [-0.0, None],
        "money": [Decimal("1.25"), None],
        "wide": [Decimal("-1e-10"), None],
        "text": ["ä" * 30, None],
        "raw": [b"", None],
        "day": [date(1969, 12, 31), date(2026, 1, 1)],
        "second": [old, None],
        "milli": [old.replace(microsecond=1000), None],
        "micro": [old.replace(microsecond=1), old],
        "zoned": [datetime(2100, 1, 1, tzinfo=UTC), None],
        "list": [[1, None], None],
        "map": [[("k", 1), ("n", None)], None],
        "row": [{"x": 1, "y": [{"z": "q"}, None]}, None],
        "dt": ["a/b", "c"],
    }
    return pa.table(values, schema=ARROW)


def sorted_rows(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.cast(ARROW).to_pylist()))


@pytest.mark.parametrize("keys", KEYS)
def test_everybody_writes_to_a_table_that_we_made(
    java_paimon: JavaPaimon,
    newest_paimon: JavaPaimon,
    pypaimon: PyPaimon,
    tmp_path: Path,
    keys: str,
) -> None:
    path, (primary_key, partition_by, options) = tmp_path / "t", KEYS[keys]
    table = alcid.create_table(
        path, ARROW, primary_key=primary_key, partition_by=partition_by, options=options
    )
    rust = RustWarehouse(tmp_path / "rust")
    rust.link(path)
    parts = [rows_from(first) for first in range(0, 40, 10)]
    java_paimon.write(path, parts[0])
    newest_paimon.write(path, parts[1])
    pypaimon.write(path, parts[2])
    rust.write(parts[3].combine_chunks().to_batches()[0])
    if "deletion-vectors.enabled" in options:  # until then, the rows of the last two are not shown
        java_paimon.compact(path)
    expected = sorted_rows(pa.concat_tables(parts))
    readers = (java_paimon.read, newest_paimon.read, pypaimon.read)
    for rows in (*(read(path) for read in readers), rust.read()):
        assert sorted_rows(rows) == expected
    table.refresh()
    assert sorted_rows(table.scan().to_arrow()) == expected
