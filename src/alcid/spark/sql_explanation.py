"""What `explain_sql` gives: what a query asks of each table."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from alcid.plan import Explanation

__all__ = ["SqlExplanation", "TableUse"]


@dataclass(frozen=True, slots=True)
class TableUse:
    """What a query asks of a table."""

    name: str
    """By which the query calls it."""
    location: str
    occurrences: int | None
    """How often it occurs in Spark's optimised plan; None where the plan is not known."""
    filters: tuple[str, ...]
    """What stands directly over each occurrence, as Spark writes it; empty where nothing does."""
    where: str
    """What the table is asked for; `TRUE` is every row, `FALSE` none."""
    exact: bool
    """Whether this is all of the filters; else Spark has a part of them to itself."""
    columns: tuple[str, ...]
    """Those that are read; any other is not used by the query."""
    order_by: str
    limit: int | None
    """With it only the first rows of this order are read."""
    reason: str
    """Why every row is read; empty if that is not so."""
    explanation: Explanation | None
    """What the table makes of it; None where no row is needed."""

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.location}"]
        if self.explanation is None:
            return "\n".join([*lines, "  no row: it does not occur in Spark's optimised plan"])
        if self.reason:
            lines.append(f"  every row: {self.reason}")
        elif not self.exact:
            lines.append("  a part of the filter is left to Spark")
        lines += (f"  Spark's filter: {text or 'none'}" for text in dict.fromkeys(self.filters))
        lines.append(f"  columns: {', '.join(self.columns) or 'none'}")
        lines += (f"  {line}" for line in str(self.explanation).splitlines())
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class SqlExplanation:
    """What a query asks of its tables; `str` is a text to read."""

    query: str
    tables: tuple[TableUse, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same in plain dicts and lists."""
        return asdict(self)

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        return "\n".join([self.query.strip(), *map(str, self.tables)])
