"""All payloads of one kind in a bundle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alcid.bundle.checked import CheckedSource
from alcid.bundle.directory import Directory
from alcid.bundle.kinds import INDEX, Kind
from alcid.errors import UnsupportedError
from alcid.formats.file_index import READERS
from alcid.formats.file_index.keys import KeyType
from alcid.formats.file_index.reader import EmptyReader, IndexReader
from alcid.formats.source import Range, Section, Source

__all__ = ["Series"]


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The payloads of one kind, by their entries in the directory."""

    kind: Kind
    directory: Directory
    source: Source
    """The bundle."""
    start: int
    """Where the payloads begin in it."""

    def entry(self, row: int) -> int | None:
        """The entry of a file, by its row in the bundle, if there is one."""
        rows = self.directory.rows
        place = int(np.searchsorted(rows, row))
        return place if place < len(rows) and rows[place] == row else None

    def payload(self, entry: int) -> CheckedSource:
        """The payload of an entry; nothing is read yet."""
        return CheckedSource(
            self.source,
            self.stored(entry).offset,
            int(self.directory.lengths[entry]),
            self.directory.heads[entry].tobytes(),
            self.name(entry),
        )

    def stored(self, entry: int) -> Range:
        """Where the blocks of an entry are."""
        start, end = self.directory.starts[entry : entry + 2].tolist()
        return Range(self.source, self.start + start, end - start)

    def name(self, entry: int) -> str:
        """What errors call the payload of an entry."""
        return f"{self.kind}, file {self.directory.rows[entry]}"

    def index(
        self, entry: int, key_type: KeyType, payload: CheckedSource | None = None
    ) -> IndexReader:
        """The index of an entry, for keys of `key_type`; what it reads is checked.

        Args:
            entry: The entry.
            key_type: The type of its keys.
            payload: What `payload` gave before, if parts of it were read by `prefetch`.

        Raises:
            FormatError: It is damaged; asking it may raise as well. Keep the file then.
            UnsupportedError: It is of a type that this version does not know.
        """
        if self.kind.type != INDEX or self.kind.index_type not in READERS:
            raise UnsupportedError(f"{self.source.name}: {self.kind}: expected a known index")
        if not self.directory.lengths[entry]:
            return EmptyReader()
        section = Section(self.payload(entry) if payload is None else payload)
        return READERS[self.kind.index_type](section, key_type)
