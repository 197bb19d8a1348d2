"""Tables that are made and opened, and the errors for those that cannot be."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

import alcid
from alcid._text import count_text
from alcid.errors import (
    AlcidWarning,
    ColumnError,
    FileGoneError,
    NameTakenError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from tests.golden.paimon_tables import expected, unpack_table

COLUMNS = pa.schema([("id", pa.int64()), ("dt", pa.string()), ("a", pa.list_(pa.int32()))])


def test_schema_of_a_new_table(tmp_path: Path) -> None:
    table = alcid.create_table(
        tmp_path / "t",
        COLUMNS,
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": 2, "deletion-vectors.enabled": True},
    )
    made = json.loads((tmp_path / "t/schema/schema-0").read_text())
    assert made.pop("timeMillis") > 1_700_000_000_000
    assert made == {
        "version": 3,
        "id": 0,
        "fields": [
            {"id": 0, "name": "id", "type": "BIGINT NOT NULL"},
            {"id": 1, "name": "dt", "type": "STRING NOT NULL"},
            {"id": 2, "name": "a", "type": {"type": "ARRAY", "element": "INT"}},
        ],
        "highestFieldId": 2,
        "partitionKeys": ["dt"],
        "primaryKeys": ["dt", "id"],
        "options": {"bucket": "2", "deletion-vectors.enabled": "true"},
    }
    assert (table.files, table.snapshot_id, table.count()) == (0, None, 0)
    assert table.schema.names == ["id", "dt", "a"]
    assert table.scan("id = 1").to_arrow().num_rows == 0


def test_inner_fields_have_ids_of_their_own(tmp_path: Path) -> None:
    inner = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.struct([("z", pa.string())])))])
    alcid.create_table(tmp_path / "t", pa.schema([("s", inner), ("b", pa.int32())]))
    made = json.loads((tmp_path / "t/schema/schema-0").read_text())
    first, second = made["fields"]
    assert (first["id"], second["id"], made["highestFieldId"]) == (0, 4, 4)
    assert [field["id"] for field in first["type"]["fields"]] == [1, 3]  # inner ones come first
    assert first["type"]["fields"][1]["type"]["element"]["fields"] == [
        {"id": 2, "name": "z", "type": "STRING"}
    ]


def test_schema_of_spark(tmp_path: Path) -> None:
    schema = StructType([StructField("id", LongType(), False), StructField("name", StringType())])
    table = alcid.create_table(tmp_path / "t", schema)
    fields = table.snapshot.schema.fields
    assert [(field.name, str(field.data_type), field.nullable) for field in fields] == [
        ("id", "BIGINT", False),
        ("name", "STRING", True),
    ]


def test_table_of_a_warehouse(tmp_path: Path) -> None:
    made = alcid.create_table(None, COLUMNS, warehouse=tmp_path, table="shop.events")
    assert made.location == str(tmp_path / "shop.db" / "events")
    assert alcid.paimon(warehouse=tmp_path, table="shop.events").location == made.location
    assert alcid.paimon(tmp_path / "shop.db/events").options == {}


@pytest.mark.parametrize(
    ("how", "error", "problem"),
    [
        ({"options": {"bukket": "1"}}, OptionError, "bucket"),
        ({"options": {"bucket": "many"}}, OptionError, "bucket"),
        ({"options": {"row-tracking.enabled": "true"}}, UnsupportedError, "row-tracking.enabled"),
        ({"primary_key": ["key"]}, ColumnError, "primary key: no column key, found id, dt, a"),
        ({"partition_by": ["day"]}, ColumnError, "partition: no column day, found id, dt, a"),
        ({"partition_by": "dt"}, OptionError, "partition_by: found text"),
        ({"partition_by": ["dt", "dt"]}, ColumnError, "partition_by: a column twice: dt, dt"),
        ({"primary_key": ["dt"], "partition_by": ["dt"]}, ColumnError, "all of it stands in the"),
        ({"options": {"bucket": 4}}, OptionError, "bucket=4: needs the option bucket-key"),
        ({"options": {"bucket": 4, "bucket-key": "no"}}, ColumnError, "bucket-key: no column no"),
        (
            {"options": {"bucket": 4, "bucket-key": "dt"}, "partition_by": ["dt"]},
            OptionError,
            "bucket-key=dt: stands in the paths",
        ),
        ({"options": {"file-index.bitmap.columns": "x"}}, OptionError, "column x: not in the"),
        ({"options": {"file-index.bsi.columns": "dt"}}, UnsupportedError, "bsi"),
        ({"options": {"file.format": "avro"}}, UnsupportedError, "file.format=avro"),
        ({"partition_by": ["a"]}, UnsupportedError, "column a: ARRAY<INT> is not for partitions"),
    ],
)
def test_a_table_that_cannot_be_is_not_made(
    tmp_path: Path, how: dict[str, Any], error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        alcid.create_table(tmp_path / "t", COLUMNS, **how)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("names", [[], [""], ["_KEY_a"], ["_VALUE_KIND"], ["id", "ID"]])
def test_names_that_cannot_be(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(ColumnError):
        alcid.create_table(tmp_path / "t", pa.schema([(name, pa.int32()) for name in names]))


def test_arguments_of_other_kinds(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="schema: found dict, expected a schema of Arrow"):
        alcid.create_table(tmp_path / "t", {"id": "BIGINT"})
    for name in ("a.b.c", "a.b$files", "a.", "x/y"):
        with pytest.raises(OptionError, match=r"expected db\.name"):
            alcid.paimon(warehouse=tmp_path, table=name)
    table = alcid.create_table(tmp_path / "t", COLUMNS)
    with pytest.raises(UnsupportedError, match="rows: found list, expected a Spark DataFrame"):
        table.append([1])
    with pytest.raises(UnsupportedError, match="snapshot_id: found str, expected int"):
        alcid.paimon(tmp_path / "t", snapshot_id="1")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=r"a Paimon table, which alcid\.paimon opens"):
        alcid.parquet(tmp_path / "t")


def test_numbers_without_a_sign_go_into_the_next_wider_type(tmp_path: Path) -> None:
    kinds = {"a": pa.uint8(), "b": pa.uint16(), "c": pa.uint32(), "d": pa.uint64()}
    rows = pa.table({name: pa.array([1, 200], kind) for name, kind in kinds.items()})
    table = alcid.create_table(tmp_path / "t", rows.schema)
    table.append(rows)
    assert table.scan().to_arrow().to_pylist() == rows.to_pylist()


def test_a_table_is_not_made_twice(tmp_path: Path) -> None:
    alcid.create_table(tmp_path / "t", COLUMNS)
    with pytest.raises(NameTakenError, match="there is a table already"):
        alcid.create_table(tmp_path / "t", COLUMNS)


def test_not_a_table(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no Paimon table: no schema"):
        alcid.paimon(tmp_path)
    ways: list[dict[str, Any]] = [{}, {"path": tmp_path, "table": "t"}, {"warehouse": tmp_path}]
    for how in ways:
        with pytest.raises(OptionError, match="expected a path, or warehouse= and table="):
            alcid.paimon(**how)
    with pytest.raises(OptionError, match="snapshot_id and tag"):
        alcid.paimon(tmp_path, snapshot_id=1, tag="a")


def test_times_that_are_gone(tmp_path: Path) -> None:
    table = unpack_table("history", tmp_path)
    known_ids = {snapshot["id"] for snapshot in expected("history")["snapshots"]}
    for number in (max(known_ids) + 1, 0):
        problem = f"no snapshot {number}: there are {min(known_ids)} to {max(known_ids)}"
        with pytest.raises(FileGoneError, match=problem):
            alcid.paimon(table, snapshot_id=number)
    with pytest.raises(FileGoneError, match="no tag nobody: there are "):
        alcid.paimon(table, tag="nobody")
    with pytest.raises(UnsupportedError, match="tag: found 'a/b'"):
        alcid.paimon(table, tag="a/b")


def test_nothing_is_written_to_the_past(tmp_path: Path) -> None:
    table = alcid.paimon(unpack_table("append", tmp_path), snapshot_id=1)
    with pytest.raises(UnsupportedError, match="a snapshot of the past"):
        table.build_indexes()


def test_level_0_is_left_out_and_said_once(tmp_path: Path) -> None:
    path = unpack_table("key_vectors", tmp_path)
    table = alcid.paimon(path)
    left = [entry.file for entry in table.snapshot.state.entries if entry.file.level == 0]
    assert left
    note = (
        f"level 0 is not yet compacted ({count_text(len(left), 'file')}, "
        f"{count_text(sum(file.rows for file in left), 'row')}), and left out as Paimon leaves it "
        "out: merge_on_read=True (--merge-on-read) reads it"
    )
    with pytest.warns(AlcidWarning) as caught:
        rows = table.scan().to_arrow()
    assert [str(warning.message) for warning in caught] == [f"{path}: {note}"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table.count() == rows.num_rows == len(expected("key_vectors")["rows"])
        assert note in table.explain("ring = 1").notes
        merged = alcid.paimon(path, merge_on_read=True)
        assert merged.explain().notes == ()
        assert merged.scan().to_arrow().sort_by("ring") != rows.sort_by("ring")
