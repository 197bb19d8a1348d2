"""Files that are appended to a folder: staged under `_alcid/staging/`, then moved into the table.

    _alcid/staging/20250801T093000.123456Z-5f1e0c7ab2d4/
        part-20250801T093000.123456Z-5f1e0c7ab2d4-00007-0b3f6c1d2e4a-0000.parquet
        0b3f6c1d2e4a-0000.puffin

A job has a folder, named like a bundle. A task writes files and their bundles under names that no
other task has, and reports each bundle when it is whole. So of a task that is done twice only what
one of the two reported is moved into the table; the rest goes with the folder.

Data files are moved first, then the bundles that describe them; see `publishing` for who moves
them. A folder has no commit, so files appear one after the other; each is whole. If one of them
cannot be moved, those that were are removed again. What is left of an append that was killed is
either in its staging folder or a file of the table like any other.
"""

from __future__ import annotations

import io
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from alcid._arrays import IntArray
from alcid.errors import AlcidWarning, FormatError, NameTakenError, StorageError, UnsupportedError
from alcid.expressions.columns import ColumnTypes
from alcid.formats.source import BytesSource
from alcid.index.build import IndexedFile
from alcid.index.bundle import Bundle, BundleSet, BundleWriter, merge
from alcid.index.bundle.format import INDEX
from alcid.options import IndexSpec
from alcid.storage import Storage
from alcid.storage.backend import FileStat, is_hidden
from alcid.tables.build import BATCH_BYTES
from alcid.tables.bundle_folder import FOLDER, BundleFolder, new_name
from alcid.tables.parquet.partitions import NULL, Partitions, escape
from alcid.tables.parquet_writer import MAX_BUFFERED_BYTES, FileWriter, equal_runs, roll_files
from alcid.tables.schema import TargetColumns

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
    buffered_bytes: int = MAX_BUFFERED_BYTES
    """And when its rows take so much memory."""

    @property
    def folder(self) -> str:
        """Where everything lies until it is moved."""
        return f"{STAGING}/{self.name}"

    def write(self, batches: Iterable[pa.RecordBatch], task: int) -> Iterator[StagedBundle]:
        """Write the rows of one task, whose number is in the names of files, as rows come by path.

        Batches have the columns, then the partition columns as text; rows of the same partition
        come one after the other.
        """
        return _Stager(self, task).run(batches)

    def write_table(self, rows: pa.Table) -> Iterator[StagedBundle]:
        """Refuse: Spark gives partition columns as it writes them into paths, Arrow does not.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError(
            f"rows: found {type(rows).__name__}, expected a Spark DataFrame, as a folder needs one"
        )

    @property
    def cluster_by(self) -> Sequence[str]:
        """None of the files: rows are clustered by the columns in the paths."""
        return ()

    @property
    def has_buckets(self) -> bool:
        """A folder has none."""
        return False

    def buckets(self, _rows: pa.Table) -> IntArray | None:
        """None."""
        return None


class _Stager:
    """One attempt of one task."""

    def __init__(self, job: StagingJob, task: int) -> None:
        self._job, self._task, self._attempt = job, task, uuid.uuid4().hex[:12]
        self._number = self._bundles = 0
        self._batch: list[IndexedFile] = []
        self._batch_bytes = 0
        self._staged: list[StagedFile] = []

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[StagedBundle]:
        """Write all rows; a bundle is reported as soon as it is whole."""
        job = self._job
        parts = (part for batch in batches for part in self._parts(batch))
        for folder, file in roll_files(
            parts,
            lambda: FileWriter(job.columns.schema, job.metadata),
            target_bytes=job.target_bytes,
            buffered_bytes=job.buffered_bytes,
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
            (kind.column, kind.index_type, reason, indexed.entry.path)
            for indexed in self._batch
            for kind, reason in indexed.skipped.items()
            if kind.type == INDEX
        )
        bundle, content = "", b""
        if all(file.version is not None for file in files):
            data = io.BytesIO()
            with BundleWriter(data) as writer:
                for indexed in self._batch:
                    indexed.add_to(writer)
            content = data.getvalue()
            bundle = f"{job.folder}/{self._attempt}-{self._bundles:04d}.puffin"
            job.storage.put(bundle, content)
        self._bundles += 1
        self._batch, self._batch_bytes, self._staged = [], 0, []
        return StagedBundle(bundle, len(content), files, skipped)


_THREADS = 16


def check_paths(
    before: pa.Array, added: Sequence[str], partition_types: ColumnTypes | None
) -> None:
    """See that a table can be read as before when it has more files.

    The partition columns of the paths before, and their types, stay.

    Raises:
        UnsupportedError: A path that readers pass over, or a type would change.
        LiteralError: A value is none of the type of its column.
        FormatError: Other partition columns.
    """
    for path in added:
        for name in path.split("/"):
            if is_hidden(name):
                raise UnsupportedError(f"{path}: readers pass over names like {name}")
    new = pa.array(added, before.type)
    after = Partitions.of(pa.concat_arrays([before, new]), partition_types)
    if not len(before):
        return
    for column in Partitions.of(before, partition_types).columns:
        new_type = after.types[column.name]
        if new_type != column.data_type:
            values = Partitions.of(new).to_table().column(column.name).unique().to_pylist()
            raise UnsupportedError(
                f"partition column {column.name}: found {values[:3]}, "
                f"expected {column.data_type} as in the table, which would become {new_type}"
            )


def move_files(storage: Storage, files: Sequence[StagedFile]) -> list[FileStat]:
    """Move files to where they belong, all or none, and say what the storage says of them then.

    Raises:
        StorageError: One could not be moved; those that were are removed again.
    """
    begun: list[str] = []

    def move(file: StagedFile) -> FileStat:
        begun.append(file.path)
        try:
            storage.move(file.staged, file.path)
        except NameTakenError:
            begun.remove(file.path)  # it is not ours
            raise
        return storage.stat(file.path)

    try:
        with ThreadPoolExecutor(_THREADS if storage.remote else 1) as pool:
            futures = [pool.submit(move, file) for file in files]
            try:
                return [future.result() for future in futures]
            finally:
                for future in futures:
                    future.cancel()
    except BaseException:
        storage.delete(begun)
        raise


def publish_bundle(
    storage: Storage,
    folder: BundleFolder,
    staged: StagedBundle,
    moved: Sequence[FileStat],
    name: str | None = None,
) -> int:
    """Let a bundle count, after its files were moved, and say how long it is.

    The rows are there by now: that their indexes are not is a warning.
    """
    same = all(
        stat == (file.size, file.version) for stat, file in zip(moved, staged.files, strict=True)
    )
    name = name or new_name()
    try:
        if same and folder.storage is storage:
            give = storage.copy if storage.remote else storage.move
            give(staged.bundle, folder.path(name))
            return staged.size
        data = storage.source(staged.bundle, staged.size).read(0, staged.size)
        if not same:
            data = with_versions(data, staged.files, moved)
        folder.write(name, data)
    except (StorageError, FormatError) as error:
        warnings.warn(
            f"rows were appended, but not their indexes, which build_indexes makes: {error}",
            AlcidWarning,
            stacklevel=2,
        )
        return 0
    return len(data)


def with_versions(data: bytes, files: Sequence[StagedFile], moved: Sequence[FileStat]) -> bytes:
    """A bundle with other versions of its files.

    Raises:
        FormatError: A file has another size than before, or the bundle is damaged.
    """
    for file, stat in zip(files, moved, strict=True):
        if stat.size != file.size or stat.version is None:
            raise FormatError(
                "changed while it was moved", file=file.path, found=stat, expected=file.size
            )

    bundles = BundleSet(
        [Bundle.open(BytesSource(data, "staged bundle"))],
        [file.path for file in files],
        np.array([file.size for file in files], np.int64),
        [file.version or "" for file in files],
        strict=True,
    )
    made = io.BytesIO()
    merge(bundles, made, versions=[stat.version or "" for stat in moved])
    return made.getvalue()
