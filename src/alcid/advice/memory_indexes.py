"""Indexes that were built for a sample and are held in memory, as planning asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from alcid.bundle import State
from alcid.bundle.bloom import Answer
from alcid.formats.file_index import READERS
from alcid.formats.file_index.keys import Key, KeyType
from alcid.formats.file_index.reader import IndexReader
from alcid.formats.source import BytesSource, Section

__all__ = ["BOUNDS", "IndexName", "MemoryIndexes", "Readers"]

Integers = npt.NDArray[np.int64]

IndexName: TypeAlias = tuple[str, str]
"""A column, or a key of a map, and an index type."""
BOUNDS = "bounds"
"""Stands for an index type: least and greatest values, as any index of a column brings them."""
Readers: TypeAlias = dict[tuple[str, str, int], IndexReader]
"""Opened indexes, by the name that the file has for the column, index type and file."""


class MemoryIndexes:
    """The indexes of some files of a table; the others have none."""

    def __init__(
        self, count: int, payloads: Mapping[IndexName, Mapping[int, bytes]], readers: Readers
    ) -> None:
        """Take payloads by the names that files have for columns, then by file.

        `readers` takes those that were opened, so that other sets of indexes have them too.
        """
        self._count, self._payloads, self._readers = count, payloads, readers

    def load(self, _files: Integers, /) -> None:
        """They are here."""

    def types(self, column: str) -> list[str]:
        """The index types that some file has for a column, those that read the least first."""
        return [index_type for index_type in READERS if (column, index_type) in self._payloads]

    def states(self, column: str, index_type: str) -> npt.NDArray[np.int8]:
        """One of `State` for each file."""
        states = np.full(self._count, State.ABSENT, np.int8)
        states[list(self._payloads.get((column, index_type), ()))] = State.FRESH
        return states

    def fresh(self, column: str, index_type: str) -> npt.NDArray[np.bool_]:
        """The files that have one."""
        fresh: npt.NDArray[np.bool_] = self.states(column, index_type) == State.FRESH
        return fresh

    def lengths(self, column: str, index_type: str) -> Integers:
        """The bytes of the index of each file; 0 where there is none."""
        lengths = np.zeros(self._count, np.int64)
        for file, payload in self._payloads.get((column, index_type), {}).items():
            lengths[file] = len(payload)
        return lengths

    def probe(self, column: str, files: Integers, keys: Sequence[Key], key_type: KeyType) -> Answer:
        """Ask the bloom filters of files, which have one, for keys."""
        readers = (self.reader(column, "bloom-filter", file, key_type) for file in files.tolist())
        return Answer(np.array([not reader.is_in(keys).skip for reader in readers], bool))

    def lacking(
        self, _column: str, files: Integers, _keys: Sequence[Key], _key_type: KeyType
    ) -> npt.NDArray[np.bool_]:
        """Those of a sample are few, and asked one by one."""
        return np.zeros(len(files), bool)

    def reader(self, column: str, index_type: str, file: int, key_type: KeyType) -> IndexReader:
        """The index of a file that has one."""
        name = column, index_type, file
        if name not in self._readers:
            data = self._payloads[column, index_type][file]
            section = Section(BytesSource(data, f"{index_type} of {column}"), 0, len(data))
            self._readers[name] = READERS[index_type](section, key_type)
        return self._readers[name]
