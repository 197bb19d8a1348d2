"""Rows of Iceberg tables, compared with Iceberg's own scan in the same session."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import alcid
from alcid.scan import ScanPlan
from alcid.spark import reading
from alcid.spark.reading import ReadStrategy
from alcid.tables.iceberg_table import IcebergTable
from tests.iceberg.read_tables import KINDS, Kind, insert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def as_text(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))


def own(lake: SparkSession, name: str, questions: Iterable[str | None]) -> dict[Any, list[str]]:
    """The rows of Iceberg's own scan, filtered by Spark.

    The filter is not left to Iceberg: it skips a file whose maximum is below the literal, although
    it may have a NaN, which is above all numbers in Spark.
    """
    scanned = lake.table(name)
    rows = lake.createDataFrame(scanned.toArrow(), scanned.schema)
    return {
        where: as_text((rows if where is None else rows.where(where)).toArrow())
        for where in questions
    }


def files_left(table: IcebergTable, where: str, stage: str) -> int:
    return next(
        each_stage.after.files
        for each_stage in table.explain(where).stages
        if each_stage.name == stage
    )


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_rows_are_those_of_iceberg_with_and_without_indexes(
    lake: SparkSession, name: str, kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind.make(lake, name, tmp_path)
    expected = own(lake, name, (None, *kind.questions))
    table = alcid.iceberg(name, lake)

    def same(strategy: str) -> None:
        for where, rows in expected.items():
            # What only Spark evaluates must be read by Spark.
            is_known = where is None or not any(text in where for text in ("s.x", "m['k'].v"))
            rows_read = table.scan(where).to_arrow() if is_known else table.read(where).toArrow()
            assert as_text(rows_read) == rows, (strategy, where)
            assert table.count(where) == len(rows), (strategy, where)

    same("without indexes")
    table.build_indexes(kind.indexes, progress=False)
    same("with indexes")

    possible: list[Any] = ["driver", "tasks", "Iceberg"]
    for strategy in possible:
        monkeypatch.setattr(
            reading,
            "choose_strategy",
            lambda *_, strategy=strategy, **__: ReadStrategy(strategy, ""),
        )
        for where in (None, kind.questions[0]):
            assert as_text(table.read(where).toArrow()) == expected[where], (strategy, where)


def test_iceberg_reads_where_most_is_read_and_indexes_leave_most_files(
    lake: SparkSession, indexed: IcebergTable, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScanPlan, "is_small", False)
    lake.sql(f"DELETE FROM {name} WHERE id = 5")
    lake.sql(f"ALTER TABLE {name} RENAME COLUMN k TO q")
    lake.sql(f"INSERT INTO {name} VALUES (1000, 'v0', null)")
    indexed.build_indexes({"file-index.bloom-filter.columns": "v"}, progress=False)

    def said(where: str | None) -> str:
        return indexed.explain(where).notes[-1]

    assert said(None).startswith("rows are read by Iceberg's own scan: most of 0.0 MB is read")
    assert said("id < 350").startswith("rows are read by Iceberg's own scan")
    assert said("id < 100").startswith("rows are read by Arrow in tasks of Spark: files of 0.0 MB")
    assert said("v = 'v1000'").startswith("rows are read by Arrow in tasks of Spark: files of")
    for where, count in (None, 400), ("id < 100", 99), ("q = 3", 100), ("q IS NULL", 1):
        assert indexed.read(where).count() == count
    assert indexed.read("id > 398", columns=["q", "id"], order_by="id").collect() == [
        (3, 399),
        (None, 1000),
    ]
    lake.sql(f"ALTER TABLE {name} ADD COLUMN more INT")
    indexed.refresh()
    assert said(None) == (
        "rows are read by Arrow in tasks of Spark: the schema is another than that of the snapshot"
    )
    assert indexed.read("more IS NULL").count() == 400


def test_iceberg_is_not_asked_for_numbers_that_may_be_nan(
    lake: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScanPlan, "is_small", False)
    lake.sql(f"CREATE TABLE {name} (id BIGINT, f DOUBLE, s STRUCT<f: DOUBLE>) USING iceberg")
    for start in (0, 10):
        columns = "id; if(id = 3, double('nan'), id) f; named_struct('f', double('nan')) s"
        insert(lake, name, columns, start, start + 10)
    table = alcid.iceberg(name, lake)
    scan = table.scan("f > 1000", columns=["id"])
    assert [row.id for row in scan.to_spark().collect()] == [3]
    (note,) = table.explain("f >= 0", columns=["id"]).notes
    assert note.startswith("rows are read by Iceberg's own scan")
    assert table.read("s.f > 1000").count() == 20
    assert table.read().where("f > 1000").count() == 1


def test_iceberg_is_not_asked_what_it_means_otherwise(
    lake: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own scan treats a null of a partition column as not being in any list."""
    monkeypatch.setattr(ScanPlan, "is_small", False)
    lake.sql(f"CREATE TABLE {name} (id BIGINT, dt INT) USING iceberg PARTITIONED BY (dt)")
    lake.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 3), (3, 7), (4, null), (5, 9)")
    where = "NOT (dt IN (1, 7) AND dt IN (3, 9))"
    table = alcid.iceberg(name, lake)
    rows_by_strategy = {
        "read": table.read(where),
        "sql": alcid.sql(f"SELECT * FROM t WHERE {where}", t=table),
    }
    (note,) = table.explain(where).notes
    assert note.startswith("rows are read by Iceberg's own scan")
    for strategy, rows in rows_by_strategy.items():
        assert sorted(row.id for row in rows.collect()) == [1, 2, 3, 5], strategy


@pytest.fixture
def indexed(lake: SparkSession, name: str) -> IcebergTable:
    """Four files of 100 rows each, one after the other by `id`, the same `v` in each."""
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, v STRING, k BIGINT) USING iceberg"
        " TBLPROPERTIES ('write.parquet.row-group-size-bytes' = '1048576')"
    )
    for start in range(0, 400, 100):
        insert(lake, name, "id; concat('v', id % 100) v; id % 4 k", start, start + 100)
    return alcid.iceberg(name, lake)


def test_a_plan_leaves_exactly_the_files_that_can_match(indexed: IcebergTable) -> None:
    assert files_left(indexed, "id = 250", "statistics") == 1
    assert files_left(indexed, "id BETWEEN 199 AND 200", "statistics") == 2
    assert files_left(indexed, "id > 399", "statistics") == 0
    assert files_left(indexed, "v = 'v7'", "file index") == 4
    options = {"file-index.bloom-filter.columns": "v", "file-index.bitmap.columns": "k"}
    indexed.build_indexes(options, progress=False)
    assert files_left(indexed, "v = 'v7x'", "statistics") == 4
    assert files_left(indexed, "v = 'v7x'", "file index") == 0
    explanation = indexed.explain("k = 2 AND id < 150", columns=["v"])
    counts = {stage.name: (stage.after.files, stage.after.rows) for stage in explanation.stages}
    assert counts["partitions"] == (4, 400)
    assert counts["statistics"] == (2, 200)
    assert indexed.count("k = 2 AND id < 150") == 37
    assert indexed.count("k = 2") == 100


def test_only_files_of_the_bucket_of_a_value_are_left(lake: SparkSession, name: str) -> None:
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, v STRING) USING iceberg PARTITIONED BY (bucket(4, id),"
        " bucket(3, v)) TBLPROPERTIES ('write.metadata.metrics.default' = 'none')"
    )
    lake.sql(f"INSERT INTO {name} SELECT id, concat('v', id) FROM range(200)")
    table = alcid.iceberg(name, lake)
    where = "partition.id_bucket = lake.system.bucket(4, 17L)"
    by_id = lake.table(f"{name}.files").where(where).count()
    assert 0 < by_id < table.files == 12
    assert files_left(table, "id = 17", "statistics") == by_id
    assert files_left(table, "id = 17 AND v = 'v17'", "statistics") == 1
    assert files_left(table, "id > 17", "statistics") == 12
    assert table.scan("id = 17").to_arrow().to_pylist() == [{"id": 17, "v": "v17"}]


def test_rows_of_the_past_have_the_columns_of_the_past(lake: SparkSession, name: str) -> None:
    lake.sql(f"CREATE TABLE {name} (id BIGINT, a STRING) USING iceberg")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'x'), (2, 'y')")
    first = alcid.iceberg(name, lake).snapshot_id
    assert first is not None
    lake.sql(f"ALTER TABLE {name} CREATE TAG old")
    lake.sql(f"ALTER TABLE {name} DROP COLUMN a")
    lake.sql(f"ALTER TABLE {name} ADD COLUMN b INT")
    now = alcid.iceberg(name, lake)
    assert now.scan("b IS NULL").to_arrow().to_pylist() == [
        {"id": 1, "b": None},
        {"id": 2, "b": None},
    ]
    lake.sql(f"INSERT INTO {name} VALUES (3, 5)")
    lake.sql(f"DELETE FROM {name} WHERE id = 1")
    now.refresh()
    now.build_indexes({"file-index.bitmap.columns": "id"}, progress=False)
    assert as_text(now.scan("id < 4").to_arrow()) == [
        "{'id': 2, 'b': None}",
        "{'id': 3, 'b': 5}",
    ]
    for past in (
        alcid.iceberg(name, lake, snapshot_id=first),
        alcid.iceberg(name, lake, ref="old"),
    ):
        assert past.schema.names == ["id", "a"]
        assert past.scan("a = 'x'").to_arrow().to_pylist() == [{"id": 1, "a": "x"}]
        assert past.count() == 2


def test_sql_asks_the_indexes_of_an_iceberg_table(indexed: IcebergTable) -> None:
    indexed.build_indexes({"file-index.bloom-filter.columns": "v"}, progress=False)
    query = "SELECT k, count(*) n FROM t WHERE v IN ('v7', 'v8') GROUP BY k ORDER BY k"
    rows = alcid.sql(query, t=indexed).collect()
    assert [tuple(row) for row in rows] == [(0, 4), (3, 4)]
    explanation = alcid.explain_sql("SELECT id FROM t WHERE v = 'nobody'", t=indexed)
    (use,) = explanation.tables
    assert use.explanation is not None
    assert [
        stage.after.files for stage in use.explanation.stages if stage.name == "file index"
    ] == [0]


def test_tables_that_are_not_read_here_are_read_by_iceberg(lake: SparkSession, name: str) -> None:
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, a STRING) USING iceberg"
        " TBLPROPERTIES ('write.format.default' = 'avro')"
    )
    insert(lake, name, "id; concat('a', id % 10) a", 0, 50)
    table = alcid.iceberg(name, lake)
    scan = table.scan("a = 'a3' AND id > 5", columns=["id"], order_by="id DESC", limit=2)
    note = "rows are read by Iceberg's own scan: data files in AVRO"
    assert scan.explain().notes == (note,)
    assert scan.to_arrow().to_pydict() == {"id": [43, 33]}
    assert [row.id for row in scan.to_spark().collect()] == [43, 33]
    assert table.count(alcid.col("a") == "a3") == 5
    rows = alcid.sql("SELECT max(id) m FROM t WHERE a = 'a3'", t=table).collect()
    assert [row.m for row in rows] == [43]


def test_a_uuid_is_read_by_iceberg_and_the_rest_here(lake: SparkSession, name: str) -> None:
    lake.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    insert(lake, name, "id", 0, 10)
    jvm = lake._jvm
    assert jvm is not None
    iceberg = jvm.org.apache.iceberg
    java = iceberg.spark.Spark3Util.loadIcebergTable(lake._jsparkSession, name)
    java.updateSchema().addColumn("u", iceberg.types.Types.UUIDType.get()).commit()
    lake.catalog.refreshTable(name)
    uuid = "00000000-0000-0000-0000-000000000001"
    lake.sql(f"INSERT INTO {name} VALUES (10, '{uuid}')")
    table = alcid.iceberg(name, lake)
    assert table.scan(f"u = '{uuid}'").to_arrow().to_pylist() == [{"id": 10, "u": uuid}]
    assert [row.id for row in table.read(f"u = '{uuid}'", columns=["id"]).collect()] == [10]
    # As text it is the greater one; Iceberg compares as signed numbers.
    greater = "f0000000-0000-0000-0000-000000000001"
    lake.sql(f"INSERT INTO {name} VALUES (11, '{greater}')")
    table.refresh()
    assert table.scan(f"u > '{uuid}'").to_arrow().to_pylist() == [{"id": 11, "u": greater}]
    assert table.count(f"u > '{uuid}'") == 1
    assert table.explain("id = 3").notes == (
        "rows are read by Iceberg's own scan: column u: uuid is not read natively",
    )
    assert table.scan("id = 3", columns=["id"]).to_arrow().to_pydict() == {"id": [3]}
    assert table.count("id > 3") == 8


def test_a_table_without_a_snapshot_has_no_rows(lake: SparkSession, name: str) -> None:
    lake.sql(f"CREATE TABLE {name} (id BIGINT, dt DATE) USING iceberg PARTITIONED BY (dt)")
    table = alcid.iceberg(name, lake)
    assert table.schema.names == ["id", "dt"]
    assert table.count("dt = date'2024-01-01'") == 0
    assert table.read("id = 1").collect() == []
