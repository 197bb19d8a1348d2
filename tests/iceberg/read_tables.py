"""Iceberg tables that were changed over time by Iceberg itself, and questions about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["KINDS", "Kind", "insert"]

_V2 = "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
_V3 = "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"


@dataclass(frozen=True)
class Kind:
    """How a table was made, what is indexed, and the questions about it."""

    make: Callable[[SparkSession, str, Path], None]
    indexes: dict[str, str]
    questions: tuple[str, ...]


def insert(lake: SparkSession, name: str, columns: str, start: int, end: int) -> None:
    """Append a file of rows generated from `id`, from start to end."""
    rows = lake.range(start, end, 1, 1).selectExpr(*columns.split("; "))
    rows.writeTo(name).append()


def _evolved(lake: SparkSession, name: str, _: Path) -> None:
    """Every change of a column; what is now `b` was another column before."""
    lake.sql(
        f"CREATE TABLE {name} (id INT NOT NULL, a INT, b STRING, f FLOAT, d DECIMAL(6, 2), `x-y z`"
        f" STRING) USING iceberg {_V3}"
    )
    first = (
        "cast(id as int) id; cast(id % 7 as int) a; concat('b', id) b; cast(id / 4 as float) f;"
        " cast(id / 2 as decimal(6, 2)) d; concat('x', id % 3) `x-y z`"
    )
    insert(lake, name, first, 0, 60)
    insert(lake, name, first, 60, 100)
    for change in (
        "RENAME COLUMN a TO c",
        "ALTER COLUMN id TYPE BIGINT",
        "ALTER COLUMN f TYPE DOUBLE",
        "ALTER COLUMN d TYPE DECIMAL(10, 2)",
        "ALTER COLUMN id DROP NOT NULL",
        "DROP COLUMN b",
        "ADD COLUMN b BIGINT",
        "ALTER COLUMN b FIRST",
    ):
        lake.sql(f"ALTER TABLE {name} {change}")
    second = (
        "id + 1000 b; id; cast(null as int) c; if(id % 9 = 0, double('nan'), id / 4) f;"
        " cast(id / 2 as decimal(10, 2)) d; concat('x', id % 3) `x-y z`"
    )
    insert(lake, name, second, 100, 150)
    lake.sql(f"DELETE FROM {name} WHERE id IN (3, 61, 120)")
    lake.sql(f"UPDATE {name} SET c = 77 WHERE id = 5")


def _nested(lake: SparkSession, name: str, _: Path) -> None:
    """Fields inside structs, lists and maps that were added, renamed, dropped and widened."""
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, s STRUCT<x: INT, y: STRING, z: FLOAT>,"
        f" l ARRAY<STRUCT<p: INT, q: INT>>, m MAP<STRING, STRUCT<v: INT>>) USING iceberg {_V2}"
    )
    first = (
        "id; if(id % 5 = 0, null, named_struct('x', cast(id as int), 'y', concat('y', id), 'z',"
        " cast(id as float))) s; array(named_struct('p', cast(id as int), 'q', 1), null) l;"
        " map('k', named_struct('v', cast(id as int))) m"
    )
    insert(lake, name, first, 0, 20)
    for change in (
        "RENAME COLUMN s.y TO w",
        "DROP COLUMN s.z",
        "ADD COLUMN s.y DATE",
        "ALTER COLUMN s.x TYPE BIGINT",
        "RENAME COLUMN l.element.p TO r",
        "DROP COLUMN l.element.q",
        "ADD COLUMN m.value.u STRING",
    ):
        lake.sql(f"ALTER TABLE {name} {change}")
    second = (
        "id; named_struct('x', id, 'w', 'w', 'y', date'2024-02-29') s;"
        " array(named_struct('r', cast(id as int))) l;"
        " map('k', named_struct('v', cast(id as int), 'u', 'u')) m"
    )
    insert(lake, name, second, 20, 30)


def _parted(lake: SparkSession, name: str, _: Path) -> None:
    """A table whose partitions were changed several times."""
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, dt DATE, city STRING, ts TIMESTAMP, n DECIMAL(9, 2))"
        f" USING iceberg PARTITIONED BY (city) {_V2}"
    )
    rows = (
        "id; date_add(date'2024-01-01', cast(id % 50 as int)) dt;"
        " if(id % 4 = 3, null, concat('city ', id % 4)) city;"
        " timestamp'2024-01-01 00:00:00' + make_dt_interval(0, cast(id as int)) ts;"
        " cast(id / 8 as decimal(9, 2)) n"
    )
    insert(lake, name, rows, 0, 40)
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(4, id)")
    insert(lake, name, rows, 40, 80)
    lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD city")
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD days(ts)")
    insert(lake, name, rows, 80, 120)
    lake.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD ts_day WITH truncate(10, n) AS tens")
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD truncate(5, city)")
    insert(lake, name, rows, 120, 160)
    lake.sql(f"DELETE FROM {name} WHERE id % 40 = 7")


def _imported(lake: SparkSession, name: str, folder: Path) -> None:
    """Files from a folder of Spark: without ids, without the columns in their paths, INT96."""
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, v STRING, at TIMESTAMP, s STRUCT<x: INT>, dt STRING)"
        f" USING iceberg PARTITIONED BY (dt) {_V2}"
    )
    rows = lake.range(0, 60, 1, 1).selectExpr(
        "id",
        "concat('v', id % 11) v",
        "timestamp'2024-01-01 00:00:00' + make_dt_interval(0, cast(id as int)) at",
        "named_struct('x', cast(id as int)) s",
        "concat('2024-01-0', id % 3) dt",
    )
    rows.write.partitionBy("dt").parquet(str(folder / "plain"))
    catalog, _, table = name.partition(".")
    lake.sql(
        f"CALL {catalog}.system.add_files(table => '{table}',"
        f" source_table => '`parquet`.`{folder / 'plain'}`')"
    )
    lake.sql(f"ALTER TABLE {name} RENAME COLUMN v TO w")
    lake.sql(f"INSERT INTO {name} VALUES (60, 'v0', null, null, '2024-01-01')")
    lake.sql(f"DELETE FROM {name} WHERE id = 4")


def _defaults(lake: SparkSession, name: str, _: Path) -> None:
    """Columns that files lack, and that have a default value there."""
    lake.sql(f"CREATE TABLE {name} (id BIGINT, a STRING) USING iceberg {_V3}")
    insert(lake, name, "id; concat('a', id) a", 0, 30)
    lake.sql(f"ALTER TABLE {name} DROP COLUMN a")
    jvm = lake._jvm
    assert jvm is not None
    iceberg, types = jvm.org.apache.iceberg, jvm.org.apache.iceberg.types.Types
    table = iceberg.spark.Spark3Util.loadIcebergTable(lake._jsparkSession, name)
    literal = iceberg.expressions.Literal.of
    update = table.updateSchema()
    for column, data_type, value in (
        ("a", types.StringType.get(), "old"),
        ("n", types.LongType.get(), 7),
        ("d", types.DateType.get(), "2024-02-29"),
        ("m", types.DecimalType.of(9, 2), "1.50"),
        ("t", types.TimestampType.withoutZone(), "2024-02-29T12:30:00.000001"),
        ("f", types.DoubleType.get(), 2.5),
    ):
        update.addColumn(column, data_type, None, literal(value).to(data_type))
    update.commit()
    lake.catalog.refreshTable(name)
    insert(
        lake,
        name,
        "id; concat('new', id) a; id n; date'2025-01-01' d; cast(1 as decimal(9, 2)) m;"
        " timestamp_ntz'2025-01-01 00:00:00' t; double(id) f",
        30,
        40,
    )


KINDS = {
    "evolved": Kind(
        _evolved,
        {
            "file-index.bloom-filter.columns": "id,b",
            "file-index.bitmap.columns": "c,x-y z",
            "file-index.range-bitmap.columns": "d,f",
        },
        (
            "id = 61",
            "id IN (3, 4, 121) AND c IS NOT NULL",
            "b = 1120",
            "b IS NULL AND id > 90",
            "c = 77",
            "c = 5 OR f > 30",
            "f > 100000",
            "f BETWEEN 14.5 AND 16",
            "d = 30.50",
            "d >= 99999.99",
            "`x-y z` = 'x2' AND d < 5",
            "id > 3000000000",
        ),
    ),
    "nested": Kind(
        _nested,
        {"file-index.bloom-filter.columns": "id"},
        ("id = 7", "s IS NULL", "id >= 19 AND s IS NOT NULL", "s.x = 12", "m['k'].v = 3"),
    ),
    "parted": Kind(
        _parted,
        {"file-index.bloom-filter.columns": "id", "file-index.bitmap.columns": "city"},
        (
            "id = 95",
            "id IN (7, 8, 131)",
            "city = 'city 1' AND id > 100",
            "city IS NULL",
            "city > 'city'",
            "n = 15.00",
            "n BETWEEN 11 AND 13.5",
            "ts >= '2024-01-04 23:00:00'",
            "dt = date'2024-01-05'",
            "NOT (city = 'city 0') OR n < 1",
        ),
    ),
    "imported": Kind(
        _imported,
        {"file-index.bitmap.columns": "w", "file-index.bloom-filter.columns": "id"},
        (
            "id = 17",
            "w = 'v0'",
            "dt = '2024-01-01' AND id > 50",
            "dt > '2024-01-01'",
            "at < '2024-01-01 04:30:00'",
            "at IS NULL",
        ),
    ),
    "defaults": Kind(
        _defaults,
        {"file-index.bitmap.columns": "a", "file-index.bloom-filter.columns": "n,id"},
        (
            "a = 'old'",
            "a = 'a5'",
            "a = 'new31'",
            "n = 7 AND id < 3",
            "d = date'2024-02-29'",
            "m > 1.2",
            "t < timestamp_ntz'2024-12-31 00:00:00'",
            "f = 2.5 AND n IS NOT NULL",
        ),
    ),
}
