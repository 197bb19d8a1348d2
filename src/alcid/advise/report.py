"""Advice as text, JSON and rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from alcid.types import DataType

_HEAD = ("column", "type", "index", "bytes/row", "skips", "without", "why")
_NUMBERS = (3, 4, 5)


@dataclass(frozen=True, slots=True)
class IndexEstimate:
    """What an index of a column would take, and what it would do alone."""

    index: str
    """Its type."""
    bytes_per_row: float
    table_bytes: int
    """Of the indexes of all files."""
    skip: float | None
    """As in `ColumnAdvice`, with this index and no other; None without queries of the column."""


@dataclass(frozen=True, slots=True)
class ColumnAdvice:
    """Whether to index a column, and how."""

    column: str
    data_type: str
    index: str
    """The type of the index that pays; empty if none does."""
    reason: str
    bytes_per_row: float
    """Of the index that pays; 0 if none does."""
    table_bytes: int
    """Of the indexes of all files."""
    skip: float | None
    """The part of the bytes of the needed columns that the queries of this column do not read, on
    average, with all advised indexes; from 0 to 1. None if there is no such query."""
    skip_before: float | None
    """The same without the indexes: what partitions and min/max skip. Those of
    the files of a folder are known as soon as it has an index of any column."""
    distinct: int | None = None
    """About how many distinct values the table has; None if the column was not looked at."""
    null_share: float | None = None
    candidates: tuple[IndexEstimate, ...] = ()
    """All indexes that were tried, the smallest first."""

    @classmethod
    def against(cls, column: str, data_type: DataType | None, reason: str) -> ColumnAdvice:
        """Advice on a column that was not looked at."""
        type_text = "" if data_type is None else str(data_type)
        return cls(column, type_text, "", reason, 0.0, 0, None, None)


@dataclass(frozen=True, slots=True)
class Advice:
    """What `advise` of a table gives; `str` is a table to read."""

    columns: tuple[ColumnAdvice, ...]
    queries: tuple[str, ...]
    """The queries; empty: typical queries of each column were tried."""
    files: int
    rows: int
    sampled_files: tuple[str, ...]
    """The paths of the files that were read."""
    skip: float | None
    """As in `ColumnAdvice`, over all queries."""
    skip_before: float | None
    seconds: float

    @property
    def options(self) -> dict[str, str]:
        """What to give to `build_indexes`; empty if no index pays."""
        by_option: dict[str, list[str]] = {}
        for column in self.columns:
            if column.index:
                by_option.setdefault(f"file-index.{column.index}.columns", []).append(column.column)
        return {key: ",".join(names) for key, names in sorted(by_option.items())}

    def to_dict(self) -> dict[str, Any]:
        """The same in plain dicts and lists, with the options."""
        return {**asdict(self), "options": self.options}

    def __str__(self) -> str:
        options = ", ".join(f"{key!r}: {value!r}" for key, value in self.options.items())
        return self.to_text(f"build_indexes({{{options}}})")

    def to_text(self, build: str) -> str:
        """The table to read, and below it how to build what pays."""
        rows = [_HEAD, *(tuple(map(_text, row)) for row in self._rows())]
        widths = [max(len(row[position]) for row in rows) for position in range(len(_HEAD))]
        lines = [self.title()]
        for row in rows:
            cells = (
                cell.rjust(widths[position])
                if position in _NUMBERS
                else cell.ljust(widths[position])
                for position, cell in enumerate(row)
            )
            lines.append("  ".join(cells).rstrip())
        lines.append(build if self.options else "no index pays")
        return "\n".join(lines)

    def table(self) -> tuple[Sequence[str], list[Sequence[object]], Sequence[int]]:
        """The head and the rows of the table of advice, and which columns are numbers."""
        return _HEAD, list(self._rows()), _NUMBERS

    def title(self) -> str:
        """How many queries there were, and how much of the table was read."""
        queries = f"{len(self.queries)} quer{'y' if len(self.queries) == 1 else 'ies'}"
        queries = queries if self.queries else "typical queries"
        files = f"{len(self.sampled_files):,} of {self.files:,} files"
        title = f"advice for {queries}, from {files}, in {self.seconds:.1f} s"
        if self.skip is None or self.skip_before is None:
            return title
        return f"{title}: skips {percent(self.skip)}, without indexes {percent(self.skip_before)}"

    def _rows(self) -> Iterable[tuple[object, ...]]:
        for column in self.columns:
            yield (
                column.column,
                column.data_type,
                column.index or "none",
                f"{column.bytes_per_row:.2f}" if column.index else None,
                None if column.skip is None else percent(column.skip),
                None if column.skip_before is None else percent(column.skip_before),
                column.reason,
            )


def _text(cell: object) -> str:
    return "" if cell is None else str(cell)


def percent(fraction: float) -> str:
    """A human-readable percentage; nearly all is not shown as all.

    >>> percent(0.123), percent(0.9996), percent(1.0)
    ('12 %', '99.9 %', '100 %')
    """
    if 0.99 < fraction < 1.0:
        return f"{min(100 * fraction, 99.94):.1f} %"
    return f"{100 * fraction:.0f} %"
