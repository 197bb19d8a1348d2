"""Deleted rows of data files: deletion vectors of the table, and rows that newer ones supersede.

Both are the same for a plan: positions of a file that are not rows of the table. They are read, or
found by merging, for those files that a plan has left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Protocol

import numpy as np

from alcid._arrays import Int64Array
from alcid.errors import FormatError, UnsupportedError
from alcid.formats.deletion_vector import DeletionVector, DeletionVectorFile, DeletionVectorRange
from alcid.storage import Storage
from alcid.storage.threads import wait_for_each
from alcid.tables.paimon.data_files import DataPlace, PlacedFile
from alcid.tables.paimon.metadata.table_state import DELETION_VECTORS, IndexEntry

INDEX_FOLDER = "index/"


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Rows of a data file to delete."""

    file: PlacedFile
    rows: DeletionVector


@dataclass(frozen=True, slots=True)
class StoredVector:
    """The deletion vector of a data file in an index file."""

    path: str
    """The index file."""
    range: DeletionVectorRange
    problem: FormatError | None = None
    """Why it cannot be used."""


def index_path(
    entry: IndexEntry, bucket_folder: str, *, beside_data: bool, place: DataPlace | None = None
) -> str:
    """The path of an index file.

    Args:
        entry: The index file.
        bucket_folder: The folder of the data files of its bucket.
        beside_data: Whether index files are in that folder, too.
        place: Where files are read, if files outside of the table are.

    Raises:
        UnsupportedError: It is outside of the table.
    """
    if entry.external_path is not None:
        if place is None:
            raise UnsupportedError(
                f"{entry.external_path}: lies outside of its table, which is for reading rows only"
            )
        return place.outside(entry.external_path)
    index_folder = INDEX_FOLDER if place is None else place.table + INDEX_FOLDER
    return f"{bucket_folder if beside_data else index_folder}{entry.name}"


def stored_vectors(
    entries: Sequence[IndexEntry],
    files: Sequence[PlacedFile],
    *,
    beside_data: bool,
    place: DataPlace | None = None,
) -> dict[int, StoredVector]:
    """The deletion vectors of data files, by the number of the file.

    A data file with two of them cannot be read: nobody knows which one is valid.
    """
    entries = [entry for entry in entries if entry.index_type == DELETION_VECTORS]
    if not entries:
        return {}
    numbers = {(*file.entry.bucket_id, file.file.name): number for number, file in enumerate(files)}
    stored: dict[int, StoredVector] = {}
    for entry in entries:
        for vector in entry.ranges or ():
            number = numbers.get((*entry.bucket_id, vector.data_file))
            if number is None:  # of a file that this read does not see
                continue
            if number in stored:
                problem = FormatError(
                    f"two deletion vectors of {vector.data_file}, which repair merges",
                    file=entry.name,
                    found=stored[number].path,
                    expected="one",
                )
                stored[number] = replace(stored[number], problem=problem)
                continue
            folder = files[number].folder
            path = index_path(entry, folder, beside_data=beside_data, place=place)
            stored[number] = StoredVector(path, vector)
    return stored


class MergedRows(Protocol):
    """Rows that newer rows of other files supersede."""

    def files(self) -> frozenset[int]:
        """The files of which rows may be superseded."""

    def load(
        self,
        files: Int64Array,
        stored: Callable[[Sequence[int]], Mapping[int, DeletionVector]],
    ) -> dict[int, DeletionVector]:
        """The deleted rows of some files and those merged with them.

        Args:
            files: The files.
            stored: Returns the deletion vectors that the table has of files.
        """


class TableVectors(Mapping[int, DeletionVector]):
    """The deleted rows of all files that may have some, by the number of the file."""

    def __init__(
        self,
        storage: Storage,
        stored: Mapping[int, StoredVector],
        rows: Int64Array,
        merges: MergedRows | None = None,
    ) -> None:
        """Take the vectors, and the number of rows of each file; nothing is read yet."""
        self._storage, self._stored, self._rows, self._merges = storage, stored, rows, merges
        self._merged = frozenset() if merges is None else merges.files()
        self._read_vectors: dict[int, DeletionVector] = {}
        self._loaded: dict[int, DeletionVector] = {}
        self._loading = Lock()

    def load(self, files: Int64Array) -> None:
        """Read vectors of some files, and merge those that have to be.

        Raises:
            FormatError: A vector is damaged, or one of two: a deleted row must not come back.
        """
        with self._loading:
            missing = [
                file
                for file in files.tolist()
                if file not in self._loaded and (file in self._stored or file in self._merged)
            ]
            deleted = self.stored(missing)
            merged = np.array([file for file in missing if file in self._merged], np.int64)
            if self._merges is not None and len(merged):
                deleted |= self._merges.load(merged, self.stored)
            self._loaded.update(deleted)

    def _read(self, files: Sequence[int]) -> None:
        by_path: dict[str, list[int]] = {}
        for file in files:
            if file in self._stored and file not in self._read_vectors:
                if (problem := self._stored[file].problem) is not None:
                    raise problem
                by_path.setdefault(self._stored[file].path, []).append(file)

        def read(path: str) -> dict[int, DeletionVector]:
            numbers = {self._stored[file].range.data_file: file for file in by_path[path]}
            with DeletionVectorFile.open(self._storage.source(path)) as opened:
                vectors = opened.read_all(self._stored[file].range for file in by_path[path])
            return {numbers[name]: vector for name, vector in vectors.items()}

        for vectors in wait_for_each(read, by_path, remote=self._storage.remote):
            for file, vector in vectors.items():
                self._check(file, vector)
                self._read_vectors[file] = vector

    def _check(self, file: int, vector: DeletionVector) -> None:
        if vector.last is not None and vector.last >= self._rows[file]:
            stored = self._stored[file]
            raise FormatError(
                f"deleted row of {stored.range.data_file}",
                file=stored.path,
                offset=stored.range.offset,
                found=vector.last,
                expected=f"below {self._rows[file]}",
            )

    def __getitem__(self, file: int) -> DeletionVector:
        if file not in self._stored and file not in self._merged:
            raise KeyError(file)
        if file not in self._loaded:
            self.load(np.array([file]))
        return self._loaded[file]

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._stored.keys() | self._merged))

    def __len__(self) -> int:
        return len(self._stored.keys() | self._merged)

    def stored(self, files: Sequence[int]) -> dict[int, DeletionVector]:
        """The deletion vectors that the table has of some files, without merging."""
        self._read(files)
        return {file: self._read_vectors[file] for file in files if file in self._read_vectors}


def duplicate_vectors(entries: Iterable[IndexEntry]) -> Iterator[tuple[str, str]]:
    """Data files with two vectors: the data file, and the index files of the vectors."""
    seen: dict[tuple[bytes, int, str], str] = {}
    for entry in entries:
        for vector in entry.ranges or ():
            data_file = (*entry.bucket_id, vector.data_file)
            if data_file in seen:
                yield vector.data_file, f"two vectors, in {seen[data_file]} and {entry.name}"
            seen.setdefault(data_file, entry.name)
