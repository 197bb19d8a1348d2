"""Whether the deletion vectors of a Puffin file are what the manifests of an Iceberg table say.

Iceberg's readers go by the manifest alone, others by the footer of the file: both must agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from alcid.errors import FileGoneError, FormatError, LimitError
from alcid.formats.puffin import DELETION_VECTOR, Blob, PuffinReader
from alcid.formats.puffin.writer import CARDINALITY, REFERENCED_FILE
from alcid.tables.checked import Checked
from alcid.tables.iceberg.checked_snapshot import GONE, CheckedSnapshot

__all__ = ["StatedVector", "VectorFileCheck", "vector_files", "vectors_twice"]


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
        found = Checked()
        try:
            reader = PuffinReader(snapshot.open(self.path, self.size, found))
        except FileGoneError:
            found.findings.add(self.path, "deletion vectors", GONE)
            return found
        except (FormatError, LimitError) as error:
            found.findings.add(self.path, "deletion vectors", error)
            return found
        blobs = {(blob.offset, blob.length): blob for blob in reader.blobs}
        for vector in self.vectors:
            what = f"deletion vector of {vector.data_file}"
            rows = snapshot.rows.get(vector.data_file)
            blob = blobs.get((vector.offset, vector.length))
            for problem in _compare(vector, blob, reader, rows):
                found.findings.add(self.path, what, problem)
            if blob is not None and _was_moved(vector, blob):
                before = blob.properties[REFERENCED_FILE]
                problem = f"the footer says {before}: the table was moved, and reads the same"
                found.warnings.add(self.path, what, problem)
            if rows is None:
                problem = "the snapshot does not have that data file"
                found.warnings.add(self.path, what, problem)
        return found


def _compare(
    vector: StatedVector, blob: Blob | None, reader: PuffinReader, rows: int | None
) -> Iterator[str]:
    """What is wrong with a vector of a data file of so many rows."""
    if blob is None or blob.type != DELETION_VECTOR:
        place = f"{vector.length} bytes at offset {vector.offset}"
        yield f"the footer of the file has no vector of {place}"
        return
    for name, expected in ((REFERENCED_FILE, vector.data_file), (CARDINALITY, vector.cardinality)):
        if name == REFERENCED_FILE and _was_moved(vector, blob):
            continue
        if (found := blob.properties.get(name)) != str(expected):
            yield f"{name}: the footer says {found}, the manifest {expected}"
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
    """What to check, each file once, given the delete entries of Puffin files."""
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
