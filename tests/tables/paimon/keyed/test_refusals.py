"""What an upsert or a compaction does not support is refused by name, before any write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid import OptionError, PaimonTable, UnsupportedError
from alcid.errors import AlcidError, ColumnError
from tests.tables.paimon.small_tables import VECTORS, create

COLUMNS = {"id": "BIGINT", "dt": "STRING", "name": "STRING", "kind": "STRING", "size": "INT"}
NO_CHANGELOG = "no changelog would be written; write with Paimon's Java"
REPLACING = "only rows that replace each other can be written"
LEVELS = "files are written the same way on every level"
KEY_INDEXES = "indexes over the primary key would not be kept up; write with Paimon's Java"


def rows(**changed: pa.Array) -> pa.Table:
    columns: dict[str, Any] = {"id": [1, 2], "dt": ["a", "b"], "name": ["x", "y"]}
    return pa.table(
        columns | {"kind": ["+I", "+I"], "size": pa.array([1, 2], pa.int32())} | changed
    )


def keyed(
    path: Path,
    options: Mapping[str, str],
    *,
    primary_keys: Sequence[str] = ("id",),
    partition_keys: Sequence[str] = (),
) -> PaimonTable:
    """A table with vectors and these options."""
    return create(
        path,
        COLUMNS,
        primary_keys=primary_keys,
        partition_keys=partition_keys,
        options={"bucket": "1", **VECTORS, **options},
    )


def files_of(table: PaimonTable) -> list[str]:
    paths: list[str] = table.storage.list(hidden=True).paths.to_pylist()
    return sorted(paths)


def refused(table: PaimonTable, operation: str) -> str:
    """The error of the operation; nothing has been written."""
    before = files_of(table)
    run: Callable[[], object] = table.compact
    if operation == "upsert":
        run = partial(table.upsert, rows())
    with pytest.raises(AlcidError) as error:
        run()
    assert files_of(table) == before
    assert table.snapshot_id is None
    return str(error.value)


# Key, value, reason, and whether compactions are refused too.
PARQUET_ONLY = (
    "only parquet is written; after Paimon's ALTER TABLE ... SET ('file.format' = 'parquet') "
    "new files are, and old ones stay"
)
REFUSED = [
    ("changelog-producer", "input", NO_CHANGELOG, True),
    ("changelog-producer", "lookup", NO_CHANGELOG, True),
    ("changelog-producer", "full-compaction", NO_CHANGELOG, True),
    ("merge-engine", "partial-update", REPLACING, True),
    ("merge-engine", "aggregation", REPLACING, True),
    ("merge-engine", "first-row", REPLACING, True),
    ("file.format.per.level", "0:avro", LEVELS, True),
    ("file.compression.per.level", "0:lz4", LEVELS, True),
    ("metadata.stats-mode.per.level", "0:none", LEVELS, True),
    ("pk-vector.index.columns", "name", KEY_INDEXES, True),
    ("pk-btree.index.columns", "name", KEY_INDEXES, True),
    ("pk-bitmap.index.columns", "name", KEY_INDEXES, True),
    ("pk-full-text.index.columns", "name", KEY_INDEXES, True),
    ("pk-multivalue.index.columns", "name", KEY_INDEXES, True),
    (
        "metadata.iceberg.storage",
        "table-location",
        "no Iceberg metadata would be written; commit with Paimon's Java",
        True,
    ),
    ("commit.callbacks", "a.B", "they would not be called; commit with Paimon's Java", True),
    (
        "commit.strict-mode.last-safe-snapshot",
        "1",
        "snapshots of others would not be checked for; remove it",
        True,
    ),
    (
        "data-file.external-paths.strategy",
        "round-robin",
        "files are written below the table; write with Paimon's Java",
        True,
    ),
    ("file.format", "orc", PARQUET_ONLY, True),
    ("file.format", "avro", PARQUET_ONLY, True),
    (
        "file.compression",
        "lzo",
        "expected zstd, snappy, gzip, lz4, none, uncompressed",
        True,
    ),
    (
        "bucket-function.type",
        "mod",
        "rows would come into other buckets; write with Paimon's Java",
        False,
    ),
    (
        "write.sequence-number-init-mode",
        "snapshot",
        "the next number would not be kept in the snapshot",
        False,
    ),
    ("tag.automatic-creation", "batch", "no tag would be made; write with Paimon's Java", False),
    (
        "metastore.tag-to-partition.preview",
        "process-time",
        "the metastore would not be told; write with Paimon's Java",
        False,
    ),
    (
        "metastore.partitioned-table",
        "true",
        "the metastore would not be told of a partition; write with Paimon's Java",
        False,
    ),
    (
        "partition.end-input-to-done",
        "true",
        "no partition would be marked; write with Paimon's Java",
        False,
    ),
    (
        "partition.timestamp-format.strict",
        "true",
        "values of partitions would not be checked; write with Paimon's Java",
        False,
    ),
    (
        "visibility-callback.enabled",
        "true",
        "a compaction would not be waited for; write with Paimon's Java",
        False,
    ),
]


@pytest.mark.parametrize(
    ("key", "value", "why", "_compacts"), REFUSED, ids=[f"{case[0]}={case[1]}" for case in REFUSED]
)
def test_an_upsert_refuses_an_option_by_name(
    tmp_path: Path, key: str, value: str, why: str, _compacts: bool
) -> None:
    table = keyed(tmp_path, {key: value})
    assert refused(table, "upsert") == f"{key}={value}: cannot upsert rows: {why}"


@pytest.mark.parametrize(
    ("key", "value", "why", "compacts"), REFUSED, ids=[f"{case[0]}={case[1]}" for case in REFUSED]
)
def test_a_compaction_refuses_what_files_and_commits_must_do(
    tmp_path: Path, key: str, value: str, why: str, compacts: bool
) -> None:
    table = keyed(tmp_path, {key: value})
    if compacts:
        assert refused(table, "compact") == f"{key}={value}: cannot compact the table: {why}"
    else:
        table.compact()  # for a table without rows
        assert table.snapshot_id is None


@pytest.mark.parametrize(
    "options",
    [
        {"sequence.snapshot-ordering": "true"},
        {"pk-clustering-override": "true"},
        {"chain-table.enabled": "true"},
        {"primary-key.nullable": "true"},
        {"bucket": "-2"},
    ],
    ids=str,
)
def test_tables_that_are_not_even_read_are_not_written_to(
    tmp_path: Path, options: dict[str, str]
) -> None:
    ((key, value),) = options.items()
    with pytest.raises(UnsupportedError, match=f"^{key}={value}: cannot read the table: "):
        keyed(tmp_path, options)
    with pytest.raises(UnsupportedError, match=f"^{key}={value}: cannot read the table: "):
        alcid.paimon(tmp_path)


HARMLESS = {
    "lookup.remote-file.enabled": "true",
    "record-level.expire-time": "1 h",
    "record-level.time-field": "size",
    "local-merge-buffer-size": "1 mb",
    "sort-spill-threshold": "4",
    "sort-engine": "min-heap",
    "lookup-wait": "false",
    "force-lookup": "true",
    "full-compaction.delta-commits": "3",
    "delete.force-produce-changelog": "true",
}


@pytest.mark.parametrize("key", sorted(HARMLESS))
def test_options_of_how_java_works_do_not_stop_an_upsert(tmp_path: Path, key: str) -> None:
    table = keyed(tmp_path, {key: HARMLESS[key]})
    table.upsert(rows())
    assert table.count() == 2
    assert table.verify().ok


@pytest.mark.parametrize("buckets", ["-1", "2"])
@pytest.mark.parametrize("operation", ["upsert", "compact"])
def test_a_key_without_the_partition_is_refused(
    tmp_path: Path, buckets: str, operation: str
) -> None:
    table = keyed(tmp_path, {"bucket": buckets}, partition_keys=["dt"])
    assert refused(table, operation) == (
        f"{operation}: the primary key (id) does not contain the partition key dt: rows would move "
        "between partitions, which is not supported"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"bucket": "2", "bucket-key": "name"},
            "bucket-key=name: cannot upsert rows: it is not in the primary key (id)",
        ),
        (
            {"sequence.field": "size,age"},
            "sequence.field=age: cannot upsert rows: there is no such column",
        ),
        (
            {"rowkind.field": "op"},
            "rowkind.field=op: cannot upsert rows: there is no such column",
        ),
        (
            {"rowkind.field": "size"},
            "rowkind.field=size: cannot upsert rows: found INT, expected STRING",
        ),
        (
            {"bucket": "-1", "dynamic-bucket.max-buckets": "0"},
            "dynamic-bucket.max-buckets: found 0, expected -1, or 1 to 32768",
        ),
        (
            {"bucket": "-1", "dynamic-bucket.target-row-num": "many"},
            "dynamic-bucket.target-row-num: found 'many', expected a whole number",
        ),
    ],
    ids=str,
)
def test_options_that_no_table_can_have_are_named(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    assert refused(keyed(tmp_path, options), "upsert") == message


def test_a_default_value_stops_an_upsert_and_no_compaction(tmp_path: Path) -> None:
    table = keyed(tmp_path, {})
    before = table.folder.latest_schema()
    fields = [
        replace(field, default_value="7") if field.name == "size" else field
        for field in before.fields
    ]
    after = replace(before, id=1, fields=tuple(fields))
    table.storage.create("schema/schema-1", after.to_json())
    table.refresh()
    assert refused(table, "upsert") == (
        "column size: cannot upsert rows: its default value is not filled in"
    )
    table.compact()


def test_a_table_without_a_key_takes_no_upsert_and_no_compaction(tmp_path: Path) -> None:
    table = keyed(tmp_path, {"bucket": "-1"}, primary_keys=())
    assert refused(table, "upsert") == ("upsert: the table has no primary key; append rows to it")
    assert refused(table, "compact") == "compact: the table has no primary key"


def test_a_delete_on_a_table_that_ignores_deletes_is_refused(tmp_path: Path) -> None:
    table = keyed(tmp_path, {"ignore-delete": "true"})
    table.upsert(rows())
    before = files_of(table)
    with pytest.raises(UnsupportedError) as error:
        table.delete("id = 1")
    assert str(error.value) == (
        "ignore-delete=true: cannot delete rows: the table ignores deletes; remove it"
    )
    assert files_of(table) == before


# What only matters for new rows, above all in new partitions.
NOT_OF_DELETES = {
    "bucket-function.type",
    "metastore.partitioned-table",
    "partition.end-input-to-done",
    "partition.timestamp-format.strict",
    "visibility-callback.enabled",
}


@pytest.mark.parametrize(
    ("key", "value", "why", "compacts"), REFUSED, ids=[f"{case[0]}={case[1]}" for case in REFUSED]
)
def test_a_delete_refuses_what_rows_that_delete_must_do(
    tmp_path: Path, key: str, value: str, why: str, compacts: bool
) -> None:
    table = keyed(tmp_path, {})
    table.upsert(rows())
    before = table.folder.latest_schema()
    after = replace(before, id=1, options={**before.options, key: value})
    table.storage.create("schema/schema-1", after.to_json())
    table.refresh()
    files, snapshot_id = files_of(table), table.snapshot_id
    if key in NOT_OF_DELETES:
        assert not compacts
        assert table.delete("id = 1").rows == 1
        return
    with pytest.raises(UnsupportedError) as error:
        table.delete("id = 1")
    message = str(error.value)
    assert message.startswith(f"{key}={value}: cannot ")
    assert message.endswith(f": {why}")
    assert (files_of(table), table.snapshot_id) == (files, snapshot_id)


# -- what is honoured --------------------------------------------------------------------------


def seen(table: PaimonTable) -> list[tuple[int, str]]:
    listed = table.scan(columns=["id", "name"]).to_arrow().to_pylist()
    return sorted((row["id"], row["name"]) for row in listed)


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, [(3, "z"), (4, "w")]),
        ({"ignore-update-before": "true"}, [(1, "x"), (3, "z"), (4, "w")]),
        ({"ignore-delete": "true"}, [(1, "x"), (2, "y"), (3, "z"), (4, "w")]),
    ],
    ids=str,
)
def test_the_kinds_of_rows_are_heeded_as_the_options_say(
    tmp_path: Path, options: dict[str, str], left: list[tuple[int, str]]
) -> None:
    table = keyed(tmp_path, options | {"rowkind.field": "kind"})
    table.upsert(rows())
    size = pa.array([1, 2, 3, 4], pa.int32())
    table.upsert(
        pa.table(
            {
                "id": [1, 2, 3, 4],
                "dt": ["a", "b", "a", "a"],
                "name": ["x", "y", "z", "w"],
                "kind": ["-U", "-D", "+U", "+I"],
                "size": size,
            }
        )
    )
    assert seen(table) == left


# -- new tables --------------------------------------------------------------------------------


def new_table(
    path: Path, options: dict[str, str], *, primary_key: list[str], partition_by: list[str]
) -> None:
    alcid.create_table(
        path,
        rows().schema,
        primary_key=primary_key,
        partition_by=partition_by,
        options=options,
    )


def test_a_new_table_takes_no_bucket_key_besides_its_primary_key(tmp_path: Path) -> None:
    with pytest.raises(OptionError) as error:
        new_table(
            tmp_path,
            {"bucket": "2", "bucket-key": "id,name"},
            primary_key=["id"],
            partition_by=[],
        )
    assert str(error.value) == (
        "bucket-key=name: is not in the primary key (id): rows of the same key would come into "
        "several buckets"
    )
    assert list(tmp_path.rglob("*")) == []


def test_a_new_table_of_fixed_buckets_has_the_partition_in_its_key(tmp_path: Path) -> None:
    with pytest.raises(ColumnError) as error:
        new_table(tmp_path, {"bucket": "2"}, primary_key=["id"], partition_by=["dt"])
    assert str(error.value) == (
        "primary_key: does not contain the partition column dt, as it must where the number of "
        "buckets is fixed"
    )
    assert list(tmp_path.rglob("*")) == []
