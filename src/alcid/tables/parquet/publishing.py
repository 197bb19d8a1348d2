"""What was staged for an append becomes part of the table: by renames, or by copies in tasks.

On a disk the driver renames files, which takes microseconds each. An object store has no renames:
its server copies an object under the new name. There, tasks ask for the copies, each for the files
of its own bundles, and rewrite these bundles where the copies have other versions:

    for each bundle:  copy files -> write the bundle with their versions -> remove what was staged

Spark may do a task again. A copy that is there already is left as it is, and a staged bundle is
removed last, so that one which is gone says that all of it has been published.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from alcid.errors import AlcidError, FileGoneError, NameTakenError, StorageError
from alcid.storage import Storage
from alcid.storage.backend import FileStat
from alcid.storage.threads import run_in_threads
from alcid.tables.bundle_folder import BundleFolder, new_name
from alcid.tables.engine import Engine, Task
from alcid.tables.parquet.staging import (
    StagedBundle,
    StagedFile,
    StagingJob,
    move_files,
    publish_bundle,
)
from alcid.tables.progress import track_progress

MAX_DRIVER_COPIES = 16
"""Files that the driver itself lets an object store copy: so few take less time than a job."""
MAX_DRIVER_BYTES = 64 << 20
"""Bytes of bundles that the driver rewrites then."""


def publish(
    engine: Engine, job: StagingJob, folder: BundleFolder, staged: Sequence[StagedBundle]
) -> list[int]:
    """Let staged files be files of the table, all or none, and say how long their bundles are.

    Where indexes could not be published, which is a warning, there is no length.

    Raises:
        StorageError: A file could not be moved; those that were are removed again.
    """
    storage = job.storage
    files = [file for bundle in staged for file in bundle.files]
    is_little = (
        len(files) <= MAX_DRIVER_COPIES
        and sum(bundle.size for bundle in staged) <= MAX_DRIVER_BYTES
    )
    if storage.remote and engine.has_spark and not is_little:
        return _publish_in_tasks(engine, job, folder, staged)
    moved = iter(move_files(storage, files))
    sizes = []
    for bundle in staged:
        moved_files = list(islice(moved, len(bundle.files)))
        if bundle.bundle:
            sizes.append(publish_bundle(storage, folder, bundle, moved_files))
    return [size for size in sizes if size]


def _publish_in_tasks(
    engine: Engine, job: StagingJob, folder: BundleFolder, staged: Sequence[StagedBundle]
) -> list[int]:
    paths = [file.path for bundle in staged for file in bundle.files]
    sizes = np.array([sum(file.size for file in bundle.files) for bundle in staged], np.int64)
    parts: list[Published] = []
    try:
        with track_progress(False, "publishing", len(paths)) as report:
            parts += engine.map(PublishWork(job.storage, folder), list(staged), sizes, report)
        _raise_first([part.error for part in parts])
    except BaseException:
        # Tasks may go on for a moment: without what is staged, they can copy nothing more.
        with suppress(StorageError):
            job.storage.remove_folder(job.folder)
        taken = {path for part in parts for path in part.taken}
        job.storage.delete(path for path in paths if path not in taken)
        folder.remove([name for part in parts for name in part.bundles])
        raise
    return [size for part in parts for size in part.sizes]


def _raise_first(errors: Sequence[AlcidError | None]) -> None:
    for error in errors:
        if error is not None:
            raise error


@dataclass(slots=True)
class Published:
    """What became of the bundles of a task."""

    sizes: list[int] = field(default_factory=list)
    """Of the bundles that were published."""
    bundles: list[str] = field(default_factory=list)
    """Their names, also of such that could not be written."""
    taken: list[str] = field(default_factory=list)
    """Paths where there are files of others."""
    error: AlcidError | None = None


@dataclass(frozen=True, slots=True)
class PublishWork:
    """Publishes bundles with their files, for `Engine.map`."""

    storage: Storage
    """That of the data."""
    folder: BundleFolder

    def __call__(self, task: Task[Sequence[StagedBundle]]) -> Published:
        """Publish those of a task; an error is returned with what was done before."""
        published = Published()
        try:
            for bundle in task.items:
                self._publish(bundle, published)
        except AlcidError as error:
            published.error = error
        return published

    def _publish(self, bundle: StagedBundle, published: Published) -> None:
        storage = self.storage
        if bundle.bundle and not storage.exists(bundle.bundle):
            if all(storage.exists(file.path) for file in bundle.files):
                published.sizes.append(bundle.size)  # an earlier attempt did, and was lost
                return
            raise FileGoneError("staged for an append, and gone", file=bundle.bundle)

        def copy(file: StagedFile) -> FileStat:
            try:
                return _copied(storage, file)
            except NameTakenError:
                published.taken.append(file.path)
                raise

        moved = run_in_threads(copy, bundle.files, waiting=True)
        if bundle.bundle:
            name = new_name()
            published.bundles.append(name)
            size = publish_bundle(storage, self.folder, bundle, moved, name)
            if size:
                published.sizes.append(size)
        storage.delete(file.staged for file in bundle.files)
        if bundle.bundle:
            storage.delete([bundle.bundle])


def _copied(storage: Storage, file: StagedFile) -> FileStat:
    """Copy a file to its place, where no attempt before has done so.

    An object is there as a whole, or not at all; its name has the job and the attempt that wrote
    it. So one that is there, and as long, is a copy of it.

    Raises:
        NameTakenError: There is a file of that name that is none.
    """
    try:
        stat = storage.stat(file.path)
    except FileGoneError:
        storage.copy(file.staged, file.path)
        stat = storage.stat(file.path)
    if stat.size != file.size:
        raise NameTakenError("exists already", file=file.path)
    return stat
