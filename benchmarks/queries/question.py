"""One question, in the words of every engine. It needs nothing but Python, as peers import it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

__all__ = ["LIMIT", "Leaf", "Question"]

LIMIT = 10
"""The rows of a top-n question."""

Leaf: TypeAlias = tuple[str, str, Any]
"""Column, comparison (=, <, > or in), and a literal or a list of them."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a table."""

    name: str
    ask: Literal["rows", "top", "count", "sum"]
    """All columns of the rows; those of the highest scores, highest first; how many rows there
    are; or the sum of their scores."""
    where: tuple[tuple[Leaf, ...], ...] = ()
    """The rows for which all leaves of any of these hold; empty: all rows."""

    @classmethod
    def from_json(cls, read: dict[str, Any]) -> Self:
        """Restore it from `dataclasses.asdict` and JSON."""
        where = tuple(tuple(tuple(leaf) for leaf in leaves) for leaves in read["where"])
        return cls(read["name"], read["ask"], where)

    @property
    def condition(self) -> str:
        """The predicate as SQL text; empty if there is none."""
        return " OR ".join(" AND ".join(map(_leaf_text, leaves)) for leaves in self.where)

    def select(self, table: str) -> str:
        """The question as a SQL statement."""
        what = {"count": "count(*)", "sum": "sum(score)"}.get(self.ask, "*")
        where = f" WHERE {self.condition}" if self.where else ""
        order = f" ORDER BY score DESC LIMIT {LIMIT}" if self.ask == "top" else ""
        return f"SELECT {what} FROM {table}{where}{order}"


def _leaf_text(leaf: Leaf) -> str:
    column, comparison, literal = leaf
    if comparison == "in":
        return f"{column} IN ({', '.join(map(str, literal))})"
    return f"{column} {comparison} {literal}"
