"""Tables whose partition fields or branches are not what the newest spec or schema says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import alcid
from alcid.tables.iceberg.catalog import VectorCommit
from tests.tables.paimon.known_rows import as_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

V3 = "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"


def own(lake: SparkSession, name: str, ref: str = "main") -> list[str]:
    """The rows by Iceberg's own scan."""
    return as_text(lake.sql(f"SELECT * FROM {name} VERSION AS OF '{ref}'").toArrow())


def rename_partition_field(lake: SparkSession, name: str, old: str, new: str) -> None:
    java: Any = lake._jvm
    load = java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
    load(lake._jsparkSession, name).updateSpec().renameField(old, new).commit()


def test_rows_are_deleted_of_files_from_before_a_partition_field_was_renamed(
    lake: SparkSession, name: str
) -> None:
    """With a vector of another partition than its data file, nobody reads the table any more."""
    lake.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg PARTITIONED BY (bucket(2, id)) {V3}")
    lake.sql(f"INSERT INTO {name} SELECT id FROM range(0, 20, 1, 1)")
    rename_partition_field(lake, name, "id_bucket", "part")
    table = alcid.iceberg(name, lake)
    assert table.delete("id IN (3, 4, 5)").rows == 3
    lake.sql(f"DELETE FROM {name} WHERE id = 6")
    lake.sql(f"INSERT INTO {name} SELECT id FROM range(20, 30, 1, 1)")
    assert table.delete("id IN (6, 7, 8, 21)").rows == 3
    left = sorted(set(range(30)) - {3, 4, 5, 6, 7, 8, 21})
    assert own(lake, name) == as_text([{"id": number} for number in left])
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == left
    assert table.verify(progress=False).ok


def test_columns_in_paths_stay_when_their_partition_field_is_renamed(
    lake: SparkSession, name: str, tmp_path: Path
) -> None:
    """The table was opened earlier, and there is no new snapshot."""
    lake.sql(f"CREATE TABLE {name} (id BIGINT, dt STRING) USING iceberg PARTITIONED BY (dt)")
    rows = lake.range(0, 6, 1, 1).selectExpr("id", "concat('d', id % 2) AS dt")
    rows.write.partitionBy("dt").parquet(str(tmp_path / "plain"))
    catalog, _, table_name = name.partition(".")
    lake.sql(
        f"CALL {catalog}.system.add_files(table => '{table_name}',"
        f" source_table => '`parquet`.`{tmp_path / 'plain'}`')"
    )
    table = alcid.iceberg(name, lake)
    before = as_text(table.scan().to_arrow())
    assert before == own(lake, name)
    rename_partition_field(lake, name, "dt", "part")
    table.refresh()
    assert as_text(table.scan().to_arrow()) == before
    assert table.count("dt = 'd1'") == 3


def test_a_branch_that_iceberg_reads_has_the_columns_of_the_table(
    lake: SparkSession, name: str
) -> None:
    """Its files are Avro, and its snapshot is older than an added column; a tag has none."""
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT) USING iceberg"
        " TBLPROPERTIES ('write.format.default' = 'avro')"
    )
    lake.sql(f"INSERT INTO {name} VALUES (1), (2)")
    for kind, ref in (("BRANCH", "it_s"), ("TAG", "tagged")):
        lake.sql(f"ALTER TABLE {name} CREATE {kind} {ref}")
    lake.sql(f"INSERT INTO {name} VALUES (3)")
    lake.sql(f"ALTER TABLE {name} ADD COLUMN more INT")
    for ref, columns, rows in (
        ("it_s", ["id", "more"], 2),
        ("tagged", ["id"], 2),
        ("main", ["id", "more"], 3),
    ):
        table = alcid.iceberg(name, lake, ref=ref)
        table_rows = table.scan().to_arrow()
        assert table_rows.column_names == columns
        assert as_text(table_rows) == own(lake, name, ref)
        assert (len(table_rows), table.count(), table.count("id > 1")) == (rows, rows, rows - 1)


def test_two_partition_fields_of_one_name(lake: SparkSession, name: str) -> None:
    """Iceberg's metadata tables cannot tell them apart; rows are deleted in both partitions."""
    lake.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg {V3}")
    for transform in ("bucket(2, id)", "truncate(10, id)"):
        lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD {transform} AS part")
        lake.sql(f"INSERT INTO {name} VALUES (1)")
        lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD part")
    lake.sql(f"INSERT INTO {name} VALUES (2)")
    table = alcid.iceberg(name, lake)
    assert (table.count(), table.count("id = 1"), table.count("id = 3")) == (3, 2, 0)
    assert table.delete("id = 1", progress=False).rows == 2
    assert table.scan().to_arrow().to_pylist() == [{"id": 2}]
    assert lake.table(name).toArrow().to_pylist() == [{"id": 2}]
    assert not table.verify().problems


def test_a_delete_is_planned_again_after_a_rollback(
    lake: SparkSession, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshot that was read is no longer in the table's history."""
    lake.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg {V3}")
    lake.sql(f"INSERT INTO {name} SELECT id FROM range(0, 10, 1, 1)")
    table = alcid.iceberg(name, lake)
    first = table.snapshot_id
    lake.sql(f"INSERT INTO {name} SELECT id FROM range(10, 20, 1, 1)")
    catalog, _, table_name = name.partition(".")
    commit, commits = table.catalog.commit_vectors, 0

    def late(change: VectorCommit) -> int:
        nonlocal commits
        commits += 1
        if commits == 1:
            lake.sql(f"CALL {catalog}.system.rollback_to_snapshot('{table_name}', {first})")
        return commit(change)

    monkeypatch.setattr(table.catalog, "commit_vectors", late)
    assert table.delete("id IN (3, 13)").rows == 1
    assert commits == 2
    assert own(lake, name) == as_text([{"id": number} for number in range(10) if number != 3])
