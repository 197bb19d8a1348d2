"""A Spark with Iceberg, and the tables that are asked: made anew in every run."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import alcid
from alcid.errors import UnsupportedError
from benchmarks.environment import PeerError
from tests.golden.iceberg_jvm import RUNTIME
from tests.golden.jvm import fetch_jar

__all__ = ["BLOOM", "PLAIN", "Lake", "start"]

_CATALOG, _DATABASE = "lake", "bench"
PLAIN, BLOOM = "rows", "bloom"
_BLOOM_COLUMNS = ("id", "user_id")


@dataclass(frozen=True, slots=True)
class Lake:
    """A session, whose catalog keeps tables in a folder."""

    spark: Any
    folder: Path

    @staticmethod
    def name(table: str) -> str:
        """What the session calls a table."""
        return f"{_CATALOG}.{_DATABASE}.{table}"

    def make(self, source: Path, files: int, rows: int) -> None:
        """Write the rows of Parquet files to two tables, of so many files each.

        Args:
            source: The folder of the Parquet files.
            files: How many files the tables have.
            rows: The rows of each.
        """
        blooms = {
            f"write.parquet.bloom-filter-{key}.column.{column}": value
            for key, value in (("enabled", "true"), ("ndv", str(rows)), ("fpp", "0.01"))
            for column in _BLOOM_COLUMNS
        }
        found = self.spark.read.parquet(str(source)).repartition(files)
        for table, options in ((PLAIN, {}), (BLOOM, blooms)):
            writer = found.writeTo(self.name(table)).using("iceberg")
            settings = {
                "format-version": "3",
                "write.delete.mode": "merge-on-read",
                "write.distribution-mode": "none",
            }
            for key, value in (settings | options).items():
                writer = writer.tableProperty(key, value)
            writer.create()

    def data_size(self, table: str) -> int:
        """Bytes of the data files."""
        counted = self.spark.table(f"{self.name(table)}.files").selectExpr(
            "sum(file_size_in_bytes)"
        )
        return int(counted.collect()[0][0])

    def statistics_size(self, table: str) -> int:
        """Bytes of the statistics file of the present snapshot."""
        opened = alcid.iceberg(self.name(table), self.spark)
        assert opened.snapshot_id is not None
        return opened.metadata.statistics[opened.snapshot_id].size

    def snapshot(self, table: str) -> int:
        """The present snapshot."""
        history = self.spark.table(f"{self.name(table)}.refs").where("name = 'main'")
        return int(history.select("snapshot_id").collect()[0][0])

    def go_back(self, table: str, snapshot: int) -> None:
        """Let a table be as it was at a snapshot."""
        where = f"table => '{_DATABASE}.{table}', snapshot_id => {snapshot}"
        self.spark.sql(f"CALL {_CATALOG}.system.rollback_to_snapshot({where})").collect()

    def count_distinct(self, table: str) -> None:
        """Let Iceberg's own action count the distinct values of all columns."""
        where = f"table => '{_DATABASE}.{table}'"
        self.spark.sql(f"CALL {_CATALOG}.system.compute_table_stats({where})").collect()

    def totals(self, table: str) -> tuple[int, int]:
        """The rows of a table, and the sum of their ids, by Iceberg's own scan."""
        found = self.spark.table(self.name(table)).selectExpr("count(1)", "sum(id)").collect()[0]
        return int(found[0]), int(found[1])

    def drop(self) -> None:
        """Remove the tables."""
        for table in (PLAIN, BLOOM):
            self.spark.sql(f"DROP TABLE IF EXISTS {self.name(table)} PURGE")

    def end(self) -> None:
        """Stop the session, and remove all that it kept."""
        self.spark.stop()
        shutil.rmtree(self.folder)


def start(folder: Path, cores: int) -> Lake:
    """Start a Spark on so many cores, with an empty catalog.

    Raises:
        PeerError: Java or the jar cannot be had.
    """
    shutil.rmtree(folder, ignore_errors=True)
    try:
        jar = fetch_jar(RUNTIME)
        spark = alcid.session(
            master=f"local[{cores}]",
            app_name="benchmarks",
            config={
                "spark.jars": str(jar),
                "spark.sql.extensions": (
                    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
                ),
                f"spark.sql.catalog.{_CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
                f"spark.sql.catalog.{_CATALOG}.type": "hadoop",
                f"spark.sql.catalog.{_CATALOG}.warehouse": str(folder),
            },
        )
    except (OSError, subprocess.CalledProcessError, UnsupportedError) as error:
        raise PeerError(f"no Spark with Iceberg: {error}") from None
    return Lake(spark, folder)
