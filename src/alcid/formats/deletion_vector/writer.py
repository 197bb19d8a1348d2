"""Writing Paimon's index files of deletion vectors: see `file` for the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from alcid.errors import LimitError, require
from alcid.formats.deletion_vector.encoding import AROUND, Bits
from alcid.formats.deletion_vector.vector import DeletionVector

__all__ = [
    "VERSION",
    "DeletionVectorRange",
    "WrittenVectors",
    "range_length",
    "roll_deletion_vectors",
    "write_deletion_vectors",
]

VERSION = 1
_LARGEST_FILE = (1 << 31) - 1  # a manifest has 32 bits for an offset
_TARGET_SIZE = 2 << 20


@dataclass(frozen=True, slots=True)
class DeletionVectorRange:
    """Where the vector of a data file lies in an index file, as the index manifest tells."""

    data_file: str
    """The name of the data file, without its folder."""
    offset: int
    length: int
    """Of the body alone for a vector of 32 bits; with the 8 bytes around it for one of 64."""
    cardinality: int | None = None
    """How many rows are deleted, if it is known."""


@dataclass(frozen=True, slots=True)
class WrittenVectors:
    """An index file, and the ranges that its entry in the index manifest must hold."""

    data: bytes = field(repr=False)
    ranges: tuple[DeletionVectorRange, ...]


def range_length(bits: Bits, size: int) -> int:
    """The length that a manifest gives for a vector with a body of `size` bytes."""
    return size if bits == 32 else size + AROUND


class _Draft:
    """A file that is being written."""

    def __init__(self) -> None:
        self.parts = [bytes((VERSION,))]
        self.ranges: list[DeletionVectorRange] = []
        self.size = 1

    def add(self, data_file: str, vector: DeletionVector, bits: Bits, data: bytes) -> None:
        if self.size + len(data) > _LARGEST_FILE:
            raise LimitError(
                f"an index file holds at most {_LARGEST_FILE} bytes: "
                f"the deletion vector of {data_file!r} does not fit"
            )
        length = range_length(bits, len(data) - AROUND)
        place = DeletionVectorRange(data_file, self.size, length, vector.cardinality)
        self.ranges.append(place)
        self.parts.append(data)
        self.size += len(data)

    def finish(self) -> WrittenVectors:
        return WrittenVectors(b"".join(self.parts), tuple(self.ranges))


def write_deletion_vectors(
    vectors: Mapping[str, DeletionVector], *, bits: Bits | None = None
) -> WrittenVectors:
    """Write one index file, as tables with buckets need it: one for each bucket.

    Args:
        vectors: By the name of the data file, in the order to be written. Without any the file is
            its version only, which is how a bucket says that nothing is deleted any more.
        bits: The kind of all vectors; by default each has its own.

    Raises:
        LimitError: The file would be beyond 2 GiB, or a position beyond the kind.

    >>> written = write_deletion_vectors({"a.parquet": DeletionVector([1])})
    >>> written.ranges
    (DeletionVectorRange(data_file='a.parquet', offset=1, length=22, cardinality=1),)
    """
    draft = _Draft()
    for data_file, vector in vectors.items():
        require(vector, DeletionVector, f"deletion vector of {data_file!r}")
        draft.add(data_file, vector, bits or vector.bits, vector.to_bytes(bits))
    return draft.finish()


def roll_deletion_vectors(
    vectors: Mapping[str, DeletionVector],
    *,
    bits: Bits | None = None,
    target_size: int = _TARGET_SIZE,
) -> Iterator[WrittenVectors]:
    """Write as many index files as are needed, as tables without buckets have them.

    Args:
        vectors: By the name of the data file, in the order to be written.
        bits: The kind of all vectors; by default each has its own.
        target_size: A file ends with the vector that makes it larger than that, as Paimon does with
            its option `deletion-vector.index-file.target-size`.

    Raises:
        LimitError: A vector is beyond 2 GiB, or a position beyond the kind.
    """
    draft = _Draft()
    for data_file, vector in vectors.items():
        require(vector, DeletionVector, f"deletion vector of {data_file!r}")
        data = vector.to_bytes(bits)
        if draft.ranges and draft.size + len(data) > _LARGEST_FILE:
            yield draft.finish()
            draft = _Draft()
        draft.add(data_file, vector, bits or vector.bits, data)
        if draft.size > target_size:
            yield draft.finish()
            draft = _Draft()
    if draft.ranges:
        yield draft.finish()
