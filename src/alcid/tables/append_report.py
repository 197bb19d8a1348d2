"""What an append did."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from alcid.tables.build_report import Skipped, count_text, size_text

__all__ = ["AppendReport"]

_SHOWN = 10  # reasons in the text of a report


@dataclass(frozen=True, slots=True)
class AppendReport:
    """What an append did.

    >>> print(AppendReport(2, 1_000_000, 31_400_000, 5_200_000, 2, 3.21))
    appended 1,000,000 rows in 2 files, 31.4 MB; 5.2 MB of indexes in 2 bundles; 3.2 s
    >>> print(AppendReport(0, 0, 0, 0, 0, 0.4))
    appended nothing: there are no rows; 0.4 s
    >>> print(AppendReport(1, 10, 3_000, 480, 0, 0.1, snapshot_id=7))
    appended 10 rows in 1 file, 3.0 kB; 480 B of indexes; snapshot 7; 0.1 s
    """

    files: int
    """How many data files were written."""
    rows: int
    bytes_written: int
    """Those of the data files."""
    index_bytes: int
    """Those of the bundles: indexes, statistics, and where pages are. In a Paimon table, those of
    the indexes."""
    bundles: int
    """A Paimon table has none."""
    seconds: float
    skipped: tuple[Skipped, ...] = ()
    """Indexes that files did not get, and why."""
    snapshot_id: int | None = None
    """The snapshot that was made; a folder has none."""

    def __str__(self) -> str:
        if not self.files:
            return f"appended nothing: there are no rows; {self.seconds:.1f} s"
        first = f"appended {count_text(self.rows, 'row')} in {count_text(self.files, 'file')}"
        first += f", {size_text(self.bytes_written)}"
        first += f"; {size_text(self.index_bytes)} of indexes"
        if self.snapshot_id is None:
            first += f" in {count_text(self.bundles, 'bundle')}"
        else:
            first += f"; snapshot {self.snapshot_id}"
        lines = [f"{first}; {self.seconds:.1f} s", *map(str, self.skipped[:_SHOWN])]
        if len(self.skipped) > _SHOWN:
            lines.append(f"and {len(self.skipped) - _SHOWN} more reasons")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)
