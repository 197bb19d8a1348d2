"""Many files: listed and removed by this process, or by tasks where there are very many.

A request that removes a file waits for an answer. So threads do it side by side, and from
`REMOVED_BY_TASKS` files on the tasks of a Spark session. A listing comes page by page; tasks list
a table that has `LISTED_BY_TASKS` folders, as those of partitions are, each some of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid.storage import Listing, Storage
from alcid.storage.threads import run_in_threads
from alcid.tables.engine import Engine, Task

LISTED_BY_TASKS: Final = 256
"""Folders from which on tasks list them."""
_DEEPEST: Final = 3  # levels of folders that are looked through for so many
REMOVED_BY_TASKS: Final = 20_000
"""Files from which on tasks remove them: fewer are gone before a job of Spark has begun."""
REMOVED_AT_ONCE: Final = 500
"""Files that a thread is given at a time; only their paths are Python objects meanwhile."""


def list_all(storage: Storage, engine: Engine) -> Listing:
    """All files of a storage, those with hidden names included, as `Storage.list` gives them."""
    if not engine.has_spark:
        return storage.list(hidden=True)
    files, folders = storage.folder()
    parts = [files]
    for _ in range(_DEEPEST - 1):
        if len(folders) >= LISTED_BY_TASKS:
            break
        inner = run_in_threads(storage.folder, folders, waiting=storage.remote)
        parts += [files for files, _ in inner]
        folders = [path for _, below in inner for path in below]
    if len(folders) >= LISTED_BY_TASKS:
        ones = np.ones(len(folders), np.int64)
        parts += engine.map(_List(storage), folders, ones)
    else:
        parts += run_in_threads(_List(storage).list_folder, folders, waiting=storage.remote)
    return _sorted(parts)


@dataclass(frozen=True, slots=True, eq=False)
class _List:
    """Lists the folders of a task."""

    storage: Storage

    def __call__(self, task: Task[list[str]]) -> Listing:
        return _sorted(run_in_threads(self.list_folder, task.items, waiting=self.storage.remote))

    def list_folder(self, folder: str) -> Listing:
        return self.storage.list(folder, hidden=True)


def _sorted(parts: Iterable[Listing]) -> Listing:
    """The files of all parts, by path."""
    listings = list(parts)
    listing = Listing(
        pa.chunked_array([part.paths for part in listings], pa.string()).combine_chunks(),
        np.concatenate([np.zeros(0, np.int64), *(part.sizes for part in listings)]),
        pa.chunked_array([part.versions for part in listings], pa.string()).combine_chunks(),
    )
    return listing.part(pc.sort_indices(listing.paths).to_numpy())


def remove_files(storage: Storage, paths: Any, engine: Engine) -> None:
    """Remove files in any order; those that are not there are passed over.

    Args:
        storage: Where they are.
        paths: Their paths: a string array.
        engine: What removes them, if they are very many.

    Raises:
        StorageError: One of them could not be removed; some of the others may be gone.
    """
    remove = _Remove(storage)
    files = pa.table({"path": paths})
    if engine.has_spark and len(paths) >= REMOVED_BY_TASKS:
        engine.map(remove, files, np.ones(len(paths), np.int64))
    else:
        remove(Task(files))


@dataclass(frozen=True, slots=True, eq=False)
class _Remove:
    """Removes the files of a task."""

    storage: Storage

    def __call__(self, task: Task[pa.Table]) -> None:
        paths = task.items.column("path")
        parts = (
            paths.slice(start, REMOVED_AT_ONCE) for start in range(0, len(paths), REMOVED_AT_ONCE)
        )
        run_in_threads(self._remove, parts, waiting=self.storage.remote)

    def _remove(self, paths: pa.ChunkedArray) -> None:
        self.storage.delete(paths.to_pylist())
