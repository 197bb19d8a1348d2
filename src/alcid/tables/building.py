"""Building: files are read on all cores, and what is kept of them goes into bundles, in batches.

A batch is published as soon as it is whole. So a build that is killed leaves what it has done, and
the next one goes on from there. No more than a batch is in memory, and a few files.
"""

from __future__ import annotations

import io
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TypeAlias

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
from alcid.tables.index_file import IndexedFile, index_file

__all__ = ["BATCH_BYTES", "Builder", "Progress"]

Progress: TypeAlias = Callable[[int, int, int], None]
"""Is told, after each file: how many are done, how many there are to do, the rows so far."""

BATCH_BYTES = 256 << 20
"""Payloads of a bundle; reached by the last of its files."""
BATCH_SECONDS = 60.0
"""After this time a bundle is published though it is small: so much is lost by a kill at most."""


_Result: TypeAlias = tuple[Task, IndexedFile | AlcidError]


class Builder:
    """Reads files, and writes bundles."""

    def __init__(self, storage: Storage, folder: BundleFolder, listing: Listing) -> None:
        """Read from `storage` what `listing` has, and write into `folder`."""
        self._storage, self._folder, self._listing = storage, folder, listing
        self._batch: deque[IndexedFile] = deque()
        self._batch_bytes, self._batch_began = 0, 0.0
        self.indexed = self.unchanged = self.failed = self.rows = 0
        self.bytes_written = self.bundles = 0
        self.kinds: set[Kind] = set()
        """The indexes that were built, of any file."""

    def run(
        self,
        tasks: Sequence[Task],
        skipped: SkippedCounter,
        *,
        progress: Progress | None = None,
        replaces: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """Build what the tasks ask for.

        Args:
            tasks: The files to read.
            skipped: Is told what could not be built.
            progress: Is called after each file.
            replaces: Asked before the last bundle is written: the bundles that all replace.
        """
        self._batch_began = time.monotonic()
        with closing(self._results(tasks)) as results:
            for done, (task, found) in enumerate(results, 1):
                self._take(task, found, skipped)
                late = time.monotonic() - self._batch_began >= BATCH_SECONDS
                if done == len(tasks):
                    self._publish(replaces())
                elif self._batch_bytes >= BATCH_BYTES or late:
                    self._publish()
                if progress is not None:
                    progress(done, len(tasks), self.rows)

    def _results(self, tasks: Sequence[Task]) -> Generator[_Result, None, None]:
        """What is made of each file, in order; few are read ahead, so that few are in memory."""
        threads = os.cpu_count() or 1
        running: deque[tuple[Task, Future[IndexedFile | AlcidError]]] = deque()
        with ThreadPoolExecutor(threads, thread_name_prefix="alcid-build") as pool:
            try:
                for task in tasks:
                    running.append((task, pool.submit(self._index, task)))
                    if len(running) > threads + 1:
                        first, future = running.popleft()
                        yield first, future.result()
                while running:
                    first, future = running.popleft()
                    yield first, future.result()
            finally:
                for _, future in running:
                    future.cancel()

    def _index(self, task: Task) -> IndexedFile | AlcidError:
        """What is kept of a file, or why nothing is; it must be the same before and after."""
        path, size = self._listing.paths[task.file].as_py(), int(self._listing.sizes[task.file])
        version = self._listing.versions[task.file].as_py()
        if version is None:
            return UnsupportedError(f"{path}: its file system does not say when it changed")
        source = self._storage.source(path, size, version)
        found: IndexedFile | AlcidError
        try:
            found = index_file(source, task.specs, path=path, size=size, version=version)
        except (FormatError, LimitError, StorageError, UnsupportedError) as error:
            found = error
        try:
            same = self._storage.stat(path) == (size, version)
        except FileGoneError:
            same = False
        if not same:
            return FileGoneError("changed or removed while it was read", file=source.name)
        if isinstance(found, StorageError) and not isinstance(found, FileGoneError):
            raise found  # not the file's fault, so that others would fail too
        return found

    def _take(self, task: Task, found: IndexedFile | AlcidError, skipped: SkippedCounter) -> None:
        path = self._listing.paths[task.file].as_py()
        if isinstance(found, AlcidError):
            skipped.add(None, str(found), path)
            self.failed += 1
            return
        for kind, reason in found.skipped.items():
            if kind.type == INDEX:
                skipped.add(kind, reason, path)
        indexes = {kind for kind in found.payloads if kind.type == INDEX}
        if task.known:
            if not indexes:
                self.unchanged += 1
                return
            found = found.only_indexes()
        self._batch.append(found)
        self._batch_bytes += sum(len(one or b"") for one in found.payloads.values())
        self.kinds |= indexes
        self.indexed += 1
        self.rows += found.entry.rows

    def _publish(self, replaces: Sequence[str] = ()) -> None:
        """Write the batch, and begin another."""
        if self._batch or replaces:
            data = io.BytesIO()
            with BundleWriter(data, replaces=replaces) as writer:
                while self._batch:
                    self._batch.popleft().add_to(writer)
            content = data.getvalue()
            self._folder.put(content)
            self.bytes_written += len(content)
            self.bundles += 1
        self._batch_bytes, self._batch_began = 0, time.monotonic()
