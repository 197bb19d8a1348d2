"""Evaluate a predicate or a top-n on a file index without its data file, for `alcid probe`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias

from alcid.cli.columns import IndexedColumns
from alcid.cli.files.file_index import HEADS
from alcid.errors import FormatError, OptionError, PredicateError
from alcid.expressions import Predicate, Unknown, parse
from alcid.formats.file_index.reader import EVERY, Selection
from alcid.index.file_index import FileIndex
from alcid.inspect.byte_map.kinds import Kind, opened
from alcid.types import DataType

Answer: TypeAlias = Literal["skip", "any", "rows"]
"""skip: no row can match. any: every row may, or does if exact. rows: at most these."""
NullOrder: TypeAlias = Literal["first", "last"]


@dataclass(frozen=True, slots=True)
class Order:
    """The first rows in the order of a column, with all ties."""

    top_n: int
    order_by: str
    descending: bool
    nulls: NullOrder


@dataclass(frozen=True, slots=True)
class Probe:
    """A predicate, a top-n, or the top-n of the rows that match a predicate."""

    predicate: str | None
    order: Order | None


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """A probe and its answer."""

    file: str
    predicate: str | None
    order: Order | None
    answer: Answer
    exact: bool
    """Whether each of the rows matches."""
    count: int | None
    """How many rows; None for any."""
    positions: tuple[int, ...]
    """The first of them."""
    truncated: bool
    """Whether there are more positions."""
    notes: tuple[str, ...]
    """Conditions that no index could answer."""


def choose_probe(
    predicate: str | None,
    top_n: int | None,
    order_by: str | None,
    *,
    descending: bool,
    nulls: NullOrder,
) -> Probe:
    """The probe that the options describe.

    Raises:
        OptionError: They describe none, or only a part of one.
    """
    if (top_n is None) != (order_by is None):
        raise OptionError("--top-n and --order-by go together, found only one of them")
    if top_n is not None and order_by is not None:
        return Probe(predicate, Order(top_n, order_by, descending, nulls))
    if predicate is None:
        raise OptionError("expected a PREDICATE, or --top-n and --order-by, found neither")
    return Probe(predicate, None)


def probe_file(
    path: str, probe: Probe, types: Mapping[str, DataType], limit: int | None
) -> ProbeReport:
    """Probe a file index; the report lists at most `limit` positions, or all."""
    with opened(path) as (source, kind):
        if kind is not Kind.FILE_INDEX:
            raise FormatError(
                "only file indexes can be probed",
                file=path,
                found=f"a {kind}",
                expected=f"a {Kind.FILE_INDEX}",
            )
        index = FileIndex.open(source, types, strict=True)
        columns = IndexedColumns.match(index.entries, types)
        try:
            selection, notes = _evaluate(index, columns, probe)
        except FormatError as error:
            raise FormatError(f"{error}{_type_hint(error, index, columns)}") from None
    rows = selection.rows
    positions = tuple(islice(rows or (), limit))
    return ProbeReport(
        path,
        probe.predicate,
        probe.order,
        "any" if rows is None else "rows" if rows else "skip",
        selection.exact,
        None if rows is None else len(rows),
        positions,
        rows is not None and len(rows) > len(positions),
        tuple(notes),
    )


def _evaluate(
    index: FileIndex, columns: IndexedColumns, probe: Probe
) -> tuple[Selection, list[str]]:
    """The selected rows, and what no index could answer."""
    selection, notes = EVERY, []
    if probe.predicate is not None:
        predicate = parse(probe.predicate)
        notes += _notes(predicate, columns)
        selection = index.evaluate(predicate)
    if (order := probe.order) is not None:
        _require_exact(selection, notes)
        notes += _order_notes(order, columns)
        selection = index.top_n(
            order.order_by, order.top_n, order.descending, order.nulls, among=selection
        )
    return selection, notes


def _type_hint(error: FormatError, index: FileIndex, columns: IndexedColumns) -> str:
    """A hint that the type of the column may be wrong, if the header of its index is intact."""
    for entry, data_type in columns.types.items():
        extent = range(entry.start, entry.start + entry.length)
        if data_type is not None and error.offset in extent and entry.index_type in HEADS:
            try:
                HEADS[entry.index_type](index.container.section(entry))
            except FormatError:
                return ""
            return f"; or column {entry.column} is not {data_type}"
    return ""


def _require_exact(selection: Selection, notes: list[str]) -> None:
    """Refuse inexact rows: those that do not match could displace those that do."""
    if not selection.exact:
        why = f" ({'; '.join(notes)})" if notes else ""
        raise PredicateError(
            "--top-n needs a PREDICATE that the indexes answer exactly; this one needs"
            f" the rows themselves{why}"
        )


def _notes(predicate: Predicate, columns: IndexedColumns) -> list[str]:
    """Conditions that no index can answer; all other columns need a type."""
    notes = []
    for part in predicate.walk():
        if isinstance(part, Unknown):
            notes.append(f"no index can answer: {part}")
        elif not part.children:
            missing = [column for column in part.columns() if not columns.find(column)]
            notes += [f"no index of column {column}" for column in missing]
    return list(dict.fromkeys(notes))


def _order_notes(order: Order, columns: IndexedColumns) -> list[str]:
    column = order.order_by
    for entry in columns.find(column):
        if entry.index_type == "range-bitmap":
            data_type = columns.types[entry]
            is_char = data_type is not None and data_type.root == "CHAR"
            return [f"no index orders column {column} of type {data_type}"] if is_char else []
    return [f"no range-bitmap index of column {column}"]
