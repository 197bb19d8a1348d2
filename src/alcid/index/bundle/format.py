"""Kinds of payloads, the names of blobs and properties, and the checksum of the footer.

Puffin's footer has no checksum of its own. The last blob of a bundle is `alcid-bundle-v1`, of no
bytes. Its property `crc32` is the CRC-32 of the footer as `write_footer` composes it while these
eight digits are zeros. So whatever the footer says of columns, index types and offsets is right, or
the bundle is refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from alcid.errors import ChecksumError, FormatError, UnsupportedError
from alcid.formats.puffin import Blob
from alcid.formats.puffin.footer import write_footer

VERSION = "1.1"
"""The version that is written.

Since 1.1 statistics are copied from a footer only where its writer is trusted; see
`alcid.datafiles.parquet.statistics`.
"""
VERSION_PROPERTY = "alcid.bundle-version"
REPLACES_PROPERTY = "alcid.replaces"
"""The names of other bundles that one is written for, with commas between."""
COMPLETE_PROPERTY = "alcid.complete"
"""On Iceberg: `true` if no bundle of an older snapshot is to be looked for."""

FILES = "alcid-files-v1"
DIRECTORY = "alcid-directory-v1"
BUNDLE = "alcid-bundle-v1"
INDEX = "alcid-index-v1"
PAGES = "alcid-pages-v1"
CONTAINER = "alcid-container-v1"
OWN_TYPES = "alcid-"
"""How the types of all blobs begin that belong to a bundle, of this version or a later one."""

_COLUMN, _INDEX_TYPE = "column", "index-type"


@dataclass(frozen=True, slots=True, order=True)
class PayloadKind:
    """One sort of payload that every data file may have: a blob of the bundle.

    >>> PayloadKind.index("id", "bloom-filter")
    PayloadKind(type='alcid-index-v1', column='id', index_type='bloom-filter')
    """

    type: str
    """The type of its blob."""
    column: str = ""
    """The column; empty for a container, which belongs to the whole file."""
    index_type: str = ""
    """The index type; empty for what is not an index."""

    @classmethod
    def index(cls, column: str, index_type: str) -> PayloadKind:
        """An index of a column, in Paimon's bytes."""
        return cls(INDEX, column, index_type)

    @classmethod
    def pages(cls, column: str) -> PayloadKind:
        """Where the pages of a column are."""
        return cls(PAGES, column)

    @classmethod
    def container(cls) -> PayloadKind:
        """A whole container of indexes, as Paimon keeps it beside a data file."""
        return cls(CONTAINER)

    @classmethod
    def of_blob(cls, blob_type: str, properties: Mapping[str, str]) -> PayloadKind | None:
        """The kind that a blob holds; None if it holds no payloads, or of a kind not known."""
        if blob_type not in (INDEX, PAGES, CONTAINER):
            return None
        return cls(blob_type, properties.get(_COLUMN, ""), properties.get(_INDEX_TYPE, ""))

    @property
    def properties(self) -> dict[str, str]:
        """What the footer says of its blob."""
        named = {} if self.type == CONTAINER else {_COLUMN: self.column}
        return named | ({_INDEX_TYPE: self.index_type} if self.type == INDEX else {})

    def __str__(self) -> str:
        match self.type:
            case "alcid-index-v1":
                return f"{self.index_type} of {self.column!r}"
            case "alcid-pages-v1":
                return f"pages of {self.column!r}"
            case _:
                return "container"


def has_trusted_statistics(version: str) -> bool:
    """Whether a bundle of a version that was checked has no statistics of doubtful footers.

    >>> has_trusted_statistics("1.0"), has_trusted_statistics("1.1"), has_trusted_statistics("1.12")
    (False, True, True)
    """
    return int(version.partition(".")[2]) >= 1


def check_version(version: str, name: str) -> None:
    """Refuse a bundle of another major version; a higher minor one can be read.

    Raises:
        UnsupportedError: It must be left alone.
    """
    major, dot, minor = version.partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal()) or int(major) != 1:
        raise UnsupportedError(f"{name}: found a bundle of version {version!r}, expected '1.x'")


CRC_PROPERTY = "crc32"
_ZEROS = "00000000"


def closing_properties(
    blobs: Sequence[Blob], last: Blob, properties: Mapping[str, str]
) -> dict[str, str]:
    """The properties of `last`, the blob that closes a bundle, with the CRC of the footer."""
    return last.properties | {CRC_PROPERTY: _crc((*blobs, last), properties)}


def check_footer(
    blobs: Sequence[Blob], properties: Mapping[str, str], *, file: str, offset: int
) -> Blob:
    """The blob that closes a bundle, whose footer at `offset` must be what its CRC says.

    Raises:
        FormatError: It is damaged, or the file is no bundle.
    """
    if not blobs or blobs[-1].type != BUNDLE:
        found = repr(blobs[-1].type) if blobs else "no blob"
        raise FormatError("no bundle", file=file, offset=offset, found=found, expected=BUNDLE)
    stated = blobs[-1].properties.get(CRC_PROPERTY)
    if (found := _crc(blobs, properties)) != stated:
        raise ChecksumError(
            "damaged footer", file=file, offset=offset, found=found, expected=stated
        )
    return blobs[-1]


def number(blob: Blob, name: str, *, file: str) -> int:
    """A property that must be a number."""
    text = blob.properties.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        problem = f"bad property {name!r} of a blob"
        raise FormatError(problem, file=file, offset=blob.offset, found=repr(text))
    return int(text)


def _crc(blobs: Sequence[Blob], properties: Mapping[str, str]) -> str:
    last = replace(blobs[-1], properties=blobs[-1].properties | {CRC_PROPERTY: _ZEROS})
    return f"{zlib.crc32(write_footer((*blobs[:-1], last), properties)):08x}"
