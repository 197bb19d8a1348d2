"""What a delete did."""

from __future__ import annotations

from dataclasses import dataclass

from alcid.tables.build_report import count_text

__all__ = ["DeleteReport"]


@dataclass(frozen=True, slots=True)
class DeleteReport:
    """What a delete did.

    >>> print(DeleteReport(1200, 3, 7))
    deleted 1,200 rows of 3 files: snapshot 7
    >>> print(DeleteReport(0, 0, None))
    deleted nothing: no row matches
    """

    rows: int
    """Those that were not deleted before."""
    files: int | None
    """Data files that they are of; None in a Paimon table with a primary key, where they are
    counted by key."""
    snapshot_id: int | None
    """The new snapshot; None where there was nothing to do."""

    def __str__(self) -> str:
        if self.snapshot_id is None:
            return "deleted nothing: no row matches"
        done = count_text(self.rows, "row")
        if self.files is not None:
            done += f" of {count_text(self.files, 'file')}"
        return f"deleted {done}: snapshot {self.snapshot_id}"
