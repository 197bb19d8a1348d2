"""The same rows in DuckDB, in memory, asked the same questions.

Spark and DuckDB agree on NaN, on both zeros and on the order of texts. Where their rules for
comparing two types differ, both sides are cast here to the type in which Spark compares.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from alcid.expressions import (
    And,
    Between,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)
from tests.scan.column_kinds import ColumnKind, moment_text, scale_of
from tests.scan.question import AnyLike, OrderKey


class Oracle:
    """A table in DuckDB, and the positions of the rows that answer a question."""

    def __init__(self, rows: pa.Table, kinds: Mapping[str, ColumnKind]) -> None:
        """Take the rows in the order in which a scan without ORDER BY gives them."""
        self._kinds = kinds
        self._columns = {name: f"c{number}" for number, name in enumerate(kinds)}
        loaded = {self._columns[name]: _loadable(rows[name]) for name in kinds}
        loaded["place"] = pa.array(np.arange(rows.num_rows))
        self._connection = duckdb.connect(config={"threads": 1})
        self._run("SET TimeZone = 'UTC'")
        self._connection.register("loaded", pa.table(loaded))
        self._run("CREATE TABLE rows AS SELECT * FROM loaded")
        self._connection.unregister("loaded")

    def close(self) -> None:
        self._connection.close()

    def positions(
        self, where: Predicate | None, order: Sequence[OrderKey] = ()
    ) -> NDArray[np.int64]:
        """All matching rows: sorted by the keys, and by position among equals."""
        condition = "TRUE" if where is None else self.render(where)
        sql = f"SELECT place FROM rows WHERE {condition} "
        rows = self._run(sql + f"ORDER BY {', '.join([*self._keys(order), 'place'])}")
        return np.array([position for (position,) in rows], np.int64)

    def ranks(self, order: Sequence[OrderKey]) -> NDArray[np.int64]:
        """For each row, the position of its sort key among the distinct ones."""
        keys = ", ".join(self._keys(order))
        rows = self._run(f"SELECT dense_rank() OVER (ORDER BY {keys}) FROM rows ORDER BY place")
        return np.array([rank for (rank,) in rows], np.int64)

    def _keys(self, order: Sequence[OrderKey]) -> list[str]:
        return [
            f"{self._columns[key.column]} {'DESC' if key.descending else 'ASC'} "
            f"NULLS {'FIRST' if key.nulls_first else 'LAST'}"
            for key in order
        ]

    def _run(self, sql: str) -> list[Any]:
        rows: list[Any] = self._connection.execute(sql).fetchall()
        return rows

    def render(self, predicate: Predicate) -> str:
        """The predicate in DuckDB's SQL."""
        match predicate:
            case And(parts):
                return " AND ".join(f"({self.render(part)})" for part in parts)
            case Or(parts):
                return " OR ".join(f"({self.render(part)})" for part in parts)
            case Not(child):
                return f"NOT ({self.render(child)})"
            case Constant(value):
                return {True: "TRUE", False: "FALSE", None: "CAST(NULL AS BOOLEAN)"}[value]
            case Comparison(column, operator, literal):
                sign = "IS NOT DISTINCT FROM" if operator == "<=>" else operator
                return self._sides(column, [literal], sign)
            case Between(column, low, high):
                return f"{self._sides(column, [low], '>=')} AND {self._sides(column, [high], '<=')}"
            case In(column, literals, negated):
                return self._sides(column, literals, "NOT IN" if negated else "IN")
            case IsNull(column, negated):
                return f"{self._columns[column]} IS {'NOT ' if negated else ''}NULL"
            case Like(column, text, prefix, negated):
                pattern = "".join(f"\\{c}" if c in "\\%_" else c for c in text)
                return self._like(column, pattern + "%" * prefix, negated)
            case AnyLike(_, (column,), pattern):
                return self._like(column, pattern, negated=False)
        raise AssertionError(predicate)

    def _like(self, column: str, pattern: str, negated: bool) -> str:
        word = "NOT LIKE" if negated else "LIKE"
        return f"{self._columns[column]} {word} {_text(pattern)} ESCAPE '\\'"

    def _sides(self, column: str, literals: Sequence[object], sign: str) -> str:
        kind = self._kinds[column]
        literals_ = [literal for literal in literals if literal is not None]
        common = _common_type(kind, literals_)
        name = self._columns[column]
        left = name if common is None else f"CAST({name} AS {common})"
        right = [_literal(literal, common) for literal in literals]
        listed = f"({', '.join(right)})" if sign.endswith("IN") else right[0]
        return f"{left} {sign} {listed}"


def _loadable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _common_type(kind: ColumnKind, literals: Sequence[Any]) -> str | None:
    """The DuckDB type in which a column and literals of one class are compared."""
    data_type = kind.data_type
    match data_type.root:
        case "BOOLEAN" | "VARCHAR" | "BINARY" | "VARBINARY":
            return None
        case "FLOAT" | "DOUBLE":
            return "DOUBLE"
        case "TIME":
            return "TIME_NS" if data_type.precision > 6 else "TIME"
        case "TIMESTAMP":
            return "TIMESTAMP_NS" if data_type.precision > 6 else "TIMESTAMP"
        case "TIMESTAMP_LTZ":
            return "TIMESTAMPTZ_NS" if data_type.precision > 6 else "TIMESTAMPTZ"
        case "DATE":
            moments = any(isinstance(literal, datetime.datetime) for literal in literals)
            return "TIMESTAMP" if moments else "DATE"
    if any(isinstance(literal, float) for literal in literals):
        return "DOUBLE"
    if data_type.root != "DECIMAL" and all(isinstance(literal, int) for literal in literals):
        return "HUGEINT"
    return f"DECIMAL(38, {max((scale_of(kind, literal) for literal in literals), default=0)})"


def _literal(literal: Any, common: str | None) -> str:
    match literal:
        case None:
            text = "NULL"
        case bool():
            text = str(literal).upper()
        case str():
            text = _text(literal)
        case bytes():
            text = f"unhex('{literal.hex()}')"
        case Decimal():
            text = f"'{literal:f}'" if literal.is_finite() else f"'{literal}'"
        case int() | float() | datetime.time():
            text = f"'{literal}'"
        case _:
            zone = "+00" if common is not None and common.startswith("TIMESTAMPTZ") else ""
            text = f"'{moment_text(literal)}{zone}'"
    return text if common is None else f"CAST({text} AS {common})"


def _text(text: str) -> str:
    if "\0" in text:
        return f"decode(unhex('{text.encode().hex()}'))"
    return "'" + text.replace("'", "''") + "'"
