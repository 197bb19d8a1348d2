"""Opening and reading Puffin files."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from alcid.errors import AlcidError, FormatError, require
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.puffin.compression import decompress
from alcid.formats.puffin.footer import Blob, is_inside, read_footer
from alcid.formats.puffin.writer import (
    CARDINALITY,
    DELETION_VECTOR,
    POSITION_FIELD,
    REFERENCED_FILE,
    THETA_SKETCH,
)
from alcid.formats.source import (
    File,
    FileSource,
    Section,
    Source,
    open_with,
)
from alcid.formats.theta.sketch import ThetaSketch

if TYPE_CHECKING:
    pass

_LARGEST = 128 << 20


def open(  # noqa: A001  # used as puffin.open
    file: File,
    *,
    footer_size: int | None = None,
    largest: int = _LARGEST,
) -> PuffinReader:
    """Open a Puffin file by reading its footer; blobs are read when they are asked for.

    Args:
        file: A local path, a binary file object that can seek, or anything that can be read by
            range. What is not a path belongs to the caller, and is not closed.
        footer_size: The size that the table's metadata states, if it is known. The footer is then
            read exactly, and must be of that size.
        largest: The bytes that a compressed blob may hold; one that states more is refused.

    Raises:
        FormatError: If the file is not what the format says.
    """
    make = partial(PuffinReader, footer_size=footer_size, largest=largest)
    reader, opened = open_with(file, make)
    reader._opened = opened
    return reader


class PuffinReader:
    """An open Puffin file; `open` makes one."""

    def __init__(
        self, source: Source, *, footer_size: int | None = None, largest: int = _LARGEST
    ) -> None:
        """Read and check the footer of `source`."""
        footer = read_footer(source, footer_size)
        self._source: Source | None = source
        self._opened: FileSource | None = None
        self._blobs_end = footer.start
        self.name = source.name
        """What errors call the file."""
        self.blobs: tuple[Blob, ...] = footer.blobs
        """The blobs, in the order of the footer."""
        self.properties: dict[str, str] = footer.properties
        """The properties of the file."""
        self.extra = footer.extra
        """Members of the footer that the format does not know."""
        self.footer_size: int = footer.size
        """All bytes of the footer, as table metadata states it."""
        self.largest = largest
        """The bytes that a compressed blob may hold."""

    def read(self, blob: Blob) -> bytes:
        """The content of a blob, decompressed: one read of its range."""
        data = self.read_stored(blob)
        if blob.codec is None:
            return data
        return decompress(blob.codec, data, self.largest, file=self.name, offset=blob.offset)

    def read_stored(self, blob: Blob) -> bytes:
        """The bytes of a blob as they are in the file, for `PuffinWriter.add_stored`."""
        return self._section(require(blob, Blob, "blob")).read(0, blob.length)

    def read_deletion_vector(self, blob: Blob) -> DeletionVector:
        """The vector of a `deletion-vector-v1` blob, which must hold what the footer says of it.

        Raises:
            FormatError: If either is damaged. Do not read the data file without it: rows that were
                deleted would come back.
        """
        if require(blob, Blob, "blob").type != DELETION_VECTOR:
            raise self._error(blob, "not a deletion vector", repr(blob.type), repr(DELETION_VECTOR))
        if blob.codec is not None:
            raise self._error(blob, "compressed deletion vector", blob.codec, "no codec")
        if blob.fields not in ((), (POSITION_FIELD,)):  # other writers than Java leave them out
            expected = f"[{POSITION_FIELD}]"
            raise self._error(blob, "bad fields of a deletion vector", list(blob.fields), expected)
        for name in (REFERENCED_FILE, CARDINALITY):
            if name not in blob.properties:
                raise self._error(blob, f"deletion vector without property {name!r}")
        cardinality = blob.properties[CARDINALITY]
        if not re.fullmatch("[0-9]{1,19}", cardinality):
            raise self._error(blob, f"bad property {CARDINALITY!r}", repr(cardinality), "a number")
        vector = DeletionVector.read(self._section(blob), int(cardinality))
        if vector.bits != 64:
            raise self._error(blob, "deletion vector of another table format", "32 bits", "64 bits")
        return vector

    def read_theta_sketch(self, blob: Blob) -> ThetaSketch:
        """The sketch of an `apache-datasketches-theta-v1` blob.

        Raises:
            FormatError: If it is damaged, or of another type.
        """
        if require(blob, Blob, "blob").type != THETA_SKETCH:
            raise self._error(blob, "not a theta sketch", repr(blob.type), repr(THETA_SKETCH))
        name = f"{self.name}, blob at offset {blob.offset}"
        return ThetaSketch.from_bytes(self.read(blob), name=name)

    def _section(self, blob: Blob) -> Section:
        if self._source is None:
            raise AlcidError(f"{self.name}: the file is closed")
        if not is_inside(blob, self._blobs_end):
            expected = f"an end before {self._blobs_end}"
            raise self._error(blob, "blob of another file", f"{blob.length} bytes", expected)
        return Section(self._source, blob.offset, blob.length)

    def _error(
        self, blob: Blob, problem: str, found: object = None, expected: object = None
    ) -> FormatError:
        return FormatError(
            problem, file=self.name, offset=blob.offset, found=found, expected=expected
        )

    def close(self) -> None:
        """Close the file that `open` opened; nothing can be read any more."""
        opened, self._source, self._opened = self._opened, None, None
        if opened is not None:
            opened.close()

    def __enter__(self) -> PuffinReader:
        """Return itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file."""
        self.close()

    def __repr__(self) -> str:
        """The name, and how many blobs there are."""
        return f"<PuffinReader {self.name}, blobs: {len(self.blobs)}>"
