"""The registry of HTML representations: a title and the parts of a page for each public type.

`alcid.inspect.to_html` and notebooks call `picture(object)`, which gives both. A type gets its own
representation with `@picture.register`; any other is shown as its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np

from alcid._text import count_text, size_text
from alcid.advise.report import Advice
from alcid.errors import AlcidError, ColumnError
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.hash_index import HashIndex
from alcid.formats.puffin import PuffinReader
from alcid.formats.theta import ThetaSketch
from alcid.index.file_index import FileIndex
from alcid.inspect.byte_bar import byte_strip, distribution, histogram
from alcid.inspect.byte_map import Kind, map_bytes
from alcid.inspect.page import Markup, element, fragment, page, section, table
from alcid.inspect.plan import plan_parts
from alcid.scan import TableFiles
from alcid.scan.explain import Explanation, question_text
from alcid.spark.sql import SqlExplanation
from alcid.tables.base import Table
from alcid.tables.maintenance.repair import RepairReport
from alcid.tables.maintenance.verify import VerifyReport
from alcid.tables.reports import IndexInfo, Report

Picture: TypeAlias = tuple[str, Sequence[Markup]]
"""A title, and the parts of a page."""

_MAX_THETA = 2.0**63
_BINS = 10  # of the hashes of a sketch
_MOST_DRAWN = 1 << 23  # positions of a vector; a few bytes can state billions


def page_of(shown: object) -> str:
    """A page that stands alone."""
    title, parts = picture(shown)
    return page(title, *parts)


def fragment_of(shown: object) -> str:
    """HTML for the cell of a notebook."""
    title, parts = picture(shown)
    return fragment(element("h3", title), *parts)


def shown_types() -> list[type]:
    """The types that notebooks show as HTML."""
    return [shown for shown in picture.registry if shown is not object]


@singledispatch
def picture(shown: object) -> Picture:
    """The title and the parts of a page about an object; by default, its text."""
    return type(shown).__name__, [element("pre", str(shown))]


@picture.register
def _puffin(reader: PuffinReader) -> Picture:
    """The blobs, and the properties of the file."""
    rows = [
        [
            blob.type,
            ", ".join(map(str, blob.fields)),
            blob.offset,
            blob.length,
            blob.codec,
            ", ".join(f"{name} {value}" for name, value in blob.properties.items()),
        ]
        for blob in reader.blobs
    ]
    head = ["type", "fields", "offset", "bytes", "codec", "properties"]
    parts = [section(f"Blobs of {reader.name}", table(head, rows, numbers=(2, 3)))]
    if reader.properties:
        named = [[name, value] for name, value in reader.properties.items()]
        parts.append(section("Properties", table(["name", "value"], named)))
    return f"Puffin file {reader.name}", parts


@picture.register
def _hash_index(index: HashIndex) -> Picture:
    """How many hashes there are, and how they are spread: evenly, if the hash is a good one."""
    title = f"Hash index of {count_text(len(index), 'key')}"
    limits = np.iinfo(np.int32)
    spread = distribution(index.hashes, limits.min, limits.max, what="hashes", bins=8)
    return title, [element("p", title), spread]


@picture.register
def _deletion_vector(vector: DeletionVector) -> Picture:
    """How many rows are deleted, and where they are dense."""
    title = f"Deletion vector of {vector.bits} bits"
    first, last = vector.first, vector.last
    if first is None or last is None:
        return title, [element("p", f"{title}: no row is deleted.")]
    summary = f"{title}: {count_text(vector.cardinality, 'row')} from {first:,} to {last:,}."
    if vector.cardinality > _MOST_DRAWN:
        return title, [element("p", summary)]
    spread = distribution(vector.to_numpy(), 0, last, what="deleted rows")
    return title, [element("p", summary), spread]


@picture.register
def _theta_sketch(sketch: ThetaSketch) -> Picture:
    """The estimate, what it is made of, and how its hashes are spread below theta."""
    about = "about " if sketch.theta < 1 else ""
    title = f"Theta sketch of {about}{count_text(sketch.ndv, 'distinct value')}"
    facts = table(
        ["estimate", "theta", "hashes"],
        [[f"{sketch.estimate:,.1f}", f"{sketch.theta:.4g}", len(sketch)]],
        numbers=(0, 1, 2),
    )
    if not len(sketch):
        return title, [element("p", title), facts]
    shares = sketch.hashes.astype(np.float64) / (sketch.theta * _MAX_THETA)
    counts, _ = np.histogram(shares, _BINS, (0, 1))
    labels = [f"{low * 100 // _BINS} % of theta" for low in range(_BINS)]
    return title, [element("p", title), facts, histogram(labels, counts.tolist(), what="hashes")]


@picture.register
def _file_index(index: FileIndex) -> Picture:
    """The indexes, and the bytes of the file drawn."""
    source = index.container.source
    types = {}
    for entry in index.entries:
        with suppress(ColumnError):
            types[entry.column] = index.type_of(entry.column)
    rows = [
        [
            entry.column,
            types.get(entry.column),
            entry.index_type,
            None if entry.is_empty else entry.start,
            entry.length,
        ]
        for entry in index.entries
    ]
    head = ["column", "type", "index", "offset", "bytes"]
    parts = [section(f"Indexes of {source.name}", table(head, rows, numbers=(3, 4)))]
    with suppress(AlcidError):  # a file that was closed
        region = map_bytes(source, types, kind=Kind.FILE_INDEX)
        parts.append(section("Bytes", byte_strip(region, anchor=f"index-{id(index)}")))
    return f"File index {source.name}", parts


@picture.register
def _explanation(explanation: Explanation) -> Picture:
    """Tables of stages and reasons, and a map of the files."""
    outcomes = None if explanation.outcomes is None else explanation.outcomes.columns()
    question = question_text(explanation)
    return question, plan_parts(
        {**explanation.to_dict(), "question": question, "outcomes": outcomes}
    )


@picture.register
def _sql_explanation(explanation: SqlExplanation) -> Picture:
    """What each table is asked for, and its plan."""
    parts = [element("pre", explanation.query.strip())]
    for use in explanation.tables:
        plan = [] if use.explanation is None else picture(use.explanation)[1]
        parts.append(section(use.name, element("pre", use.head()), *plan))
    return "What a query asks of its tables", parts


@picture.register(Table)
def _table(shown: Table[Any]) -> Picture:
    """The columns of a table, and their indexes."""
    return f"{type(shown).__name__} {shown.location}", _table_parts(shown, shown.indexes())


def _table_parts(shown: Table[Any], indexes: Sequence[IndexInfo]) -> list[Markup]:
    """The parts of a page about a table."""
    files = shown.snapshot
    counts = (
        count_text(len(files.sizes), "file"),
        _rows_text(files),
        size_text(int(files.sizes.sum())),
    )
    by_column: dict[str, list[str]] = {}
    for info in indexes:
        outer, key, _ = info.column.partition("[")  # a key of a map stands by the map
        kind, coverage = info.index_type, str(info).partition(": ")[2]
        by_column.setdefault(outer.lower(), []).append(
            f"{kind} of {info.column}: {coverage}" if key else f"{kind}: {coverage}"
        )
    partitions = set(files.columns.partitions)
    rows = [
        [
            element("code", name),
            str(column.data_type or "not known"),
            "; ".join(by_column.get(name.lower(), ["partition"] if name in partitions else [])),
        ]
        for name, column in files.columns.columns.items()
    ]
    return [element("p", ", ".join(counts)), table(["column", "type", "indexes"], rows)]


def _rows_text(files: TableFiles) -> str:
    """How many rows there are; to count those that are deleted may take reading all files."""
    rows, deletions = int(files.rows.sum()), files.deletions
    if isinstance(deletions, dict):
        rows -= sum(map(len, deletions.values()))
    text = count_text(rows, "row")
    if getattr(files, "delegated_reason", "") or (deletions and not isinstance(deletions, dict)):
        return f"{text} with those that are deleted"
    return text


@picture.register
def _advice(advice: Advice) -> Picture:
    """The table of indexes, and what to build."""
    head, rows, numbers = advice.table()
    options = ", ".join(f"{key} = {value}" for key, value in advice.options.items())
    return "Advice", [
        element("p", advice.title()),
        table(head, rows, numbers=numbers),
        element("p", options or "no index pays", class_="note"),
    ]


@picture.register
def _report(report: Report) -> Picture:
    """The text of a report."""
    return type(report).__name__, [element("pre", str(report))]


@picture.register
def _verify_report(report: VerifyReport) -> Picture:
    """A table of the indexes, and what is wrong."""
    first, *others = str(report).splitlines()
    listed = {str(check) for check in report.indexes}
    head = ["index", "column", "checked", "sound", "differ", "damaged", "stale", "missing"]
    names = ("checked", "sound", "differing", "damaged", "stale", "missing")
    rows = [
        [check.index_type, check.column, *(getattr(check, name) for name in names)]
        for check in report.indexes
    ]
    notes = [element("p", line, class_="note") for line in others if line not in listed]
    result = element("p", first, class_="good" if report.ok else "bad")
    return "Verify", [result, table(head, rows, numbers=range(2, 8)), *notes]


@picture.register
def _repair_report(report: RepairReport) -> Picture:
    """A table of what was repaired, and one of what was not."""
    head = ["file", "what", "problem", "done"]
    first = element("p", str(report).splitlines()[0], class_="good" if report.ok else "bad")
    repaired = [
        [finding.file, finding.what, finding.problem, finding.done] for finding in report.repaired
    ]
    others = [
        [finding.file, finding.what, finding.problem, finding.advice]
        for finding in report.not_repaired
    ]
    parts = [first, *([table([*head[:3], "to do"], others)] if others else [])]
    return "Repair", [*parts, *([table(head, repaired)] if repaired else [])]
