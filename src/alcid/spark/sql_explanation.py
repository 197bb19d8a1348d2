"""What `explain_sql` gives: what a query asks of each table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from alcid.pictures.shown import Shown
from alcid.plan import Explanation

if TYPE_CHECKING:
    from alcid.pictures.page import Markup

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

    def to_dict(self) -> dict[str, Any]:
        """The same in plain dicts and lists."""
        plan = None if self.explanation is None else self.explanation.to_dict()
        return {**asdict(replace(self, explanation=None)), "explanation": plan}

    def head(self) -> str:
        """What it is asked for."""
        lines = [f"{self.name}: {self.location}"]
        if self.explanation is None:
            return "\n".join([*lines, "  no row: it does not occur in Spark's optimised plan"])
        if self.reason:
            lines.append(f"  every row: {self.reason}")
        elif not self.exact:
            lines.append("  a part of the filter is left to Spark")
        lines += (f"  Spark's filter: {text or 'none'}" for text in dict.fromkeys(self.filters))
        lines.append(f"  columns: {', '.join(self.columns) or 'none'}")
        return "\n".join(lines)

    def __str__(self) -> str:
        plan = "" if self.explanation is None else str(self.explanation)
        return "\n".join([self.head(), *(f"  {line}" for line in plan.splitlines())])


@dataclass(frozen=True, slots=True)
class SqlExplanation(Shown):
    """What a query asks of its tables; `str` is a text to read."""

    query: str
    tables: tuple[TableUse, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same in plain dicts and lists."""
        return {"query": self.query, "tables": [use.to_dict() for use in self.tables]}

    def picture(self) -> tuple[str, Sequence[Markup]]:
        """What each table is asked for, and its plan."""
        from alcid.pictures.page import element, section

        parts = [element("pre", self.query.strip())]
        for use in self.tables:
            plan = [] if use.explanation is None else use.explanation.picture()[1]
            parts.append(section(use.name, element("pre", use.head()), *plan))
        return "What a query asks of its tables", parts

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def __str__(self) -> str:
        return "\n".join([self.query.strip(), *map(str, self.tables)])
