"""Avro data files (`file.format=avro`), written by Java: rows, indexes, vectors, levels."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid.datafiles.avro import open_avro_scans
from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import FileSource
from tests.golden.arrow_values import arrow_array, json_rows
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.golden.paimon_type_values import ALL_TYPES, NESTED, all_values

AVRO = {"file.format": "avro"}
FINE = ("c_timestamp_9", "c_zoned_9")  # Paimon's Avro has no nanoseconds
INNER: dict[str, tuple[Any, Any, list[Any]]] = {
    "by_number": (
        {"type": "MAP", "key": "INT NOT NULL", "value": "DECIMAL(10,2)"},
        pa.map_(pa.int32(), pa.decimal128(10, 2)),
        [[(1, Decimal("1.25")), (2, None)], [], None, [(3, Decimal("-0.01"))]],
    ),
    "bag": (
        {"type": "MULTISET", "element": "STRING NOT NULL"},
        pa.map_(pa.string(), pa.int32()),
        [[("a", 2)], [], None, [("b", 1)]],  # with more, Java reads them in the order of hashes
    ),
    "moments": (
        {"type": "ARRAY", "element": "TIMESTAMP(3) WITH LOCAL TIME ZONE"},
        pa.list_(pa.timestamp("ms", "UTC")),
        [[-1, None, 1_700_000_000_123], [], None, [0]],
    ),
    "prices": (
        {
            "type": "ROW",
            "fields": [
                {"id": 200, "name": "net", "type": "DECIMAL(20,3)"},
                {"id": 201, "name": "day", "type": "DATE"},
            ],
        },
        pa.struct([("net", pa.decimal128(20, 3)), ("day", pa.date32())]),
        [{"net": Decimal("-12345678901234567.125"), "day": 3}, {"day": -1}, None, {}],
    ),
}


def rows(*ids: int) -> pa.Table:
    columns = {"id": pa.array(ids, pa.int32()), "name": [f"n{number}" for number in ids]}
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("name", pa.string())])
    return pa.table(columns, schema)


def test_every_type(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    types = {name: kind for name, kind in ALL_TYPES.items() if name not in FINE}
    nested = NESTED | INNER
    columns = types | {name: kind for name, (kind, _, _) in nested.items()}
    table = java_paimon.create(tmp_path / "t", columns, options=AVRO)
    all_columns = {name: arrow_array(kind, all_values(kind)) for name, kind in types.items()}
    all_columns |= {name: pa.array(values, kind) for name, (_, kind, values) in nested.items()}
    java_paimon.write(table, pa.table(all_columns))
    opened = alcid.paimon(table)
    expected = java_paimon.read(table)
    for name in columns:
        read = opened.scan(columns=[name]).to_arrow()
        assert json_rows(read) == json_rows(expected.select([name])), name
    assert json_rows(opened.scan().to_arrow()) == json_rows(expected)
    assert opened.count("c_decimal = 99999999.99 AND c_date < DATE '1970-01-01'") == 1
    assert opened.count("c_timestamp_6 >= TIMESTAMP '2023-01-01 00:00:00'") == 1
    assert opened.verify().ok


def test_partitions_vectors_indexes_and_added_columns(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    java = java_paimon
    table = java.create(
        tmp_path / "t",
        {"id": "INT", "name": "STRING"},
        options=AVRO | {"deletion-vectors.enabled": "true"},
    )
    java.write(table, rows(*range(0, 1000, 2)))
    java.write(table, rows(*range(1, 1000, 2)))
    java.alter(table, "renameColumn", "name", "title")
    java.alter(table, "addColumn", "more", "BIGINT")
    opened = alcid.paimon(table)
    assert opened.count("title = 'n77' AND more IS NULL") == 1
    opened.build_indexes({"file-index.bloom-filter.columns": "title"})
    where = {"column": "title", "function": "equal", "literals": ["n77"]}
    assert len(java.planned_files(table, where)) == 2
    assert java.read(table, where).column("id").to_pylist() == [77]
    assert opened.scan("title = 'n77'").to_arrow().column("id").to_pylist() == [77]
    opened.delete("id = 77 OR id = 4")
    expected = [number for number in range(1000) if number not in (4, 77)]
    assert sorted(opened.scan().to_arrow().column("id").to_pylist()) == expected
    assert sorted(java.read(table).column("id").to_pylist()) == expected
    assert opened.verify().ok


def test_levels_of_several_formats(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    java = java_paimon
    per_level = {"file.format.per.level": "0:avro,5:orc", "bucket": "1"}
    table = java.create(
        tmp_path / "t",
        {"id": "INT NOT NULL", "name": "STRING"},
        primary_keys=["id"],
        options=per_level,
    )
    java.write(table, rows(*range(100)))
    java.write(table, rows(*range(40, 60)))
    java.compact(table)
    java.write(table, rows(5, 6), options={"write-only": "true"})
    java.write(table, rows(7), "-D", options={"write-only": "true"})
    formats = {path.suffix for path in table.rglob("data-*")}
    assert formats == {".avro", ".orc"}
    opened = alcid.paimon(table)
    read_rows = opened.scan().to_arrow().sort_by("id")
    assert read_rows.column("id").to_pylist() == [number for number in range(100) if number != 7]
    assert read_rows.equals(java.read(table).sort_by("id").cast(read_rows.schema))
    assert opened.verify().ok


def test_rows_are_not_written_in_avro(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    table = java_paimon.create(tmp_path / "t", {"id": "INT", "name": "STRING"}, options=AVRO)
    with pytest.raises(UnsupportedError, match=r"file\.format=avro: cannot append"):
        alcid.paimon(table).append(rows(1))


def test_damage_is_named(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    table = java_paimon.create(tmp_path / "t", {"id": "INT", "name": "STRING"}, options=AVRO)
    java_paimon.write(table, rows(1, 2, 3))
    (path,) = table.rglob("data-*.avro")
    data = path.read_bytes()
    path.write_bytes(data[:-20] + bytes(20))
    with pytest.raises(FormatError, match=path.name):
        alcid.paimon(table).scan().to_arrow()
    path.write_bytes(data)
    with FileSource(path) as source:
        (scan,) = open_avro_scans([source], [4])
        with pytest.raises(FormatError, match=r"rows of an Avro file.*found 3, expected 4"):
            scan.read()
