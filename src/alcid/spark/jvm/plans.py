"""Plans of Spark, as the nodes in the driver's JVM show them.

As few calls as can be are made: each goes over a socket, and takes a tenth of a millisecond.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

__all__ = ["Condition", "Node", "listed"]

_OWN = "org.apache.spark.sql."
_SEPARATOR = "\x1f"
_ATTRIBUTE = re.compile(r"#(\d+)L?")


class Node:
    """A node of a plan."""

    def __init__(self, java: Any) -> None:
        """Wrap it; nothing is asked before it is needed."""
        self.java = java

    @cached_property
    def kind(self) -> str:
        """Its class, without the package if that is Spark's own."""
        name = str(self.java.getClass().getName())
        return name.rpartition(".")[2] if name.startswith(_OWN) else name

    @cached_property
    def children(self) -> list[Node]:
        """The nodes below."""
        return [Node(child) for child in listed(self.java.children())]

    @cached_property
    def subqueries(self) -> list[Node]:
        """The plans within its expressions."""
        return [Node(plan) for plan in listed(self.java.subqueries())]

    @cached_property
    def relation(self) -> int | None:
        """The id of a table that `SideSession.empty` may have made; None of any other node."""
        return int(self.java.rdd().id()) if self.kind == "LogicalRDD" else None

    def has_relation_in_subquery(self, relations: Collection[int]) -> bool:
        """Whether one of these tables occurs in a plan within an expression."""
        waiting = [(self, False)]
        while waiting:
            node, is_inside = waiting.pop()
            if is_inside and node.relation in relations:
                return True
            waiting += [(child, is_inside) for child in node.children]
            waiting += [(plan, True) for plan in node.subqueries]
        return False

    def attributes(self, names: Sequence[str]) -> dict[int, str] | None:
        """The columns of a leaf by their ids; None where they are not those of these names."""
        text, place, found = str(self.java.output().mkString(_SEPARATOR)), 0, dict[int, str]()
        for name in names:
            known = text.startswith(f"{name}#", place)
            number = _ATTRIBUTE.match(text, place + len(name)) if known else None
            if number is None:
                return None
            found[int(number[1])] = name
            place = number.end() + len(_SEPARATOR)
        return found if place == len(text) + len(_SEPARATOR) else None

    def references(self) -> set[int] | None:
        """The ids of all columns in its expressions; None where they cannot be told."""
        text = str(self.java.references().toSeq().mkString(_SEPARATOR))
        ends = [re.search(r"#(\d+)L?$", part) for part in text.split(_SEPARATOR) if part]
        return None if None in ends else {int(end[1]) for end in ends if end is not None}

    def condition(self) -> Condition:
        """That of a Filter."""
        return Condition(self.java.condition())

    def projected(self) -> list[Condition]:
        """The expressions of a Project."""
        return [Condition(expression) for expression in listed(self.java.projectList())]

    def order(self) -> list[Condition]:
        """The keys of a Sort."""
        return [Condition(key) for key in listed(self.java.order())]

    @property
    def is_global(self) -> bool:
        """Whether a Sort is of all rows, and not of each partition, as SORT BY is."""
        return bool(getattr(self.java, "global")())

    def limit(self) -> Condition:
        """How many rows a limit leaves."""
        return Condition(self.java.limitExpr())


class Condition:
    """An expression: its nodes, each before those below it."""

    def __init__(self, java: Any) -> None:
        """Take all of it in one call."""
        self._java = java
        self.nodes: list[dict[str, Any]] = json.loads(java.toJSON())

    def __str__(self) -> str:
        return re.sub(r"#\d+L?\b", "", str(self._java.toString()))

    def at(self, path: Sequence[int]) -> Any:
        """A node itself, by the places of the children that lead to it."""
        node = self._java
        for place in path:
            node = node.children().apply(place)
        return node


def listed(items: Any) -> list[Any]:
    """A sequence of Scala's as a list."""
    return [items.apply(place) for place in range(items.size())]
