"""A random Iceberg table, its expected rows, and checks by us and by Iceberg."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import alcid
from alcid.tables.iceberg_table import IcebergTable
from alcid.types import INDEX_TYPES, DataType, indexes_for
from tests.tables.paimon.known_rows import as_text
from tests.tables.paimon.machine_table import NAMES, every_index_is_asked
from tests.tables.paimon.random_predicates import (
    KINDS,
    Question,
    Row,
    draw_question,
    draw_value,
    order_key,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ICEBERG_KINDS", "Column", "IcebergMachineTable", "KnownRows", "spark_type"]

ICEBERG_KINDS = [kind for kind in KINDS if kind != "SMALLINT"]
PLACES: dict[str, tuple[str, Sequence[Any]]] = {
    "dt": ("STRING", ("x", "a/b=c d", None, "é")),
    "truncate(2, dt)": ("STRING", ("xyz", "xyw", None, "éa\U0001f427")),
    "dt, bucket(2, id)": ("INT", (1, -7, None)),
    "months(dt)": ("DATE", (date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), None)),
}
"""The type of `dt`, by which tables are partitioned, and its values."""


def spark_type(kind: str) -> str:
    """A type as Spark calls it."""
    return kind.replace("TIMESTAMP(6)", "TIMESTAMP_NTZ")


@dataclass(frozen=True)
class Column:
    """A column; it keeps its number under any name."""

    number: int
    name: str
    kind: str


@dataclass(frozen=True)
class KnownRows:
    """All rows of a table at some time, by column number."""

    columns: tuple[Column, ...]
    rows: Sequence[Mapping[int, Any]] = ()

    @property
    def kinds(self) -> dict[str, str]:
        return {column.name: column.kind for column in self.columns}

    def named(self) -> list[Row]:
        return [
            {column.name: row.get(column.number) for column in self.columns} for row in self.rows
        ]

    def without(self, gone: Question) -> KnownRows:
        pairs = zip(self.rows, self.named(), strict=True)
        return replace(self, rows=[row for row, named in pairs if not gone.matches(named)])

    def with_rows(self, more: Sequence[Row]) -> KnownRows:
        numbers = {column.name: column.number for column in self.columns}
        added = [{numbers[name]: value for name, value in row.items()} for row in more]
        return replace(self, rows=[*self.rows, *added])


@dataclass
class IcebergMachineTable:
    """A table, and its rows now and in the past."""

    source: random.Random
    lake: SparkSession
    name: str
    is_thorough: bool = False
    """Check the table in every way after each step, not in one of them."""
    past: dict[int, KnownRows] = field(default_factory=dict)
    """The rows of each snapshot that has not expired."""
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        source = self.source
        self.version = source.choice((2, 3, 3))
        names = [("id", "BIGINT")]
        self.places = source.choice([None, None, *PLACES])
        if self.places is not None:
            names.append(("dt", PLACES[self.places][0]))
        names += [(name, source.choice(ICEBERG_KINDS)) for name in NAMES[: source.randint(2, 4)]]
        columns = [Column(number, name, kind) for number, (name, kind) in enumerate(names)]
        self.now = KnownRows(tuple(columns))
        properties = {
            "format-version": str(self.version),
            "write.delete.mode": source.choice(["merge-on-read", "merge-on-read", "copy-on-write"]),
            "write.delete.granularity": source.choice(["file", "partition"]),
            "write.metadata.metrics.default": source.choice(["truncate(16)", "full", "none"]),
            "write.spark.fanout.enabled": "true",
        }
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        listed_columns = ", ".join(f"{name} {spark_type(kind)}" for name, kind in names)
        partitioned = "" if self.places is None else f"PARTITIONED BY ({self.places})"
        sql = f"CREATE TABLE {self.name} ({listed_columns}) USING iceberg {partitioned}"
        self.log.append(sql + f" TBLPROPERTIES ({listed})")
        self.lake.sql(self.log[-1])
        self.table = self.open()
        self.other = self.open()
        self.next_id = 0
        self.next_number = len(columns)

    def open(self, **when: Any) -> IcebergTable:
        return alcid.iceberg(self.name, self.lake, **when)

    @property
    def fixed_columns(self) -> set[str]:
        """Columns that no schema change may touch."""
        return {"id", "dt"}

    def draw_rows(self) -> list[Row]:
        """Some rows, without some of the columns."""
        kinds = self.now.kinds
        optional = [name for name in kinds if name not in self.fixed_columns]
        left_out = set(optional[:1]) if self.source.random() < 0.2 else set()
        rows: list[Row] = []
        for _ in range(self.source.choice((1, 5, 20, 20))):
            self.next_id += 1
            row: dict[str, Any] = {"id": self.next_id}
            if self.places is not None:
                row["dt"] = self.source.choice(PLACES[self.places][1])
            for name in optional:
                if name not in left_out:
                    row[name] = draw_value(self.source, kinds[name])
            rows.append(row)
        return rows

    def frame(self, rows: Sequence[Row]) -> DataFrame:
        """Rows for Spark, as one file or two."""
        kinds = {name: self.now.kinds[name] for name in rows[0]}
        table = pa.table(
            {
                name: pa.array([row[name] for row in rows], DataType.parse(kind).to_arrow())
                for name, kind in kinds.items()
            }
        )
        ddl = ", ".join(f"{name} {spark_type(kind)}" for name, kind in kinds.items())
        return self.lake.createDataFrame(table, ddl).coalesce(self.source.choice((1, 2)))

    def index_options(self) -> dict[str, str]:
        """Options for some indexes."""
        options: dict[str, list[str]] = {}
        kinds = self.now.kinds
        for name in self.source.sample(list(kinds), self.source.randint(1, len(kinds))):
            index_type = self.source.choice(INDEX_TYPES)
            if index_type in indexes_for(DataType.parse(kinds[name])):
                options.setdefault(f"file-index.{index_type}.columns", []).append(name)
        if not options:
            options["file-index.bloom-filter.columns"] = ["id"]
        return {key: ",".join(names) for key, names in options.items()}

    # -- checks --------------------------------------------------------------------------------

    def check(self) -> None:
        """Check the rows in every way of reading, by us and by Iceberg."""
        assert self.table.schema.names == list(self.now.kinds)
        question = draw_question(self.source, self.now.kinds)
        expected = as_text(question.among(self.now.named()))
        with every_index_is_asked():
            scan = self.table.scan(question.sql)
            assert as_text(scan.to_arrow()) == expected, question.sql
            assert self.table.count(question.sql) == len(expected), question.sql
        assert self.table.count() == len(self.now.rows)
        checks: dict[Callable[[], None], int] = {
            lambda: self.check_rows(self.table, self.now): 2,
            self._check_iceberg: 3,
            lambda: self._check_plain(question, expected): 1,
            self._check_top: 1,
        }
        chosen = self.source.choices(list(checks), list(checks.values()))
        for check in checks if self.is_thorough else chosen:
            check()

    def check_rows(self, table: IcebergTable, expected: KnownRows) -> None:
        """Check that these are all rows of a table."""
        rows_read = table.scan(use_indexes=self.source.random() < 0.5).to_arrow()
        assert rows_read.column_names == list(expected.kinds)
        assert as_text(rows_read) == as_text(expected.named())

    def _check_iceberg(self) -> None:
        """What Iceberg reads: all rows, or matching rows if it compares as Spark does."""
        every = self.lake.table(self.name)
        if self.source.random() < 0.5:
            assert as_text(every.toArrow()) == as_text(self.now.named())
            return
        # For Iceberg, 0.0 is above -0.0, and null a value of a partition, or even an error.
        kinds = {
            name: kind
            for name, kind in self.now.kinds.items()
            if kind not in ("FLOAT", "DOUBLE") and name != "dt"
        }
        question = draw_question(self.source, kinds)
        expected = as_text(question.among(self.now.named()))
        assert as_text(every.where(question.sql).toArrow()) == expected, question.sql

    def _check_plain(self, question: Question, expected: Sequence[str]) -> None:
        """A question without indexes, and by Spark."""
        scan = self.table.scan(question.sql, use_indexes=False)
        assert as_text(scan.to_arrow()) == expected, question.sql
        assert as_text(self.table.read(question.sql).toArrow()) == expected, question.sql

    def _check_top(self) -> None:
        column = self.source.choice(list(self.now.kinds))
        descending = self.source.random() < 0.5
        in_order = sorted(
            sorted(self.now.named(), key=lambda row: row["id"]),
            key=lambda row: order_key(row[column], descending=descending),
        )
        by = [f"{column}{' DESC' if descending else ''}", *([] if column == "id" else ["id"])]
        with every_index_is_asked():
            scan = self.table.scan(columns=["id"], order_by=by, limit=5)
            assert scan.to_arrow()["id"].to_pylist() == [row["id"] for row in in_order[:5]], by

    def check_past(self) -> None:
        """Snapshots have the rows that they had."""
        numbers = list(self.past)
        if not self.is_thorough:
            numbers = self.source.sample(numbers, min(len(numbers), 2))
        for number in numbers:
            self.check_rows(self.open(snapshot_id=number), self.past[number])
