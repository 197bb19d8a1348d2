"""Ask a file index a question without its data file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias

from alcid.cli.column_types import entry_types, find_indexes
from alcid.cli.kinds import opened
from alcid.errors import OptionError
from alcid.file_index import FileIndex
from alcid.formats.container import Entry
from alcid.predicate import Predicate, Unknown, parse
from alcid.types import DataType

__all__ = ["Answer", "Order", "ProbeReport", "choose_question", "probe_file"]

Answer: TypeAlias = Literal["skip", "any", "rows"]
"""skip: no row can match. any: the indexes cannot tell. rows: at most these."""
NullOrder: TypeAlias = Literal["first", "last"]


@dataclass(frozen=True, slots=True)
class Order:
    """The first rows in the order of a column, and all that equal the last of them."""

    top_n: int
    order_by: str
    descending: bool
    nulls: NullOrder


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """A question, which is a predicate or an order, and the answer to it."""

    file: str
    predicate: str | None
    order: Order | None
    answer: Answer
    count: int | None
    """How many rows; None for any."""
    positions: tuple[int, ...]
    """The first of them."""
    notes: tuple[str, ...]
    """What no index could answer."""


def choose_question(
    predicate: str | None,
    top_n: int | None,
    order_by: str | None,
    *,
    descending: bool,
    nulls: NullOrder,
) -> str | Order:
    """The one question that the options ask.

    Raises:
        OptionError: They ask none, half of one, or two.
    """
    if (top_n is None) != (order_by is None):
        raise OptionError("--top-n and --order-by go together, found only one of them")
    if top_n is None or order_by is None:
        if predicate is None:
            raise OptionError("expected a PREDICATE, or --top-n and --order-by, found neither")
        return predicate
    if predicate is not None:
        # An answer may hold rows that do not match, and these could crowd out those that do.
        raise OptionError(
            "--top-n takes no PREDICATE: the first rows that may match need not match"
        )
    return Order(top_n, order_by, descending, nulls)


def probe_file(
    path: str, question: str | Order, types: Mapping[str, DataType], limit: int
) -> ProbeReport:
    """Ask the file at `path`.

    Args:
        path: The file.
        question: SQL text, or an order.
        types: Types of the columns that are asked for.
        limit: Positions at most.
    """
    parsed = question if isinstance(question, Order) else parse(question)
    with opened(path) as (source, _):
        index = FileIndex.open(source, types, strict=True)
        known = entry_types(index.entries, types)
        if isinstance(parsed, Order):
            notes = _order_notes(parsed, known)
            selection = index.top_n(parsed.order_by, parsed.top_n, parsed.descending, parsed.nulls)
        else:
            notes = _notes(parsed, known)
            selection = index.evaluate(parsed)
    rows = selection.rows
    return ProbeReport(
        path,
        question if isinstance(question, str) else None,
        question if isinstance(question, Order) else None,
        "any" if rows is None else "rows" if rows else "skip",
        None if rows is None else len(rows),
        tuple(islice(rows or (), limit)),
        tuple(notes),
    )


def _notes(predicate: Predicate, known: Mapping[Entry, DataType | None]) -> list[str]:
    """What no index can answer; the types of all other columns must be known."""
    notes = []
    for part in predicate.walk():
        if isinstance(part, Unknown):
            notes.append(f"no index can tell: {part}")
        elif not part.children:
            missing = [column for column in part.columns() if not find_indexes(column, known)]
            notes += [f"no index of column {column}" for column in missing]
    return list(dict.fromkeys(notes))


def _order_notes(order: Order, known: Mapping[Entry, DataType | None]) -> list[str]:
    indexes = find_indexes(order.order_by, known)
    if any(entry.index_type == "range-bitmap" for entry in indexes):
        return []
    return [f"no range-bitmap index of column {order.order_by}"]
