from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import FormatError, OptionError, UnsupportedError
from alcid.tables.iceberg.metadata.schema import PartitionField, PartitionSpec
from alcid.tables.iceberg.metadata.table_metadata import (
    BlobMetadata,
    Snapshot,
    StatisticsFile,
    TableMetadata,
)

STATISTICS: dict[str, Any] = {
    "snapshot-id": 30,
    "statistics-path": "s3://lake/t/metadata/30.stats",
    "file-size-in-bytes": 500,
    "file-footer-size-in-bytes": 200,
    "blob-metadata": [
        {
            "type": "apache-datasketches-theta-v1",
            "snapshot-id": 30,
            "sequence-number": 3,
            "fields": [1],
            "properties": {"ndv": "17"},
        }
    ],
}


def field(number: int, name: str, kind: str) -> dict[str, Any]:
    return {"id": number, "name": name, "required": False, "type": kind}


def snapshot(number: int, parent: int | None, at: int, schema: int | None) -> dict[str, Any]:
    fields = {
        "snapshot-id": number,
        "parent-snapshot-id": parent,
        "sequence-number": number // 10,
        "timestamp-ms": at,
        "summary": {"operation": "append", "added-records": "5"},
        "manifest-list": f"snap-{number}.avro",
        "schema-id": schema,
    }
    return {key: value for key, value in fields.items() if value is not None}


def given_table() -> dict[str, Any]:
    """Snapshots 10 <- 20 <- 30 on main, and 25 of a branch that left it at 20."""
    old = {"type": "struct", "schema-id": 0, "fields": [field(1, "id", "int")]}
    new = {"type": "struct", "schema-id": 1, "fields": [field(1, "key", "long")]}
    return {
        "format-version": 3,
        "table-uuid": "3b75d31d-8f48-42b2-8490-e9b0da1168ad",
        "location": "s3://lake/t",
        "last-sequence-number": 3,
        "current-schema-id": 1,
        "schemas": [old, new],
        "default-spec-id": 1,
        "partition-specs": [
            {"spec-id": 0, "fields": []},
            {
                "spec-id": 1,
                "fields": [
                    {"source-id": 1, "field-id": 1000, "name": "b", "transform": "bucket[4]"}
                ],
            },
        ],
        "properties": {"owner": "ada"},
        "current-snapshot-id": 30,
        "refs": {
            "main": {"snapshot-id": 30, "type": "branch"},
            "audit": {"snapshot-id": 25, "type": "branch"},
            "first": {"snapshot-id": 10, "type": "tag"},
        },
        "snapshots": [
            snapshot(10, None, 1_000, 0),
            snapshot(20, 10, 2_000, 0),
            snapshot(25, 20, 2_500, 0),
            snapshot(30, 20, 3_000, 0),
        ],
        "statistics": [STATISTICS],
        "snapshot-log": [
            {"timestamp-ms": 1_000, "snapshot-id": 10},
            {"timestamp-ms": 2_000, "snapshot-id": 20},
            {"timestamp-ms": 3_000, "snapshot-id": 30},
        ],
    }


def read(metadata: dict[str, Any]) -> TableMetadata:
    return TableMetadata.from_json(json.dumps(metadata), name="lake.db.t")


def test_all_that_is_kept() -> None:
    metadata = read(given_table())
    assert (metadata.format_version, metadata.location) == (3, "s3://lake/t")
    assert metadata.uuid == "3b75d31d-8f48-42b2-8490-e9b0da1168ad"
    assert metadata.schema is metadata.schemas[1]
    assert metadata.schema.names == ("key",)
    assert metadata.default_spec_id == 1
    assert metadata.specs == {
        0: PartitionSpec(0, ()),
        1: PartitionSpec(1, (PartitionField(1, 1000, "b", "bucket[4]"),)),
    }
    assert list(metadata.snapshots) == [10, 20, 25, 30]
    summary = {"operation": "append", "added-records": "5"}
    assert metadata.snapshots[20] == Snapshot(
        20, 10, 2, 2_000, 0, "append", summary, "snap-20.avro"
    )
    assert metadata.refs == {"main": 30, "audit": 25, "first": 10}
    assert metadata.branches == {"main", "audit"}
    assert metadata.properties == {"owner": "ada"}
    assert metadata.snapshot_log == ((1_000, 10), (2_000, 20), (3_000, 30))
    blob = BlobMetadata("apache-datasketches-theta-v1", 30, 3, (1,), {"ndv": "17"})
    file = StatisticsFile(30, "s3://lake/t/metadata/30.stats", 500, 200, (blob,))
    assert metadata.statistics == {30: file}
    assert file.to_json() == STATISTICS
    assert metadata == read(given_table())


def test_an_old_table_of_format_1() -> None:
    metadata = read(
        {
            "format-version": 1,
            "location": "/t",
            "schema": {"type": "struct", "fields": [field(1, "id", "int")]},
            "partition-spec": [
                {"source-id": 1, "name": "id", "transform": "identity"},
                {"source-id": 1, "name": "id_bucket", "transform": "bucket[8]"},
            ],
            "current-snapshot-id": 7,
            "snapshots": [{"snapshot-id": 7, "timestamp-ms": 5, "manifests": ["a.avro"]}],
        }
    )
    assert metadata.uuid == ""
    assert metadata.schema.names == ("id",)
    assert metadata.specs[metadata.default_spec_id].fields == (
        PartitionField(1, 1000, "id", "identity"),
        PartitionField(1, 1001, "id_bucket", "bucket[8]"),
    )
    assert metadata.find() == Snapshot(7, None, 0, 5, None, "", manifests=("a.avro",))
    assert metadata.refs == {"main": 7}
    assert metadata.schema_of(metadata.find()) is metadata.schema
    assert (metadata.statistics, metadata.properties, metadata.snapshot_log) == ({}, {}, ())


@pytest.mark.parametrize("number", [-1, None])
def test_a_table_without_snapshots(number: int | None) -> None:
    metadata_json = given_table() | {
        "current-snapshot-id": number,
        "snapshots": [],
        "snapshot-log": [],
    }
    metadata = read(metadata_json | {"refs": None, "statistics": None})
    assert metadata.current_snapshot_id is None
    assert metadata.find() is None
    assert metadata.find(ref="main") is None
    assert metadata.schema_of(None) is metadata.schema
    assert list(metadata.ancestors(10)) == []
    with pytest.raises(OptionError, match=r"^no snapshot 10, found none$"):
        metadata.find(10)
    with pytest.raises(OptionError, match=r"^no snapshot at 1970-01-01T00:00:05\.000Z or before$"):
        metadata.find(as_of_ms=5_000)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, 30),
        ({"snapshot_id": 25}, 25),
        ({"ref": "audit"}, 25),
        ({"ref": "first"}, 10),
        ({"ref": "main"}, 30),
        ({"as_of_ms": 1_000}, 10),
        ({"as_of_ms": 2_999}, 20),  # 25 was never the current one
        ({"as_of_ms": 9_999}, 30),
    ],
    ids=str,
)
def test_snapshots_are_found(asked: dict[str, Any], expected: int) -> None:
    chosen = read(given_table()).find(**asked)
    assert chosen is not None
    assert chosen.id == expected


def test_a_rollback_goes_by_the_log_and_not_by_the_time_of_snapshots() -> None:
    metadata_json = given_table()
    metadata_json["snapshot-log"] += [{"timestamp-ms": 4_000, "snapshot-id": 10}]
    chosen = read(metadata_json).find(as_of_ms=4_500)
    assert chosen is not None
    assert chosen.id == 10


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"snapshot_id": 11}, "no snapshot 11, found 10, 20, 25, 30"),
        ({"ref": "Main"}, "no branch or tag 'Main', found main, audit, first"),
        (
            {"as_of_ms": 999},
            (
                "no snapshot at 1970-01-01T00:00:00.999Z or before, the first is of "
                "1970-01-01T00:00:01.000Z"
            ),
        ),
        ({"snapshot_id": 10, "ref": "main"}, "give one of snapshot_id, ref and as_of"),
        ({"as_of_ms": 10, "ref": "main"}, "give one of snapshot_id, ref and as_of"),
    ],
    ids=str,
)
def test_snapshots_that_are_not_found(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        read(given_table()).find(**asked)
    assert str(caught.value).startswith(message)


def test_a_time_whose_snapshot_is_expired() -> None:
    metadata_json = given_table()
    metadata_json["snapshots"] = [
        snapshot for snapshot in metadata_json["snapshots"] if snapshot["snapshot-id"] != 20
    ]
    with pytest.raises(OptionError, match=r"^no snapshot 20, found 10, 25, 30$"):
        read(metadata_json).find(as_of_ms=2_000)


def test_of_many_snapshots_a_few_are_named() -> None:
    metadata_json = given_table()
    metadata_json["snapshots"] += [snapshot(100 + number, None, 1, 0) for number in range(20)]
    with pytest.raises(OptionError, match=r"105 and 14 more$") as caught:
        read(metadata_json).find(1)
    assert str(caught.value).startswith("no snapshot 1, found 10, 20, 25, 30, 100, 101")


def test_ancestors_begin_with_the_snapshot_itself() -> None:
    metadata = read(given_table())
    assert [ancestor.id for ancestor in metadata.ancestors(30)] == [30, 20, 10]
    assert [ancestor.id for ancestor in metadata.ancestors(25)] == [25, 20, 10]
    assert list(metadata.ancestors(99)) == []


def test_ancestors_end_where_one_is_expired_or_comes_again() -> None:
    metadata_json = given_table()
    metadata_json["snapshots"][0]["parent-snapshot-id"] = 5
    assert [ancestor.id for ancestor in read(metadata_json).ancestors(30)] == [30, 20, 10]
    metadata_json["snapshots"][0]["parent-snapshot-id"] = 20
    assert [ancestor.id for ancestor in read(metadata_json).ancestors(30)] == [30, 20, 10]


def test_only_the_past_has_schemas_of_the_past() -> None:
    metadata = read(given_table())
    by_id, past, tagged = metadata.find(30), metadata.find(20), metadata.find(ref="first")
    assert metadata.schema.names == ("key",)
    assert metadata.schema_of(by_id).names == ("id",)  # as Iceberg reads VERSION AS OF
    assert metadata.schema_of(past).names == ("id",)
    assert metadata.schema_of(tagged, "first").names == ("id",)
    assert metadata.schema_of(metadata.find(ref="audit"), "audit").names == ("key",)


def test_a_tag_on_the_current_snapshot_has_the_schema_of_that() -> None:
    metadata_json = given_table()
    metadata_json["refs"]["now"] = {"snapshot-id": 30, "type": "tag"}
    metadata = read(metadata_json)
    assert metadata.schema_of(metadata.find(ref="now"), "now").names == ("id",)


def test_a_schema_that_is_gone_is_read_as_the_current_one() -> None:
    metadata_json = given_table()
    metadata_json["snapshots"][1]["schema-id"] = 8
    metadata = read(metadata_json)
    assert metadata.schema_of(metadata.find(20)) is metadata.schema


def test_a_field_of_more_than_one_column_is_of_no_transform_that_is_known() -> None:
    partition_field = {"source-ids": [3], "field-id": 1000, "name": "a", "transform": "bucket[4]"}
    assert PartitionSpec.from_json({"fields": [partition_field]}).fields == (
        PartitionField(3, 1000, "a", "bucket[4]"),
    )
    two = partition_field | {"source-ids": [3, 4]}
    assert PartitionSpec.from_json({"fields": [two]}).fields == (
        PartitionField(3, 1000, "a", "bucket[4] of 2 columns"),
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format-version": None}, "format-version is missing"),
        ({"format-version": "3"}, "format-version: found '3', expected a whole number"),
        ({"location": None}, "location is missing"),
        ({"current-schema-id": 7}, "current-schema-id: found 7, expected 0, 1"),
        ({"current-schema-id": None}, "current-schema-id is missing"),
        ({"schemas": None}, "schema is missing"),
        ({"schemas": {}}, "schemas: found {}, expected a list"),
        ({"default-spec-id": 7}, "default-spec-id: found 7, expected 0, 1"),
        ({"partition-specs": None}, "partition-spec is missing"),
        ({"partition-specs": [{"fields": [{"source-ids": []}]}]}, "transform is missing"),
        ({"current-snapshot-id": 7}, "current-snapshot-id: found 7, expected 10, 20, 25, 30"),
        ({"refs": {"x": {"snapshot-id": 7, "type": "tag"}}}, "snapshot of x: found 7, expected 10"),
        ({"refs": {"x": 7}}, "x: found 7, expected an object"),
        ({"snapshots": [{"snapshot-id": 1.5}]}, "snapshot-id: found 1.5, expected a whole number"),
        ({"statistics": [{"snapshot-id": 30}]}, "statistics-path is missing"),
        ({"statistics": [STATISTICS | {"blob-metadata": [{"type": 3}]}]}, "type: found 3, expec"),
        ({"properties": {"a": 3}}, "a: found 3, expected a string"),
        ({"snapshot-log": [[1, 2]]}, "snapshot-log: found [1, 2], expected an object"),
    ],
    ids=str,
)
def test_damage(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(given_table() | changes)
    assert str(caught.value).startswith(f"metadata of lake.db.t: {message}")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, b"\xff\xfe\x00"])
def test_not_a_json_object(text: str | bytes) -> None:
    with pytest.raises(FormatError, match=r"^metadata of t: "):
        TableMetadata.from_json(text, name="t")


@pytest.mark.parametrize("version", [0, 4])
def test_a_format_that_is_not_known(version: int) -> None:
    with pytest.raises(
        UnsupportedError, match=f"^lake.db.t: Iceberg format version {version} is not"
    ):
        read(given_table() | {"format-version": version})


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All paths within JSON."""
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    return [path, *(inner_path for key, item in inner for inner_path in _paths(item, (*path, key)))]


@given(
    st.sampled_from(_paths(given_table())[1:]),
    st.sampled_from([None, True, -1, 2**70, 1.5, "", "x", [], [None], {}, {"a": 1}]),
)
def test_no_damage_ends_in_another_error(path: tuple[Any, ...], value: Any) -> None:
    metadata_json = json.loads(json.dumps(given_table()))
    owner = metadata_json
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = value
    with suppress(FormatError, UnsupportedError):
        read(metadata_json)
