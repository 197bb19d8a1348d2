"""What an append did.

What a build did, and what indexes a table has.

What a delete did.

What an upsert did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from alcid._text import count_text
from alcid.index.bundle import PayloadKind

__all__ = [
    "AppendReport",
    "BuildReport",
    "DeleteReport",
    "IndexFiles",
    "IndexInfo",
    "Skipped",
    "SkippedCounter",
    "UpsertReport",
    "size_text",
]

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

    def add(self, kind: PayloadKind | None, reason: str, example: str, files: int = 1) -> None:
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
class IndexFiles:
    """Files that lack an index, or that are to lose it.

    >>> print(IndexFiles("id", "bitmap", 38, 19_000_000, 1_200_000_000))
    bitmap of 'id': 38 files (19,000,000 rows, 1.2 GB of data)
    """

    column: str
    index_type: str
    files: int
    rows: int
    bytes: int
    """Those of the data files."""

    def __str__(self) -> str:
        what = f"{count_text(self.rows, 'row')}, {size_text(self.bytes)} of data"
        kind = PayloadKind.index(self.column, self.index_type)
        return f"{kind}: {count_text(self.files, 'file')} ({what})"


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did; each file of the table is `indexed`, `fresh` or `failed`.

    >>> print(BuildReport(40, 38, 2, 0, 19_000_000, 210_400_000, 1, 12.34))
    indexed 38 of 40 files (19,000,000 rows) in 12.3 s, 210.4 MB in 1 bundle; 2 were fresh
    >>> missing = (IndexFiles("id", "bitmap", 1, 500_000, 30_000_000),)
    >>> plan = {"dry_run": True, "data_bytes": 30_000_000, "missing": missing}
    >>> print(BuildReport(40, 1, 39, 0, 500_000, 0, 0, 0.0, **plan))
    would have indexed 1 of 40 files (500,000 rows, 30.0 MB of data); 39 are fresh
    missing: bitmap of 'id': 1 file (500,000 rows, 30.0 MB of data)
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
    dropped: tuple[IndexFiles, ...] = ()
    """What a Paimon table has lost, or would lose, as it was not asked for."""
    dry_run: bool = False
    """Nothing was changed; what follows is known of a dry run only."""
    data_bytes: int = 0
    """Those of the data files to be indexed, of which the columns with an index are read."""
    missing: tuple[IndexFiles, ...] = ()
    """What files lack, by index."""

    def __str__(self) -> str:
        if self.dry_run:
            return "\n".join(self._preview())
        first = f"indexed {self.indexed:,} of {count_text(self.files, 'file')}"
        first += f" ({count_text(self.rows, 'row')})"
        first += f" in {self.seconds:.1f} s, {size_text(self.bytes_written)}"
        first += "" if self.bundles is None else f" in {count_text(self.bundles, 'bundle')}"
        first += "" if self.snapshot_id is None else f" in snapshot {self.snapshot_id}"
        first += f"; {self.fresh:,} were fresh" if self.fresh else ""
        first += f"; {self.failed:,} failed" if self.failed else ""
        dropped = (f"dropped: {one}" for one in self.dropped)
        lines = [first, *dropped, *map(str, self.skipped[:_SHOWN])]
        if len(self.skipped) > _SHOWN:
            lines.append(f"and {len(self.skipped) - _SHOWN} more reasons")
        return "\n".join(lines)

    def _preview(self) -> list[str]:
        first = f"would have indexed {self.indexed:,} of {count_text(self.files, 'file')}"
        first += f" ({count_text(self.rows, 'row')}, {size_text(self.data_bytes)} of data)"
        first += f"; {self.fresh:,} are fresh" if self.fresh else ""
        first += f"; {self.failed:,} cannot be" if self.failed else ""
        missing = (f"missing: {one}" for one in self.missing)
        dropped = (f"dropped: {one}" for one in self.dropped)
        return [first, *missing, *dropped, *map(str, self.skipped[:_SHOWN])]

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
    rows: int = 0
    """The rows of their files."""

    @property
    def bytes_per_row(self) -> float | None:
        """What a row takes; None without rows."""
        return self.bytes / self.rows if self.rows else None

    def __str__(self) -> str:
        others: Mapping[str, int] = {
            "stale": self.stale,
            "absent": self.absent,
            "damaged": self.damaged,
        }
        told = "".join(f", {count:,} {state}" for state, count in others.items() if count)
        kind = PayloadKind.index(self.column, self.index_type)
        return f"{kind}: {count_text(self.fresh, 'file')} fresh{told}, {size_text(self.bytes)}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)


def size_text(count: int) -> str:
    """Bytes for the eye, in units of 1000."""
    size, unit = float(count), 0
    while size >= 999.95 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{count} B"


@dataclass(frozen=True, slots=True)
class AppendReport:
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


@dataclass(frozen=True, slots=True)
class DeleteReport:
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


@dataclass(frozen=True, slots=True)
class UpsertReport:
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
