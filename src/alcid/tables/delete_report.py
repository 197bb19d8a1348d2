"""What a delete did."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from alcid.pictures.shown import Shown
from alcid.pictures.units import count_text

__all__ = ["DeleteReport"]


@dataclass(frozen=True, slots=True)
class DeleteReport(Shown):
    """What a delete did.

    >>> print(DeleteReport(1200, 3, 7))
    deleted 1,200 rows of 3 files: snapshot 7
    >>> print(DeleteReport(0, 0, None))
    deleted nothing: no row matches
    >>> print(DeleteReport(1200, 3, 7, dry_run=True))
    would have deleted 1,200 rows of 3 files: snapshot 7
    """

    rows: int
    """Those that were not deleted before."""
    files: int | None
    """Data files that they are of; None in a Paimon table with a primary key, where they are
    counted by key."""
    snapshot_id: int | None
    """The new snapshot; None where there was nothing to do, or it is not known before."""
    dry_run: bool = False
    """Nothing was changed."""

    def __str__(self) -> str:
        if not self.rows:
            return "deleted nothing: no row matches"
        done = count_text(self.rows, "row")
        if self.files is not None:
            done += f" of {count_text(self.files, 'file')}"
        would = "would have " if self.dry_run else ""
        made = "" if self.snapshot_id is None else f": snapshot {self.snapshot_id}"
        return f"{would}deleted {done}{made}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)
