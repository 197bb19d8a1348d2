"""Match delete files with data files by the manifests alone, and read and write vectors.

| delete file                | applies to a data file                                              |
|----------------------------|---------------------------------------------------------------------|
| deletion vector            | that it names; position deletes of this data file then do not count |
| positions of one data file | that it names, if the data file is not newer                        |
| positions of a partition   | of the same spec and partition, if the data file is not newer       |
| equality deletes           | of the same spec and partition, if the data file is older           |
| those of no partition      | any that is older                                                   |

The sequence number is the age of a file. Manifests have the offset and length of a deletion vector
in its Puffin file, so no footer is read.
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

from alcid._arrays import BoolArray, Int64Array, changes
from alcid.datafiles.parquet import ParquetScan, open_scans
from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.puffin import Blob, PuffinWriter
from alcid.formats.source import Range, Section
from alcid.tables.iceberg.catalog import RemovedDeletes, VectorCommit
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.entries import EQUALITY_DELETES, POSITION_DELETES, Entries
from alcid.tables.iceberg.metadata.schema import VOID, PartitionSpec, partition_names
from alcid.tables.key_order import rank_rows

_BITS = 64
UNIT_BYTES = 256 << 20
"""Bytes of data files whose deleted rows are found together, of one partition."""
_COMPARED = 8  # the part of a data file that the columns of equality deletes are, roughly


@dataclass(frozen=True, slots=True)
class StoredVector:
    """The deletion vector of a data file in a Puffin file."""

    path: str
    """Of the Puffin file."""
    size: int
    """The size of the Puffin file."""
    offset: int
    length: int
    cardinality: int
    data_file: str
    rows: int
    """The row count of the data file."""


def read_vectors(file_io: FileIO, stored: Sequence[StoredVector]) -> list[DeletionVector]:
    """Read vectors in one round.

    Raises:
        FormatError: A vector is damaged, or has another cardinality or rows beyond the end of its
            data file: a deleted row must not come back.
    """
    sources = {vector.path: file_io.source(vector.path, vector.size) for vector in stored}
    ranges = [Range(sources[vector.path], vector.offset, vector.length) for vector in stored]
    return [
        _decode(vector, Section(extent.source, extent.offset, extent.length), data)
        for vector, extent, data in zip(stored, ranges, file_io.read_ranges(ranges), strict=True)
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
    """The bytes and blobs of a Puffin file with vectors."""

    data: bytes = field(repr=False)
    blobs: Mapping[str, Blob]
    """By the path of the data file."""


def write_vectors(vectors: Mapping[str, DeletionVector]) -> WrittenVectors:
    """Write vectors, by the paths of their data files, to a Puffin file.

    >>> written = write_vectors({"data/a.parquet": DeletionVector([1, 5])})
    >>> blob = written.blobs["data/a.parquet"]
    >>> blob.offset, blob.length, blob.properties["cardinality"]
    (4, 44, '2')
    """
    file = io.BytesIO()
    with PuffinWriter(file) as writer:
        blobs = {path: writer.add_deletion_vector(vector, path) for path, vector in vectors.items()}
    return WrittenVectors(file.getvalue(), blobs)


PUFFIN = "PUFFIN"


def lost_fields(entries: pa.Table, specs: Mapping[int, PartitionSpec], spec_id: int) -> list[str]:
    """The fields of a spec without values in entries, since their columns were dropped."""
    present = {field.name for field in entries.schema.field("partition").type}
    names = partition_names(specs)
    return [
        field.name
        for field in specs[spec_id].fields
        if names[spec_id, field.field_id] not in present and field.transform != VOID
    ]


def partition_of(
    entries: pa.Table, row: int, specs: Mapping[int, PartitionSpec]
) -> tuple[Any, ...]:
    """The partition values of a file in the order of its spec, as Python values."""
    values = entries["partition"][row].as_py() or {}
    names = partition_names(specs)
    spec = specs[entries["spec_id"][row].as_py()]
    return tuple(values.get(names[spec.id, field.field_id]) for field in spec.fields)


def open_deletes(file_io: FileIO, deletes: pa.Table, rows: Sequence[int]) -> list[ParquetScan]:
    """Open some Parquet delete files, in one round.

    Raises:
        FormatError: A file is damaged.
        FileGoneError: A file is missing.
    """
    paths, sizes = deletes["file_path"], deletes["file_size_in_bytes"]
    sources = [file_io.source(paths[row].as_py(), sizes[row].as_py()) for row in rows]
    return open_scans(sources, read_ranges=file_io.read_ranges) if sources else []


def stored_vectors(
    deletes: pa.Table, rows: Sequence[int], data_rows: Sequence[int]
) -> list[StoredVector]:
    """The vectors in some rows of entries, with the row counts of their data files."""
    columns = deletes.select(
        [
            *("file_path", "file_size_in_bytes", "content_offset", "content_size_in_bytes"),
            *("record_count", "referenced_data_file"),
        ]
    )
    values = [column.to_pylist() for column in columns.take(pa.array(rows, pa.int64())).columns]
    return [StoredVector(*row) for row in zip(*values, data_rows, strict=True)]


def removed_deletes(
    deletes: pa.Table, row: int, specs: Mapping[int, PartitionSpec]
) -> RemovedDeletes:
    """The delete file in a row of entries, for a commit that removes it."""
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


def with_vectors(entries: Entries, change: VectorCommit, sequence_number: int) -> Entries:
    """The entries of a snapshot after a commit of vectors on top of it.

    Args:
        entries: The entries of the snapshot.
        change: The commit.
        sequence_number: The sequence number of the new snapshot.
    """
    data, deletes = entries.data, entries.deletes
    removed = {(delete.path, delete.offset) for delete in change.removed}
    locations = zip(
        deletes["file_path"].to_pylist(), deletes["content_offset"].to_pylist(), strict=True
    )
    remaining = deletes.filter(
        pa.array([location not in removed for location in locations], pa.bool_())
    )
    files = pa.array([vector.data_file for vector in change.added], pa.string())
    data_entries = data.take(pc.index_in(files, value_set=data["file_path"].chunk(0)))
    count = len(files)
    columns = {
        "sequence_number": [sequence_number] * count,
        "content": [POSITION_DELETES] * count,
        "file_path": [vector.path for vector in change.added],
        "file_format": [PUFFIN] * count,
        "spec_id": data_entries["spec_id"],
        "partition": data_entries["partition"],
        "record_count": [vector.cardinality for vector in change.added],
        "file_size_in_bytes": [vector.size for vector in change.added],
        "referenced_data_file": files,
        "content_offset": [vector.offset for vector in change.added],
        "content_size_in_bytes": [vector.length for vector in change.added],
    }
    added = [
        pa.array(columns[field.name], field.type)
        if isinstance(columns.get(field.name), list)
        else columns.get(field.name, pa.nulls(count, field.type))
        for field in deletes.schema
    ]
    return entries.with_deletes(
        pa.concat_tables([remaining, pa.Table.from_arrays(added, schema=deletes.schema)])
    )


PATH_FIELD = 2147483546
"""The field id of `file_path` in position delete files."""


class DeletePlan:
    """The delete files, as rows of entries, that apply to each data file, given by its number."""

    def __init__(self, entries: Entries, specs: Mapping[int, PartitionSpec]) -> None:
        """Match the entries of a snapshot; no file is opened.

        Raises:
            FormatError: The entry of a vector is incomplete.
        """
        self._data, self._deletes, self._specs = entries.data, entries.deletes, specs
        self._data_sequences = _numbers(entries.data, "sequence_number")
        self._delete_sequences = _numbers(entries.deletes, "sequence_number")
        formats = pc.utf8_upper(entries.deletes["file_format"])
        is_vector = _mask(pc.equal(formats, PUFFIN))
        is_equality = _numbers(entries.deletes, "content") == EQUALITY_DELETES
        is_position = ~is_vector & ~is_equality
        named = self._named_files()
        # Deletes of a removed data file have no effect.
        targets = pc.index_in(named, value_set=entries.data["file_path"].chunk(0))
        self._targets: Int64Array = targets.fill_null(-1).to_numpy().astype(np.int64)
        has_name = _mask(named.is_valid())
        self._conflicting: dict[int, FormatError] = {}
        self._vectors = self._match_vectors(np.flatnonzero(is_vector), has_name)
        self._of_file = self._by_file(np.flatnonzero(is_position & has_name))
        is_global = np.isin(_numbers(entries.deletes, "spec_id"), self._unpartitioned())
        self._global = np.flatnonzero(is_equality & is_global)
        self._in_partition = np.flatnonzero(is_position & ~has_name)
        self._equal_in_partition = np.flatnonzero(is_equality & ~is_global)

    @cached_property
    def files(self) -> Int64Array:
        """The data files that may have deleted rows, in ascending order."""
        may_have_deletes = np.zeros(len(self._data_sequences), bool)
        may_have_deletes[[*self._vectors, *self._of_file]] = True
        if len(self._global):
            may_have_deletes |= self._data_sequences < self._delete_sequences[self._global].max()
        for rows, offset in (self._in_partition, 0), (self._equal_in_partition, 1):
            if len(rows):
                data, deletes = self._partitions
                newest = np.full(int(max(data.max(initial=0), deletes.max())) + 1, -1, np.int64)
                np.maximum.at(newest, deletes[rows], self._delete_sequences[rows])
                may_have_deletes |= self._data_sequences + offset <= newest[data]
        return np.flatnonzero(may_have_deletes)

    def applicable(self, files: Int64Array) -> Int64Array:
        """The delete files that may apply to some data files, ascending."""
        may_apply = np.isin(self._targets, files)
        for rows, offset in (
            (self._global, 1),
            (self._in_partition, 0),
            (self._equal_in_partition, 1),
        ):
            if not len(rows):
                continue
            is_newer = self._delete_sequences[rows] >= self._data_sequences[files].min() + offset
            if rows is not self._global:
                data, deletes = self._partitions
                is_newer &= np.isin(deletes[rows], data[files])
            may_apply[rows[is_newer]] = True
        return np.flatnonzero(may_apply)

    def units(self, files: Int64Array) -> tuple[list[Int64Array], Int64Array]:
        """Data files in units, each of one partition, and the bytes that tell its deleted rows."""
        partitions = self._partitions[0][files] if len(self._deletes) else np.zeros(len(files))
        order = np.lexsort((files, partitions))
        sizes = _numbers(self._data, "file_size_in_bytes")[files[order]]
        ends = np.cumsum(sizes)
        numbers = (ends - sizes) // UNIT_BYTES
        starts = changes(partitions[order]) | changes(numbers)
        units = [np.sort(unit) for unit in np.split(files[order], np.flatnonzero(starts)[1:])]
        delete_sizes = _numbers(self._deletes, "file_size_in_bytes")
        is_vector = _mask(self._deletes["content_size_in_bytes"].is_valid())
        delete_sizes[is_vector] = _numbers(
            self._deletes.filter(pa.array(is_vector)), "content_size_in_bytes"
        )
        is_equality = _numbers(self._deletes, "content") == EQUALITY_DELETES
        read = []
        for unit in units:
            rows = self.applicable(unit)
            compared = int(_numbers(self._data, "file_size_in_bytes")[unit].sum()) // _COMPARED
            read.append(int(delete_sizes[rows].sum()) + compared * bool(is_equality[rows].any()))
        return units, np.array(read, np.int64)

    def vector(self, file: int) -> int | None:
        """The deletion vector of a data file.

        Raises:
            FormatError: It has two of them, of which only one can be valid.
        """
        if file in self._conflicting:
            raise self._conflicting[file]
        return self._vectors.get(file)

    def positions(self, file: int) -> list[int]:
        """The position delete files that apply to a data file; none if it has a vector."""
        if file in self._vectors:
            return []
        return [
            *self.own_positions(file),
            *self._in_same_partition(file, self._partition_positions, 0),
        ]

    def own_positions(self, file: int) -> list[int]:
        """The position delete files of this data file alone, even if it has a vector."""
        return self._of_file.get(file, [])

    def equality(self, file: int) -> list[int]:
        """The equality deletes that apply to a data file."""
        everywhere = self._global[self._delete_sequences[self._global] > self._data_sequences[file]]
        return [*everywhere.tolist(), *self._in_same_partition(file, self._partition_equality, 1)]

    def _in_same_partition(
        self, file: int, by_partition: Mapping[int, Sequence[int]], older: int
    ) -> list[int]:
        if not by_partition:
            return []
        rows = by_partition.get(int(self._partitions[0][file]), ())
        return [
            row for row in rows if self._data_sequences[file] + older <= self._delete_sequences[row]
        ]

    @cached_property
    def _partition_positions(self) -> dict[int, list[int]]:
        return self._by_partition(self._in_partition)

    @cached_property
    def _partition_equality(self) -> dict[int, list[int]]:
        return self._by_partition(self._equal_in_partition)

    def _by_partition(self, rows: Int64Array) -> dict[int, list[int]]:
        by_partition: dict[int, list[int]] = {}
        for row in rows.tolist():
            by_partition.setdefault(int(self._partitions[1][row]), []).append(row)
        return by_partition

    @cached_property
    def _partitions(self) -> tuple[Int64Array, Int64Array]:
        """A number for the partition of each data file and of each delete file."""
        both = pa.concat_tables(
            [entries.select(["spec_id", "partition"]) for entries in (self._data, self._deletes)]
        )
        partitions = both["partition"].combine_chunks()
        if isinstance(partitions, pa.ChunkedArray):
            partitions = pa.concat_arrays(partitions.chunks)
        numbers = rank_rows([both["spec_id"], *partitions.flatten()], len(both))
        return numbers[: len(self._data)], numbers[len(self._data) :]

    def _named_files(self) -> pa.Array:
        """The data file of each delete file that has positions of only one; else null."""
        bounds = (
            pc.map_lookup(self._deletes[name].chunk(0), pa.scalar(PATH_FIELD, pa.int32()), "first")
            for name in ("lower_bounds", "upper_bounds")
        )
        lower, upper = bounds
        # Truncated bounds are never equal.
        single = pc.if_else(pc.equal(lower, upper), lower, pa.scalar(None, lower.type))
        is_position = pc.not_equal(self._deletes["content"].chunk(0), EQUALITY_DELETES)
        single = single.cast(pa.string(), safe=False)  # else not a path
        named = pc.coalesce(self._deletes["referenced_data_file"].chunk(0), single)
        return pc.if_else(is_position, named, pa.scalar(None, pa.string()))

    def _match_vectors(self, rows: Int64Array, has_name: BoolArray) -> dict[int, int]:
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
        vectors = dict(zip(files.tolist(), rows.tolist(), strict=True))
        if len(vectors) < len(rows):
            for file in np.flatnonzero(np.bincount(files) > 1).tolist():
                first, second = rows[files == file][:2].tolist()
                self._conflicting[file] = FormatError(
                    f"two deletion vectors of {self._data['file_path'][file]}, which repair merges",
                    file=self._deletes["file_path"][second].as_py(),
                    found=self._deletes["file_path"][first].as_py(),
                    expected="one",
                )
        for row in rows[self._delete_sequences[rows] < self._data_sequences[files]].tolist():
            file = int(self._targets[row])
            raise FormatError(
                f"a deletion vector that is older than {self._data['file_path'][file]}",
                file=self._deletes["file_path"][row].as_py(),
                found=f"sequence number {self._delete_sequences[row]}",
                expected=f"{self._data_sequences[file]} or more",
            )
        return vectors

    def _by_file(self, rows: Int64Array) -> dict[int, list[int]]:
        files = self._targets[rows]
        applies = (files >= 0) & (self._data_sequences[files] <= self._delete_sequences[rows])
        by_file: dict[int, list[int]] = {}
        for row, file in zip(rows[applies].tolist(), files[applies].tolist(), strict=True):
            by_file.setdefault(file, []).append(row)
        return by_file

    def _unpartitioned(self) -> list[int]:
        return [
            number
            for number, spec in self._specs.items()
            if all(field.transform == VOID for field in spec.fields)
        ]


def _numbers(entries: pa.Table, name: str) -> Int64Array:
    numbers: Int64Array = entries[name].to_numpy().astype(np.int64)
    return numbers


def _mask(values: pa.Array | pa.ChunkedArray) -> BoolArray:
    mask: BoolArray = values.to_numpy(zero_copy_only=False).astype(bool)
    return mask
