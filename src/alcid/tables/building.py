"""Building: files are read, and what is kept of them goes into bundles, in batches.

A batch is published as soon as it is whole. So a build that is killed leaves what it has done, and
the next one goes on from there. No more than a batch is in memory, and a few files.
"""

from __future__ import annotations

import io
import time
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa

from alcid.bundle import BundleWriter, Kind
from alcid.bundle.kinds import INDEX
from alcid.errors import (
    AlcidError,
    FileGoneError,
    FormatError,
    LimitError,
    StorageError,
    UnsupportedError,
)
from alcid.storage import Listing, Storage
from alcid.tables.build_plan import Task
from alcid.tables.build_report import SkippedCounter
from alcid.tables.bundle_folder import BundleFolder
from alcid.tables.engine import Share, Tell
from alcid.tables.in_order import in_order
from alcid.tables.index_file import IndexedFile, Resolve, index_file

__all__ = ["BATCH_BYTES", "BuildWork", "Built"]

BATCH_BYTES = 256 << 20
"""Payloads of a bundle; reached by the last of its files."""
BATCH_SECONDS = 60.0
"""After this time a bundle is published though it is small: so much is lost by a kill at most."""


@dataclass(slots=True)
class Built:
    """What was done with some files."""

    indexed: int = 0
    unchanged: int = 0
    failed: int = 0
    rows: int = 0
    bytes_written: int = 0
    bundles: list[str] = field(default_factory=list)
    """The names of those that were written."""
    kinds: set[Kind] = field(default_factory=set)
    """The indexes that were built, of any file."""
    skipped: SkippedCounter = field(default_factory=SkippedCounter)
    """What could not be built."""

    def add(self, other: Built) -> None:
        """Count what was done elsewhere."""
        self.indexed += other.indexed
        self.unchanged += other.unchanged
        self.failed += other.failed
        self.rows += other.rows
        self.bytes_written += other.bytes_written
        self.bundles += other.bundles
        self.kinds |= other.kinds
        self.skipped.merge(other.skipped)


@dataclass(frozen=True, slots=True, eq=False)
class BuildWork:
    """The work of a build, for `Engine.map`: an item is a task, which is a file."""

    storage: Storage
    folder: BundleFolder
    listing: Listing
    tasks: Sequence[Task]
    names: pa.StringArray | None = None
    """What bundles call each file, if not by its path; such files never change."""
    resolve: Resolve | None = None
    """As for `index_file`."""

    def __call__(self, share: Share, tell: Tell) -> Built:
        """Read the files of a share, and write bundles."""
        tasks = [self.tasks[item] for item in share.items.tolist()]
        return _Builder(self, tell).run(tasks, share.threads)


class _Builder:
    """Reads files, and writes bundles."""

    def __init__(self, work: BuildWork, tell: Tell) -> None:
        self._storage, self._folder, self._listing = work.storage, work.folder, work.listing
        self._names, self._resolve = work.names, work.resolve
        self._tell = tell
        self._batch: deque[IndexedFile] = deque()
        self._batch_bytes, self._batch_began = 0, 0.0
        self._built = Built()

    def run(self, tasks: Sequence[Task], threads: int) -> Built:
        """Build what the tasks ask for."""
        self._batch_began = time.monotonic()
        with closing(in_order(self._index, tasks, threads)) as results:
            for done, (task, found) in enumerate(zip(tasks, results, strict=True), 1):
                before = self._built.rows
                self._take(task, found)
                late = time.monotonic() - self._batch_began >= BATCH_SECONDS
                if done == len(tasks) or self._batch_bytes >= BATCH_BYTES or late:
                    self._publish()
                self._tell(1, self._built.rows - before)
        return self._built

    def _index(self, task: Task) -> IndexedFile | AlcidError:
        """What is kept of a file, or why nothing is; it must be the same before and after."""
        path, size = self._listing.paths[task.file].as_py(), int(self._listing.sizes[task.file])
        never_changes = self._names is not None
        version = "" if never_changes else self._listing.versions[task.file].as_py()
        if version is None:
            return UnsupportedError(f"{path}: its file system does not say when it changed")
        source = self._storage.source(path, size, version or None)
        found: IndexedFile | AlcidError
        try:
            found = index_file(
                source,
                task.specs,
                path=self._name(task),
                size=size,
                version=version,
                resolve=self._resolve,
            )
        except (FormatError, LimitError, StorageError, UnsupportedError) as error:
            found = error
        if not never_changes and not self._storage.is_same(path, size, version):
            return FileGoneError("changed or removed while it was read", file=source.name)
        if isinstance(found, StorageError) and not isinstance(found, FileGoneError):
            raise found  # not the file's fault, so that others would fail too
        return found

    def _name(self, task: Task) -> str:
        """What bundles call the file."""
        names = self._listing.paths if self._names is None else self._names
        name: str = names[task.file].as_py()
        return name

    def _take(self, task: Task, found: IndexedFile | AlcidError) -> None:
        built, path = self._built, self._name(task)
        if isinstance(found, AlcidError):
            built.skipped.add(None, str(found), path)
            built.failed += 1
            return
        for kind, reason in found.skipped.items():
            if kind.type == INDEX:
                built.skipped.add(kind, reason, path)
        indexes = {kind for kind in found.payloads if kind.type == INDEX}
        if task.known:
            if not indexes:
                built.unchanged += 1
                return
            found = found.only_indexes()
        self._batch.append(found)
        self._batch_bytes += sum(len(one or b"") for one in found.payloads.values())
        built.kinds |= indexes
        built.indexed += 1
        built.rows += found.entry.rows

    def _publish(self) -> None:
        """Write the batch, and begin another."""
        if self._batch:
            data = io.BytesIO()
            with BundleWriter(data) as writer:
                while self._batch:
                    self._batch.popleft().add_to(writer)
            content = data.getvalue()
            self._built.bundles.append(self._folder.put(content))
            self._built.bytes_written += len(content)
        self._batch_bytes, self._batch_began = 0, time.monotonic()
