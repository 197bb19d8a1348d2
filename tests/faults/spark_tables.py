"""Tables that Spark works on while it is killed, and the rows they should have."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import alcid
from tests.faults.operations import AnyTable, Operation, Rows, arrow_of, operations, rows_of
from tests.faults.subjects import INDEXES, SUBJECTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ICEBERG", "LIFE", "Series", "SparkTable", "frames", "make_iceberg", "make_in_folder"]

ICEBERG = "iceberg"
LIFE = 8
"""How many operations a table goes through."""
TASKS_READ = ("count", "read", "verify")


@dataclass(frozen=True)
class Series:
    """A table that goes from one operation to the next; what is known of it without Spark."""

    name: str
    """One of `SUBJECTS`."""
    location: str
    """Its folder, or the name of an Iceberg table."""
    rows: Rows
    step: int = 0

    def operations(self, frame: Callable[[pa.Table], Any] | None = None) -> Mapping[str, Operation]:
        """The possible operations on it now; without `frame`, only to be looked at."""
        subject = SUBJECTS[self.name]
        return operations(
            self.rows,
            subject.kind,
            is_keyed=subject.is_keyed,
            step=self.step,
            frame=frame or (lambda rows: rows),
        )

    def choose(self, source: random.Random, *, reads: bool) -> str:
        """An operation; with `reads` also one that changes nothing but has tasks."""
        every = self.operations()
        return source.choice(
            [
                entry
                for entry in every
                if not every[entry].only_reads or (reads and entry in TASKS_READ)
            ]
        )

    def after(self, operation: str) -> Series:
        """The table after the operation."""
        return replace(self, rows=self.operations()[operation].after, step=self.step + 1)

    def asked(self, operation: str) -> dict[str, Any]:
        """An operation as it is requested from a driver."""
        return {
            "name": self.name,
            "location": self.location,
            "rows": self.rows,
            "step": self.step,
            "operation": operation,
        }


@dataclass(frozen=True)
class SparkTable:
    """Opens the table for `check_after`."""

    spark: SparkSession
    location: str

    def open(self) -> AnyTable:
        return alcid.table(self.location, self.spark)


def frames(spark: SparkSession) -> Callable[[pa.Table], Any]:
    """Makes DataFrames of two partitions, so that two tasks write them."""
    return lambda rows: spark.createDataFrame(rows).repartition(2)


def make_in_folder(name: str, folder: Path) -> Series:
    """A table that needs no catalog."""
    subject = SUBJECTS[name](folder)
    return Series(name, str(folder / "table"), subject.before)


def make_iceberg(spark: SparkSession, location: str) -> Rows:
    """Three files, two of them indexed, and a deletion vector; returns the rows."""
    spark.sql(
        f"CREATE TABLE {location} (id BIGINT, name STRING) USING iceberg"
        " TBLPROPERTIES ('format-version' = '3')"
    )
    for number in range(3):
        if number == 2:
            alcid.iceberg(location, spark).build_indexes(INDEXES, progress=False)
        rows = arrow_of(rows_of(range(number * 8, number * 8 + 8)))
        spark.createDataFrame(rows).coalesce(1).writeTo(location).append()
    alcid.iceberg(location, spark).delete("id = 3", progress=False)
    return rows_of(key for key in range(24) if key != 3)
