"""Repair of the deletion vectors of an Iceberg table: written anew, merged, or dropped.

| wrong                                    | becomes                                              |
|------------------------------------------|------------------------------------------------------|
| two vectors of a data file               | one, of the rows of both; vectors of two snapshots   |
|                                          | in one file stay: the later has what it is to have   |
| a vector of a file that is not live      | nothing                                              |
| manifest, footer and vector do not agree | the same vector with its own number, in a new file   |
| a vector that cannot be read             | stays: rows that were deleted must not come back     |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from alcid._text import count_text
from alcid.errors import FileGoneError, FormatError, LimitError
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.puffin import Blob, PuffinReader
from alcid.formats.puffin.writer import REFERENCED_FILE
from alcid.formats.source import Section
from alcid.tables.iceberg.catalog import RemovedDeletes
from alcid.tables.iceberg.deletes.plan import PUFFIN, removed_deletes
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.files import IcebergFiles
from alcid.tables.maintenance.findings import Finding, FindingKind
from alcid.tables.maintenance.repair import Repaired

_BITS: Final = 64

VECTOR_KINDS: Final = frozenset(
    {
        FindingKind.SIZE,
        FindingKind.VECTOR,
        FindingKind.VECTOR_FILE,
        FindingKind.VECTORS_TWICE,
    }
)
"""The findings of deletion vectors, and of the Puffin files that they are in."""


@dataclass(frozen=True, slots=True)
class VectorRepair:
    """New deletion vectors, in place of others; nothing is written."""

    vectors: Mapping[int, DeletionVector]
    """New ones, by the number of the data file."""
    removed: Sequence[RemovedDeletes]
    repaired: tuple[Repaired, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A vector, as a manifest has it."""

    row: int
    """Of the delete entries."""
    path: str
    data_file: str
    offset: int
    length: int


def plan_vectors(files: IcebergFiles, file_io: FileIO, findings: Sequence[Finding]) -> VectorRepair:
    """Read the vectors that are wrong.

    Args:
        files: The files of the snapshot.
        file_io: Where files are.
        findings: Those of `VECTOR_KINDS`.
    """
    deletes = files.entries.deletes
    numbers = {path: number for number, path in enumerate(files.file_paths.to_pylist())}
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.file, []).append(finding)
    by_data_file: dict[str, list[_Entry]] = {}
    for entry in _entries(deletes):
        by_data_file.setdefault(entry.data_file, []).append(entry)
    vectors: dict[int, DeletionVector] = {}
    removed: list[_Entry] = []
    unreadable: set[str] = set()
    outcomes: list[tuple[Finding, str]] = []
    for data_file, entries in by_data_file.items():
        wrong = list(_findings_of(data_file, entries, by_file))
        if not wrong:
            continue
        done = "dropped"
        if data_file in numbers:
            number = numbers[data_file]
            vector = _merged(file_io, entries, int(files.rows[number]))
            if vector is None:
                unreadable |= {entry.path for entry in entries}
                continue
            vectors[number] = vector
            done = "written anew" if len(entries) == 1 else "merged to one"
            done += f", of {count_text(len(vector), 'row')}"
        removed += entries
        for finding in wrong:
            is_own = data_file in (finding.file, finding.data_file)
            outcomes.append((finding, done if is_own else ""))
    gone = {(entry.path, entry.offset): entry.row for entry in removed}  # listed twice, perhaps
    repaired = (
        Repaired(finding, done or "written anew")
        for finding, done in outcomes
        if done or finding.file not in unreadable  # a file stays wrong with one of its vectors
    )
    return VectorRepair(
        vectors,
        [removed_deletes(deletes, row, files.metadata.specs) for row in gone.values()],
        tuple(dict.fromkeys(repaired)),
    )


def _entries(deletes: pa.Table) -> Iterator[_Entry]:
    is_vector = pc.equal(pc.utf8_upper(deletes["file_format"]), PUFFIN).to_pylist()
    names = "file_path", "referenced_data_file", "content_offset", "content_size_in_bytes"
    columns = [deletes[name].to_pylist() for name in names]
    for row, (is_puffin, *values) in enumerate(zip(is_vector, *columns, strict=True)):
        if is_puffin:
            yield _Entry(row, *values)


def _findings_of(
    data_file: str, entries: Sequence[_Entry], by_file: Mapping[str, Sequence[Finding]]
) -> Iterator[Finding]:
    """The findings of the vectors of a data file, and of the files that they are in."""
    for finding in by_file.get(data_file, ()):
        if finding.kind is FindingKind.VECTORS_TWICE:
            yield finding
    for path in dict.fromkeys(entry.path for entry in entries):
        for finding in by_file.get(path, ()):
            if finding.data_file in ("", data_file):
                yield finding


def _merged(file_io: FileIO, entries: Sequence[_Entry], rows: int) -> DeletionVector | None:
    """The rows that vectors delete; None if one of them cannot be trusted."""
    merged = DeletionVector(bits=_BITS)
    ages: dict[str, set[int]] = {}
    for entry in entries:
        source = file_io.source(entry.path)
        try:
            blob = _blob_of(PuffinReader(source), entry)
            named = None if blob is None else blob.properties.get(REFERENCED_FILE)
            if named not in (None, entry.data_file):
                return None  # nobody knows whose rows these are
            if blob is not None:
                ages.setdefault(entry.path, set()).add(blob.snapshot_id)
                if len(ages[entry.path]) > 1:
                    return None  # as DuckLake has them: one of them is in force at a time, not both
        except (FormatError, LimitError):
            pass  # Iceberg's readers go by the manifest, without the footer
        except FileGoneError:
            return None
        try:
            vector = DeletionVector.read(Section(source, entry.offset, entry.length))
        except FormatError:
            return None
        if vector.bits != _BITS or (vector.last is not None and vector.last >= rows):
            return None
        merged |= vector
    return merged


def _blob_of(reader: PuffinReader, entry: _Entry) -> Blob | None:
    """The blob of a vector, as the footer has it."""
    for blob in reader.blobs:
        if (blob.offset, blob.length) == (entry.offset, entry.length):
            return blob
    return None
