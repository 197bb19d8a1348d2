"""Reports as text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from alcid.byte_map.values import value_text
from alcid.cli.inspect import FileIndexReport, Listing
from alcid.cli.inspect.file_index import IndexReport
from alcid.cli.inspect.wording import INDEX_TITLES, facts_text, index_row, item_row, item_titles
from alcid.cli.probe import ProbeReport
from alcid.cli.text_table import aligned
from alcid.printable import printable

__all__ = ["TextOutput"]

_UNLIMITED = 1_000_000  # columns of a pipe: what reads it wants whole lines
_NUMBERS = ("OFFSET", "BYTES", "LENGTH", "COUNT", "SNAPSHOT ID", "SEQUENCE NUMBER")


class TextOutput:
    """Lines and tables; in colour, and folded to its width, on a terminal only."""

    def __init__(self) -> None:
        """Write to stdout."""
        self._console = Console(file=sys.stdout)
        if not self._console.is_terminal:
            self._console.width = _UNLIMITED

    def file(self, report: FileIndexReport | Listing) -> None:
        """What `inspect` found."""
        self._line(f"{report.file}: {report.kind}, {_count(report.size, 'byte')}")
        if isinstance(report, FileIndexReport):
            self._file_index(report)
        else:
            self._listing(report)
        sys.stdout.flush()  # here, where a closed pipe is seen to

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
        """What `probe` was answered."""
        match report.answer:
            case "skip":
                self._line("skip: no row can match")
            case "any" if report.exact:
                self._line("every row matches")
            case "any":
                self._line("any row: the indexes cannot tell")
            case "rows":
                shown = _positions(report.positions, truncated=report.truncated)
                self._line(f"{_count(report.count or 0, 'row')}: {shown}")
        for note in (*report.notes, *_left_to_do(report)):
            self._line(f"note: {note}")
        sys.stdout.flush()

    def _values(self, index: IndexReport) -> None:
        """The values of a column, as one of its indexes keeps them."""
        title = f"{index.column}, {index.index_type}"
        self._line()
        if index.values is None:
            kept = "keeps no list of values" if index.state == "ok" else f"{index.state}, no values"
            self._line(f"{title}: {kept}")
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
            numbers = [place for place, title in enumerate(titles) if title in _NUMBERS]
            for line in aligned(list(columns), numbers):
                _write(line)
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for title in titles:
            table.add_column(
                title, justify="right" if title in _NUMBERS else "left", overflow="fold"
            )
        for row in rows:
            # Text, not str, in which rich would look for its markup: `m[red]` is a column.
            table.add_row(*(Text(printable(cell)) for cell in row))
        with self._console.capture() as capture:
            self._console.print(table)
        for line in capture.get().splitlines():
            _write(line.rstrip())


def _write(line: str) -> None:
    """One line; what the encoding of stdout lacks is shown as escapes."""
    encoding = sys.stdout.encoding or "utf-8"  # text in memory has none
    sys.stdout.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def _left_to_do(report: ProbeReport) -> list[str]:
    """What is left to do with rows that are not exact."""
    if report.exact or report.answer != "rows":
        return []
    if report.order is not None:
        return ["these rows are not in order: sort them to find the first"]
    return ["some of these rows may not match: apply the predicate to them"]


def _positions(shown: Sequence[int], *, truncated: bool) -> str:
    more = ["..."] if truncated else []
    return ", ".join([*map(str, shown), *more])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
