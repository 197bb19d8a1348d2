"""Clean: the files that are of no use any more, their report, and the cleaning of a Parquet folder.

    _alcid/20250801T093000.123456Z-5f1e0c7ab2d4.puffin   a bundle that another replaces, or damaged
    _alcid/statistics-20250801T093000.123456Z-0c7ab2d45f1e.puffin   when there are newer ones
    _alcid/staging/20250801T093000.123456Z-ab2d45f1e0c7/   of an append that was killed
    _alcid/.5f1e0c7ab2d45f1e0c7ab2d45f1e0c7a.tmp   a file that was being written

Only such names are ever removed. A running job has files here, too; so each leftover has the time
since which it is of no use (of a job, the time of its last file), and young ones are kept. Bundles
are merged at the same time, where that makes them fewer or smaller.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import ClassVar, Final

import pyarrow as pa

from alcid._text import count_text, size_text
from alcid.errors import (
    AlcidError,
    FileGoneError,
    OptionError,
    require,
)
from alcid.storage import Listing, Storage
from alcid.tables import bundle_folder
from alcid.tables.bundle_folder import (
    STATISTICS_PREFIX,  # MOVED
    BundleFolder,
    FolderBundles,
    bundle_name,
    bundles_to_merge,
    merge_folder,
    written_at,
)
from alcid.tables.engine import Engine, Threads
from alcid.tables.many_files import remove_files
from alcid.tables.open_files import list_data_files
from alcid.tables.parquet.staging import STAGING
from alcid.tables.reports import Plain, Report

_STAGED = "staged"
UNFINISHED: Final = re.compile(r"\.[0-9a-f]{32}\.tmp")
"""A file that was being written here, and never got its name."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Leftover(Plain):
    """A file that is of no use any more, or the folder of a job."""

    json_keys: ClassVar[Mapping[str, str]] = {"storage": ""}

    path: str
    """In its storage."""
    reason: str
    """One of `replaced`, `empty`, `damaged`, `unfinished`, `staged`, `old statistics`; of a Paimon
    table `data file`, `file index`, `index file`, `manifest`, `statistics`, which no snapshot
    names; of an Iceberg table `statistics`, which no snapshot lists, and `unfinished`."""
    bytes: int
    since: datetime | None
    """Since when; None if that is not known."""
    storage: Storage = field(repr=False, compare=False)

    def remove(self) -> None:
        """Remove the file; nothing happens if it is not there."""
        self.storage.delete([self.path])

    @property
    def is_replaced(self) -> bool:
        """Whether something that is whole stands for it."""
        return self.reason in ("replaced", "empty", "old statistics")


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file that lies somewhere."""

    path: str
    name: str
    """Within the folder that was listed."""
    size: int
    changed: datetime | None


def find_leftovers(storage: Storage, folder: BundleFolder, loaded: FolderBundles) -> list[Leftover]:
    """The files that are of no use any more, by path.

    Args:
        storage: The data of the table.
        folder: Where its bundles are.
        loaded: The bundles that are there.
    """
    files = list_files(folder.storage, folder.under)
    leftovers = [*_bundles(folder, loaded, files), *old_statistics(folder, files)]
    leftovers += (
        Leftover(file.path, "unfinished", file.size, file.changed, folder.storage)
        for file in files
        if is_unfinished(file.name)
    )
    leftovers += _jobs(storage)
    return sorted(leftovers, key=lambda leftover: leftover.path)


def is_unfinished(name: str) -> bool:
    """Whether a file of that name was being written here, and never got its name."""
    return UNFINISHED.fullmatch(name) is not None


def list_files(storage: Storage, under: str = "") -> list[ListedFile]:
    """All files below a folder, by path."""
    return listed_files(storage.list(under, hidden=True), under)


def listed_files(listing: Listing, under: str = "") -> list[ListedFile]:
    """The files of a listing, with their names within a folder."""
    begin = len(under) + 1 if under else 0
    columns = listing.paths.to_pylist(), listing.sizes.tolist(), listing.versions.to_pylist()
    return [
        ListedFile(path, path[begin:], size, _changed(version))
        for path, size, version in zip(*columns, strict=True)
    ]


def _changed(version: str | None) -> datetime | None:
    """When a file was changed, if that is its version; an ETag has no time."""
    if version is None or not version.isdecimal():
        return None
    try:
        return _EPOCH + timedelta(microseconds=int(version) // 1000)
    except OverflowError:
        return None


def _bundles(
    folder: BundleFolder, loaded: FolderBundles, files: list[ListedFile]
) -> Iterator[Leftover]:
    """Bundles that are replaced, hold nothing, or cannot be read."""
    sizes = {file.name: file.size for file in files}
    since: dict[str, datetime | None] = {}
    for bundle in loaded.bundles:  # the oldest first
        at = written_at(bundle_name(bundle))
        for name in bundle.replaces:
            since.setdefault(name, at)
    replaced = loaded.replaced()
    for name in loaded.names:
        if name in replaced:
            yield _leftover(folder, name, "replaced", sizes, since[name])
    for bundle in loaded.current:
        # What says that others are replaced is needed as long as these are there.
        if not bundle.file_count and not bundle.others and not replaced & set(bundle.replaces):
            name = bundle_name(bundle)
            yield _leftover(folder, name, "empty", sizes, written_at(name))
    for name in loaded.unreadable():
        if name not in replaced and folder.is_damaged(name):
            yield _leftover(folder, name, "damaged", sizes, written_at(name))


def _leftover(
    folder: BundleFolder, name: str, reason: str, sizes: dict[str, int], since: datetime | None
) -> Leftover:
    return Leftover(folder.path(name), reason, sizes.get(name, 0), since, folder.storage)


def old_statistics(folder: BundleFolder, files: Iterable[ListedFile]) -> Iterator[Leftover]:
    """Files of statistics but for the newest; each was replaced by the one after it."""
    names = [file for file in files if file.name.startswith(STATISTICS_PREFIX)]
    dated = [(file, written_at(file.name.removeprefix(STATISTICS_PREFIX))) for file in names]
    known = sorted((at, file.path, file.size) for file, at in dated if at is not None)
    for (_, path, size), (newer, _, _) in pairwise(known):
        yield Leftover(path, "old statistics", size, newer, folder.storage)


def _jobs(storage: Storage) -> Iterator[Leftover]:
    """Folders of jobs beside the data, each with the time of its last file."""
    jobs: dict[str, list[ListedFile]] = {}
    for file in list_files(storage, STAGING):
        jobs.setdefault(file.name.partition("/")[0], []).append(file)
    for job, files in jobs.items():
        times = [written_at(f"{job}.puffin"), *(file.changed for file in files)]
        latest = max((at for at in times if at is not None), default=None)
        size = sum(file.size for file in files)
        yield Leftover(f"{STAGING}/{job}", _STAGED, size, latest, storage)


@dataclass(frozen=True, slots=True)
class CleanReport(Report):
    """What `clean` did, or would do."""

    computed: ClassVar[tuple[str, ...]] = ("bytes_removed",)

    dry_run: bool
    """Nothing was changed."""
    merged: tuple[str, ...]
    """The bundles that were merged; they are removed later."""
    written: tuple[str, ...]
    """The bundles that they were merged to; not known of a dry run."""
    removed: tuple[Leftover, ...]
    kept: tuple[Leftover, ...]
    """What is of no use, but too young to be removed."""
    seconds: float

    @property
    def bytes_removed(self) -> int:
        """The bytes of what was removed."""
        return sum(leftover.bytes for leftover in self.removed)

    def lines(self) -> Iterator[str]:
        """What was done, in one line, and what was removed, by reason."""
        to = "" if self.dry_run or not self.merged else f" to {len(self.written):,}"
        first = "would have " if self.dry_run else ""
        if self.merged:
            first += f"merged {count_text(len(self.merged), 'bundle')}{to} and "
        first += f"removed {count_text(len(self.removed), 'leftover')}"
        first += f" ({size_text(self.bytes_removed, precise=True)})"
        first += "" if self.dry_run else f" in {self.seconds:.1f} s"
        yield first + (f"; {len(self.kept):,} too young" if self.kept else "")
        reasons = Counter(leftover.reason for leftover in self.removed)
        yield from (f"{reason}: {count:,}" for reason, count in sorted(reasons.items()))


def clean(
    storage: Storage,
    folder: BundleFolder,
    *,
    engine: Engine | None = None,
    older_than: timedelta = timedelta(days=1),
    dry_run: bool = False,
) -> CleanReport:
    """Merge bundles where that makes them fewer or smaller, and remove what is of no use.

    What bundles have of data files that are gone or changed is dropped when they are merged. Data
    files are never removed, nor are files of other names than Alcid gives.

    Args:
        storage: The data of the table.
        folder: Where its bundles are.
        engine: What merges them, and removes many files; by default this process.
        older_than: What is younger is kept: it may be of an append that is running. What was
            replaced goes after ten minutes, as after a build.
        dry_run: Change nothing, and say what would be done.

    Raises:
        OptionError: An age below 0.
    """
    check_age(older_than)
    begin = time.monotonic()
    loaded = folder.load(on_damage=_ignore)
    listing = list_data_files(storage)  # after the bundles: they know no file that came later
    chosen = bundles_to_merge(loaded, listing, thorough=True)
    merged = tuple(sorted(map(bundle_name, chosen)))
    written: list[str] = []
    if merged and not dry_run:
        try:
            written = merge_folder(folder, loaded, listing, engine or Threads(), chosen=chosen)
        except FileGoneError:  # a build is tidying up, and has merged them itself
            merged = ()
        loaded = folder.load(on_damage=_ignore)
    removed, kept = remove_old(
        find_leftovers(storage, folder, loaded),
        older_than=older_than,
        dry_run=dry_run,
        engine=engine,
    )
    return CleanReport(dry_run, merged, tuple(written), removed, kept, time.monotonic() - begin)


def check_age(older_than: timedelta) -> None:
    """Check the age of leftovers.

    Raises:
        OptionError: It is below 0.
    """
    require(older_than, timedelta, "older_than")
    if older_than < timedelta(0):
        raise OptionError(f"older_than: found {older_than}, expected 0 or more")


def remove_old(
    leftovers: Iterable[Leftover],
    *,
    older_than: timedelta,
    dry_run: bool,
    engine: Engine | None = None,
) -> tuple[tuple[Leftover, ...], tuple[Leftover, ...]]:
    """Remove what has been of no use for so long; what was removed, and what is too young."""
    old: list[Leftover] = []
    young: list[Leftover] = []
    for leftover in leftovers:
        (old if _is_old(leftover, older_than) else young).append(leftover)
    if not dry_run:
        _remove(old, engine or Threads())
    return tuple(old), tuple(young)


def _ignore(_error: AlcidError) -> None:
    """What is damaged is a leftover, or is left out by merging with a warning."""


def _is_old(leftover: Leftover, older_than: timedelta) -> bool:
    """Whether it can be removed; never if it is not known since when it is of no use."""
    age = min(older_than, bundle_folder.GRACE) if leftover.is_replaced else older_than
    return leftover.since is not None and leftover.since <= datetime.now(UTC) - age


def _remove(leftovers: Sequence[Leftover], engine: Engine) -> None:
    """Remove them: first what is replaced, by path, as that is older than what says so."""
    for leftover in leftovers:
        if leftover.is_replaced:
            leftover.remove()
    storages = {id(leftover.storage): leftover.storage for leftover in leftovers}
    others = [leftover for leftover in leftovers if not leftover.is_replaced]
    for number, storage in storages.items():
        own = [leftover for leftover in others if id(leftover.storage) == number]
        staged = [leftover.path for leftover in own if leftover.reason == _STAGED]
        inner = [storage.list(path, hidden=True).paths for path in staged]
        files = pa.array([leftover.path for leftover in own if leftover.reason != _STAGED])
        paths = pa.chunked_array([files.cast(pa.string()), *inner]).combine_chunks()
        remove_files(storage, paths, engine)
        for path in staged:
            storage.remove_folder(path)
