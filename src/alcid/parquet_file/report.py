"""What a read took: for `explain`, and for tests that count."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ReadReport"]


@dataclass(slots=True)
class ReadReport:
    """Filled by the reads that it is given to; several reads add up."""

    requests: int = 0
    """Ranged reads, those of footers too."""
    bytes_read: int = 0
    """The bytes of these reads, with the gaps between pages that were read along."""
    pages: int = 0
    """Data pages that were decoded one by one, over all columns."""
    row_groups: int = 0
    """Row groups that hold a row that was asked for."""
    whole: dict[str, str] = field(default_factory=dict)
    """Columns of which whole row groups were read, and why."""
