"""What a build did, and what indexes a table has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from alcid.bundle import Kind

__all__ = ["BuildReport", "IndexInfo", "Skipped", "SkippedCounter", "count_text", "size_text"]

_SHOWN = 10  # reasons in the text of a report
_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was not built, for one reason."""

    what: str
    """The index, as `bitmap of 'id'`; empty for a file of which nothing could be kept."""
    reason: str
    files: int
    """How many files that is so for."""
    example: str
    """The path of the first of them."""

    def __str__(self) -> str:
        what = f"{self.what} in " if self.what else ""
        return f"skipped {what}{count_text(self.files, 'file')}: {self.reason}"


class SkippedCounter:
    """Counts what is skipped, by index and reason."""

    def __init__(self) -> None:
        """Begin with none."""
        self._found: dict[tuple[str, str], tuple[int, str]] = {}

    def add(self, kind: Kind | None, reason: str, example: str, files: int = 1) -> None:
        """Count files without an index of that kind; None: without anything."""
        what = "" if kind is None else str(kind), reason
        count, first = self._found.get(what, (0, example))
        self._found[what] = count + files, first

    def merge(self, other: SkippedCounter) -> None:
        """Count what was skipped elsewhere."""
        for (what, reason), (files, first) in other._found.items():
            count, example = self._found.get((what, reason), (0, first))
            self._found[what, reason] = count + files, example

    @property
    def found(self) -> tuple[Skipped, ...]:
        """The counts, whole files first."""
        return tuple(
            Skipped(what, reason, count, first)
            for (what, reason), (count, first) in sorted(self._found.items())
        )


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did; each file of the table is `indexed`, `fresh` or `failed`.

    >>> print(BuildReport(40, 38, 2, 0, 19_000_000, 210_400_000, 1, 12.34))
    indexed 38 of 40 files (19,000,000 rows) in 12.3 s, 210.4 MB in 1 bundle; 2 were fresh
    """

    files: int
    """The data files of the table."""
    indexed: int
    """Those of which this build wrote something."""
    fresh: int
    """Those that had all of it, as far as they can have it."""
    failed: int
    """Those that could not be read, or changed meanwhile; `skipped` says why."""
    rows: int
    """The rows of the files that were indexed."""
    bytes_written: int
    bundles: int | None
    """How many bundles were written; None for a Paimon table, whose indexes are its own."""
    seconds: float
    skipped: tuple[Skipped, ...] = field(default=())
    snapshot_id: int | None = None
    """The snapshot of a Paimon table that has the indexes; None where nothing changed."""

    def __str__(self) -> str:
        first = f"indexed {self.indexed:,} of {count_text(self.files, 'file')}"
        first += f" ({count_text(self.rows, 'row')})"
        first += f" in {self.seconds:.1f} s, {size_text(self.bytes_written)}"
        first += "" if self.bundles is None else f" in {count_text(self.bundles, 'bundle')}"
        first += "" if self.snapshot_id is None else f" in snapshot {self.snapshot_id}"
        first += f"; {self.fresh:,} were fresh" if self.fresh else ""
        first += f"; {self.failed:,} failed" if self.failed else ""
        lines = [first, *map(str, self.skipped[:_SHOWN])]
        if len(self.skipped) > _SHOWN:
            lines.append(f"and {len(self.skipped) - _SHOWN} more reasons")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index of a table: how many of its files have it, and what it takes.

    >>> print(IndexInfo("id", "bitmap", fresh=38, stale=2, absent=0, damaged=0, bytes=5_000_000))
    bitmap of 'id': 38 files fresh, 2 stale, 5.0 MB
    """

    column: str
    """As the files spell it; `m[key]` for a key of a map."""
    index_type: str
    fresh: int
    """Files whose index can be used."""
    stale: int
    """Files that were changed since."""
    absent: int
    """Files that have none."""
    damaged: int
    """Files whose index cannot be read."""
    bytes: int
    """What the fresh ones take."""

    def __str__(self) -> str:
        others: Mapping[str, int] = {
            "stale": self.stale,
            "absent": self.absent,
            "damaged": self.damaged,
        }
        told = "".join(f", {count:,} {state}" for state, count in others.items() if count)
        kind = Kind.index(self.column, self.index_type)
        return f"{kind}: {count_text(self.fresh, 'file')} fresh{told}, {size_text(self.bytes)}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)


def count_text(count: int, what: str) -> str:
    """So many of something.

    >>> count_text(1, "file"), count_text(2000, "row")
    ('1 file', '2,000 rows')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def size_text(count: int) -> str:
    """Bytes for the eye, in units of 1000."""
    size, unit = float(count), 0
    while size >= 999.95 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{count} B"
