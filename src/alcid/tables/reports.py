"""Reports of what an operation did: text, plain values for JSON, HTML through `alcid.inspect`.

`Report` is the base of all of them; those of `verify`, `repair` and `clean` are in
`alcid.tables.maintenance`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, ClassVar

from alcid._text import count_text, size_text
from alcid.index.bundle import PayloadKind

MAX_SHOWN = 10
"""How many problems, or reasons, the text of a report has."""


class Plain:
    """A dataclass that JSON can have."""

    __slots__ = ()

    computed: ClassVar[tuple[str, ...]] = ()
    """Properties that JSON has, too."""
    json_keys: ClassVar[Mapping[str, str]] = {}
    """What JSON calls fields whose key is not their name; an empty key leaves one out."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        names = *self.computed, *_names(self)
        keys = {name: self.json_keys.get(name, name) for name in names}
        return {key: plain_values(getattr(self, name)) for name, key in keys.items() if key}


class Report(Plain):
    """What an operation did: the base of all reports."""

    __slots__ = ()

    def lines(self) -> Iterator[str]:
        """The text, line by line."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(self.lines())


def plain_values(value: Any) -> Any:
    """A value as JSON has it: lists for tuples, objects for dataclasses, timestamps in ISO."""
    if isinstance(value, Plain):
        return value.to_dict()
    if is_dataclass(value):
        return {name: plain_values(getattr(value, name)) for name in _names(value)}
    if isinstance(value, list | tuple):
        return [plain_values(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _names(value: Any) -> tuple[str, ...]:
    return tuple(item.name for item in fields(value))


def cut(lines: Iterable[object], count: int, what: str = "") -> Iterator[str]:
    """The first lines of many, and how many more there are.

    >>> list(cut(range(12), 12, "reasons"))[-2:]
    ['9', 'and 2 more reasons']
    """
    yield from map(str, islice(lines, MAX_SHOWN))
    if count > MAX_SHOWN:
        yield f"and {count - MAX_SHOWN:,} more {what}".rstrip()


_size = partial(size_text, precise=True)


def _would(*, dry_run: bool) -> str:
    return "would have " if dry_run else ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was not built, for one reason."""

    what: str
    """The index, as `bitmap of 'id'`; empty for a file of which nothing could be indexed."""
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
        self._counts: dict[tuple[str, str], tuple[int, str]] = {}

    def add(self, kind: PayloadKind | None, reason: str, example: str, files: int = 1) -> None:
        """Count files without an index of that kind; None: without anything."""
        what = "" if kind is None else str(kind), reason
        count, first = self._counts.get(what, (0, example))
        self._counts[what] = count + files, first

    def merge(self, other: SkippedCounter) -> None:
        """Count what was skipped elsewhere."""
        for (what, reason), (files, first) in other._counts.items():
            count, example = self._counts.get((what, reason), (0, first))
            self._counts[what, reason] = count + files, example

    @property
    def reasons(self) -> tuple[Skipped, ...]:
        """The counts, whole files first."""
        return tuple(
            Skipped(what, reason, count, first)
            for (what, reason), (count, first) in sorted(self._counts.items())
        )


@dataclass(frozen=True, slots=True)
class IndexFiles:
    """Files without an index, or whose index is dropped.

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
        what = f"{count_text(self.rows, 'row')}, {_size(self.bytes)} of data"
        kind = PayloadKind.index(self.column, self.index_type)
        return f"{kind}: {count_text(self.files, 'file')} ({what})"


@dataclass(frozen=True, slots=True)
class BuildReport(Report):
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
    """Those that had all indexes that they can have."""
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
    """Indexes of a Paimon table that were dropped, or would be, as they were not requested."""
    dry_run: bool = False
    """Nothing was changed; what follows is known of a dry run only."""
    data_bytes: int = 0
    """Those of the data files to be indexed, of which the columns with an index are read."""
    missing: tuple[IndexFiles, ...] = ()
    """The indexes that files do not have."""

    def lines(self) -> Iterator[str]:
        """What was indexed, and what was skipped for which reasons."""
        if self.dry_run:
            yield from self._preview()
            return
        first = f"indexed {self.indexed:,} of {count_text(self.files, 'file')}"
        first += f" ({count_text(self.rows, 'row')})"
        first += f" in {self.seconds:.1f} s, {_size(self.bytes_written)}"
        first += "" if self.bundles is None else f" in {count_text(self.bundles, 'bundle')}"
        first += "" if self.snapshot_id is None else f" in snapshot {self.snapshot_id}"
        first += f"; {self.fresh:,} were fresh" if self.fresh else ""
        first += f"; {self.failed:,} failed" if self.failed else ""
        yield first
        yield from (f"dropped: {index}" for index in self.dropped)
        yield from cut(self.skipped, len(self.skipped), "reasons")

    def _preview(self) -> Iterator[str]:
        first = f"would have indexed {self.indexed:,} of {count_text(self.files, 'file')}"
        first += f" ({count_text(self.rows, 'row')}, {_size(self.data_bytes)} of data)"
        first += f"; {self.fresh:,} are fresh" if self.fresh else ""
        first += f"; {self.failed:,} cannot be" if self.failed else ""
        yield first
        yield from (f"missing: {index}" for index in self.missing)
        yield from (f"dropped: {index}" for index in self.dropped)
        yield from map(str, self.skipped[:MAX_SHOWN])


@dataclass(frozen=True, slots=True)
class IndexInfo(Plain):
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
        counts = "".join(f", {count:,} {state}" for state, count in others.items() if count)
        kind = PayloadKind.index(self.column, self.index_type)
        return f"{kind}: {count_text(self.fresh, 'file')} fresh{counts}, {_size(self.bytes)}"


@dataclass(frozen=True, slots=True)
class AppendReport(Report):
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

    def lines(self) -> Iterator[str]:
        """What was appended, and which indexes were skipped."""
        if not self.rows:
            yield f"appended nothing: there are no rows; {self.seconds:.1f} s"
            return
        first = f"{_would(dry_run=self.dry_run)}appended {count_text(self.rows, 'row')}"
        if self.files is not None:
            first += f" in {count_text(self.files, 'file')}, {_size(self.bytes_written or 0)}"
        if self.index_bytes is not None:
            first += f"; {_size(self.index_bytes)} of indexes"
            if self.snapshot_id is None:
                first += f" in {count_text(self.bundles, 'bundle')}"
        if self.snapshot_id is not None:
            first += f"; snapshot {self.snapshot_id}"
        yield f"{first}; {self.seconds:.1f} s"
        yield from cut(self.skipped, len(self.skipped), "reasons")


@dataclass(frozen=True, slots=True)
class DeleteReport(Report):
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

    def lines(self) -> Iterator[str]:
        """What was deleted, in one line."""
        if not self.rows:
            yield "deleted nothing: no row matches"
            return
        done = count_text(self.rows, "row")
        if self.files is not None:
            done += f" of {count_text(self.files, 'file')}"
        made = "" if self.snapshot_id is None else f": snapshot {self.snapshot_id}"
        yield f"{_would(dry_run=self.dry_run)}deleted {done}{made}"


_SKEW = 4  # times the mean
_SKEW_ROWS = 100_000  # fewer do not hold a task up
_MOST_SKEWED = 10


@dataclass(frozen=True, slots=True)
class Skewed:
    """A bucket or partition that got more than four times the mean of the rows of an upsert.

    All rows of a bucket are written by one task, so such a bucket decides how long an upsert takes.

    >>> print(Skewed("dt=2026-08-01/bucket-3", 8_000_000, 0.8, 20))
    skewed: dt=2026-08-01/bucket-3 got 8,000,000 rows, 80 % of all, one of 20
    """

    path: str
    """The folder of the bucket or the partition in the table."""
    rows: int
    share: float
    """The part of all rows that it got."""
    count: int
    """How many buckets, or partitions, got rows."""

    def __str__(self) -> str:
        rows, percent = count_text(self.rows, "row"), round(100 * self.share)
        return f"skewed: {self.path} got {rows}, {percent} % of all, one of {self.count}"


def find_skewed(rows: Mapping[str, int]) -> tuple[Skewed, ...]:
    """Those that have far more rows than the mean, the largest first, ten at most.

    >>> [skewed.path for skewed in find_skewed({"a": 900_000} | dict.fromkeys("bcdefgh", 100))]
    ['a']
    """
    total = sum(rows.values())
    limit = max(_SKEW * total, _SKEW_ROWS * len(rows))
    skewed = [path for path, count in rows.items() if count * len(rows) > limit]
    largest = sorted(skewed, key=lambda path: (-rows[path], path))[:_MOST_SKEWED]
    return tuple(Skewed(path, rows[path], rows[path] / total, len(rows)) for path in largest)


@dataclass(frozen=True, slots=True)
class UpsertReport(Report):
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
    skewed: tuple[Skewed, ...] = ()
    """Partitions and buckets that got far more rows than others, ten of each at most."""

    def lines(self) -> Iterator[str]:
        """What was upserted, where most of it went, and which indexes were skipped."""
        if self.snapshot_id is None:
            nothing = "upserted nothing: there are no rows that change the table"
            yield f"{nothing}; {self.seconds:.1f} s"
            return
        first = f"{_would(dry_run=self.dry_run)}upserted {count_text(self.rows, 'row')}"
        if self.deletes:
            first += f" and deleted {self.deletes:,}"
        if self.replaced is not None:
            first += f", {count_text(self.replaced, 'older row')} replaced"
        first += f"; {count_text(self.files, 'file')} of {count_text(self.buckets, 'bucket')}"
        first += f", {_size(self.bytes_written)}; {_size(self.index_bytes)} of indexes"
        if not self.is_compacted:
            first += "; not compacted"
        yield f"{first}; snapshot {self.snapshot_id}; {self.seconds:.1f} s"
        yield from map(str, self.skewed)
        yield from cut(self.skipped, len(self.skipped), "reasons")


@dataclass(frozen=True, slots=True)
class CompactReport(Report):
    """The outcome of a compaction.

    >>> print(CompactReport(4, 23, 5, 1_200_000, 34_500_000, 7, 1.25))
    compacted 4 buckets: 23 files became 5, 1,200,000 rows (34.5 MB) written in 1.2 s: snapshot 7
    >>> print(CompactReport(0, 0, 0, 0, 0, None, 0.01))
    compacted nothing: no bucket has anything to be merged
    >>> print(CompactReport(4, 23, None, None, None, None, 0.01, dry_run=True))
    would have compacted 4 buckets of 23 files
    """

    buckets: int
    """Buckets that were changed."""
    files_before: int
    """Data files of these buckets."""
    files_after: int | None
    """None, as rows and bytes, of a dry run: which rows are live is only known by merging."""
    rows: int | None
    """Rows that were rewritten; files whose keys no other file has are not."""
    bytes_written: int | None
    snapshot_id: int | None
    """The new snapshot; None where there was nothing to do."""
    seconds: float
    dry_run: bool = False
    """Nothing was changed."""

    def lines(self) -> Iterator[str]:
        """What was compacted, in one line."""
        buckets = count_text(self.buckets, "bucket")
        if not self.buckets or (self.snapshot_id is None and not self.dry_run):
            yield "compacted nothing: no bucket has anything to be merged"
            return
        if self.dry_run:
            yield f"would have compacted {buckets} of {count_text(self.files_before, 'file')}"
            return
        files = f"{count_text(self.files_before, 'file')} became {self.files_after:,}"
        size = _size(self.bytes_written or 0)
        rows = f"{count_text(self.rows or 0, 'row')} ({size}) written"
        done = f"compacted {buckets}: {files}, {rows}"
        yield f"{done} in {self.seconds:.1f} s: snapshot {self.snapshot_id}"
