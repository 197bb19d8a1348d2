"""What an upsert did."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from alcid.pictures.shown import Shown
from alcid.pictures.units import count_text
from alcid.tables.build_report import Skipped, size_text

__all__ = ["UpsertReport"]

_SHOWN = 10  # reasons in the text of a report


@dataclass(frozen=True, slots=True)
class UpsertReport(Shown):
    """What an upsert did.

    >>> print(UpsertReport(1200, 3, 403, 2, 2, 51_000, 480, 8, True, 0.31))
    upserted 1,200 rows and deleted 3, 403 older rows replaced; 2 files of 2 buckets, 51.0 kB; 480 B
    of indexes; snapshot 8; 0.3 s
    >>> print(UpsertReport(0, 0, 0, 0, 0, 0, 0, None, True, 0.1))
    upserted nothing: there are no rows that change the table; 0.1 s
    """

    rows: int
    """Rows that were put in place of older ones of their key, or are the first of it."""
    deletes: int
    """Rows that delete their key, without those whose key is known not to be there."""
    replaced: int | None
    """Older rows that are gone now, replaced or deleted; None where that shows later, when another
    compacts the rows or readers merge them."""
    files: int
    buckets: int
    bytes_written: int
    """Those of the data files."""
    index_bytes: int
    snapshot_id: int | None
    """The last snapshot that was made; None: none was needed."""
    is_compacted: bool
    """Whether batch reads see the rows by now; otherwise a compaction has to take them in."""
    seconds: float
    skipped: tuple[Skipped, ...] = ()
    """Indexes that files did not get, and why."""
    dry_run: bool = False
    """Nothing was changed."""

    def __str__(self) -> str:
        if self.snapshot_id is None:
            nothing = "upserted nothing: there are no rows that change the table"
            return f"{nothing}; {self.seconds:.1f} s"
        first = "would have " if self.dry_run else ""
        first += f"upserted {count_text(self.rows, 'row')}"
        if self.deletes:
            first += f" and deleted {self.deletes:,}"
        if self.replaced is not None:
            first += f", {count_text(self.replaced, 'older row')} replaced"
        first += f"; {count_text(self.files, 'file')} of {count_text(self.buckets, 'bucket')}"
        first += f", {size_text(self.bytes_written)}; {size_text(self.index_bytes)} of indexes"
        if not self.is_compacted:
            first += "; not compacted"
        lines = [f"{first}; snapshot {self.snapshot_id}; {self.seconds:.1f} s"]
        lines += map(str, self.skipped[:_SHOWN])
        if len(self.skipped) > _SHOWN:
            lines.append(f"and {len(self.skipped) - _SHOWN} more reasons")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)
