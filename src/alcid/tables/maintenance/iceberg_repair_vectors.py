"""The deletion vectors of an Iceberg table that are to be written anew, or to be dropped.

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
from alcid.tables.iceberg.files import IcebergFiles
from alcid.tables.iceberg.locations import Places
from alcid.tables.maintenance.findings import Finding, Mended

__all__ = ["VectorRepair", "plan_vectors"]

_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class VectorRepair:
    """What is to become of vectors; nothing is written."""

    vectors: Mapping[int, DeletionVector]
    """New ones, by the number of the data file."""
    removed: Sequence[RemovedDeletes]
    mended: tuple[Mended, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A vector, as a manifest has it."""

    row: int
    """Of the delete entries."""
    path: str
    data_file: str
    offset: int
    length: int


def plan_vectors(files: IcebergFiles, places: Places, findings: Sequence[Finding]) -> VectorRepair:
    """Read the vectors that something was found of.

    Args:
        files: The files of the snapshot.
        places: Where files are.
        findings: What `verify` has found.
    """
    deletes = files.entries.deletes
    numbers = {path: number for number, path in enumerate(files.file_paths.to_pylist())}
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.file, []).append(finding)
    held: dict[str, list[_Entry]] = {}
    for entry in _entries(deletes):
        held.setdefault(entry.data_file, []).append(entry)
    vectors: dict[int, DeletionVector] = {}
    removed: list[_Entry] = []
    stuck: set[str] = set()
    told: list[tuple[Finding, str]] = []
    for data_file, entries in held.items():
        found = list(_found_of(data_file, entries, by_file))
        if not found:
            continue
        done = "dropped"
        if data_file in numbers:
            number = numbers[data_file]
            vector = _merged(places, entries, int(files.rows[number]))
            if vector is None:
                stuck |= {one.path for one in entries}
                continue
            vectors[number] = vector
            done = "written anew" if len(entries) == 1 else "merged to one"
            done += f", of {count_text(len(vector), 'row')}"
        removed += entries
        told += [(one, done if data_file in (one.file, _named(one)) else "") for one in found]
    gone = {(one.path, one.offset): one.row for one in removed}  # one may be listed twice
    mended = (
        Mended.of(one, done or "written anew")
        for one, done in told
        if done or one.file not in stuck  # a file that is wrong stays so with one of its vectors
    )
    return VectorRepair(
        vectors,
        [removed_deletes(deletes, row, files.metadata.specs) for row in gone.values()],
        tuple(dict.fromkeys(mended)),
    )


def _entries(deletes: pa.Table) -> Iterator[_Entry]:
    is_vector = pc.equal(pc.utf8_upper(deletes["file_format"]), PUFFIN).to_pylist()
    names = "file_path", "referenced_data_file", "content_offset", "content_size_in_bytes"
    columns = [deletes[name].to_pylist() for name in names]
    for row, (is_one, *values) in enumerate(zip(is_vector, *columns, strict=True)):
        if is_one:
            yield _Entry(row, *values)


def _found_of(
    data_file: str, entries: Sequence[_Entry], by_file: Mapping[str, Sequence[Finding]]
) -> Iterator[Finding]:
    """What was found of the vectors of a data file, and of the files that they are in."""
    yield from (one for one in by_file.get(data_file, ()) if one.what == "deletion vectors")
    for path in dict.fromkeys(one.path for one in entries):
        yield from (one for one in by_file.get(path, ()) if _named(one) in (None, data_file))


def _named(finding: Finding) -> str | None:
    """The data file whose vector something was found of, if it is of one."""
    _, mark, name = finding.what.partition("deletion vector of ")
    return name if mark else None


def _merged(places: Places, entries: Sequence[_Entry], rows: int) -> DeletionVector | None:
    """The rows that vectors delete; None if one of them cannot be trusted."""
    found = DeletionVector(bits=_BITS)
    ages: dict[str, set[int]] = {}
    for entry in entries:
        source = places.source(entry.path)
        try:
            blob = _blob_of(PuffinReader(source), entry)
            named = None if blob is None else blob.properties.get(REFERENCED_FILE)
            if named not in (None, entry.data_file):
                return None  # nobody knows whose rows these are
            if blob is not None:
                ages.setdefault(entry.path, set()).add(blob.snapshot_id)
                if len(ages[entry.path]) > 1:
                    return None  # as DuckLake keeps them: one of them holds at a time, not both
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
        found |= vector
    return found


def _blob_of(reader: PuffinReader, entry: _Entry) -> Blob | None:
    """The blob of a vector, as the footer has it."""
    for blob in reader.blobs:
        if (blob.offset, blob.length) == (entry.offset, entry.length):
            return blob
    return None
