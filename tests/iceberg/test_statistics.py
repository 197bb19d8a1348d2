"""Distinct values of Iceberg tables: equal to Iceberg's own action, and used by its planner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import alcid
from alcid.errors import (
    ColumnError,
    DamagedIndexWarning,
    OptionError,
    UnsupportedError,
)
from alcid.formats.puffin import THETA_SKETCH, PuffinReader
from alcid.formats.source import FileSource
from alcid.index.bundle import Bundle
from alcid.tables.iceberg.metadata.table_metadata import StatisticsFile, TableMetadata
from alcid.tables.iceberg_table import IcebergTable
from tests.iceberg.lake import LAKE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INDEXES = {"file-index.bloom-filter.columns": "id", "file-index.bitmap.columns": "k"}


def create(lake: SparkSession, name: str, columns: str, settings: Mapping[str, str] = {}) -> None:
    settings = {"format-version": "3", "write.delete.mode": "merge-on-read", **settings}
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in settings.items())
    lake.sql(f"CREATE TABLE {name} ({columns}) USING iceberg TBLPROPERTIES ({properties})")


def insert(lake: SparkSession, name: str, select: str, rows: int, files: int = 1) -> None:
    lake.range(0, rows, 1, files).selectExpr(*select.split(";")).writeTo(name).append()


def by_iceberg(lake: SparkSession, name: str) -> None:
    table = name.removeprefix(f"{LAKE}.")
    lake.sql(f"CALL {LAKE}.system.compute_table_stats(table => '{table}')")


def listed(table: IcebergTable, snapshot_id: int | None = None) -> dict[int, str]:
    """The distinct values in the metadata of a snapshot, by field id."""
    table.refresh()
    file = table.metadata.statistics[snapshot_id or table.snapshot_id or 0]
    assert all(blob.type == THETA_SKETCH for blob in file.blobs)
    return {blob.fields[0]: blob.properties["ndv"] for blob in file.blobs}


def stored(table: IcebergTable) -> dict[int, tuple[Any, ...]]:
    """Everything that the statistics file of the snapshot says about its sketches."""
    table.refresh()
    with reader_of(table) as reader:
        return {
            blob.fields[0]: (
                blob.snapshot_id,
                blob.sequence_number,
                blob.codec,
                blob.properties,
                reader.read(blob).hex(),
            )
            for blob in reader.blobs
            if blob.type == THETA_SKETCH
        }


def reader_of(table: IcebergTable) -> PuffinReader:
    file = table.metadata.statistics[table.snapshot_id or 0]
    return alcid.puffin.open(file.path, footer_size=file.footer_size)


def ndv(counted: pa.Table) -> dict[str, int]:
    return dict(zip(*counted.select(["column", "ndv"]).to_pydict().values(), strict=True))


@pytest.mark.parametrize("version", ["2", "3"])
def test_few_values_give_the_very_bytes_of_iceberg(
    lake: SparkSession, name: str, version: str
) -> None:
    columns = {
        "id": ("bigint", "id"),
        "n": ("int", "cast(id % 7 as int)"),
        "b": ("boolean", "id % 2 = 0"),
        "f": ("float", "cast(id % 11 as float) / 4"),
        "d": ("double", "if(id % 5 = 0, -0.0D, id % 5 / 2D)"),
        "money": ("decimal(20, 2)", "cast(id % 300 - 150 as decimal(20, 2)) * 1000001.01"),
        "day": ("date", "date_add(date'1969-12-30', cast(id % 40 as int))"),
        "at": ("timestamp", "timestamp_micros(id * 1000003)"),
        "local": ("timestamp_ntz", "cast(timestamp_micros(id * 7) as timestamp_ntz)"),
        "text": ("string", "if(id % 3 = 0, '', concat('ü', id % 50))"),
        "bytes": ("binary", "if(id % 4 = 0, null, cast(concat(id % 60, 'x') as binary))"),
        "nothing": ("string", "cast(null as string)"),
        "inner": ("struct<a: int>", "named_struct('a', 1)"),
    }
    declared = ", ".join(f"{column} {kind}" for column, (kind, _) in columns.items())
    create(lake, name, declared, {"format-version": version})
    select = ";".join(f"{value} AS {column}" for column, (_, value) in columns.items())
    insert(lake, name, select, 4000, files=3)
    table = alcid.iceberg(name, lake)
    counted = table.compute_stats(progress=False)
    assert counted.to_pydict() == {
        "column": list(columns)[:-1],
        "type": [
            *("BIGINT", "INT", "BOOLEAN", "FLOAT", "DOUBLE", "DECIMAL(20, 2)", "DATE"),
            *("TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP(6)", "STRING", "BYTES", "STRING"),
        ],
        "ndv": [4000, 7, 2, 11, 5, 300, 40, 4000, 4000, 50, 45, 0],
        "rows": [4000] * 12,
        "nulls": [0] * 10 + [1000, 4000],
    }
    ours = stored(table)
    by_iceberg(lake, name)
    assert stored(table) == ours
    assert {key: sketch[3]["ndv"] for key, sketch in ours.items()} == listed(table)


def test_many_values_are_counted_as_by_several_tasks_of_iceberg(
    lake: SparkSession, name: str
) -> None:
    one_file_a_task = {"read.split.target-size": "1", "read.split.open-file-cost": "1"}
    create(lake, name, "id bigint, text string", one_file_a_task)
    insert(lake, name, "id;concat('t', id % 30000) AS text", 60_000, files=4)
    table = alcid.iceberg(name, lake)
    counted = ndv(table.compute_stats(progress=False))
    ours = stored(table)
    by_iceberg(lake, name)
    assert stored(table) == ours
    assert listed(table) == {1: str(counted["id"]), 2: str(counted["text"])}
    assert (abs(counted["id"] - 60_000), abs(counted["text"] - 30_000)) < (3_000, 1_500)


def test_rows_count_as_the_table_shows_them(lake: SparkSession, name: str) -> None:
    create(lake, name, "id bigint, k int, gone int")
    insert(lake, name, "id;cast(id % 10 as int) AS k;1 AS gone", 100)
    lake.sql(f"ALTER TABLE {name} RENAME COLUMN k TO renamed")
    lake.sql(f"ALTER TABLE {name} ALTER COLUMN renamed TYPE bigint")
    lake.sql(f"ALTER TABLE {name} DROP COLUMN gone")
    lake.sql(f"ALTER TABLE {name} ADD COLUMN k string")
    insert(lake, name, "id + 50 AS id;id % 20 AS renamed;concat('k', id % 3) AS k", 100)
    lake.sql(f"DELETE FROM {name} WHERE id >= 90 OR renamed = 4")
    table = alcid.iceberg(name, lake)
    counted = table.compute_stats(progress=False)
    rows = lake.table(name).count()
    lost = lake.table(name).where("k IS NULL").count()
    assert counted.to_pydict() == {
        "column": ["id", "renamed", "k"],
        "type": ["BIGINT", "BIGINT", "STRING"],
        "ndv": [
            lake.table(name).select(column).distinct().where(f"{column} IS NOT NULL").count()
            for column in ("id", "renamed", "k")
        ],
        "rows": [rows] * 3,
        "nulls": [0, 0, lost],
    }
    assert 0 < lost < rows < 200
    ours = stored(table)
    by_iceberg(lake, name)
    assert stored(table) == ours


@pytest.fixture
def planning_by_costs(lake: SparkSession) -> Iterator[None]:
    lake.conf.set("spark.sql.cbo.enabled", "true")
    yield
    lake.conf.unset("spark.sql.cbo.enabled")


@pytest.mark.usefixtures("planning_by_costs")
def test_spark_plans_by_what_was_counted(lake: SparkSession, name: str) -> None:
    create(lake, name, "id bigint, k int")
    insert(lake, name, "id;cast(id % 10 as int) AS k", 1000)
    table = alcid.iceberg(name, lake)

    def planned() -> dict[str, int | None]:
        plan = lake.table(name)._jdf.queryExecution().optimizedPlan()
        statistics = plan.collectLeaves().head().scan().estimateStatistics().columnStats()
        counts = {
            ref.toString(): statistics.get(ref).distinctCount() for ref in statistics.keySet()
        }
        return {
            key: count.getAsLong() if count.isPresent() else None for key, count in counts.items()
        }

    assert not any(planned().values())
    table.compute_stats(progress=False)
    assert planned() == {"id": 1000, "k": 10}
    insert(lake, name, "id;1 AS k", 5)
    assert not any(planned().values())  # they are of the snapshot before


def test_a_snapshot_of_the_past_gets_statistics_of_its_own(lake: SparkSession, name: str) -> None:
    create(lake, name, "id bigint, k int")
    insert(lake, name, "id;1 AS k", 10)
    table = alcid.iceberg(name, lake)
    first = table.snapshot_id
    assert first is not None
    insert(lake, name, "id + 10 AS id;2 AS k", 10)
    assert ndv(table.compute_stats(snapshot_id=first, progress=False)) == {"id": 10, "k": 1}
    assert table.metadata.statistics.keys() == {first}
    assert listed(table, first) == {1: "10", 2: "1"}
    assert ndv(table.compute_stats(["k"], progress=False)) == {"k": 2}
    assert listed(table) == {2: "2"}
    assert listed(table, first) == {1: "10", 2: "1"}
    past = alcid.iceberg(name, lake, snapshot_id=first)
    assert ndv(past.compute_stats(["id"], progress=False)) == {"id": 10}
    with pytest.raises(OptionError, match="12345"):
        table.compute_stats(snapshot_id=12345, progress=False)


def test_indexes_and_other_sketches_stay_in_the_file(lake: SparkSession, name: str) -> None:
    create(lake, name, "id bigint, k int")
    insert(lake, name, "id;cast(id % 10 as int) AS k", 1000, files=2)
    table = alcid.iceberg(name, lake)
    table.build_indexes(INDEXES, progress=False)
    indexes = table.indexes()
    before = _payloads(table)
    table.compute_stats(["k"], progress=False)
    table.compute_stats(["id"], progress=False)
    assert listed(table) == {1: "1000", 2: "10"}
    assert table.indexes() == indexes
    assert _payloads(table) == before
    folder = Path(table.metadata.statistics[table.snapshot_id or 0].path).parent
    assert len(list(folder.glob("*.stats"))) == 1  # what was replaced is gone
    assert table.scan("id = 7").to_arrow().to_pydict() == {"id": [7], "k": [7]}
    insert(lake, name, "id;1 AS k", 5)
    table.build_indexes(INDEXES, progress=False)
    assert listed(table) == {}
    table.compute_stats(["k"], progress=False)
    assert {key: sketch[0] for key, sketch in stored(table).items()} == {2: table.snapshot_id}


def _payloads(table: IcebergTable) -> dict[tuple[str, int], bytes | None]:
    table.refresh()
    with FileSource(table.metadata.statistics[table.snapshot_id or 0].path) as source:
        bundle = Bundle.open(source)
        return {
            (str(kind), row): bundle.read(kind, row)
            for kind in bundle.kinds
            for row in range(bundle.file_count)
        }


def test_indexes_come_back_if_iceberg_replaces_the_file_meanwhile(
    lake: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(lake, name, "id bigint, k int")
    insert(lake, name, "id;cast(id % 10 as int) AS k", 1000)
    table = alcid.iceberg(name, lake)
    table.build_indexes(INDEXES, progress=False)
    before = _payloads(table)
    register = table.catalog.set_statistics

    def overtaken(base: TableMetadata, statistics: StatisticsFile) -> None:
        register(base, statistics)
        monkeypatch.undo()
        by_iceberg(lake, name)

    monkeypatch.setattr(table.catalog, "set_statistics", overtaken)
    table.compute_stats(["k"], progress=False)
    assert listed(table) == {1: "1000", 2: "10"}  # the other writer's stay, too
    assert _payloads(table) == before


def test_files_that_are_not_read_here_are_left_to_iceberg(lake: SparkSession, name: str) -> None:
    create(lake, name, "id bigint", {"write.format.default": "orc"})
    insert(lake, name, "id", 10)
    table = alcid.iceberg(name, lake)
    with pytest.raises(
        UnsupportedError,
        match=rf"^{name}: .*ORC.*: let Iceberg count, by its procedure compute_table_stats$",
    ):
        table.compute_stats(progress=False)
    assert not table.metadata.statistics


def test_nothing_is_written_that_is_known_already(lake: SparkSession, name: str) -> None:
    create(lake, name, "id bigint, k int")
    table = alcid.iceberg(name, lake)
    counted = table.compute_stats(progress=False)
    assert counted.select(["column", "ndv", "rows", "nulls"]).to_pylist() == [
        {"column": "id", "ndv": 0, "rows": 0, "nulls": 0},
        {"column": "k", "ndv": 0, "rows": 0, "nulls": 0},
    ]
    assert not table.metadata.statistics
    insert(lake, name, "id;1 AS k", 10)
    table.compute_stats(progress=False)
    metadata = table.catalog.load()
    table.compute_stats(["k"], progress=False)
    assert table.catalog.load() == metadata


def test_columns_that_cannot_be_counted(lake: SparkSession, name: str) -> None:
    create(lake, name, "id bigint, inner struct<a: int>")
    insert(lake, name, "id;named_struct('a', 1) AS inner", 10)
    java: Any = lake._jvm
    iceberg_table = java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        lake._jsparkSession, name
    )
    uuid = java.org.apache.iceberg.types.Types.UUIDType.get()
    iceberg_table.updateSchema().addColumn("key", uuid).commit()
    lake.sql(f"REFRESH TABLE {name}")
    table = alcid.iceberg(name, lake)
    assert ndv(table.compute_stats(progress=False)) == {"id": 10}
    with pytest.raises(UnsupportedError, match=r"^column inner: distinct values of ROW<"):
        table.compute_stats(["id", "inner"], progress=False)
    with pytest.raises(UnsupportedError, match=r"^column key: .*uuid"):
        table.compute_stats(["key"], progress=False)
    with pytest.raises(ColumnError, match="nobody"):
        table.compute_stats(["nobody"], progress=False)
    with pytest.raises(OptionError, match=r"^columns: found text, expected a list of names$"):
        table.compute_stats("id", progress=False)


@pytest.mark.parametrize("damage", ["gone", "cut off"])
def test_a_damaged_statistics_file_is_replaced(lake: SparkSession, name: str, damage: str) -> None:
    create(lake, name, "id bigint, k int")
    insert(lake, name, "id;1 AS k", 10)
    table = alcid.iceberg(name, lake)
    table.compute_stats(["id"], progress=False)
    file = Path(table.metadata.statistics[table.snapshot_id or 0].path)
    data = file.read_bytes()
    file.unlink()
    if damage == "cut off":
        file.write_bytes(data[:-1] + b"x")
    with pytest.warns(DamagedIndexWarning, match=r": it is replaced by one without indexes$"):
        table.compute_stats(["k"], progress=False)
    assert listed(table) == {2: "1"}
    assert stored(table).keys() == {2}
