"""What a reading gives, and what it took."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from alcid.plan.places import Places
from alcid.storage import Traffic

__all__ = ["Part", "Spent"]


@dataclass(slots=True)
class Spent:
    """Time and traffic until it was known what to read, and until it was read."""

    open_seconds: float = 0.0
    open_requests: int = 0
    open_bytes: int = 0
    read_seconds: float = 0.0
    read_requests: int = 0
    read_bytes: int = 0

    def opening(self, seconds: float, traffic: Traffic) -> None:
        """Note what it took to find out what to read."""
        self.open_seconds += seconds
        self.open_requests += traffic.requests
        self.open_bytes += traffic.bytes_read

    def reading(self, seconds: float, traffic: Traffic) -> None:
        """Note what it took to read."""
        self.read_seconds += seconds
        self.read_requests += traffic.requests
        self.read_bytes += traffic.bytes_read


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows that match, and where they stand."""

    table: pa.Table
    places: Places

    def __len__(self) -> int:
        return len(self.places)
