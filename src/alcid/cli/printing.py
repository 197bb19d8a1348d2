"""Print reports: lines and tables of text for people, or one JSON document for programs.

Progress goes to stderr: a bar on a terminal, lines in a log.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from alcid._text import printable
from alcid.cli.files import FileIndexReport, Listing
from alcid.cli.files.contents import Item
from alcid.cli.files.file_index import IndexReport, ListedValue
from alcid.cli.files.page import INDEX_TITLES, facts_text, index_row, item_row, item_titles
from alcid.cli.files.probe import ProbeReport
from alcid.inspect import save_html
from alcid.inspect.byte_map.regions import decimal_text, not_finite, value_text

if TYPE_CHECKING:
    from alcid.tables.progress import Progress


class Report(Protocol):
    """The result of a command; `str` gives the text to print."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""


def print_report(report: Report, *, as_json: bool) -> None:
    """Print a report, as a text or as JSON."""
    if as_json:
        print_json(report.to_dict())
    else:
        print_lines(str(report))


def print_report_or_page(report: Report, html: str | None, *, as_json: bool) -> None:
    """Write a report as an HTML page if a file is named, and print it otherwise or as JSON."""
    if html is not None:
        save_html(report, html)
    if html is None or as_json:
        print_report(report, as_json=as_json)
    else:
        print_lines(f"written to {html}")


def print_lines(text: str, *, to_stderr: bool = False) -> None:
    """Print lines, with control characters and what the encoding cannot show escaped."""
    stream = sys.stderr if to_stderr else sys.stdout
    encoding = stream.encoding or "utf-8"  # text in memory has none
    lines = "".join(f"{printable(line)}\n" for line in text.split("\n"))
    stream.write(lines.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()  # here, where a closed pipe is handled


def print_json(document: Any) -> None:
    """Print one document on one line, in ASCII, which passes through any pipe."""
    sys.stdout.write(json.dumps(plain(document), allow_nan=False) + "\n")
    sys.stdout.flush()


def plain(value: Any) -> Any:
    r"""Plain JSON values: decimals, NaN, infinities and times as text, bytes as hexadecimal digits.

    >>> plain({"at": datetime(2025, 8, 1, 12), "share": float("nan"), "hash": b"\x01"})
    {'at': '2025-08-01T12:00:00', 'share': 'NaN', 'hash': '01'}
    """
    match value:
        case Mapping():
            return {_key(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case float() if not math.isfinite(value):
            return not_finite(value)
        case Decimal():
            return decimal_text(value)
        case bytes():
            return value.hex()
        case date() | datetime() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
        case _:
            return value


def _key(key: Any) -> str:
    value = plain(key)
    return value if isinstance(value, str) else json.dumps(value)


class Output(Protocol):
    """Prints reports on index files."""

    def file(self, report: FileIndexReport | Listing) -> None:
        """Print the contents of a file."""

    def probe(self, report: ProbeReport) -> None:
        """Print the answer to a probe."""


def choose_output(*, as_json: bool) -> Output:
    """The output for `--json`, or that for text."""
    if as_json:
        return JsonOutput()

    return TextOutput()


class JsonOutput:
    """One document on one line, in ASCII, so that it passes through any pipe.

    Decimals, NaN and the infinities are text, and bytes are text in hexadecimal.
    """

    def file(self, report: FileIndexReport | Listing) -> None:
        """Print the contents of a file."""
        document: dict[str, Any] = {"file": report.file, "kind": report.kind, "size": report.size}
        document |= report.head
        match report:
            case FileIndexReport():
                lists_values = report.lists_values
                document["indexes"] = [
                    _index(index, lists_values=lists_values) for index in report.indexes
                ]
            case Listing(things=str(things)):
                document |= {"properties": report.properties} if report.properties else {}
                document[things] = [_item(item) for item in report.items]
                document["truncated"] = report.truncated
                document["count"] = report.count
                document["damaged"] = report.damaged
        print_json(document)

    def probe(self, report: ProbeReport) -> None:
        """Print the answer to a probe."""
        print_json(asdict(report))


def _index(index: IndexReport, *, lists_values: bool) -> dict[str, Any]:
    fields = asdict(index)
    del fields["values"]
    facts = fields.pop("facts")
    document = {**fields, **facts}
    if lists_values:
        values = index.values
        document["values"] = None if values is None else [_listed(value) for value in values]
        document["truncated"] = index.truncated
    return document


def _item(item: Item) -> dict[str, Any]:
    properties = {"properties": item.properties} if item.properties else {}
    return {
        **item.columns,
        "state": item.state,
        "problem": item.problem,
        **item.facts,
        **properties,
    }


def _listed(value: ListedValue) -> dict[str, Any]:
    return {**asdict(value), "truncated": value.truncated}


def aligned(columns: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> list[str]:
    r"""Lines of padded columns; those at the positions in `numbers` are aligned to the right.

    >>> print(*aligned([("INDEX", "bitmap", "bsi"), ("FILES", "7", "12")], {1}), sep="\n")
    INDEX   FILES
    bitmap      7
    bsi        12
    """
    from rich.cells import cell_len

    padded = []
    for position, column in enumerate(columns):
        lengths = [cell_len(cell) for cell in column]
        widest = max(lengths, default=0)
        spaces = [" " * (widest - length) for length in lengths]
        pairs = zip(column, spaces, strict=True)
        right = position in numbers
        padded.append([space + cell if right else cell + space for cell, space in pairs])
    return ["  ".join(cells).rstrip() for cells in zip(*padded, strict=True)]


_UNLIMITED = 1_000_000  # columns of a pipe, whose reader expects whole lines
_NUMBERS = ("OFFSET", "BYTES", "LENGTH", "COUNT", "SNAPSHOT ID", "SEQUENCE NUMBER")


class TextOutput:
    """Lines and tables; in colour and folded to the width only on a terminal."""

    def __init__(self) -> None:
        """Write to stdout."""
        from rich.console import Console  # not needed for --help and --json

        self._console = Console(file=sys.stdout)
        if not self._console.is_terminal:
            self._console.width = _UNLIMITED

    def file(self, report: FileIndexReport | Listing) -> None:
        """Print the contents of a file."""
        self._line(f"{report.file}: {report.kind}, {_count(report.size, 'byte')}")
        if isinstance(report, FileIndexReport):
            self._file_index(report)
        else:
            self._listing(report)
        sys.stdout.flush()  # here, where a closed pipe is handled

    def _file_index(self, report: FileIndexReport) -> None:
        head = report.head
        counts = (
            f"head of {_count(head['head_length'], 'byte')}",
            _count(head["redundant_bytes"], "redundant byte"),
            _count(head["columns"], "column"),
        )
        self._line(f"version {head['version']}, {', '.join(counts)}")
        if report.indexes:
            self._line()
            self._table([title.upper() for title in INDEX_TITLES], map(index_row, report.indexes))
        for index in report.indexes if report.lists_values else ():
            self._values(index)

    def _listing(self, report: Listing) -> None:
        if head := facts_text({**report.head, **report.properties}):
            self._line(head)
        if report.truncated:
            self._line(f"{len(report.items)} of {report.count} {report.things}")
        if report.items:
            self._line()
            titles = [title.upper() for title in item_titles(report)]
            self._table(titles, map(item_row, report.items))

    def probe(self, report: ProbeReport) -> None:
        """Print the answer to a probe."""
        match report.answer:
            case "skip":
                self._line("skip: no row can match")
            case "any" if report.exact:
                self._line("every row matches")
            case "any":
                self._line("any row: the indexes cannot decide")
            case "rows":
                shown = _positions(report.positions, truncated=report.truncated)
                self._line(f"{_count(report.count or 0, 'row')}: {shown}")
        for note in (*report.notes, *_left_to_do(report)):
            self._line(f"note: {note}")
        sys.stdout.flush()

    def _values(self, index: IndexReport) -> None:
        """Print the values of a column that an index contains."""
        title = f"{index.column}, {index.index_type}"
        self._line()
        if index.values is None:
            reason = "has no list of values" if index.state == "ok" else f"{index.state}, no values"
            self._line(f"{title}: {reason}")
            return
        self._line(f"{title}: {len(index.values)} of {_count(index.value_count, 'value')}")
        if index.values:
            rows = (
                (
                    value_text(listed.value),
                    str(listed.count),
                    _positions(listed.positions, truncated=listed.truncated),
                )
                for listed in index.values
            )
            self._table(("VALUE", "COUNT", "POSITIONS"), rows)

    def _line(self, text: str = "") -> None:
        _write(printable(text))

    def _table(self, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        if not self._console.is_terminal:  # a hundred times faster, and the same
            columns = zip(titles, *([printable(cell) for cell in row] for row in rows), strict=True)
            numbers = [position for position, title in enumerate(titles) if title in _NUMBERS]
            for line in aligned(list(columns), numbers):
                _write(line)
            return
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for title in titles:
            table.add_column(
                title, justify="right" if title in _NUMBERS else "left", overflow="fold"
            )
        for row in rows:
            # Text, not str: rich would read the column `m[red]` as markup.
            table.add_row(*(Text(printable(cell)) for cell in row))
        with self._console.capture() as capture:
            self._console.print(table)
        for line in capture.get().splitlines():
            _write(line.rstrip())


def _write(line: str) -> None:
    """Write a line, with what the encoding of stdout cannot show escaped."""
    encoding = sys.stdout.encoding or "utf-8"  # text in memory has none
    sys.stdout.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def _left_to_do(report: ProbeReport) -> list[str]:
    """Notes on what remains to be done with rows that are not exact."""
    if report.exact or report.answer != "rows":
        return []
    if report.order is not None:
        return ["these rows are not in order: sort them to get the first"]
    return ["some of these rows may not match: apply the predicate to them"]


def _positions(shown: Sequence[int], *, truncated: bool) -> str:
    more = ["..."] if truncated else []
    return ", ".join([*map(str, shown), *more])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def choose_progress(*, quiet: bool) -> Progress | bool:
    """The `progress` argument for a table.

    >>> choose_progress(quiet=True)
    False
    """
    if quiet or sys.stderr.isatty():
        return not quiet
    from alcid.tables.progress import ProgressLines

    return ProgressLines()
