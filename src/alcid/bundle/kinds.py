"""What payloads a bundle keeps, and the names of its blobs and properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from alcid.errors import UnsupportedError

__all__ = [
    "BUNDLE",
    "COMPLETE_PROPERTY",
    "CONTAINER",
    "DIRECTORY",
    "FILES",
    "INDEX",
    "OWN_TYPES",
    "PAGES",
    "REPLACES_PROPERTY",
    "VERSION",
    "VERSION_PROPERTY",
    "Kind",
    "check_version",
    "has_trusted_statistics",
]

VERSION = "1.1"
"""The version that is written.

Since 1.1 statistics are copied from a footer only where its writer is trusted; see
`alcid.parquet_file.statistics`.
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
class Kind:
    """One sort of payload that every data file may have: a blob of the bundle.

    >>> Kind.index("id", "bloom-filter")
    Kind(type='alcid-index-v1', column='id', index_type='bloom-filter')
    """

    type: str
    """The type of its blob."""
    column: str = ""
    """The column; empty for a container, which belongs to the whole file."""
    index_type: str = ""
    """The index type; empty for what is not an index."""

    @classmethod
    def index(cls, column: str, index_type: str) -> Kind:
        """An index of a column, in Paimon's bytes."""
        return cls(INDEX, column, index_type)

    @classmethod
    def pages(cls, column: str) -> Kind:
        """Where the pages of a column are."""
        return cls(PAGES, column)

    @classmethod
    def container(cls) -> Kind:
        """A whole container of indexes, as Paimon keeps it beside a data file."""
        return cls(CONTAINER)

    @classmethod
    def of_blob(cls, blob_type: str, properties: Mapping[str, str]) -> Kind | None:
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
