"""Manifests that are read here, compared with Iceberg's own metadata table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.errors import AlcidError
from alcid.spark.iceberg import SparkCatalogTable
from alcid.tables.iceberg import catalog as catalog_module
from alcid.tables.iceberg.bounds import column_metrics
from alcid.tables.iceberg.catalog import snapshot_entries
from alcid.tables.iceberg.deletes.plan import PATH_FIELD
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.entries import METRICS, Entries
from alcid.tables.iceberg_table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows_of(table: IcebergTable, where: str) -> list[dict[str, Any]]:
    """The matching rows, by id."""
    rows: list[dict[str, Any]] = table.scan(where, order_by="id").to_arrow().to_pylist()
    return rows


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    rows = table.drop_columns(["partition"]).to_pylist()
    for row, partition in zip(rows, table["partition"].to_pylist(), strict=True):
        row["partition"] = {name: value for name, value in partition.items() if value is not None}
    return sorted(rows, key=lambda row: (row["file_path"], row["content_offset"] or 0))


def assert_same(session: SparkSession, name: str) -> Entries:
    """Compare the entries of every snapshot with Spark's; returns those of the current one."""
    catalog = SparkCatalogTable(session, name)
    metadata = catalog.load()
    for number, snapshot in metadata.snapshots.items():
        entries = snapshot_entries(catalog, FileIO(), metadata, snapshot)
        expected = Entries.of(catalog.entries(number))
        assert in_order(entries.data) == in_order(expected.data)
        assert in_order(entries.deletes) == in_order(expected.deletes)
    current = metadata.find()
    assert current is not None
    return snapshot_entries(catalog, FileIO(), metadata, current)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_manifests_say_is_what_entries_say(
    lake: SparkSession, name: str, version: int
) -> None:
    mode = "merge-on-read" if version > 1 else "copy-on-write"
    lake.sql(
        f"CREATE TABLE {name} (i INT, d DATE, t TIMESTAMP, n DECIMAL(9, 2), s STRING, f FLOAT) "
        "USING iceberg PARTITIONED BY (n, days(t), bucket(4, i)) TBLPROPERTIES "
        f"('format-version'='{version}', 'write.delete.mode'='{mode}')"
    )
    row = "DATE'2024-02-03', TIMESTAMP'1969-12-31 23:00:00', -1.25, 'x', double('nan')"
    lake.sql(f"INSERT INTO {name} SELECT CAST(id AS INT), {row} FROM range(4)")
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD days(t)")
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD truncate(2, s) AS start")
    lake.sql(f"INSERT INTO {name} VALUES (7, NULL, NULL, NULL, NULL, NULL)")
    lake.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE DECIMAL(12, 2)")
    lake.sql(f"INSERT INTO {name} VALUES (8, NULL, NULL, 1234567890.5, 'abc', 1)")
    lake.sql(f"DELETE FROM {name} WHERE i = 2")
    lake.sql(f"CALL lake.system.rewrite_manifests('{name}')")
    entries = assert_same(lake, name)
    assert sum(entries.data["record_count"].to_pylist()) - len(entries.deletes) == 5


def test_metrics_that_spark_reads_by_column_are_those_of_manifests(
    lake: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.sql(
        f"CREATE TABLE {name} (id INT, s STRING, f DOUBLE) USING iceberg PARTITIONED BY (s) "
        "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read')"
    )
    lake.sql(f"INSERT INTO {name} SELECT id, id % 3, IF(id = 5, NULL, id) FROM range(30)")
    lake.sql(f"DELETE FROM {name} WHERE id = 7")
    whole = alcid.iceberg(name, lake)
    expected = whole.snapshot.entries
    assert expected.read_metrics is None
    monkeypatch.setattr(catalog_module, "MAX_VALUES", 0)
    monkeypatch.setattr(catalog_module, "MAX_READ", 0)
    table = alcid.iceberg(name, lake)
    entries = table.snapshot.entries
    assert entries.data["lower_bounds"].to_pylist() == [[], [], []]
    assert entries.data.drop_columns(METRICS) == expected.data.drop_columns(METRICS)
    # Those of delete files name the data file that they are for.
    paths = [dict(one)[PATH_FIELD] for one in entries.deletes["lower_bounds"].to_pylist()]
    assert paths == [dict(one)[PATH_FIELD] for one in expected.deletes["lower_bounds"].to_pylist()]
    for field in table.snapshot.schema.fields:
        assert field.data_type is not None
        some = entries.with_metrics([field.id])
        assert {key for row in some["value_counts"].to_pylist() for key, _ in row} == {field.id}
        bounds = [column_metrics(one, field, field.data_type) for one in (some, expected.data)]
        assert bounds[0] == bounds[1]
    for where in ("id = 7", "id = 8", "f IS NULL", "s = '1' AND id > 20"):
        rows = lake.table(name).where(where).orderBy("id").toArrow().to_pylist()
        assert rows_of(table, where) == rows


def test_pruned_manifests_leave_the_rows_of_spark(
    lake: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delete files stand in manifests of their own, which are read whatever the predicate."""
    lake.sql(
        f"CREATE TABLE {name} (id INT, s STRING, t TIMESTAMP_NTZ) USING iceberg "
        "PARTITIONED BY (s) TBLPROPERTIES ('format-version'='2', "
        "'write.delete.mode'='merge-on-read', 'commit.manifest-merge.enabled'='false')"
    )
    row = "SELECT id, {0}, TIMESTAMP_NTZ'2024-01-01' + make_interval(0, 0, 0, id) FROM range({1})"
    for value, ids in (("'a'", "0, 9"), ("'b'", "9, 19"), ("'c'", "19, 30"), ("NULL", "30, 33")):
        lake.sql(f"INSERT INTO {name} {row.format(value, ids)}")
    lake.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD s WITH days(t)")
    lake.sql(f"INSERT INTO {name} {row.format('upper(chr(97 + id % 3))', '33, 40')}")
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(4, id)")
    lake.sql(f"INSERT INTO {name} {row.format(chr(39) + 'b' + chr(39), '40, 41')}")
    lake.sql(f"DELETE FROM {name} WHERE id IN (10, 20, 31, 35)")
    monkeypatch.setattr(catalog_module, "FEW_MANIFESTS", 0)
    pruned = 0
    for where in (
        "s = 'b'",
        "s < 'b' AND id > 2",
        "s IS NULL",
        "s IS NOT NULL AND id = 20",
        "t = TIMESTAMP_NTZ'2024-02-05'",
        "t > TIMESTAMP_NTZ'2024-02-04' OR s = 'a'",
        "id = 40 AND t >= TIMESTAMP_NTZ'2024-02-09'",
        "s = 'nothing'",
    ):
        table = alcid.iceberg(name, lake)
        expected = lake.table(name).where(where).orderBy("id").toArrow().to_pylist()
        scan = table.scan(where, order_by="id")
        pruned += not table._is_open
        assert scan.to_arrow().to_pylist() == expected, where
        assert alcid.iceberg(name, lake).count(where) == len(expected), where
    assert pruned >= 2


def test_two_partition_fields_of_one_name(lake: SparkSession, name: str) -> None:
    """Iceberg's metadata tables refuse them, but its scan reads them."""
    lake.sql(
        f"CREATE TABLE {name} (id INT, s STRING) USING iceberg PARTITIONED BY (truncate(1, s))"
    )
    lake.sql(f"INSERT INTO {name} VALUES (1, 'abc'), (2, 'xyz')")
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD s_trunc")
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD truncate(2, s) AS s_trunc")
    lake.sql(f"INSERT INTO {name} VALUES (3, 'abd'), (4, 'x')")
    catalog = SparkCatalogTable(lake, name)
    with pytest.raises(AlcidError, match="s_trunc"):
        catalog.entries(catalog.load().current_snapshot_id or 0)
    table = alcid.iceberg(name, lake)
    assert table.scan("s = 'abd'").to_arrow().to_pylist() == [{"id": 3, "s": "abd"}]
    assert rows_of(table, "s >= 'x'") == [{"id": 2, "s": "xyz"}, {"id": 4, "s": "x"}]
    assert [stage.after.files for stage in table.scan("s = 'abd'").explain().stages][-1] == 1
    assert not table.verify().problems


def newest_metadata(lake: SparkSession, name: str) -> tuple[Path, dict[str, Any]]:
    """The metadata folder of a table of the Hadoop catalog, and the newest metadata."""
    location = SparkCatalogTable(lake, name).load().location.removeprefix("file:")
    folder = Path(location) / "metadata"
    number = int((folder / "version-hint.text").read_text())
    return folder, json.loads((folder / f"v{number}.metadata.json").read_text())


def commit(folder: Path, metadata: dict[str, Any]) -> None:
    """Make metadata the newest, as another writer does."""
    number = int((folder / "version-hint.text").read_text()) + 1
    (folder / f"v{number}.metadata.json").write_text(json.dumps(metadata))
    (folder / "version-hint.text").write_text(str(number))
    for sums in folder.glob(".*.crc"):
        sums.unlink()


def test_snapshots_without_a_manifest_list(lake: SparkSession, name: str) -> None:
    """The old writers wrote them; what Spark reads afterwards is as before."""
    lake.sql(f"CREATE TABLE {name} (id INT) USING iceberg TBLPROPERTIES ('format-version'='1')")
    lake.sql(f"INSERT INTO {name} VALUES (1), (2)")
    folder, metadata = newest_metadata(lake, name)
    [snapshot] = metadata["snapshots"]
    del snapshot["manifest-list"]
    snapshot["manifests"] = [f"file:{path}" for path in folder.glob("*-m0.avro")]
    commit(folder, metadata)
    lake.sql(f"REFRESH TABLE {name}")
    table = alcid.iceberg(name, lake)
    assert rows_of(table, "id > 1") == [{"id": 2}]
    assert lake.sql(f"SELECT * FROM {name} WHERE id > 1").toArrow().to_pylist() == [{"id": 2}]
    table.build_indexes({"file-index.bloom-filter.columns": "id"}, progress=False)
    assert rows_of(table, "id = 1") == [{"id": 1}]
    assert lake.sql(f"SELECT * FROM {name} WHERE id = 1").toArrow().to_pylist() == [{"id": 1}]


def test_files_without_ids_or_a_name_mapping(lake: SparkSession, name: str, tmp_path: Path) -> None:
    struct = pa.struct([("a", "int32")])
    kinds = {
        "x": "int32",
        "y": "string",
        "z": struct,
        "l": pa.list_(struct),
        "n": pa.list_(pa.int32()),
    }
    columns = "id INT, s STRING, st STRUCT<a: INT>, l ARRAY<STRUCT<a: INT>>, n ARRAY<INT>"
    lake.sql(f"CREATE TABLE {name} ({columns}) USING iceberg")
    row = {"x": 1, "y": "a", "z": {"a": 5}, "l": [{"a": 6}], "n": [7, None]}
    rows = [row, {"x": 2}]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(kinds)), tmp_path / "a.parquet")
    lake.sql(f"CALL lake.system.add_files('{name}', '`parquet`.`{tmp_path}`')")
    lake.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('schema.name-mapping.default')")
    lake.sql(f"INSERT INTO {name} VALUES (3, 'c', named_struct('a', 7), NULL, array(8))")
    table = alcid.iceberg(name, lake)
    expected = lake.table(name).orderBy("id").toArrow().to_pylist()
    assert [(row["id"], row["s"]) for row in expected] == [(1, "a"), (2, None), (3, "c")]
    assert table.scan(order_by="id").to_arrow().to_pylist() == expected
    assert rows_of(table, "id = 2") == expected[1:2]
    assert rows_of(table, "s IS NULL") == expected[1:2]
