"""What the tests of verify, clean and statistics share."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from alcid._arrays import Int64Array
from alcid.index.build import IndexedFile, index_file
from alcid.index.bundle import BundleWriter, ColumnStatistics, PayloadKind
from alcid.options import parse_options
from alcid.storage import Storage
from alcid.tables.bundle_folder import FOLDER, BundleFolder
from alcid.tables.engine import Task, Threads, take_items
from alcid.tables.maintenance.findings import IndexCheck
from alcid.tables.maintenance.parquet import verify
from alcid.tables.maintenance.verify import VerifyReport
from alcid.tables.open_files import list_data_files
from alcid.tables.progress import ReportProgress, no_progress

R = TypeVar("R")
Files = dict[str, IndexedFile]


class Workers(Threads):
    """An engine of several workers that exchanges work and results as bytes."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def map(
        self,
        function: Callable[[Task[Any]], Any],
        items: Any,
        sizes: Int64Array,
        report: ReportProgress = no_progress,
    ) -> list[Any]:
        parts = np.array_split(np.arange(len(sizes)), self._count)
        sent = [pickle.dumps((function, take_items(items, part))) for part in parts if len(part)]
        return [
            pickle.loads(pickle.dumps(again(Task(some, 1, report))))
            for again, some in map(pickle.loads, sent)
        ]


def folder_of(storage: Storage) -> BundleFolder:
    return BundleFolder(storage, FOLDER)


def verified(storage: Storage, **options: Any) -> VerifyReport:
    return verify(storage, folder_of(storage), Threads(), **options)


def checks(report: VerifyReport) -> dict[str, IndexCheck]:
    """The checks, by `bitmap of 'id'`."""
    return {f"{index.index_type} of {index.column!r}": index for index in report.indexes}


def problems(report: VerifyReport) -> list[tuple[str, str]]:
    """File and part of each problem."""
    assert len(report.problems) == report.problem_count
    return [(problem.file, problem.what) for problem in report.problems]


def forge(
    storage: Storage,
    options: Mapping[str, str | int | float],
    change: Callable[[Files], None],
) -> str:
    """Write a bundle of all files with correct checksums, after a change in its content."""
    listing = list_data_files(storage)
    columns = listing.paths.to_pylist(), listing.sizes.tolist(), listing.versions.to_pylist()
    files: Files = {}
    for path, size, version in zip(*columns, strict=True):
        source = storage.source(path, size, version)
        specs = parse_options(options)
        files[path] = index_file(source, specs, path=path, size=size, version=version)
    change(files)
    data = io.BytesIO()
    with BundleWriter(data) as writer:
        for indexed in files.values():
            indexed.add_to(writer)
    return folder_of(storage).put(data.getvalue())


def with_payload(indexed: IndexedFile, kind: PayloadKind, payload: bytes | None) -> IndexedFile:
    return replace(indexed, payloads={**indexed.payloads, kind: payload})


def with_statistics(indexed: IndexedFile, column: str, **change: Any) -> IndexedFile:
    changed_statistics: ColumnStatistics = replace(indexed.entry.statistics[column], **change)
    statistics = {**indexed.entry.statistics, column: changed_statistics}
    return replace(indexed, entry=replace(indexed.entry, statistics=statistics))


def with_entry(indexed: IndexedFile, **change: Any) -> IndexedFile:
    return replace(indexed, entry=replace(indexed.entry, **change))


def set_age(path: str, seconds: float) -> None:
    """Set the modification time of a file on the disk to this long ago."""
    status = os.stat(path)  # noqa: PTH116
    os.utime(path, (status.st_atime, status.st_mtime - seconds))
