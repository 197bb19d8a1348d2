"""Ask a file index a question without its data file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias

from alcid.cli.column_types import entry_types, find_indexes
from alcid.cli.kinds import identify
from alcid.errors import OptionError
from alcid.file_index import FileIndex
from alcid.formats.selection import ANY
from alcid.formats.source import FileSource
from alcid.predicate import Predicate, Unknown, parse
from alcid.types import DataType

__all__ = ["Answer", "Order", "ProbeReport", "probe_file"]

Answer: TypeAlias = Literal["skip", "any", "rows"]
"""skip: no row can match. any: the indexes cannot tell. rows: at most these."""


@dataclass(frozen=True, slots=True)
class Order:
    """The first rows in the order of a column, and all that equal the last of them."""

    top_n: int
    order_by: str
    descending: bool
    nulls: Literal["first", "last"]

    @classmethod
    def of(
        cls,
        top_n: int | None,
        order_by: str | None,
        *,
        descending: bool,
        nulls: Literal["first", "last"],
    ) -> Order | None:
        """The order that options ask for, if any."""
        if top_n is None and order_by is None:
            return None
        if top_n is None or order_by is None:
            raise OptionError("--top-n and --order-by go together, found one of them")
        return cls(top_n, order_by, descending, nulls)


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """A question and the answer to it."""

    file: str
    predicate: str | None
    order: Order | None
    answer: Answer
    count: int | None
    """How many rows; None for any."""
    positions: tuple[int, ...]
    """The first of them."""
    notes: tuple[str, ...]
    """What the indexes could not be asked."""


def probe_file(
    path: str,
    predicate: str | None,
    order: Order | None,
    types: Mapping[str, DataType],
    limit: int,
) -> ProbeReport:
    """Ask the file at `path`.

    Args:
        path: The file.
        predicate: SQL text, or None for all rows.
        order: Which of the rows that match.
        types: Types of the columns that are asked for.
        limit: Positions at most.
    """
    if predicate is None and order is None:
        raise OptionError("nothing to ask: expected a PREDICATE, or --top-n and --order-by")
    parsed = None if predicate is None else parse(predicate)
    with FileSource(path) as source:
        identify(source)
        index = FileIndex.open(source, types, strict=True)
        notes = _check(index, parsed, order, types)
        selection = ANY if parsed is None else index.evaluate(parsed)
        if order is not None:
            selection = index.top_n(
                order.order_by, order.top_n, order.descending, order.nulls, among=selection
            )
        rows = selection.rows
        return ProbeReport(
            path,
            predicate,
            order,
            "any" if rows is None else "rows" if rows else "skip",
            None if rows is None else len(rows),
            tuple(islice(rows or (), limit)),
            notes,
        )


def _check(
    index: FileIndex,
    predicate: Predicate | None,
    order: Order | None,
    types: Mapping[str, DataType],
) -> tuple[str, ...]:
    """Make sure that the types of all columns are known; say what no index can answer."""
    known = entry_types(index.entries, types)
    notes = []
    for leaf in () if predicate is None else predicate.walk():
        if isinstance(leaf, Unknown):
            notes.append(f"no index can tell: {leaf}")
        elif not leaf.children:
            notes += [_missing(column) for column in leaf.columns() if not find_indexes(column, known)]
    if order is not None:
        index_types = {entry.index_type for entry in find_indexes(order.order_by, known)}
        if "range-bitmap" not in index_types:
            notes.append(f"{_missing(order.order_by, 'range-bitmap index')}: not put in order")
    return tuple(dict.fromkeys(notes))


def _missing(column: str, what: str = "index") -> str:
    return f"no {what} of column {column}"
