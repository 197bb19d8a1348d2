"""Deleted rows of data files: deletion vectors of the table, and rows that newer ones supersede.

Both are the same for a plan: positions of a file that are not rows of the table. They are read, or
found by merging, for those files that a plan has left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

import numpy as np

from alcid._arrays import Int64Array, split_by
from alcid.errors import FormatError, UnsupportedError
from alcid.formats.deletion_vector import DeletionVector, DeletionVectorFile, DeletionVectorRange
from alcid.scan.deletes import DecidedRows, resolve_all
from alcid.storage import Storage
from alcid.storage.threads import wait_for_each
from alcid.tables.paimon.data_files import DataPlace, PlacedFile
from alcid.tables.paimon.merge_units import (
    MergeTable,
    MergeUnit,
    merge_unit,
    without_statistics,
)
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


def read_stored(
    storage: Storage, stored: Mapping[int, StoredVector], rows: Mapping[int, int]
) -> dict[int, DeletionVector]:
    """Read vectors, by the numbers of their files; those of an index file in few requests.

    Args:
        storage: The storage of the index files.
        stored: Where the vectors are.
        rows: How many rows each file has.

    Raises:
        FormatError: A vector is damaged, or one of two: a deleted row must not come back.
    """
    by_path: dict[str, list[int]] = {}
    for file, location in stored.items():
        if location.problem is not None:
            raise location.problem
        by_path.setdefault(location.path, []).append(file)

    def read(path: str) -> dict[int, DeletionVector]:
        numbers = {stored[file].range.data_file: file for file in by_path[path]}
        with DeletionVectorFile.open(storage.source(path)) as opened:
            vectors = opened.read_all(stored[file].range for file in by_path[path])
        return {numbers[name]: vector for name, vector in vectors.items()}

    deleted: dict[int, DeletionVector] = {}
    for vectors in wait_for_each(read, by_path, remote=storage.remote):
        for file, vector in vectors.items():
            if vector.last is not None and vector.last >= rows[file]:
                raise FormatError(
                    f"deleted row of {stored[file].range.data_file}",
                    file=stored[file].path,
                    offset=stored[file].range.offset,
                    found=vector.last,
                    expected=f"below {rows[file]}",
                )
            deleted[file] = vector
    return deleted


@dataclass(frozen=True, slots=True, eq=False)
class Merges:
    """The files of a table that are merged on read."""

    table: MergeTable
    files: Sequence[PlacedFile]
    """All files that a read sees."""
    units: Sequence[MergeUnit]

    @property
    def merged(self) -> frozenset[int]:
        """The files that are merged with others, by number."""
        return frozenset(file for unit in self.units for file in unit.files.tolist())


@dataclass(frozen=True, slots=True, eq=False)
class PaimonDeletes:
    """Deleted rows that are not looked for yet: vectors to read, and files to merge; it pickles."""

    storage: Storage
    vectors: Mapping[int, StoredVector]
    """Vectors of files of the units, by the number of the file."""
    rows: Mapping[int, int]
    """How many rows these files have."""
    vector_units: Sequence[Int64Array]
    """Files with a vector that are not merged."""
    merge_units: Sequence[MergeUnit] = ()
    table: MergeTable | None = None
    files: Mapping[int, PlacedFile] = field(default_factory=dict)
    """The files that are merged."""
    loaded: Mapping[int, DeletionVector] = field(default_factory=dict)
    """Vectors that were read before."""

    @property
    def units(self) -> list[Int64Array]:
        """The data files of each unit."""
        return [*self.vector_units, *(unit.files for unit in self.merge_units)]

    @property
    def sizes(self) -> Int64Array:
        """The bytes of vectors and key columns."""
        vectors = [
            sum(self.vectors[file].range.length for file in unit.tolist())
            for unit in self.vector_units
        ]
        return np.array([*vectors, *(unit.size for unit in self.merge_units)], np.int64)

    def take(self, units: Int64Array) -> PaimonDeletes:
        """Some of the units, with the vectors and files of these."""
        count = len(self.vector_units)
        vector_units = [self.vector_units[unit] for unit in units[units < count].tolist()]
        merge_units = [self.merge_units[unit - count] for unit in units[units >= count].tolist()]
        merged = {file for unit in merge_units for file in unit.files.tolist()}
        files = merged.union(*(unit.tolist() for unit in vector_units))
        return PaimonDeletes(
            self.storage,
            {file: self.vectors[file] for file in files & self.vectors.keys()},
            {file: self.rows[file] for file in files & self.rows.keys()},
            vector_units,
            merge_units,
            self.table if merge_units else None,
            {file: self.files[file] for file in merged},
        )

    def resolve(self, unit: int) -> dict[int, DecidedRows]:
        """Read the vectors of a unit, and merge its files.

        Raises:
            FormatError: A vector or a data file is damaged.
        """
        files = self.units[unit].tolist()
        missing = {
            file: self.vectors[file]
            for file in files
            if file in self.vectors and file not in self.loaded
        }
        deleted = {file: self.loaded[file] for file in files if file in self.loaded}
        deleted |= read_stored(self.storage, missing, self.rows)
        if unit < len(self.vector_units):
            return {file: DecidedRows(deleted[file]) for file in files}
        assert self.table is not None
        merged = self.merge_units[unit - len(self.vector_units)]
        return merge_unit(self.table, merged, self.files, deleted)


_VECTOR_UNIT_ROWS = 1 << 20  # rows of files whose vectors are read together


class TableVectors(Mapping[int, DeletionVector]):
    """The deleted rows of all files that may have some, by the number of the file."""

    def __init__(
        self,
        storage: Storage,
        stored: Mapping[int, StoredVector],
        rows: Int64Array,
        merges: Merges | None = None,
    ) -> None:
        """Take the vectors, and the number of rows of each file; nothing is read yet."""
        self._storage, self._stored, self._rows, self._merges = storage, stored, rows, merges
        self._merged = frozenset[int]() if merges is None else merges.merged
        self._merge_units: Sequence[MergeUnit] = () if merges is None else merges.units
        self._read_vectors: dict[int, DeletionVector] = {}
        self._loaded: dict[int, DeletionVector] = {}
        self._loading = Lock()

    def pending(self, files: Int64Array) -> PaimonDeletes | None:
        """The deleted rows of some files that are not loaded; None: all of them are."""
        missing = [
            file
            for file in files.tolist()
            if file not in self._loaded and (file in self._stored or file in self._merged)
        ]
        if not missing:
            return None
        alone = np.array([file for file in missing if file not in self._merged], np.int64)
        numbers = (np.cumsum(self._rows[alone]) - self._rows[alone]) // _VECTOR_UNIT_ROWS
        vector_units = split_by(alone, numbers) if len(alone) else []
        merge_units: list[MergeUnit] = []
        placed: dict[int, PlacedFile] = {}
        if self._merges is not None:
            wanted = self._merged.intersection(missing)
            merge_units = [
                unit for unit in self._merge_units if not wanted.isdisjoint(unit.files.tolist())
            ]
            placed = {
                file: without_statistics(self._merges.files[file])
                for unit in merge_units
                for file in unit.files.tolist()
            }
        every = {*missing, *placed}
        return PaimonDeletes(
            self._storage,
            {file: self._stored[file] for file in every & self._stored.keys()},
            {file: int(self._rows[file]) for file in every},
            vector_units,
            merge_units,
            None if self._merges is None else self._merges.table,
            placed,
            self._read_vectors,
        )

    def load(self, files: Int64Array) -> None:
        """Read vectors of some files, and merge those that have to be.

        Raises:
            FormatError: A vector is damaged, or one of two: a deleted row must not come back.
        """
        with self._loading:
            pending = self.pending(files)
            if pending is None:
                return
            self._read(pending.vectors)
            resolved = resolve_all(pending, remote=self._storage.remote)
            others = [unit for unit in self._merge_units if unit not in pending.merge_units]
            partly = {file for unit in others for file in unit.files.tolist()}
            self._loaded.update(
                (file, rows) for file, rows in resolved.items() if file not in partly
            )

    def _read(self, files: Iterable[int]) -> None:
        missing = {
            file: self._stored[file]
            for file in files
            if file in self._stored and file not in self._read_vectors
        }
        rows = {file: int(self._rows[file]) for file in missing}
        self._read_vectors |= read_stored(self._storage, missing, rows)

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
