"""What the checks of an Iceberg table share: how files are read, and what is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from alcid.formats.source import Source
from alcid.iceberg_metadata.schema import Field
from alcid.tables.checked import Checked
from alcid.tables.iceberg.places import Places

__all__ = ["GONE", "Check", "CheckedSnapshot"]

GONE = "is not there"


@dataclass(frozen=True, slots=True, eq=False)
class CheckedSnapshot:
    """The snapshot that is verified; it pickles."""

    places: Places
    rows: Mapping[str, int]
    """The rows of each data file, by the path in its manifest."""
    fields: Mapping[int, Field]
    """All columns that the table has had, by their ids."""

    def open(self, path: str, size: int, found: Checked) -> Source:
        """A file, to be read; if it has another size than the table says, that is told.

        Raises:
            FileGoneError: It is not there.
        """
        source = self.places.source(path)
        if source.size != size:
            found.findings.add(path, "bytes", f"found {source.size:,}, expected {size:,}")
        return source


class Check(Protocol):
    """A file that is no data file, to be looked at by one worker; it pickles."""

    @property
    def path(self) -> str:
        """The file."""

    @property
    def size(self) -> int:
        """About how many bytes it reads."""

    def run(self, snapshot: CheckedSnapshot) -> Checked:
        """Look at it; what is wrong with it is no error here."""
