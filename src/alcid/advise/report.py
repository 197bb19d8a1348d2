"""Advice, as a user holds it: text, JSON, and a table in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from alcid.types import DataType

if TYPE_CHECKING:
    pass

__all__ = ["Advice", "ColumnAdvice", "IndexEstimate", "percent"]

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
    """The share of the bytes of the needed columns that the queries of this column do not read, on
    average, with all advised indexes; from 0 to 1. None if there is no such query."""
    skip_before: float | None
    """The same without the indexes: what partitions, and least and greatest values skip. Those of
    the files of a folder are known as soon as it has an index of any column."""
    distinct: int | None = None
    """About how many distinct values the table has; None if the column was not looked at."""
    null_share: float | None = None
    candidates: tuple[IndexEstimate, ...] = ()
    """All indexes that were tried, the smallest first."""

    @classmethod
    def against(cls, column: str, data_type: DataType | None, reason: str) -> ColumnAdvice:
        """Advice on a column that was not looked at."""
        told = "" if data_type is None else str(data_type)
        return cls(column, told, "", reason, 0.0, 0, None, None)


@dataclass(frozen=True, slots=True)
class Advice:
    """What `advise` of a table gives; `str` is a table to read."""

    columns: tuple[ColumnAdvice, ...]
    queries: tuple[str, ...]
    """What was asked for; empty: typical queries of each column were tried."""
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
        found: dict[str, list[str]] = {}
        for one in self.columns:
            if one.index:
                found.setdefault(f"file-index.{one.index}.columns", []).append(one.column)
        return {key: ",".join(names) for key, names in sorted(found.items())}

    def to_dict(self) -> dict[str, Any]:
        """The same in plain dicts and lists, with the options."""
        return {**asdict(self), "options": self.options}

    def __str__(self) -> str:
        options = ", ".join(f"{key!r}: {value!r}" for key, value in self.options.items())
        return self.to_text(f"build_indexes({{{options}}})")

    def to_text(self, build: str) -> str:
        """The table to read, and below it how to build what pays."""
        rows = [_HEAD, *(tuple(map(_text, row)) for row in self._rows())]
        widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
        lines = [self.title()]
        for row in rows:
            cells = (
                cell.rjust(widths[place]) if place in _NUMBERS else cell.ljust(widths[place])
                for place, cell in enumerate(row)
            )
            lines.append("  ".join(cells).rstrip())
        lines.append(build if self.options else "no index pays")
        return "\n".join(lines)

    def table(self) -> tuple[Sequence[str], list[Sequence[object]], Sequence[int]]:
        """The head and the rows of the table of advice, and which columns are numbers."""
        return _HEAD, list(self._rows()), _NUMBERS

    def title(self) -> str:
        """How many queries were asked, and of how much of the table."""
        asked = f"{len(self.queries)} quer{'y' if len(self.queries) == 1 else 'ies'}"
        asked = asked if self.queries else "typical queries"
        found = f"{len(self.sampled_files):,} of {self.files:,} files"
        told = f"advice for {asked}, from {found}, in {self.seconds:.1f} s"
        if self.skip is None or self.skip_before is None:
            return told
        return f"{told}: skips {percent(self.skip)}, without indexes {percent(self.skip_before)}"

    def _rows(self) -> Iterable[tuple[object, ...]]:
        for one in self.columns:
            yield (
                one.column,
                one.data_type,
                one.index or "none",
                f"{one.bytes_per_row:.2f}" if one.index else None,
                None if one.skip is None else percent(one.skip),
                None if one.skip_before is None else percent(one.skip_before),
                one.reason,
            )


def _text(cell: object) -> str:
    return "" if cell is None else str(cell)


def percent(share: float) -> str:
    """A share for the eye; nearly all is not said to be all.

    >>> percent(0.123), percent(0.9996), percent(1.0)
    ('12 %', '99.9 %', '100 %')
    """
    if 0.99 < share < 1.0:
        return f"{min(100 * share, 99.94):.1f} %"
    return f"{100 * share:.0f} %"
