"""Files on their way into a table: written under `_alcid/staging/`, where no reader looks.

    _alcid/staging/20250801T093000.123456Z-5f1e0c7ab2d4/
        part-20250801T093000.123456Z-5f1e0c7ab2d4-00007-0b3f6c1d2e4a-0000.parquet
        0b3f6c1d2e4a-0000.puffin

A job has a folder, named like a bundle. A worker writes files and the bundles of these under names
that no other worker has, and tells of each bundle when it is whole. So of a task that is done twice
only what one of the two told is moved into the table; the rest goes with the folder.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from alcid.bundle import BundleWriter
from alcid.bundle.kinds import INDEX
from alcid.options import IndexSpec
from alcid.storage import Storage
from alcid.tables.building import BATCH_BYTES
from alcid.tables.bundle_folder import FOLDER, new_name
from alcid.tables.index_file import IndexedFile
from alcid.tables.partition_types import NULL, escape
from alcid.tables.rolling import HELD_BYTES, equal_runs, roll_files
from alcid.tables.target_columns import TargetColumns
from alcid.tables.writing import FileWriter

__all__ = ["STAGING", "StagedBundle", "StagedFile", "StagingJob", "new_job"]

STAGING = f"{FOLDER}/staging"
"""Where jobs have their folders, in the storage of the data."""


def new_job() -> str:
    """A name for a job that begins now; `written_at(name + ".puffin")` says when that was."""
    return new_name().removesuffix(".puffin")


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A data file that was written."""

    staged: str
    """Where it lies."""
    path: str
    """Where it belongs."""
    size: int
    version: str | None
    """As the storage says where it lies."""
    rows: int


@dataclass(frozen=True, slots=True)
class StagedBundle:
    """Data files, and the bundle of what is kept of them."""

    bundle: str
    """Where it lies; empty if there is none, as the storage gives no versions."""
    size: int
    files: tuple[StagedFile, ...]
    skipped: tuple[tuple[str, str, str, str], ...]
    """Column, index type, reason and path of what was not built."""


@dataclass(frozen=True, slots=True)
class StagingJob:
    """What every worker of a job does with its rows; it pickles."""

    storage: Storage
    """That of the data."""
    name: str
    columns: TargetColumns
    above: str
    """The folder of the table that the partition folders are in; empty as a rule."""
    specs: tuple[IndexSpec, ...]
    metadata: Mapping[str, str]
    """For the footers of the files."""
    target_bytes: int
    """A file is closed when it is so long."""
    held_bytes: int = HELD_BYTES
    """And when its rows take so much memory."""

    @property
    def folder(self) -> str:
        """Where everything lies until it is moved."""
        return f"{STAGING}/{self.name}"

    def write(self, batches: Iterable[pa.RecordBatch], task: int) -> Iterator[StagedBundle]:
        """Write the rows of one task.

        Args:
            batches: The given columns, then the texts of the partition columns; rows of the same
                partition one after the other.
            task: Its number, for the names: rows of a table come by path.
        """
        return _Stager(self, task).run(batches)


class _Stager:
    """One attempt of one task."""

    def __init__(self, job: StagingJob, task: int) -> None:
        self._job, self._task, self._attempt = job, task, uuid.uuid4().hex[:12]
        self._number = self._bundles = 0
        self._batch: list[IndexedFile] = []
        self._batch_bytes = 0
        self._staged: list[StagedFile] = []

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[StagedBundle]:
        """Write all rows; a bundle is told as soon as it is whole."""
        job = self._job
        parts = (part for batch in batches for part in self._parts(batch))
        for folder, file in roll_files(
            parts,
            lambda: FileWriter(job.columns.schema, job.metadata),
            target_bytes=job.target_bytes,
            held_bytes=job.held_bytes,
        ):
            self._close(folder, file)
            if self._batch_bytes >= BATCH_BYTES:
                yield self._finish_bundle()
        if self._staged:
            yield self._finish_bundle()

    def _parts(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Table]]:
        """The folder of each run of rows, and these as the table has them."""
        columns, count = self._job.columns, len(self._job.columns.partitions)
        inside = batch.num_columns - count
        if not batch.num_rows:
            return
        rows = columns.rows(batch.columns[:inside])
        keys = batch.columns[inside:]
        for start, stop in equal_runs(keys, batch.num_rows):
            folders = [self._job.above] if self._job.above else []
            for name, values in zip(columns.partitions, keys, strict=True):
                value = values[start].as_py()
                folders.append(f"{escape(name)}={escape(value) if value else NULL}")
            yield "/".join([*folders, ""]), rows.slice(start, stop - start)

    def _close(self, folder: str, file: FileWriter) -> None:
        """Stage a file that is full."""
        job = self._job
        name = f"part-{job.name}-{self._task:05d}-{self._attempt}-{self._number:04d}.parquet"
        self._number += 1
        staged, path = f"{job.folder}/{name}", folder + name
        written = file.finish(job.specs, path=path)
        job.storage.put(staged, written.data.to_pybytes())
        version = job.storage.stat(staged).version
        self._staged.append(StagedFile(staged, path, written.data.size, version, file.rows))
        self._batch.append(written.placed(version or ""))
        self._batch_bytes += sum(map(len, filter(None, written.indexed.payloads.values())))

    def _finish_bundle(self) -> StagedBundle:
        job, files = self._job, tuple(self._staged)
        skipped = tuple(
            (kind.column, kind.index_type, reason, found.entry.path)
            for found in self._batch
            for kind, reason in found.skipped.items()
            if kind.type == INDEX
        )
        bundle, content = "", b""
        if all(file.version is not None for file in files):
            data = io.BytesIO()
            with BundleWriter(data) as writer:
                for found in self._batch:
                    found.add_to(writer)
            content = data.getvalue()
            bundle = f"{job.folder}/{self._attempt}-{self._bundles:04d}.puffin"
            job.storage.put(bundle, content)
        self._bundles += 1
        self._batch, self._batch_bytes, self._staged = [], 0, []
        return StagedBundle(bundle, len(content), files, skipped)
