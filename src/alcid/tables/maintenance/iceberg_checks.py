"""The checks of files of an Iceberg table that are no data files.

Delete files in Parquet, Puffin files of deletion vectors and statistics files are compared with
what manifests and table metadata say of them. Iceberg's readers go by the manifest alone to find a
deletion vector, others by the footer of the file: both must agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from alcid.datafiles.parquet import ParquetScan, open_scan
from alcid.errors import (
    FileGoneError,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.formats.puffin import DELETION_VECTOR, THETA_SKETCH, Blob, PuffinReader
from alcid.formats.puffin.writer import CARDINALITY, DISTINCT_VALUES, REFERENCED_FILE
from alcid.formats.source import Source
from alcid.tables.iceberg.deletes.files import read_keys, read_positions
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.entries import EQUALITY_DELETES
from alcid.tables.iceberg.metadata.schema import Field
from alcid.tables.iceberg.metadata.table_metadata import BlobMetadata, StatisticsFile, TableMetadata
from alcid.tables.maintenance.findings import MISSING, Checked, FindingKind, Findings


@dataclass(frozen=True, slots=True, eq=False)
class CheckedSnapshot:
    """The snapshot that is verified; it pickles."""

    file_io: FileIO
    rows: Mapping[str, int]
    """The rows of each data file, by the path in its manifest."""
    fields: Mapping[int, Field]
    """All columns that the table has had, by their ids."""

    def open(self, path: str, size: int, checked: Checked) -> Source:
        """A file, to be read; another size than the table says is a finding.

        Raises:
            FileGoneError: It is not there.
        """
        source = self.file_io.source(path)
        if source.size != size:
            problem = f"found {source.size:,}, expected {size:,}"
            checked.findings.add(FindingKind.SIZE, path, problem)
        return source


@dataclass(frozen=True, slots=True)
class DeleteFileCheck:
    """A file of positions, or of equality deletes, to be read."""

    path: str
    size: int
    """As the manifest says."""
    rows: int
    """As the manifest says."""
    field_ids: tuple[int, ...] | None
    """The columns of equality deletes; None for a file of positions."""

    def run(self, snapshot: CheckedSnapshot) -> Checked:
        """Read it, and compare."""
        checked, kind = Checked(), FindingKind.EQUALITY_DELETES
        if self.field_ids is None:
            kind = FindingKind.POSITION_DELETES
        try:
            scan = open_scan(snapshot.open(self.path, self.size, checked))
            if (rows := sum(scan.group_rows)) != self.rows:
                problem = f"found {rows:,}, the manifest says {self.rows:,}"
                checked.findings.add(FindingKind.ROWS, self.path, problem)
            if self.field_ids is None:
                self._check_positions(scan, snapshot.rows, checked)
            else:
                read_keys(scan, _fields(self.field_ids, snapshot.fields, self.path))
        except FileGoneError:
            checked.findings.add(kind, self.path, MISSING)
        except UnsupportedError as error:
            checked.findings.warn(kind, self.path, error)
        except (FormatError, LimitError) as error:
            checked.findings.add(kind, self.path, error)
        return checked

    def _check_positions(
        self, scan: ParquetScan, rows: Mapping[str, int], checked: Checked
    ) -> None:
        paths = list(rows)
        deleted = read_positions(scan, {path: number for number, path in enumerate(paths)})
        for number, vector in sorted(deleted.items()):
            path = paths[number]
            if vector.last is not None and vector.last >= rows[path]:
                problem = f"position {vector.last} of a file of {rows[path]:,} rows"
                checked.findings.add(FindingKind.POSITIONS, self.path, problem, data_file=path)


def _fields(ids: Iterable[int], by_id: Mapping[int, Field], path: str) -> list[Field]:
    """The columns of equality deletes, which the table must have had."""
    unknown = [number for number in ids if number not in by_id]
    if unknown:
        raise FormatError("no such column in any schema", file=path, found=f"field {unknown[0]}")
    fields = [by_id[number] for number in ids]
    for field in fields:
        if field.data_type is None:
            raise UnsupportedError(f"{path}: column {field.name}: {field.problem}")
    return fields


def delete_files(deletes: pa.Table) -> Iterator[DeleteFileCheck]:
    """The checks of Parquet delete files, by their delete entries."""
    for entry in deletes.to_pylist():
        is_equality = entry["content"] == EQUALITY_DELETES
        yield DeleteFileCheck(
            entry["file_path"],
            entry["file_size_in_bytes"],
            entry["record_count"],
            tuple(entry["equality_ids"] or ()) if is_equality else None,
        )


@dataclass(frozen=True, slots=True)
class StatedVector:
    """A deletion vector, as a manifest has it: opening a table sees that all of it is there."""

    data_file: str
    offset: int
    length: int
    cardinality: int


@dataclass(frozen=True, slots=True)
class VectorFileCheck:
    """A Puffin file of deletion vectors, to be read."""

    path: str
    size: int
    """As the manifests say."""
    vectors: tuple[StatedVector, ...]
    """Those that are in use."""

    def run(self, snapshot: CheckedSnapshot) -> Checked:
        """Read the vectors, and compare."""
        checked = Checked()
        reader = _open_puffin(snapshot, self.path, self.size, FindingKind.VECTOR_FILE, checked)
        if reader is None:
            return checked
        blobs = {(blob.offset, blob.length): blob for blob in reader.blobs}
        for vector in self.vectors:
            name = vector.data_file
            rows = snapshot.rows.get(name)
            blob = blobs.get((vector.offset, vector.length))
            for problem in _compare_vector(vector, blob, reader, rows):
                checked.findings.add(FindingKind.VECTOR, self.path, problem, data_file=name)
            if blob is not None and _was_moved(vector, blob):
                before = blob.properties[REFERENCED_FILE]
                problem = f"the footer says {before}: the table was moved, and reads the same"
                checked.findings.warn(FindingKind.VECTOR, self.path, problem, data_file=name)
            if rows is None:
                problem = "the snapshot does not have that data file"
                checked.findings.warn(FindingKind.VECTOR, self.path, problem, data_file=name)
        return checked


def _open_puffin(
    snapshot: CheckedSnapshot, path: str, size: int, kind: FindingKind, checked: Checked
) -> PuffinReader | None:
    """A Puffin file; None with a finding if it is missing, or cannot be read."""
    try:
        return PuffinReader(snapshot.open(path, size, checked))
    except FileGoneError:
        checked.findings.add(kind, path, MISSING)
    except (FormatError, LimitError) as error:
        checked.findings.add(kind, path, error)
    return None


def _compare_vector(
    vector: StatedVector, blob: Blob | None, reader: PuffinReader, rows: int | None
) -> Iterator[str]:
    """What is wrong with a vector of a data file of so many rows."""
    if blob is None or blob.type != DELETION_VECTOR:
        location = f"{vector.length} bytes at offset {vector.offset}"
        yield f"the footer of the file has no vector of {location}"
        return
    for name, expected in ((REFERENCED_FILE, vector.data_file), (CARDINALITY, vector.cardinality)):
        if name == REFERENCED_FILE and _was_moved(vector, blob):
            continue
        if (stored := blob.properties.get(name)) != str(expected):
            yield f"{name}: the footer says {stored}, the manifest {expected}"
    try:
        deleted = reader.read_deletion_vector(blob)
    except (FormatError, LimitError) as error:
        yield str(error)
        return
    if rows is not None and deleted.last is not None and deleted.last >= rows:
        yield f"position {deleted.last} of a file of {rows:,} rows"


def _was_moved(vector: StatedVector, blob: Blob) -> bool:
    """Whether the footer has a data file of the same name elsewhere.

    Whoever copies a table writes new metadata; Iceberg's readers do not look at footers.
    """
    named = blob.properties.get(REFERENCED_FILE, vector.data_file)
    is_same_name = named.rpartition("/")[2] == vector.data_file.rpartition("/")[2]
    return is_same_name and named != vector.data_file


def vectors_twice(vectors: pa.Table) -> Iterator[tuple[str, str]]:
    """Data files with several vectors: the data file, and in which Puffin files they are."""
    files: dict[str, list[str]] = {}
    names = (vectors[name].to_pylist() for name in ("referenced_data_file", "file_path"))
    for data_file, path in zip(*names, strict=True):
        files.setdefault(data_file, []).append(path)
    for data_file, paths in files.items():
        if len(paths) > 1:
            yield data_file, f"two vectors, in {' and '.join(paths)}"


def vector_files(vectors: pa.Table) -> Iterator[VectorFileCheck]:
    """The checks of Puffin files, each once, by their delete entries."""
    files: dict[str, list[dict[str, Any]]] = {}
    for entry in vectors.to_pylist():
        files.setdefault(entry["file_path"], []).append(entry)
    for path, entries in files.items():
        stated = (
            StatedVector(
                entry["referenced_data_file"],
                entry["content_offset"],
                entry["content_size_in_bytes"],
                entry["record_count"],
            )
            for entry in entries
        )
        yield VectorFileCheck(path, entries[0]["file_size_in_bytes"], tuple(stated))


@dataclass(frozen=True, slots=True)
class StatisticsFileCheck:
    """A statistics file, to be opened; what a bundle in it says of data files is not its part."""

    listed: tuple[StatisticsFile, ...]
    """What the metadata say of it: once for each snapshot that has it, all of the same path."""

    @property
    def path(self) -> str:
        """The file."""
        return self.listed[0].path

    @property
    def size(self) -> int:
        """How much there is to read, as the metadata say."""
        return self.listed[0].size

    def run(self, snapshot: CheckedSnapshot) -> Checked:
        """Read its footer and its sketches, and compare."""
        checked = Checked()
        reader = _open_puffin(snapshot, self.path, self.size, FindingKind.STATISTICS_FILE, checked)
        if reader is None:
            return checked
        for file in self.listed:
            if file.footer_size != reader.footer_size:
                problem = f"found {reader.footer_size:,} bytes, expected {file.footer_size:,}"
                checked.findings.add(FindingKind.STATISTICS_FOOTER, self.path, problem)
            for blob in file.blobs:
                _compare_blobs(self.path, blob, reader.blobs, checked.findings)
        for stored in reader.blobs:
            if stored.type == THETA_SKETCH:
                _check_sketch(self.path, stored, reader, checked.findings)
        return checked


def _compare_blobs(
    path: str, stated: BlobMetadata, blobs: tuple[Blob, ...], findings: Findings
) -> None:
    """Check that a blob is there as the metadata have it; readers trust its properties."""
    fields = tuple(stated.fields)
    same = [
        blob
        for blob in blobs
        if (blob.type, blob.fields, blob.snapshot_id) == (stated.type, fields, stated.snapshot_id)
    ]
    column = f"{stated.type} of fields {list(fields)}"
    if not same:
        problem = f"the file has none of snapshot {stated.snapshot_id}, but the metadata list it"
        findings.add(FindingKind.STATISTICS_BLOB, path, problem, column=column)
    elif not any(_ndv(blob.properties) == _ndv(stated.properties) for blob in same):
        problem = f"found {_ndv(same[0].properties)}, the metadata say {_ndv(stated.properties)}"
        findings.add(FindingKind.STATISTICS_BLOB, path, problem, column=column)


def _check_sketch(path: str, blob: Blob, reader: PuffinReader, findings: Findings) -> None:
    """Check that a sketch can be read, and counts what is written beside it."""
    column = f"field {', '.join(map(str, blob.fields))}"
    try:
        count = str(reader.read_theta_sketch(blob).ndv)
    except (FormatError, LimitError, UnsupportedError) as error:
        findings.add(FindingKind.SKETCH, path, error, column=column)
        return
    if (stated := _ndv(blob.properties)) not in (None, count):
        problem = f"found {stated}, the sketch says {count}"
        findings.add(FindingKind.SKETCH, path, problem, column=column)


def _ndv(properties: Mapping[str, str]) -> str | None:
    return properties.get(DISTINCT_VALUES)


def statistics_files(metadata: TableMetadata) -> Iterator[StatisticsFileCheck]:
    """The checks of the statistics files that the metadata list, each once."""
    files: dict[str, list[StatisticsFile]] = {}
    for file in metadata.statistics.values():
        files.setdefault(file.path, []).append(file)
    for listed in files.values():
        yield StatisticsFileCheck(tuple(listed))
