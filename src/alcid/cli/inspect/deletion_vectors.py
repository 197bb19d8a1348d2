"""What a file of deletion vectors holds, read without the manifest that says whose they are."""

from __future__ import annotations

from collections.abc import Iterator

from alcid.cli.inspect.listing import Facts, Item, Listing, problem_of
from alcid.cli.kinds import Kind
from alcid.errors import FormatError
from alcid.formats.cursor import Cursor
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.deletion_vector.file import VERSION
from alcid.formats.source import Section, Source

__all__ = ["inspect_deletion_vector", "inspect_deletion_vectors", "vector_facts"]

_AROUND = 8  # the length before a vector's body, and the checksum behind it


def inspect_deletion_vectors(source: Source, limit: int | None) -> Listing:
    """A Paimon index file: a version, then vectors back to back."""
    vectors = _vectors(Section(source), 1)
    kind, head = Kind.DELETION_VECTOR_FILE, Facts(version=VERSION)
    return Listing.of(source, kind, head, "vectors", vectors, limit)


def inspect_deletion_vector(source: Source, limit: int | None) -> Listing:
    """A vector by itself, as it stands in an index file or as a blob in Puffin."""
    vectors = _vectors(Section(source), 0)
    return Listing.of(source, Kind.DELETION_VECTOR, Facts(), "vectors", vectors, limit)


def vector_facts(vector: DeletionVector) -> Facts:
    """How many rows are deleted, and where."""
    return {"cardinality": vector.cardinality, "first": vector.first, "last": vector.last}


def _vectors(section: Section, offset: int) -> Iterator[Item]:
    """The vectors one after the other, as far as their lengths can be followed."""
    while offset < section.length:
        try:
            length = Cursor(section, offset).i32() + _AROUND
            vector = section.section(offset, max(length, _AROUND))
        except FormatError as error:  # nothing tells where the next one begins
            rest = section.length - offset
            yield Item(
                {"offset": offset, "bytes": rest, "kind": None, "crc": None},
                problem=problem_of(error),
            )
            return
        yield _inspect(vector, offset)
        offset += vector.length


def _inspect(section: Section, offset: int) -> Item:
    columns: Facts = {"offset": offset, "bytes": section.length, "kind": None}
    crc: Facts = {"crc": section.read(section.length - 4, 4).hex()}
    try:
        vector = DeletionVector.read(section)
    except FormatError as error:
        return Item(columns | crc, problem=problem_of(error))
    return Item({**columns, "kind": f"{vector.bits}-bit", **crc}, vector_facts(vector))
