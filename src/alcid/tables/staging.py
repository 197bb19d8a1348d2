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
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from alcid.bundle import BundleWriter
from alcid.bundle.kinds import INDEX
from alcid.options import IndexSpec
from alcid.storage import Storage
from alcid.tables.building import BATCH_BYTES
from alcid.tables.bundle_folder import FOLDER, new_name
from alcid.tables.index_file import IndexedFile
from alcid.tables.partition_types import NULL, escape
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

    def to_json(self) -> str:
        """As text, for the way to the driver."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> StagedBundle:
        """What `to_json` gave."""
        told: dict[str, Any] = json.loads(text)
        files = tuple(StagedFile(**one) for one in told.pop("files"))
        skipped = tuple(tuple(one) for one in told.pop("skipped"))
        return cls(**told, files=files, skipped=skipped)


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
    held_bytes: int = 512 << 20
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
        self._place = ""
        self._file: FileWriter | None = None
        self._batch: list[IndexedFile] = []
        self._batch_bytes = 0
        self._staged: list[StagedFile] = []

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[StagedBundle]:
        """Write all rows; a bundle is told as soon as it is whole."""
        for batch in batches:
            for place, rows in self._parts(batch):
                if place != self._place:
                    yield from self._close()
                    self._place = place
                file = self._add(rows)
                if (
                    file.written_bytes >= self._job.target_bytes
                    or file.held_bytes >= self._job.held_bytes
                ):
                    rest = file.cut()
                    yield from self._close()
                    if rest is not None:
                        self._add(rest)
        yield from self._close()
        if self._staged:
            yield self._finish_bundle()

    def _add(self, rows: pa.Table) -> FileWriter:
        """Add rows to the file that is open, or to a new one."""
        if self._file is None:
            self._file = FileWriter(self._job.columns.schema, self._job.metadata)
        self._file.add(rows)
        return self._file

    def _parts(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Table]]:
        """The folder of each run of rows, and these as the table has them."""
        columns, count = self._job.columns, len(self._job.columns.partitions)
        inside = batch.num_columns - count
        if not batch.num_rows:
            return
        rows = columns.rows(batch.columns[:inside])
        keys = batch.columns[inside:]
        for start, stop in _runs(keys, batch.num_rows):
            folders = [self._job.above] if self._job.above else []
            for name, values in zip(columns.partitions, keys, strict=True):
                value = values[start].as_py()
                folders.append(f"{escape(name)}={escape(value) if value else NULL}")
            yield "/".join([*folders, ""]), rows.slice(start, stop - start)

    def _close(self) -> Iterator[StagedBundle]:
        """Stage the file that is open, if one is."""
        job, file, self._file = self._job, self._file, None
        if file is None:
            return
        name = f"part-{job.name}-{self._task:05d}-{self._attempt}-{self._number:04d}.parquet"
        self._number += 1
        staged, path = f"{job.folder}/{name}", self._place + name
        written = file.finish(job.specs, path=path)
        job.storage.put(staged, written.data.to_pybytes())
        version = job.storage.stat(staged).version
        self._staged.append(StagedFile(staged, path, written.data.size, version, file.rows))
        self._batch.append(written.placed(version or ""))
        self._batch_bytes += sum(map(len, filter(None, written.indexed.payloads.values())))
        if self._batch_bytes >= BATCH_BYTES:
            yield self._finish_bundle()

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


def _runs(keys: Sequence[pa.Array], count: int) -> Iterator[tuple[int, int]]:
    """Where rows of the same keys begin and end."""
    change = np.zeros(count - 1, bool)
    for values in keys:
        codes = values.dictionary_encode(null_encoding="encode").indices.to_numpy()
        change |= codes[1:] != codes[:-1]
    edges = [0, *(np.flatnonzero(change) + 1).tolist(), count]
    yield from pairwise(edges)
