"""Deletion vectors in Puffin files, by the places that manifests tell: no footer is read."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.puffin import Blob, PuffinWriter
from alcid.formats.source import Range, Section
from alcid.tables.iceberg.places import Places

__all__ = ["StoredVector", "WrittenVectors", "read_vectors", "write_vectors"]

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
