"""The queries of a workload, resolved against the columns of a table.

A query as text is what may follow WHERE, with ORDER BY and LIMIT.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeAlias

from alcid.errors import OptionError
from alcid.expressions import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Or,
    Predicate,
    Unknown,
    normalize,
    parse,
)
from alcid.scan import Query, Scan, ScanEngine, TableColumns, TableFiles
from alcid.scan.sorting import SortKey

# An order has words, and names, some in backticks. So what follows an ORDER BY within a text, a
# name or brackets is none: a quote, a backtick or a bracket would be left over.
_ORDER = r"(?:^|\s)ORDER\s+BY\s+(?P<order>(?:`(?:[^`]|``)*`|[^`'\"()])+?)"
_LIMIT = r"(?:^|\s)LIMIT\s+(?P<limit>\d+)"
_QUERY = re.compile(rf"(?P<where>.*?)(?:{_ORDER})?(?:{_LIMIT})?\s*", re.IGNORECASE | re.DOTALL)


def parse_query(text: str) -> Query:
    """Take a query apart; each part is read where it is used.

    >>> parse_query("score > 5 ORDER BY score DESC LIMIT 10")
    Query(where='score > 5', columns=None, order_by='score DESC', limit=10, use_indexes=True)
    >>> parse_query("ORDER BY `a limit 3`").order_by
    '`a limit 3`'
    >>> parse_query("name = 'x ORDER BY y LIMIT 3'").where
    "name = 'x ORDER BY y LIMIT 3'"
    """
    match = _QUERY.fullmatch(text)
    assert match is not None  # all of it may be the predicate
    order, limit = match["order"], match["limit"]
    where: str | None = match["where"]
    if order is None and limit is None:
        where = text
    elif not match["where"].strip():
        where = None
    return Query(where, order_by=order, limit=None if limit is None else int(limit))


QueryInput: TypeAlias = str | Predicate | Query | Mapping[str, Any]
"""SQL text as behind WHERE, with ORDER BY and LIMIT if it has them; a predicate; or a query, also
as a dict, which may have `count` too."""

_COUNT = "count"


@dataclass(frozen=True, eq=False)
class ResolvedQuery:
    """A query whose columns were found in the table."""

    where: Predicate
    """Normalized."""
    where_columns: tuple[str, ...]
    """Columns of the table that the predicate needs."""
    output: tuple[str, ...]
    """Columns that are returned; none if rows are only counted."""
    keys: tuple[SortKey, ...] = ()
    limit: int | None = None
    is_count: bool = False
    looked_up: frozenset[str] = frozenset()
    """Columns, and keys of maps, that single values are looked up in, or nulls."""
    ranged: frozenset[str] = frozenset()
    """Those that are compared in another way."""

    @cached_property
    def columns(self) -> frozenset[str]:
        """Columns, and keys of maps, that an index could help with: compared, or sorted by."""
        sorted_by = {self.keys[0].column} if self.is_top else set()
        return self.looked_up | self.ranged | sorted_by

    @property
    def is_top(self) -> bool:
        """Whether it is an ORDER BY with a LIMIT: sort columns are read first, and fewer rows."""
        return bool(self.keys) and self.limit is not None and not self.is_count

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """Columns whose bytes count: without an index all of them are read."""
        if self.is_top:
            return tuple(dict.fromkeys([*self.where_columns, *(key.column for key in self.keys)]))
        return tuple(dict.fromkeys([*self.where_columns, *self.output]))

    @property
    def sought(self) -> tuple[str, int] | None:
        """The column that is looked up by equality, and how many values; None if it is more."""
        match self.where:
            case Comparison(column, "="):
                return column, 1
            case In(column, values, False):
                return column, len(values)
        return None

    def __str__(self) -> str:
        order = ", ".join(map(str, self.keys))
        limit = "" if self.limit is None else f" LIMIT {self.limit}"
        counted = "count " if self.is_count else ""
        return f"{counted}{self.where}{f' ORDER BY {order}' if order else ''}{limit}"


def resolve_queries(
    queries: Iterable[QueryInput], files: TableFiles, engine: ScanEngine
) -> list[ResolvedQuery]:
    """Resolve the queries of a workload.

    Raises:
        OptionError: One is no query.
        PredicateError: One cannot be read; other errors are those of `Scan`.
    """
    if isinstance(queries, str | Mapping | Predicate | Query):
        raise OptionError(f"queries: found {type(queries).__name__}, expected a list of queries")
    return [resolve_query(query, files, engine) for query in queries]


def resolve_query(query_input: QueryInput, files: TableFiles, engine: ScanEngine) -> ResolvedQuery:
    """Resolve a query: its columns, sort keys and normalized predicate."""
    query, is_count = _parse(query_input)
    scan = Scan(query, files, lambda: files, engine, strict=False)  # which checks all of it
    where = normalize(Constant(True) if query.where is None else parse(query.where))
    table = files.columns
    chosen = list(table.columns) if query.columns is None else query.columns
    output = [*map(table.find_whole, chosen), *(key.column for key in scan.keys)]
    single, others = (
        frozenset(canonical_name(name, table) for name in _compared(where, is_single=is_single))
        for is_single in (True, False)
    )
    return ResolvedQuery(
        where,
        tuple(scan.needed(rows=False)),
        () if is_count else tuple(dict.fromkeys(output)),
        tuple(scan.keys),
        query.limit,
        is_count,
        single,
        others,
    )


def canonical_name(name: str, columns: TableColumns) -> str:
    """A column as the table spells it; `m[key]` with the table's `m`."""
    top_level = columns.find(name)
    return top_level + name[len(top_level) :]


def _compared(where: Predicate, *, is_single: bool) -> Iterator[str]:
    """The columns that leaves compare with single values, or the others."""
    for node in where.walk():
        if not isinstance(node, And | Or | Constant | Unknown):
            match node:
                case Comparison(_, "=" | "<=>") | In(_, _, False) | IsNull(_, False):
                    is_wanted = is_single
                case _:
                    is_wanted = not is_single
            if is_wanted:
                yield from node.columns()


def _parse(query: QueryInput) -> tuple[Query, bool]:
    if isinstance(query, Query):
        return query, False
    if isinstance(query, str):
        return parse_query(query), False
    if isinstance(query, Predicate):
        return Query(query), False
    if not isinstance(query, Mapping):
        raise OptionError(
            f"queries: found {type(query).__name__}, expected SQL text, a predicate or a dict"
        )
    names = [field.name for field in fields(Query) if field.name != "use_indexes"]
    for name in query:
        if name not in (*names, _COUNT):
            expected = ", ".join([*names, _COUNT])
            raise OptionError(f"queries: found {name!r} in a query, expected {expected}")
    arguments = {name: value for name, value in query.items() if name != _COUNT}
    columns: Sequence[str] | None = arguments.pop("columns", None)
    return Query(**arguments, columns=columns), bool(query.get(_COUNT, False))
