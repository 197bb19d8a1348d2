"""Which delete files apply to which data files, by the manifests alone.

| delete file                | applies to a data file                                              |
|----------------------------|---------------------------------------------------------------------|
| deletion vector            | that it names; position deletes of this data file then do not count |
| positions of one data file | that it names, if the data file is not newer                        |
| positions of a partition   | of the same spec and partition, if the data file is not newer       |
| equality deletes           | of the same spec and partition, if the data file is older           |
| those of no partition      | any that is older                                                   |

How old a file is, its sequence number tells.

Deletion vectors in Puffin files, by the places that manifests tell: no footer is read.

Delete files as the entries of a snapshot have them, for reading and for commits.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int64Array
from alcid.datafiles.parquet import ParquetScan, open_scans
from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.puffin import Blob, PuffinWriter
from alcid.formats.source import Range, Section
from alcid.tables.iceberg.catalog import RemovedDeletes, VectorCommit
from alcid.tables.iceberg.locations import Places
from alcid.tables.iceberg.metadata.entries import EQUALITY_DELETES, POSITION_DELETES, Entries
from alcid.tables.iceberg.metadata.schema import VOID, PartitionSpec, partition_names
from alcid.tables.key_order import rank_rows

__all__ = [
    "PATH_FIELD",
    "PUFFIN",
    "DeletePlan",
    "StoredVector",
    "WrittenVectors",
    "lost_fields",
    "open_deletes",
    "partition_of",
    "read_vectors",
    "removed_deletes",
    "stored_vectors",
    "with_vectors",
    "write_vectors",
]

_BITS = 64


@dataclass(frozen=True, slots=True)
class StoredVector:
    """Where the vector of a data file is."""

    path: str
    """Of the Puffin file."""
    size: int
    """Of the whole Puffin file."""
    offset: int
    length: int
    cardinality: int
    data_file: str
    rows: int
    """How many the data file has."""


def read_vectors(places: Places, stored: Sequence[StoredVector]) -> list[DeletionVector]:
    """Read vectors, all of them in one round.

    Raises:
        FormatError: One is damaged, of another number of rows, or of rows that there are not: a
            deleted row must not come back.
    """
    sources = {one.path: places.source(one.path, one.size) for one in stored}
    ranges = [Range(sources[one.path], one.offset, one.length) for one in stored]
    return [
        _decode(one, Section(place.source, place.offset, place.length), data)
        for one, place, data in zip(stored, ranges, places.read_ranges(ranges), strict=True)
    ]


def _decode(stored: StoredVector, section: Section, data: bytes) -> DeletionVector:
    vector = DeletionVector.read(section, stored.cardinality, data=data)
    if vector.bits != _BITS:
        raise section.error("kind of a deletion vector", 0, f"{vector.bits} bits", f"{_BITS} bits")
    if vector.last is not None and vector.last >= stored.rows:
        raise FormatError(
            f"deleted row of {stored.data_file}",
            file=stored.path,
            offset=stored.offset,
            found=vector.last,
            expected=f"below {stored.rows}",
        )
    return vector


@dataclass(frozen=True, slots=True)
class WrittenVectors:
    """A Puffin file with vectors."""

    data: bytes = field(repr=False)
    blobs: Mapping[str, Blob]
    """By the path of the data file."""


def write_vectors(vectors: Mapping[str, DeletionVector]) -> WrittenVectors:
    """Make a Puffin file of vectors, by the paths of their data files.

    >>> written = write_vectors({"data/a.parquet": DeletionVector([1, 5])})
    >>> blob = written.blobs["data/a.parquet"]
    >>> blob.offset, blob.length, blob.properties["cardinality"]
    (4, 44, '2')
    """
    file = io.BytesIO()
    with PuffinWriter(file) as writer:
        blobs = {path: writer.add_deletion_vector(one, path) for path, one in vectors.items()}
    return WrittenVectors(file.getvalue(), blobs)


PUFFIN = "PUFFIN"


def lost_fields(entries: pa.Table, specs: Mapping[int, PartitionSpec], spec_id: int) -> list[str]:
    """The fields of a spec that entries do not tell the values of, as their columns are dropped."""
    told = {field.name for field in entries.schema.field("partition").type}
    names = partition_names(specs)
    return [
        one.name
        for one in specs[spec_id].fields
        if names[spec_id, one.field_id] not in told and one.transform != VOID
    ]


def partition_of(
    entries: pa.Table, row: int, specs: Mapping[int, PartitionSpec]
) -> tuple[Any, ...]:
    """The partition of a file: the values of its spec, as Python values."""
    values = entries["partition"][row].as_py() or {}
    names = partition_names(specs)
    spec = specs[entries["spec_id"][row].as_py()]
    return tuple(values.get(names[spec.id, field.field_id]) for field in spec.fields)


def open_deletes(places: Places, deletes: pa.Table, rows: Sequence[int]) -> list[ParquetScan]:
    """The footers of some delete files in Parquet, in one round.

    Raises:
        FormatError: One is damaged.
        FileGoneError: One is not there.
    """
    paths, sizes = deletes["file_path"], deletes["file_size_in_bytes"]
    sources = [places.source(paths[row].as_py(), sizes[row].as_py()) for row in rows]
    return open_scans(sources, read_ranges=places.read_ranges) if sources else []


def stored_vectors(
    deletes: pa.Table, rows: Sequence[int], data_rows: Sequence[int]
) -> list[StoredVector]:
    """Where vectors are, of data files with so many rows."""
    columns = deletes.select(
        [
            *("file_path", "file_size_in_bytes", "content_offset", "content_size_in_bytes"),
            *("record_count", "referenced_data_file"),
        ]
    )
    values = [column.to_pylist() for column in columns.take(pa.array(rows, pa.int64())).columns]
    return [StoredVector(*one) for one in zip(*values, data_rows, strict=True)]


def removed_deletes(
    deletes: pa.Table, row: int, specs: Mapping[int, PartitionSpec]
) -> RemovedDeletes:
    """A delete file, as a commit that removes it tells it."""
    return RemovedDeletes(
        _value(deletes, "file_path", row),
        _value(deletes, "file_size_in_bytes", row),
        _value(deletes, "referenced_data_file", row),
        _value(deletes, "spec_id", row),
        partition_of(deletes, row, specs),
        _value(deletes, "record_count", row),
        _value(deletes, "file_format", row).upper(),
        _value(deletes, "content_offset", row),
        _value(deletes, "content_size_in_bytes", row),
    )


def _value(deletes: pa.Table, name: str, row: int) -> Any:
    return deletes[name][row].as_py()


def with_vectors(entries: Entries, change: VectorCommit, age: int) -> Entries:
    """What the entries of a snapshot become by a commit of vectors on top of it.

    Args:
        entries: Of the snapshot.
        change: The commit.
        age: The sequence number of the new snapshot.
    """
    data, deletes = entries.data, entries.deletes
    gone = {(one.path, one.offset) for one in change.removed}
    places = zip(
        deletes["file_path"].to_pylist(), deletes["content_offset"].to_pylist(), strict=True
    )
    kept = deletes.filter(pa.array([place not in gone for place in places], pa.bool_()))
    files = pa.array([one.data_file for one in change.added], pa.string())
    of_files = data.take(pc.index_in(files, value_set=data["file_path"].chunk(0)))
    count = len(files)
    columns = {
        "sequence_number": [age] * count,
        "content": [POSITION_DELETES] * count,
        "file_path": [one.path for one in change.added],
        "file_format": [PUFFIN] * count,
        "spec_id": of_files["spec_id"],
        "partition": of_files["partition"],
        "record_count": [one.cardinality for one in change.added],
        "file_size_in_bytes": [one.size for one in change.added],
        "referenced_data_file": files,
        "content_offset": [one.offset for one in change.added],
        "content_size_in_bytes": [one.length for one in change.added],
    }
    added = [
        pa.array(columns[field.name], field.type)
        if isinstance(columns.get(field.name), list)
        else columns.get(field.name, pa.nulls(count, field.type))
        for field in deletes.schema
    ]
    return Entries.of(
        pa.concat_tables([data, kept, pa.Table.from_arrays(added, schema=deletes.schema)])
    )


PATH_FIELD = 2147483546
"""The id of `file_path`, a column of files with positions."""


class DeletePlan:
    """What applies to each data file; files are numbers, and delete files are rows of entries."""

    def __init__(self, entries: Entries, specs: Mapping[int, PartitionSpec]) -> None:
        """Look at the entries of a snapshot; no file is opened.

        Raises:
            FormatError: A vector is not whole.
        """
        self._data, self._deletes, self._specs = entries.data, entries.deletes, specs
        self._ages = _numbers(entries.data, "sequence_number")
        self._delete_ages = _numbers(entries.deletes, "sequence_number")
        formats = pc.utf8_upper(entries.deletes["file_format"])
        is_vector = _mask(pc.equal(formats, PUFFIN))
        is_equality = _numbers(entries.deletes, "content") == EQUALITY_DELETES
        is_position = ~is_vector & ~is_equality
        named = self._named_files()
        # What names a file that is not there any more deletes nothing.
        targets = pc.index_in(named, value_set=entries.data["file_path"].chunk(0))
        self._targets: Int64Array = targets.fill_null(-1).to_numpy().astype(np.int64)
        has_name = _mask(named.is_valid())
        self._twice: dict[int, FormatError] = {}
        self._vectors = self._vector_places(np.flatnonzero(is_vector), has_name)
        self._of_file = self._by_file(np.flatnonzero(is_position & has_name))
        is_global = np.isin(_numbers(entries.deletes, "spec_id"), self._unpartitioned())
        self._global = np.flatnonzero(is_equality & is_global)
        self._in_partition = np.flatnonzero(is_position & ~has_name)
        self._equal_in_partition = np.flatnonzero(is_equality & ~is_global)

    @cached_property
    def files(self) -> Int64Array:
        """The data files of which rows may be deleted, ascending."""
        found = np.zeros(len(self._ages), bool)
        found[[*self._vectors, *self._of_file]] = True
        if len(self._global):
            found |= self._ages < self._delete_ages[self._global].max()
        for rows, oldest in (self._in_partition, 0), (self._equal_in_partition, 1):
            if len(rows):
                data, deletes = self._partitions
                newest = np.full(int(max(data.max(initial=0), deletes.max())) + 1, -1, np.int64)
                np.maximum.at(newest, deletes[rows], self._delete_ages[rows])
                found |= self._ages + oldest <= newest[data]
        return np.flatnonzero(found)

    def vector(self, file: int) -> int | None:
        """The deletion vector of a data file.

        Raises:
            FormatError: It has two of them: nobody knows which one holds.
        """
        if file in self._twice:
            raise self._twice[file]
        return self._vectors.get(file)

    def positions(self, file: int) -> list[int]:
        """The files with positions that apply to a data file: none, if it has a vector."""
        if file in self._vectors:
            return []
        return [*self.own_positions(file), *self._nearby(file, self._partition_positions, 0)]

    def own_positions(self, file: int) -> list[int]:
        """Those with positions of this data file alone, whether it has a vector or not."""
        return self._of_file.get(file, [])

    def equality(self, file: int) -> list[int]:
        """The equality deletes that apply to a data file."""
        everywhere = self._global[self._delete_ages[self._global] > self._ages[file]]
        return [*everywhere.tolist(), *self._nearby(file, self._partition_equality, 1)]

    def _nearby(
        self, file: int, by_partition: Mapping[int, Sequence[int]], older: int
    ) -> list[int]:
        if not by_partition:
            return []
        some = by_partition.get(int(self._partitions[0][file]), ())
        return [row for row in some if self._ages[file] + older <= self._delete_ages[row]]

    @cached_property
    def _partition_positions(self) -> dict[int, list[int]]:
        return self._by_partition(self._in_partition)

    @cached_property
    def _partition_equality(self) -> dict[int, list[int]]:
        return self._by_partition(self._equal_in_partition)

    def _by_partition(self, rows: Int64Array) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for row in rows.tolist():
            found.setdefault(int(self._partitions[1][row]), []).append(row)
        return found

    @cached_property
    def _partitions(self) -> tuple[Int64Array, Int64Array]:
        """The partition of each data file and of each delete file, as numbers."""
        both = pa.concat_tables(
            [one.select(["spec_id", "partition"]) for one in (self._data, self._deletes)]
        )
        partitions = both["partition"].combine_chunks()
        if isinstance(partitions, pa.ChunkedArray):
            partitions = pa.concat_arrays(partitions.chunks)
        numbers = rank_rows([both["spec_id"], *partitions.flatten()], len(both))
        return numbers[: len(self._data)], numbers[len(self._data) :]

    def _named_files(self) -> pa.Array:
        """The data file of a delete file that has rows of no other; else null."""
        bounds = (
            pc.map_lookup(self._deletes[name].chunk(0), pa.scalar(PATH_FIELD, pa.int32()), "first")
            for name in ("lower_bounds", "upper_bounds")
        )
        least, most = bounds
        # Bounds that were cut off are never equal.
        only = pc.if_else(pc.equal(least, most), least, pa.scalar(None, least.type))
        is_position = pc.not_equal(self._deletes["content"].chunk(0), EQUALITY_DELETES)
        only = only.cast(pa.string(), safe=False)  # what is no text is no path of a data file
        named = pc.coalesce(self._deletes["referenced_data_file"].chunk(0), only)
        return pc.if_else(is_position, named, pa.scalar(None, pa.string()))

    def _vector_places(self, rows: Int64Array, has_name: BoolArray) -> dict[int, int]:
        offsets, sizes = (
            _mask(self._deletes[name].is_valid())
            for name in ("content_offset", "content_size_in_bytes")
        )
        for row in rows[~(has_name & offsets & sizes)[rows]].tolist():
            raise FormatError(
                "a deletion vector without offset, size or data file in the manifest",
                file=self._deletes["file_path"][row].as_py(),
            )
        rows = rows[self._targets[rows] >= 0]
        files = self._targets[rows]
        found = dict(zip(files.tolist(), rows.tolist(), strict=True))
        if len(found) < len(rows):
            for file in np.flatnonzero(np.bincount(files) > 1).tolist():
                first, second = rows[files == file][:2].tolist()
                self._twice[file] = FormatError(
                    f"two deletion vectors of {self._data['file_path'][file]}, which repair merges",
                    file=self._deletes["file_path"][second].as_py(),
                    found=self._deletes["file_path"][first].as_py(),
                    expected="one",
                )
        for row in rows[self._delete_ages[rows] < self._ages[files]].tolist():
            file = int(self._targets[row])
            raise FormatError(
                f"a deletion vector that is older than {self._data['file_path'][file]}",
                file=self._deletes["file_path"][row].as_py(),
                found=f"sequence number {self._delete_ages[row]}",
                expected=f"{self._ages[file]} or more",
            )
        return found

    def _by_file(self, rows: Int64Array) -> dict[int, list[int]]:
        files = self._targets[rows]
        applies = (files >= 0) & (self._ages[files] <= self._delete_ages[rows])
        found: dict[int, list[int]] = {}
        for row, file in zip(rows[applies].tolist(), files[applies].tolist(), strict=True):
            found.setdefault(file, []).append(row)
        return found

    def _unpartitioned(self) -> list[int]:
        return [
            number
            for number, spec in self._specs.items()
            if all(field.transform == VOID for field in spec.fields)
        ]


def _numbers(entries: pa.Table, name: str) -> Int64Array:
    found: Int64Array = entries[name].to_numpy().astype(np.int64)
    return found


def _mask(values: pa.Array | pa.ChunkedArray) -> BoolArray:
    found: BoolArray = values.to_numpy(zero_copy_only=False).astype(bool)
    return found
