"""What a reading gives, and what it took."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from alcid.plan.places import Places
from alcid.storage import Traffic

__all__ = ["Part", "Spent"]


@dataclass(slots=True)
class Spent:
    """Time and traffic until it was known what to read, and until it was read."""

    open_seconds: float = 0.0
    opened: Traffic = field(default_factory=Traffic)
    read_seconds: float = 0.0
    read: Traffic = field(default_factory=Traffic)

    def opening(self, seconds: float, traffic: Traffic) -> None:
        """Note what it took to find out what to read."""
        self.open_seconds += seconds
        self.opened += traffic

    def reading(self, seconds: float, traffic: Traffic) -> None:
        """Note what it took to read."""
        self.read_seconds += seconds
        self.read += traffic


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows that match, and where they stand."""

    table: pa.Table
    places: Places

    def __len__(self) -> int:
        return len(self.places)
