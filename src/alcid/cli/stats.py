"""What `alcid stats` counted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from alcid.pictures.units import count_text

__all__ = ["CountedColumn", "StatsReport"]

_SHOWN = "column", "type", "ndv", "nulls"


@dataclass(frozen=True, slots=True)
class CountedColumn:
    """What was counted of a column; None of a dry run.

    >>> print(CountedColumn("id", "BIGINT", 40_000, 3))
    id BIGINT: 40,000 distinct values, 3 nulls
    >>> print(CountedColumn("id", "BIGINT"))
    id BIGINT
    """

    column: str
    type: str
    ndv: int | None = None
    nulls: int | None = None

    def __str__(self) -> str:
        name = f"{self.column} {self.type}"
        if self.ndv is None:
            return name
        nulls = f", {count_text(self.nulls, 'null')}" if self.nulls else ""
        return f"{name}: {count_text(self.ndv, 'distinct value')}{nulls}"


@dataclass(frozen=True, slots=True)
class StatsReport:
    """What was counted, or would be.

    >>> print(StatsReport(1000, 4, (CountedColumn("id", "INT"),), dry_run=True))
    would have counted 1 column of 1,000 rows in 4 files
    id INT
    """

    rows: int
    files: int
    columns: tuple[CountedColumn, ...]
    dry_run: bool = False

    @classmethod
    def of(cls, counted: pa.Table, files: int) -> StatsReport:
        """From what `compute_stats` gives, which tells the rows with each column."""
        every = counted.to_pylist()
        return cls(
            every[0]["rows"] if every else 0,
            files,
            tuple(CountedColumn(*(one[key] for key in _SHOWN)) for one in every),
        )

    def __str__(self) -> str:
        would = "would have " if self.dry_run else ""
        where = f"{count_text(self.rows, 'row')} in {count_text(self.files, 'file')}"
        first = f"{would}counted {count_text(len(self.columns), 'column')} of {where}"
        return "\n".join([first, *map(str, self.columns)])

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)
