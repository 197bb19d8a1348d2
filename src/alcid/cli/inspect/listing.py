"""What is found in a file that is a list of things: facts of the file, and of each thing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, TypeAlias

from alcid.byte_map.kinds import Kind
from alcid.byte_map.values import Value
from alcid.errors import AlcidError
from alcid.formats.source import Source

__all__ = ["Facts", "Item", "Listing", "State", "problem_of"]

Facts: TypeAlias = dict[str, Value]
State: TypeAlias = Literal["ok", "empty", "unknown", "damaged"]
"""empty: nothing was written, for a file without rows. unknown: of a type of someone else."""


@dataclass(frozen=True, slots=True)
class Item:
    """One of the things that a file holds."""

    columns: Facts
    """What every item has, and a table has a column for."""
    facts: Facts = field(default_factory=dict)
    """What is told of this one."""
    properties: dict[str, str] = field(default_factory=dict)
    """What its writer said of it."""
    problem: str | None = None
    known: bool = True
    """False for a type of someone else, which is not looked into."""

    @property
    def state(self) -> State:
        """Whether it was read, and found whole."""
        if self.problem is not None:
            return "damaged"
        return "ok" if self.known else "unknown"


@dataclass(frozen=True, slots=True)
class Listing:
    """A file, and what it holds one after the other."""

    file: str
    kind: Kind
    size: int
    head: Facts
    properties: dict[str, str] = field(default_factory=dict)
    things: str | None = None
    """What the items are, in the plural; None for a file that is one thing."""
    items: tuple[Item, ...] = ()
    count: int = 0
    """How many items there are; not all may be here."""
    damaged: int = 0
    """How many of them are damaged, shown or not."""

    @classmethod
    def of(
        cls,
        source: Source,
        kind: Kind,
        head: Facts,
        things: str,
        items: Iterable[Item],
        limit: int | None,
        properties: dict[str, str] | None = None,
    ) -> Listing:
        """Take the first items, and count the others without keeping them."""
        every = iter(items)
        shown = tuple(islice(every, limit))
        count, damaged = len(shown), sum(item.state == "damaged" for item in shown)
        for item in every:
            count += 1
            damaged += item.state == "damaged"
        return cls(
            source.name, kind, source.size, head, properties or {}, things, shown, count, damaged
        )

    @property
    def truncated(self) -> bool:
        """True when not all items are here."""
        return self.count > len(self.items)

    @property
    def is_damaged(self) -> bool:
        """True when any item is."""
        return self.damaged > 0


def problem_of(error: AlcidError, file: str | None = None) -> str:
    """The message of an error without the file, which the report names already."""
    file = getattr(error, "file", None) if file is None else file
    return str(error).removeprefix(f"{file}: ").removeprefix(f"{file}, ")
