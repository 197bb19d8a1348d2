"""The contents of a file as an HTML page: facts, a byte map, and the distribution of its values.

Rows of the tables are shared with the text output.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice

from alcid.cli.columns import IndexedColumns
from alcid.cli.files.contents import Facts, Item, Listing, State
from alcid.cli.files.file_index import FileIndexReport, IndexReport, column_histograms
from alcid.errors import FormatError, LimitError
from alcid.formats import puffin
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.deletion_vector.file import vector_places
from alcid.formats.hash_index import HashIndex
from alcid.formats.source import Section, Source
from alcid.formats.theta.sketch import ThetaSketch
from alcid.index.file_index import FileIndex
from alcid.inspect.byte_bar import byte_strip
from alcid.inspect.byte_map import map_bytes
from alcid.inspect.byte_map.bundle import blob_drawer
from alcid.inspect.byte_map.kinds import Kind, opened
from alcid.inspect.byte_map.regions import Value, value_text
from alcid.inspect.display import picture
from alcid.inspect.page import Markup, element, page, section, table
from alcid.types import DataType

INDEX_TITLES = ("column", "type", "index", "offset", "bytes", "facts")
_DIGITS = {"false_positive_rate": 3, "theta": 3, "estimate": 7}


def item_titles(report: Listing) -> list[str]:
    """The column titles of a listing with items."""
    return [*(name.replace("_", " ") for name in report.items[0].columns), "facts"]


def index_row(index: IndexReport) -> tuple[str, ...]:
    """The table row of an index."""
    facts = facts_text(index.facts) if index.state == "ok" else _state(index.state, index.problem)
    offset = "-" if index.offset is None else str(index.offset)
    data_type = index.data_type or "-"
    return (index.column, data_type, index.index_type, offset, str(index.size), facts)


def item_row(item: Item) -> tuple[str, ...]:
    """The table row of a vector or blob."""
    facts: Facts = {**item.properties, **item.facts}
    if facts.get("positions") is not None:  # more than the first and the last
        facts = {name: value for name, value in facts.items() if name not in ("first", "last")}
    texts = [facts_text(facts)]
    if item.state != "ok":
        texts.insert(0, _state(item.state, item.problem))
    return (*map(_cell, item.columns.values()), "; ".join(filter(None, texts)))


def _cell(value: Value) -> str:
    """A value in a table cell."""
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
    if isinstance(value, str) and value.isdecimal():  # a property, often a number
        return value
    return value_text(value)


_MAX_DRAWN = 6  # vectors and sketches


def inspect_page(
    path: str, types: Mapping[str, DataType], report: FileIndexReport | Listing
) -> str:
    """The page of a file that `inspect_file` reports on."""
    with opened(path) as (source, kind):
        draw_blob = blob_drawer(source) if kind is Kind.PUFFIN else None
        region = map_bytes(source, types, kind=kind, draw_blob=draw_blob)
        bytes_drawn = section("Bytes", byte_strip(region))
        parts = [*_facts(report), bytes_drawn, *_spread(source, kind, types)]
    return page(path, *parts, subtitle=f"{report.kind}, {report.size:,} bytes")


def _facts(report: FileIndexReport | Listing) -> list[Markup]:
    """The text output as tables."""
    properties = report.properties if isinstance(report, Listing) else {}
    parts = [element("p", facts_text({**report.head, **properties}))]
    if isinstance(report, FileIndexReport):
        rows = [index_row(index) for index in report.indexes]
        parts.append(section("Indexes", _wide(INDEX_TITLES, rows, (3, 4))))
    elif report.items and report.things is not None:
        titles, rows = item_titles(report), [item_row(item) for item in report.items]
        numbers = [at for at, title in enumerate(titles) if title in ("offset", "bytes", "length")]
        shown = f"{report.things}: {len(rows)} of {report.count}"
        heading = shown if report.truncated else report.things
        parts.append(section(heading.capitalize(), _wide(titles, rows, numbers)))
    return parts


def _wide(
    titles: Sequence[str], rows: Sequence[Sequence[object]], numbers: Collection[int]
) -> Markup:
    """A table whose last column is wide enough for facts."""
    return element("div", table(titles, rows, numbers=numbers), class_="bytes-facts")


def _spread(source: Source, kind: Kind, types: Mapping[str, DataType]) -> list[Markup]:
    """Histograms of values, positions or hashes."""
    if kind is Kind.FILE_INDEX:
        index = FileIndex.open(source, types, strict=True)
        return column_histograms(index, IndexedColumns.match(index.entries, types).types)
    return [
        section(title, *parts)
        for title, parts in (picture(item) for item in islice(_items(source, kind), _MAX_DRAWN))
    ]


def _items(source: Source, kind: Kind) -> Iterator[object]:
    """The vectors and sketches in a file that are not damaged."""
    whole = Section(source)
    match kind:
        case Kind.HASH_INDEX:
            yield HashIndex.from_bytes(source.read(0, source.size), name=source.name)
        case Kind.THETA_SKETCH:
            yield ThetaSketch.from_bytes(source.read(0, source.size), name=source.name)
        case Kind.DELETION_VECTOR | Kind.DELETION_VECTOR_FILE | Kind.DELTA_VECTOR_FILE:
            with suppress(FormatError):
                for extent in vector_places(whole, int(kind is not Kind.DELETION_VECTOR)):
                    yield from _unless_damaged(partial(DeletionVector.read, whole.section(*extent)))
        case Kind.PUFFIN:
            with puffin.open(source) as reader:
                for blob in reader.blobs:
                    if blob.type == puffin.DELETION_VECTOR:
                        yield from _unless_damaged(partial(reader.read_deletion_vector, blob))
                    elif blob.type == puffin.THETA_SKETCH:
                        yield from _unless_damaged(partial(reader.read_theta_sketch, blob))


def _unless_damaged(read: Callable[[], object]) -> Iterator[object]:
    """Yield what is read unless it is damaged, which the table of items already shows."""
    with suppress(FormatError, LimitError):
        yield read()
