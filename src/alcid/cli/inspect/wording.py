"""What was found, as cells of a table: for the terminal and for pages."""

from __future__ import annotations

from alcid.byte_map.values import Value, value_text
from alcid.cli.inspect.file_index import IndexReport
from alcid.cli.inspect.listing import Facts, Item, Listing, State

__all__ = ["INDEX_TITLES", "facts_text", "index_row", "item_row", "item_titles"]

INDEX_TITLES = ("column", "type", "index", "offset", "bytes", "facts")
_DIGITS = {"false_positive_rate": 3, "theta": 3, "estimate": 7}


def item_titles(report: Listing) -> list[str]:
    """The heads of the table of a listing that has items."""
    return [*(name.replace("_", " ") for name in report.items[0].columns), "facts"]


def index_row(index: IndexReport) -> tuple[str, ...]:
    """An index as a line of a table."""
    facts = facts_text(index.facts) if index.state == "ok" else _state(index.state, index.problem)
    offset = "-" if index.offset is None else str(index.offset)
    data_type = index.data_type or "-"
    return (index.column, data_type, index.index_type, offset, str(index.size), facts)


def item_row(item: Item) -> tuple[str, ...]:
    """A vector or a blob as a line of a table."""
    facts: Facts = {**item.properties, **item.facts}
    if facts.get("positions") is not None:  # they say more than the first and the last
        facts = {name: value for name, value in facts.items() if name not in ("first", "last")}
    told = [facts_text(facts)]
    if item.state != "ok":
        told.insert(0, _state(item.state, item.problem))
    return (*map(_cell, item.columns.values()), "; ".join(filter(None, told)))


def _cell(value: Value) -> str:
    """A value in a table, where what it is can be seen from its column."""
    return (
        "-"
        if value is None or value == ()
        else value
        if isinstance(value, str)
        else value_text(value)
    )


def facts_text(facts: Facts) -> str:
    """Facts on one line."""
    return ", ".join(
        f"{name.replace('_', ' ')} {_fact(name, value)}"
        for name, value in facts.items()
        if value is not None
    )


def _state(state: State, problem: str | None) -> str:
    return state if problem is None else f"{state}: {problem}"


def _fact(name: str, value: Value) -> str:
    if isinstance(value, float) and name in _DIGITS:
        return f"{value:.{_DIGITS[name]}g}"
    if value == ():
        return "none"
    if isinstance(value, str) and value.isdecimal():  # properties are text, but often numbers
        return value
    return value_text(value)
