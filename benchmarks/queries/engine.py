"""What an engine does within its process. It needs nothing but Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from benchmarks.measure import Cost
from benchmarks.queries.question import Question

__all__ = ["Answer", "Engine", "Step", "size_of"]

Answer: TypeAlias = Any
"""An Arrow table; a number, where one is asked for; or, of rows that stay in a JVM, what is
compared: rows, columns and sums of the ids."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing done before any question: its name, what it took, the bytes that it left."""

    name: str
    cost: Cost
    size: int


class Engine(ABC):
    """A way to ask questions of the same rows."""

    package: ClassVar[str]
    """The distribution whose version counts."""

    def __init__(self, data: Path, own: Path) -> None:
        """Take the folder of the Parquet files, and the engine's own one for what it makes."""
        self.data, self.own = data, own

    def prepare(self, rows: int) -> Iterator[Step]:  # noqa: ARG002
        """Load the rows or build indexes, into the engine's own folder, which is new.

        Args:
            rows: The rows of a file.
        """
        return iter(())

    @abstractmethod
    def open(self) -> None:
        """Begin a session; an earlier one is forgotten, with what it keeps."""

    @abstractmethod
    def ask(self, question: Question) -> Answer:
        """Answer within the session."""

    def read_by_last(self) -> dict[str, int]:
        """What the engine itself says that the last question read."""
        return {}


def size_of(folder: Path, pattern: str = "*") -> int:
    """The bytes of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob(pattern) if path.is_file())
