"""`alcid.sql`: Spark's SQL over tables, of which only what the query requires is read.

1. Each table is shown to Spark as a relation of its schema, without rows.
2. From the plan that Spark's own optimiser makes of the query, the filter over each table is read,
   with the required columns, and an order with a limit: never from the text of the query.
3. Each table is read for that, and Spark runs the unchanged query on the rows.

`explain_sql` stops after the second step, and shows what each table would be asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from alcid.errors import OptionError, PredicateError, require
from alcid.expressions import Constant
from alcid.options import fold_name
from alcid.scan import Explanation, Scan
from alcid.spark.engine import SparkEngine
from alcid.spark.jvm import active, has_jvm
from alcid.spark.jvm.planning import Planned, SideSession, same_session
from alcid.spark.pushdown import Pushdown, UnknownPlanError, find_pushdowns
from alcid.spark.reading import to_spark
from alcid.spark.schema import quoted, spark_schema
from alcid.spark.session import session
from alcid.tables.base import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class TableUse:
    """What a query asks of a table."""

    name: str
    """By which the query calls it."""
    location: str
    occurrences: int | None
    """How often it occurs in Spark's optimised plan; None where the plan is not known."""
    filters: tuple[str, ...]
    """What stands directly over each occurrence, as Spark writes it; empty where nothing does."""
    where: str
    """What the table is asked for; `TRUE` is every row, `FALSE` none."""
    exact: bool
    """Whether this is all of the filters; else Spark has a part of them to itself."""
    columns: tuple[str, ...]
    """Those that are read; any other is not used by the query."""
    order_by: str
    limit: int | None
    """With it only the first rows of this order are read."""
    reason: str
    """Why every row is read; empty if that is not so."""
    explanation: Explanation | None
    """What the table makes of it; None where no row is needed."""

    def to_dict(self) -> dict[str, Any]:
        """The same in plain dicts and lists."""
        plan = None if self.explanation is None else self.explanation.to_dict()
        return {**asdict(replace(self, explanation=None)), "explanation": plan}

    def head(self) -> str:
        """What it is asked for."""
        lines = [f"{self.name}: {self.location}"]
        if self.explanation is None:
            return "\n".join([*lines, "  no row: it does not occur in Spark's optimised plan"])
        if self.reason:
            lines.append(f"  every row: {self.reason}")
        elif not self.exact:
            lines.append("  a part of the filter is left to Spark")
        lines += (f"  Spark's filter: {text or 'none'}" for text in dict.fromkeys(self.filters))
        lines.append(f"  columns: {', '.join(self.columns) or 'none'}")
        return "\n".join(lines)

    def __str__(self) -> str:
        plan = "" if self.explanation is None else str(self.explanation)
        return "\n".join([self.head(), *(f"  {line}" for line in plan.splitlines())])


@dataclass(frozen=True, slots=True)
class SqlExplanation:
    """What a query asks of its tables; `str` is a text to read."""

    query: str
    tables: tuple[TableUse, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same in plain dicts and lists."""
        return {"query": self.query, "tables": [use.to_dict() for use in self.tables]}

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        return "\n".join([self.query.strip(), *map(str, self.tables)])


_NO_FILTER = "no filter stands over one of its occurrences that it could answer"
_SUBQUERY_TIME = "the query asks for the current time, and has a table within a subquery"


def sql(query: str, /, **tables: Table[Any]) -> DataFrame:
    """Answer a query of Spark's SQL over tables, which it calls by the names given here.

    Views, functions and variables of the session can be used beside them; a table of the same name
    is taken in place of a view. The answer is that of Spark itself on all rows: filters go
    to the indexes, and Spark applies them again.

    Args:
        query: Any query. Commands, as INSERT, are refused.
        tables: The tables, as `events=alcid.parquet(path, spark)`.

    Returns:
        A DataFrame of the session of the tables. What is read of them is decided now, with the
        files and the time of now, and not when the DataFrame is run.

    Raises:
        UnsupportedError: It is a command.
        OptionError: Tables of two sessions.
        pyspark.errors.AnalysisException: Spark does not understand the query.
    """
    return _Question.of(query, tables).answer()


def explain_sql(query: str, /, **tables: Table[Any]) -> SqlExplanation:
    """What `sql` asks of each table, or why nothing; the query is not run."""
    return _Question.of(query, tables).explain()


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of a query."""

    table: Table[Any]
    pushdown: Pushdown | None
    """None where it is not known."""
    reason: str
    """Why every row is read; empty if that is not so."""
    scan: Scan | None
    """None where no row is needed."""
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Question:
    """A query, and what is read for it."""

    query: str
    spark: SparkSession
    tables: Mapping[str, _Table]
    side: SideSession | None = None
    planned: Planned | None = None
    relations: Mapping[int, str] | None = None
    """The tables by the ids of their leaves in the plan, where that is to be run."""

    @classmethod
    def of(cls, query: str, tables: Mapping[str, Table[Any]]) -> _Question:
        require(query, str, "query")
        for name, table in tables.items():
            require(table, Table, name)  # type: ignore[type-abstract]
        spark = _session_of(tables)
        with SparkEngine(spark).settings():
            names = list(map(fold_name, tables))
            for name in tables:
                if names.count(fold_name(name)) > 1:
                    raise OptionError(
                        f"table {name}: Spark does not tell names apart by their case"
                    )
            return cls._planned(query, tables, spark)

    @classmethod
    def _planned(
        cls, query: str, tables: Mapping[str, Table[Any]], spark: SparkSession
    ) -> _Question:
        if not has_jvm(spark):
            reason = "Spark Connect does not show its plan"
            whole = {name: _whole(table, reason) for name, table in tables.items()}
            return cls(query, spark, whole)
        side = SideSession(spark)
        schemas = {name: table.schema for name, table in tables.items()}
        relations: dict[int, str] = {}
        for name, schema in schemas.items():
            empty = side.empty(spark_schema(schema))
            side.call(name, empty)
            relations[side.relation_of(empty)] = name
        planned = side.plan(query)
        pushdowns = _pushdowns(
            planned, {number: schemas[name] for number, name in relations.items()}
        )
        if isinstance(pushdowns, str):
            whole = {name: _whole(table, pushdowns) for name, table in tables.items()}
            return cls(query, spark, whole, side)
        read = {name: _read(tables[name], pushdowns[number]) for number, name in relations.items()}
        return cls(query, spark, read, side, planned, relations if planned.has_time else None)

    def answer(self) -> DataFrame:
        rows = {name: self._rows(table) for name, table in self.tables.items()}
        if self.side is None:
            return _with_names(self.spark, self.query, rows)
        if self.planned is not None and self.relations is not None:
            numbered = {number: rows[name] for number, name in self.relations.items()}
            return self.side.run_with(self.planned, numbered)
        for name, frame in rows.items():
            self.side.call(name, frame)
        return self.side.run(self.query)

    def explain(self) -> SqlExplanation:
        with SparkEngine(self.spark).settings():
            uses = tuple(_use(name, table) for name, table in self.tables.items())
        return SqlExplanation(self.query, uses)

    def _rows(self, table: _Table) -> DataFrame:
        """What is read of a table, with nulls for the columns that are not used."""
        from pyspark.sql import functions

        schema: StructType = spark_schema(table.table.schema)
        if table.scan is None:
            return self.spark.createDataFrame([], schema)
        with SparkEngine(self.spark).settings(), active(self.spark):
            rows = to_spark(self.spark, table.scan, filtered=False)
        if len(table.columns) == len(schema):
            return rows
        return rows.select(
            *(
                rows[quoted(field.name)]
                if field.name in table.columns
                else functions.lit(None).cast(field.dataType).alias(field.name)
                for field in schema
            )
        )


def _session_of(tables: Mapping[str, Table[Any]]) -> SparkSession:
    """That of the tables; else the one that is active, else a new one."""
    sessions = {
        name: table.engine.session
        for name, table in tables.items()
        if isinstance(table.engine, SparkEngine)
    }
    if not sessions:
        return session()
    (first, spark), *others = sessions.items()
    for name, other in others:
        if not same_session(spark, other):
            raise OptionError(f"tables {first} and {name}: are of two Spark sessions, expected one")
    return spark


def _with_names(spark: SparkSession, query: str, rows: Mapping[str, DataFrame]) -> DataFrame:
    """Run a query in which the rows have names that hide the session's views and replace none.

    The names are common table expressions around the query, over DataFrames that Spark takes as
    arguments of the text. A command in parentheses is a syntax error, so none is run.
    """
    if not rows:
        return spark.sql(query)
    frames = {f"rows{number}": frame for number, frame in enumerate(rows.values())}
    names = zip(map(quoted, rows), frames, strict=True)
    named = ", ".join(f"{name} AS (SELECT * FROM {{{frame}}})" for name, frame in names)
    inner = query.strip().rstrip(";").replace("{", "{{").replace("}", "}}")
    return spark.sql(f"WITH {named} (\n{inner}\n)", **frames)


def _pushdowns(planned: Planned, schemas: Mapping[int, pa.Schema]) -> Mapping[int, Pushdown] | str:
    """What is needed of each table, or why nothing is known of that."""
    if planned.has_time and planned.analyzed.has_relation_in_subquery(schemas):
        return _SUBQUERY_TIME
    try:
        return find_pushdowns(planned.optimized, schemas)
    except UnknownPlanError as error:
        return str(error)


def _whole(table: Table[Any], reason: str) -> _Table:
    return _Table(table, None, reason, table.scan(), tuple(table.schema.names))


def _read(table: Table[Any], pushdown: Pushdown) -> _Table:
    """Ask a table for what is needed of it."""
    if not pushdown.occurrences:
        return _Table(table, pushdown, "", None, ())
    reason = _NO_FILTER
    if pushdown.where != Constant(True) or pushdown.limit is not None:
        order_by = pushdown.order_by or None
        try:
            scan = table.scan(
                pushdown.where, columns=pushdown.columns, order_by=order_by, limit=pushdown.limit
            )
            return _Table(table, pushdown, "", scan, pushdown.columns)
        except PredicateError as error:
            reason = str(error)
    return _Table(table, pushdown, reason, table.scan(columns=pushdown.columns), pushdown.columns)


def _use(name: str, table: _Table) -> TableUse:
    pushdown = table.pushdown
    return TableUse(
        name=name,
        location=table.table.location,
        occurrences=None if pushdown is None else pushdown.occurrences,
        filters=() if pushdown is None else pushdown.filters,
        where="TRUE" if pushdown is None or table.reason else str(pushdown.where),
        exact=pushdown is not None and pushdown.exact and not table.reason,
        columns=table.columns,
        order_by="" if pushdown is None else ", ".join(pushdown.order_by),
        limit=None if pushdown is None else pushdown.limit,
        reason=table.reason,
        explanation=None if table.scan is None else table.scan.explain(),
    )
