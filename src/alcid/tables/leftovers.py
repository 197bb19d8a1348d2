"""Files of an index folder that are of no use any more: what `verify` lists and `clean` removes.

    _alcid/20250801T093000.123456Z-5f1e0c7ab2d4.puffin   a bundle that another replaces, or damaged
    _alcid/statistics-20250801T093000.123456Z-0c7ab2d45f1e.puffin   when there are newer ones
    _alcid/staging/20250801T093000.123456Z-ab2d45f1e0c7/   of an append that was killed
    _alcid/.5f1e0c7ab2d45f1e0c7ab2d45f1e0c7a.tmp   a file that was being written

Only such names are ever removed. A job that is running has files here too, so each is given the
moment since which it is of no use: of a job, that of the last thing that happened in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from alcid.storage import Storage
from alcid.tables.bundle_folder import BundleFolder, FolderBundles, bundle_name, written_at
from alcid.tables.staging import STAGING

__all__ = [
    "STATISTICS_PREFIX",
    "Leftover",
    "ListedFile",
    "find_leftovers",
    "is_draft",
    "list_files",
    "old_statistics",
]

STATISTICS_PREFIX = "statistics-"
"""How the names of files of statistics begin; the rest is like the name of a bundle."""

_STAGED = "staged"
_DRAFT = re.compile(r"\.[0-9a-f]{32}\.tmp")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file that is of no use any more, or the folder of a job."""

    path: str
    """In its storage."""
    reason: str
    """One of `replaced`, `empty`, `damaged`, `unfinished`, `staged`, `old statistics`; of a Paimon
    table `data file`, `file index`, `index file`, `manifest`, `statistics`, which no snapshot
    names; of an Iceberg table `statistics`, which no snapshot lists, and `unfinished`."""
    bytes: int
    since: datetime | None
    """Since when; None if that cannot be told."""
    storage: Storage = field(repr=False, compare=False)

    def remove(self) -> None:
        """Remove it; nothing happens if it is not there."""
        if self.reason == _STAGED:
            self.storage.remove_folder(self.path)
        else:
            self.storage.delete([self.path])

    @property
    def is_replaced(self) -> bool:
        """Whether something that is whole stands for it."""
        return self.reason in ("replaced", "empty", "old statistics")

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        since = None if self.since is None else self.since.isoformat()
        return {"path": self.path, "reason": self.reason, "bytes": self.bytes, "since": since}


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file that lies somewhere."""

    path: str
    name: str
    """Within the folder that was listed."""
    size: int
    changed: datetime | None


def find_leftovers(storage: Storage, folder: BundleFolder, found: FolderBundles) -> list[Leftover]:
    """What lies about, by path.

    Args:
        storage: The data of the table.
        folder: Where its bundles are.
        found: What was found there.
    """
    files = list_files(folder.storage, folder.under)
    leftovers = [*_bundles(folder, found, files), *old_statistics(folder, files)]
    leftovers += (
        Leftover(file.path, "unfinished", file.size, file.changed, folder.storage)
        for file in files
        if is_draft(file.name)
    )
    leftovers += _jobs(storage)
    return sorted(leftovers, key=lambda one: one.path)


def is_draft(name: str) -> bool:
    """Whether a file of that name was being written here, and never got its name."""
    return _DRAFT.fullmatch(name) is not None


def list_files(storage: Storage, under: str = "") -> list[ListedFile]:
    """All files below a folder, by path."""
    listing = storage.list(under, hidden=True)
    begin = len(under) + 1 if under else 0
    columns = listing.paths.to_pylist(), listing.sizes.tolist(), listing.versions.to_pylist()
    return [
        ListedFile(path, path[begin:], size, _changed(version))
        for path, size, version in zip(*columns, strict=True)
    ]


def _changed(version: str | None) -> datetime | None:
    """When a file was changed, if its version tells: an ETag does not."""
    if version is None or not version.isdecimal():
        return None
    try:
        return _EPOCH + timedelta(microseconds=int(version) // 1000)
    except OverflowError:
        return None


def _bundles(
    folder: BundleFolder, found: FolderBundles, files: list[ListedFile]
) -> Iterator[Leftover]:
    """Bundles that are replaced, hold nothing, or cannot be read."""
    sizes = {file.name: file.size for file in files}
    since: dict[str, datetime | None] = {}
    for bundle in found.bundles:  # the oldest first
        at = written_at(bundle_name(bundle))
        for name in bundle.replaces:
            since.setdefault(name, at)
    replaced = found.replaced()
    for name in found.names:
        if name in replaced:
            yield _leftover(folder, name, "replaced", sizes, since[name])
    for bundle in found.current:
        # What says that others are replaced is needed as long as these are there.
        if not bundle.file_count and not bundle.others and not replaced & set(bundle.replaces):
            name = bundle_name(bundle)
            yield _leftover(folder, name, "empty", sizes, written_at(name))
    for name in found.unreadable():
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
    """Folders of jobs, each with the latest moment of what is in it; they lie beside the data."""
    jobs: dict[str, list[ListedFile]] = {}
    for file in list_files(storage, STAGING):
        jobs.setdefault(file.name.partition("/")[0], []).append(file)
    for job, files in jobs.items():
        moments = [written_at(f"{job}.puffin"), *(file.changed for file in files)]
        latest = max((at for at in moments if at is not None), default=None)
        size = sum(file.size for file in files)
        yield Leftover(f"{STAGING}/{job}", _STAGED, size, latest, storage)
