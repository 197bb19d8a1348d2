"""Reports of commands whose table method returns no report of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from alcid._text import count_text, size_text
from alcid.index.bundle import PayloadKind
from alcid.options import match_column
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.reports import AppendReport, IndexInfo, Plain, Report, UpsertReport

_SHOWN = "column", "type", "ndv", "nulls"


@dataclass(frozen=True, slots=True)
class CreateReport(Report):
    """The table that was created, or would be."""

    location: str
    schema: TableSchema
    dry_run: bool

    def lines(self) -> Iterator[str]:
        """The text, line by line."""
        schema = self.schema
        would = "would have " if self.dry_run else ""
        first = f"{would}created {self.location}: {count_text(len(schema.fields), 'column')}"
        if schema.primary_keys:
            first += f", primary key {', '.join(schema.primary_keys)}"
        if schema.partition_keys:
            first += f", partitioned by {', '.join(schema.partition_keys)}"
        yield first
        for field in schema.fields:
            yield f"{field.name} {field.data_type}{'' if field.nullable else ' NOT NULL'}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "dry_run": self.dry_run,
            "location": self.location,
            "columns": [
                {"name": field.name, "type": str(field.data_type), "nullable": field.nullable}
                for field in self.schema.fields
            ],
            "primary_key": list(self.schema.primary_keys),
            "partition_by": list(self.schema.partition_keys),
            "options": dict(self.schema.options),
        }


@dataclass(frozen=True, slots=True)
class WriteReport(Report):
    """The report of a write; in a dry run also the columns that match those of the table."""

    report: AppendReport | UpsertReport
    row_columns: tuple[str, ...]
    """The columns of the rows."""
    table_columns: tuple[str, ...]
    """The columns of the table."""

    @property
    def absent(self) -> list[str]:
        """Columns of the table that the rows are missing."""
        return [name for name in self.table_columns if match_column(name, self.row_columns) is None]

    def lines(self) -> Iterator[str]:
        """The text, line by line."""
        yield from self.report.lines()
        if self.report.dry_run:
            yield f"columns: {', '.join(self.row_columns)}"
            if self.absent:
                yield f"not given: {', '.join(self.absent)}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        document = self.report.to_dict()
        if self.report.dry_run:
            document |= {"columns": list(self.row_columns), "not_given": self.absent}
        return document


@dataclass(frozen=True, slots=True)
class DropReport(Report):
    """The indexes that were dropped, or would be."""

    dry_run: bool
    files: int
    indexes: tuple[IndexInfo, ...]

    def lines(self) -> Iterator[str]:
        """The text, line by line."""
        if not self.indexes and not self.files:
            yield "dropped nothing: there is no such index"
            return
        what = count_text(len(self.indexes), "index")
        size = size_text(sum(info.bytes for info in self.indexes), precise=True)
        would = "would have " if self.dry_run else ""
        yield f"{would}dropped {what} of {count_text(self.files, 'file')}, {size}"
        for info in self.indexes:
            kind = PayloadKind.index(info.column, info.index_type)
            yield f"{kind}: {count_text(info.fresh, 'file')}, {size_text(info.bytes, precise=True)}"


@dataclass(frozen=True, slots=True)
class CountedColumn(Plain):
    """The counts of a column; None in a dry run.

    >>> print(CountedColumn("id", "BIGINT", 40_000, 3))
    id BIGINT: 40,000 distinct values, 3 nulls
    >>> print(CountedColumn("id", "BIGINT"))
    id BIGINT
    """

    column: str
    type: str
    ndv: int | None = None
    nulls: int | None = None

    def __str__(self) -> str:
        name = f"{self.column} {self.type}"
        if self.ndv is None:
            return name
        nulls = f", {count_text(self.nulls, 'null')}" if self.nulls else ""
        return f"{name}: {count_text(self.ndv, 'distinct value')}{nulls}"


@dataclass(frozen=True, slots=True)
class StatsReport(Report):
    """The columns that were counted, or would be.

    >>> print(StatsReport(1000, 4, (CountedColumn("id", "INT"),), dry_run=True))
    would have counted 1 column of 1,000 rows in 4 files
    id INT
    """

    rows: int
    files: int
    columns: tuple[CountedColumn, ...]
    dry_run: bool = False

    @classmethod
    def of(cls, counted: pa.Table, files: int) -> StatsReport:
        """From the result of `compute_stats`, whose every row has the row count of the table."""
        columns = counted.to_pylist()
        return cls(
            columns[0]["rows"] if columns else 0,
            files,
            tuple(CountedColumn(*(column[key] for key in _SHOWN)) for column in columns),
        )

    def lines(self) -> Iterator[str]:
        """The text, line by line."""
        would = "would have " if self.dry_run else ""
        where = f"{count_text(self.rows, 'row')} in {count_text(self.files, 'file')}"
        yield f"{would}counted {count_text(len(self.columns), 'column')} of {where}"
        yield from map(str, self.columns)
