"""What a file of deletion vectors holds, read without the manifest that says whose they are."""

from __future__ import annotations

from collections.abc import Iterator

from alcid.byte_map.kinds import Kind, identify
from alcid.cli.inspect.listing import Facts, Item, Listing, problem_of
from alcid.errors import FormatError
from alcid.formats.cursor import Cursor
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.deletion_vector.encoding import AROUND, MAGICS
from alcid.formats.deletion_vector.file import vector_places
from alcid.formats.deletion_vector.writer import VERSION, range_length
from alcid.formats.source import Section, Source

__all__ = ["inspect_deletion_vector", "inspect_deletion_vectors", "vector_facts"]

_MOST_LISTED = 8


def inspect_deletion_vectors(source: Source, limit: int | None) -> Listing:
    """An index file of Paimon, or a file of Delta's: a version, then vectors back to back."""
    section = Section(source)
    Cursor(section).version("deletion vector file", VERSION)
    vectors = _vectors(section, 1)
    head = Facts(version=VERSION)
    return Listing.of(source, identify(source), head, "vectors", vectors, limit)


def inspect_deletion_vector(source: Source, limit: int | None) -> Listing:
    """A vector by itself, as it stands in an index file or as a blob in Puffin."""
    vectors = _vectors(Section(source), 0)
    return Listing.of(source, Kind.DELETION_VECTOR, Facts(), "vectors", vectors, limit)


def vector_facts(vector: DeletionVector) -> Facts:
    """How many rows are deleted, and where."""
    few = vector.cardinality <= _MOST_LISTED
    return {
        "cardinality": vector.cardinality,
        "first": vector.first,
        "last": vector.last,
        "positions": tuple(vector) if few else None,
    }


def _vectors(section: Section, offset: int) -> Iterator[Item]:
    """The vectors one after the other, as far as their lengths can be followed."""
    try:
        for place in vector_places(section, offset):
            yield _inspect(section.section(*place), place[0])
            offset = sum(place)
    except FormatError as error:  # nothing tells where the next one begins
        yield Item(_columns(offset, section.length - offset), problem=problem_of(error))


def _inspect(section: Section, offset: int) -> Item:
    bits = MAGICS.get(section.read(4, 4))
    columns = _columns(offset, section.length)
    columns["crc"] = section.read(section.length - 4, 4).hex()
    if bits is not None:
        columns["kind"] = f"{bits}-bit"
        columns["length"] = range_length(bits, section.length - AROUND)
    try:
        vector = DeletionVector.read(section)
    except FormatError as error:
        return Item(columns, problem=problem_of(error))
    return Item(columns, vector_facts(vector))


def _columns(offset: int, size: int) -> Facts:
    """Where a vector lies; `length` is what a manifest says, which leaves out a part of it."""
    return {"offset": offset, "bytes": size, "length": None, "kind": None, "crc": None}
