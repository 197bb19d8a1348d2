"""The deleted rows of files: deletion vectors of the table, and rows that newer ones replace.

Both are one thing for a plan: positions of a file that are not rows of the table. They are read, or
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

__all__ = [
    "INDEX_FOLDER",
    "DeletedRows",
    "Merges",
    "StoredVectors",
    "TableVectors",
    "index_path",
    "vector_places",
    "vectors_twice",
]

Place = tuple[bytes, int, str]
"""Partition, bucket and name of a data file."""

INDEX_FOLDER = "index/"


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Rows of a data file to delete."""

    file: PlacedFile
    rows: DeletionVector


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Where the vector of a data file is."""

    path: str
    """Of the index file."""
    place: DeletionVectorRange
    problem: FormatError | None = None
    """Why it is not to be used."""


def index_path(
    entry: IndexEntry, bucket_folder: str, *, beside_data: bool, place: DataPlace | None = None
) -> str:
    """Where an index file lies.

    Args:
        entry: The index file.
        bucket_folder: Where the data files of its bucket are.
        beside_data: Whether index files are there, too.
        place: Where they are read, if files outside of the table are.

    Raises:
        UnsupportedError: Outside of the table.
    """
    if entry.external_path is not None:
        if place is None:
            raise UnsupportedError(
                f"{entry.external_path}: lies outside of its table, which is for reading rows only"
            )
        return place.outside(entry.external_path)
    index_folder = INDEX_FOLDER if place is None else place.table + INDEX_FOLDER
    return f"{bucket_folder if beside_data else index_folder}{entry.name}"


def vector_places(
    entries: Sequence[IndexEntry],
    files: Sequence[PlacedFile],
    *,
    beside_data: bool,
    place: DataPlace | None = None,
) -> dict[int, StoredVectors]:
    """The vectors of data files, by the number of the file.

    Where a data file has two of them, nobody knows which one holds: its rows are not read.
    """
    entries = [entry for entry in entries if entry.index_type == DELETION_VECTORS]
    if not entries:
        return {}
    numbers = {
        (one.entry.partition, one.entry.bucket, one.file.name): number
        for number, one in enumerate(files)
    }
    found: dict[int, StoredVectors] = {}
    for entry in entries:
        for vector in entry.ranges or ():
            number = numbers.get((entry.partition, entry.bucket, vector.data_file))
            if number is None:  # of a file that this read does not see
                continue
            if number in found:
                problem = FormatError(
                    f"two deletion vectors of {vector.data_file}, which repair merges",
                    file=entry.name,
                    found=found[number].path,
                    expected="one",
                )
                found[number] = replace(found[number], problem=problem)
                continue
            folder = files[number].folder
            path = index_path(entry, folder, beside_data=beside_data, place=place)
            found[number] = StoredVectors(path, vector)
    return found


class Merges(Protocol):
    """Rows that others replace."""

    def files(self) -> frozenset[int]:
        """The files of which some rows may be replaced."""

    def load(
        self,
        files: Int64Array,
        stored: Callable[[Sequence[int]], Mapping[int, DeletionVector]],
    ) -> dict[int, DeletionVector]:
        """The rows that are no rows of the table, of these files and those merged with them.

        Args:
            files: The files.
            stored: Gives the vectors that the table keeps of files.
        """


class TableVectors(Mapping[int, DeletionVector]):
    """The deleted rows of those files that may have any, by the number of the file."""

    def __init__(
        self,
        storage: Storage,
        stored: Mapping[int, StoredVectors],
        rows: Int64Array,
        merges: Merges | None = None,
    ) -> None:
        """Read nothing yet; `rows` are those of each file."""
        self._storage, self._stored, self._rows, self._merges = storage, stored, rows, merges
        self._merged = frozenset() if merges is None else merges.files()
        self._known: dict[int, DeletionVector] = {}
        self._loaded: dict[int, DeletionVector] = {}
        self._loading = Lock()

    def load(self, files: Int64Array) -> None:
        """Read, and merge, what some files need.

        Raises:
            FormatError: A vector is damaged, or one of two: a deleted row must not come back.
        """
        with self._loading:
            missing = [
                file
                for file in files.tolist()
                if file not in self._loaded and (file in self._stored or file in self._merged)
            ]
            found = self.stored(missing)
            merged = np.array([file for file in missing if file in self._merged], np.int64)
            if self._merges is not None and len(merged):
                found |= self._merges.load(merged, self.stored)
            self._loaded.update(found)

    def _read(self, files: Sequence[int]) -> None:
        by_path: dict[str, list[int]] = {}
        for file in files:
            if file in self._stored and file not in self._known:
                if (problem := self._stored[file].problem) is not None:
                    raise problem
                by_path.setdefault(self._stored[file].path, []).append(file)

        def read(path: str) -> dict[int, DeletionVector]:
            places = {self._stored[file].place.data_file: file for file in by_path[path]}
            with DeletionVectorFile.open(self._storage.source(path)) as opened:
                vectors = opened.read_all(self._stored[file].place for file in by_path[path])
            return {places[name]: vector for name, vector in vectors.items()}

        for found in wait_for_each(read, by_path, remote=self._storage.remote):
            for file, vector in found.items():
                self._check(file, vector)
                self._known[file] = vector

    def _check(self, file: int, vector: DeletionVector) -> None:
        if vector.last is not None and vector.last >= self._rows[file]:
            place = self._stored[file]
            raise FormatError(
                f"deleted row of {place.place.data_file}",
                file=place.path,
                offset=place.place.offset,
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
        """The vectors that the table keeps of some files, without what merging finds."""
        self._read(files)
        return {file: self._known[file] for file in files if file in self._known}


def vectors_twice(entries: Iterable[IndexEntry]) -> Iterator[tuple[str, str]]:
    """Data files with two vectors: the data file, and in which index files they are."""
    seen: dict[tuple[bytes, int, str], str] = {}
    for entry in entries:
        for place in entry.ranges or ():
            data_file = entry.partition, entry.bucket, place.data_file
            if data_file in seen:
                yield place.data_file, f"two vectors, in {seen[data_file]} and {entry.name}"
            seen.setdefault(data_file, entry.name)
