"""What an append did."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from alcid.pictures.shown import Shown
from alcid.pictures.units import count_text
from alcid.tables.build_report import Skipped, size_text

__all__ = ["AppendReport"]

_SHOWN = 10  # reasons in the text of a report


@dataclass(frozen=True, slots=True)
class AppendReport(Shown):
    """What an append did.

    >>> print(AppendReport(2, 1_000_000, 31_400_000, 5_200_000, 2, 3.21))
    appended 1,000,000 rows in 2 files, 31.4 MB; 5.2 MB of indexes in 2 bundles; 3.2 s
    >>> print(AppendReport(0, 0, 0, 0, 0, 0.4))
    appended nothing: there are no rows; 0.4 s
    >>> print(AppendReport(1, 10, 3_000, 480, 0, 0.1, snapshot_id=7))
    appended 10 rows in 1 file, 3.0 kB; 480 B of indexes; snapshot 7; 0.1 s
    >>> print(AppendReport(None, 10, None, None, 0, 0.1, dry_run=True))
    would have appended 10 rows; 0.1 s
    """

    files: int | None
    """How many data files were written; None, as their bytes, if a dry run on Spark cannot know."""
    rows: int
    bytes_written: int | None
    """Those of the data files."""
    index_bytes: int | None
    """Those of the bundles: indexes, statistics, and where pages are. In a Paimon table, those of
    the indexes."""
    bundles: int
    """A Paimon table has none."""
    seconds: float
    skipped: tuple[Skipped, ...] = ()
    """Indexes that files did not get, and why."""
    snapshot_id: int | None = None
    """The snapshot that was made; a folder has none."""
    dry_run: bool = False
    """Nothing was changed."""

    def __str__(self) -> str:
        if not self.rows:
            return f"appended nothing: there are no rows; {self.seconds:.1f} s"
        first = "would have " if self.dry_run else ""
        first += f"appended {count_text(self.rows, 'row')}"
        if self.files is not None:
            first += f" in {count_text(self.files, 'file')}, {size_text(self.bytes_written or 0)}"
        if self.index_bytes is not None:
            first += f"; {size_text(self.index_bytes)} of indexes"
            if self.snapshot_id is None:
                first += f" in {count_text(self.bundles, 'bundle')}"
        if self.snapshot_id is not None:
            first += f"; snapshot {self.snapshot_id}"
        lines = [f"{first}; {self.seconds:.1f} s", *map(str, self.skipped[:_SHOWN])]
        if len(self.skipped) > _SHOWN:
            lines.append(f"and {len(self.skipped) - _SHOWN} more reasons")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)
