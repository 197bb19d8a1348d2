"""Paimon's index files of deletion vectors: those of many data files, back to back.

    u8 version 1
    a vector for each data file: i32 S | body of S bytes | u32 CRC     see `vector`

Which vector belongs to which data file stands in the table's index manifest only, as ranges: a
name, the offset of S, a length and a cardinality. The length is S for a vector of 32 bits, which
leaves out S itself and the CRC, and S + 8 for one of 64 bits, which does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from alcid.errors import FormatError, LimitError, require
from alcid.formats.cursor import Cursor
from alcid.formats.deletion_vector.vector import AROUND, LEAST_BODY, Bits, DeletionVector
from alcid.formats.source import (
    BytesSource,
    File,
    FileSource,
    Section,
    Source,
    open_with,
)

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


class _FileContents:
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
        range_ = DeletionVectorRange(data_file, self.size, length, vector.cardinality)
        self.ranges.append(range_)
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
    contents = _FileContents()
    for data_file, vector in vectors.items():
        require(vector, DeletionVector, f"deletion vector of {data_file!r}")
        contents.add(data_file, vector, bits or vector.bits, vector.to_bytes(bits))
    return contents.finish()


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
    contents = _FileContents()
    for data_file, vector in vectors.items():
        require(vector, DeletionVector, f"deletion vector of {data_file!r}")
        data = vector.to_bytes(bits)
        if contents.ranges and contents.size + len(data) > _LARGEST_FILE:
            yield contents.finish()
            contents = _FileContents()
        contents.add(data_file, vector, bits or vector.bits, data)
        if contents.size > target_size:
            yield contents.finish()
            contents = _FileContents()
    if contents.ranges:
        yield contents.finish()


_VERSION_BYTES = 1
_LARGEST_READ = 8 << 20
_BAD_LENGTH = "bad length of a deletion vector"
_LARGEST_GAP = 64 << 10  # to read over it costs less than to ask again


class DeletionVectorFile:
    """An index file of deletion vectors, read by the ranges of the index manifest.

    >>> written = DeletionVectorFile.write({"a.parquet": DeletionVector([1, 5])})
    >>> file = DeletionVectorFile.from_bytes(written.data)
    >>> file.read(written.ranges[0])
    DeletionVector([1, 5], bits=32)
    """

    write = staticmethod(write_deletion_vectors)
    roll = staticmethod(roll_deletion_vectors)

    def __init__(self, source: Source) -> None:
        """Check the version; `open` and `from_bytes` are the usual ways to a file."""
        self._whole = Section(source)
        self._opened: FileSource | None = None
        Cursor(self._whole, window=_VERSION_BYTES).version("deletion vector file", VERSION)

    @classmethod
    def open(cls, source: File) -> DeletionVectorFile:
        """Open a local path, a binary file object, or anything that can be read by range.

        A path stays open until `close`, or the end of a `with` block; all else is left to whoever
        opened it.
        """
        file, opened = open_with(source, cls)
        file._opened = opened
        return file

    @classmethod
    def from_bytes(
        cls, data: bytes | bytearray | memoryview, *, name: str = "<bytes>"
    ) -> DeletionVectorFile:
        """Open a file in memory, called `name` in errors."""
        return cls(BytesSource(data, name))

    def read(self, range_: DeletionVectorRange) -> DeletionVector:
        """Read one vector, and nothing but its range.

        Raises:
            FormatError: The range does not fit the file, or the vector is damaged.
        """
        return next(iter(self.read_all([range_]).values()))

    def read_all(self, ranges: Iterable[DeletionVectorRange]) -> dict[str, DeletionVector]:
        """Read the vectors of these ranges, by data file; what lies close is read at once.

        Raises:
            FormatError: A data file has two ranges, one does not fit the file, or a vector is
                damaged.
        """
        wanted: dict[str, DeletionVectorRange] = {}
        for range_ in ranges:
            require(range_, DeletionVectorRange, "range")
            with _naming(range_):
                self._check(range_)
                if range_.data_file in wanted:
                    raise self._whole.error("second range", range_.offset)
            wanted[range_.data_file] = range_
        vectors = {}
        for group in self._grouped(wanted.values()):
            start, end = group[0].offset, max(map(self._end, group))
            data = self._whole.read(start, end - start)
            for range_ in group:
                with _naming(range_):
                    part = data[range_.offset - start : self._end(range_) - start]
                    vectors[range_.data_file] = self._decode(range_, part)
        return {data_file: vectors[data_file] for data_file in wanted}

    def scan(self) -> Iterator[tuple[DeletionVectorRange, DeletionVector]]:
        """All vectors in the order of the file, with ranges that name no data file.

        Do not use it where the manifest is at hand: it knows which vectors are in force, and how
        many positions each must have.
        """
        cursor = Cursor(self._whole, _VERSION_BYTES, window=_LARGEST_READ)
        while (offset := cursor.position) < self._whole.length:
            most = max(self._whole.length - offset - AROUND, 0)
            size = cursor.count("length of a deletion vector", most)
            cursor.position = offset
            data = cursor.take(size + AROUND)
            vector = DeletionVector.read(self._whole.section(offset, len(data)), data=data)
            length = range_length(vector.bits, size)
            yield DeletionVectorRange("", offset, length, vector.cardinality), vector

    def close(self) -> None:
        """Close the file that `open` opened; without one, nothing happens."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def __enter__(self) -> DeletionVectorFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<DeletionVectorFile {self._whole.source.name}: {self._whole.length} bytes>"

    def _check(self, range_: DeletionVectorRange) -> None:
        """A range must lie behind the version and within the file, and have room for a vector."""
        end = range_.offset + range_.length
        inside = range_.offset >= _VERSION_BYTES and end <= self._whole.length
        if not inside or range_.length < LEAST_BODY:
            raise self._whole.error(
                "range outside of the vectors",
                range_.offset,
                found=f"{range_.length} bytes",
                expected=f"{LEAST_BODY} at least, from {_VERSION_BYTES} to {self._whole.length}",
            )

    def _end(self, range_: DeletionVectorRange) -> int:
        """The end of what to read: before it is read, the kind of a vector is not known."""
        return min(range_.offset + range_.length + AROUND, self._whole.length)

    def _grouped(
        self, ranges: Iterable[DeletionVectorRange]
    ) -> Iterator[list[DeletionVectorRange]]:
        """Ranges that one read serves."""
        group: list[DeletionVectorRange] = []
        for range_ in sorted(ranges, key=lambda range_: range_.offset):
            if group and (
                range_.offset - self._end(group[-1]) > _LARGEST_GAP
                or self._end(range_) - group[0].offset > _LARGEST_READ
            ):
                yield group
                group = []
            group.append(range_)
        if group:
            yield group

    def _decode(self, range_: DeletionVectorRange, data: bytes) -> DeletionVector:
        """The vector at the start of `data`, which may go on behind it."""
        size = int.from_bytes(data[:4], "big", signed=True)
        if size not in (range_.length, range_.length - AROUND):
            says = f"{range_.length}, or {range_.length - AROUND} with 64 bits, by its range"
            raise self._whole.error(_BAD_LENGTH, range_.offset, size, says)
        section = self._whole.section(range_.offset, size + AROUND)
        vector = DeletionVector.read(section, range_.cardinality, data=data[: section.length])
        if range_length(vector.bits, size) != range_.length:
            length = range_.length - range_length(vector.bits, 0)
            says = f"{length} with {vector.bits} bits, by its range"
            raise self._whole.error(_BAD_LENGTH, range_.offset, size, says)
        return vector


def vector_places(section: Section, offset: int = _VERSION_BYTES) -> Iterator[tuple[int, int]]:
    """Offset and length of vectors back to back, which are not looked into.

    Raises:
        FormatError: A length does not fit, so that nothing tells where the next one begins.
    """
    while offset < section.length:
        size, most = Cursor(section, offset, window=4).i32(), section.length - offset - AROUND
        if not LEAST_BODY <= size <= most:
            raise section.error(_BAD_LENGTH, offset, size, f"{LEAST_BODY} to {most}")
        yield offset, size + AROUND
        offset += size + AROUND


@contextmanager
def _naming(range_: DeletionVectorRange) -> Iterator[None]:
    """Let errors name the data file."""
    try:
        yield
    except FormatError as error:
        raise type(error)(
            f"{error.problem} (data file {range_.data_file!r})",
            file=error.file,
            offset=error.offset,
            found=error.found,
            expected=error.expected,
        ) from None
