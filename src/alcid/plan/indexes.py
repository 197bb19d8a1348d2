"""The indexes of all files of a table, as planning asks for them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Protocol

import numpy as np
import numpy.typing as npt

from alcid.bundle import BundleSet, CheckedSource, Coverage, Kind, State, lacking, probe
from alcid.bundle.bloom import Answer
from alcid.formats.file_index import READERS
from alcid.formats.file_index.bitmap_search import BitmapSearch
from alcid.formats.file_index.keys import Key, KeyType
from alcid.formats.file_index.reader import IndexReader
from alcid.formats.source import ReadMany

__all__ = ["BundleIndexes", "Indexes"]

Integers = npt.NDArray[np.int64]

_MOST_OPENED = 512
_MOST_BYTES = 128 << 20  # that were read of opened indexes, and became bitmaps
_LOOK = 16  # indexes that are opened until it is looked at what all of them hold


class Indexes(Protocol):
    """The indexes of the files of a table; a file is its place among them."""

    def load(self, files: Integers, /) -> None:
        """Find out what indexes some files have; nothing is said of others before."""

    def types(self, column: str) -> list[str]:
        """The index types that some file has for a column, those that read the least first."""

    def states(self, column: str, index_type: str) -> npt.NDArray[np.int8]:
        """One of `State` for each file."""

    def fresh(self, column: str, index_type: str) -> npt.NDArray[np.bool_]:
        """The files that have one which can be used."""

    def lengths(self, column: str, index_type: str) -> Integers:
        """The bytes of the index of each file; 0 where there is none."""

    def probe(self, column: str, files: Integers, keys: Sequence[Key], key_type: KeyType) -> Answer:
        """Ask the bloom filters of files, which have one, for keys."""

    def lacking(
        self, column: str, files: Integers, keys: Sequence[Key], key_type: KeyType
    ) -> npt.NDArray[np.bool_]:
        """Which of some files have a fresh bitmap with none of the keys, as far as that is cheap.

        Of the others nothing is said.
        """

    def reader(self, column: str, index_type: str, file: int, key_type: KeyType) -> IndexReader:
        """The index of a file that has a fresh one.

        Raises:
            FormatError: It is damaged; asking it may raise too.
        """


class BundleIndexes:
    """The indexes in a set of bundles; those that were opened are kept, up to a size."""

    def __init__(
        self, bundles: BundleSet, read_ranges: ReadMany, *, gap: int, remote: bool
    ) -> None:
        """Use bundles, reading with `read_ranges`.

        Args:
            bundles: The bundles.
            read_ranges: How to read a round of ranges.
            gap: A request is worth so many bytes.
            remote: Whether a round of reads waits for a network.
        """
        self._bundles, self._read_ranges = bundles, read_ranges
        self._gap, self._rounds = gap, 1 if remote else 2
        self._kinds = {
            (kind.column, kind.index_type) for kind in bundles.kinds if kind.index_type in READERS
        }
        self._opened: OrderedDict[tuple[str, str, int], tuple[IndexReader, CheckedSource]]
        self._opened = OrderedDict()
        self._opens, self._lock = 0, Lock()

    def load(self, _files: Integers, /) -> None:
        """Bundles say all at once."""

    def types(self, column: str) -> list[str]:
        """The index types that some file has for a column, those that read the least first."""
        return [index_type for index_type in READERS if (column, index_type) in self._kinds]

    def states(self, column: str, index_type: str) -> npt.NDArray[np.int8]:
        """One of `State` for each file."""
        return self._coverage(column, index_type).states

    def fresh(self, column: str, index_type: str) -> npt.NDArray[np.bool_]:
        """The files that have one which can be used."""
        fresh: npt.NDArray[np.bool_] = self.states(column, index_type) == State.FRESH
        return fresh

    def lengths(self, column: str, index_type: str) -> Integers:
        """The bytes of the index of each file; 0 where there is none."""
        return self._coverage(column, index_type).lengths

    def probe(self, column: str, files: Integers, keys: Sequence[Key], key_type: KeyType) -> Answer:
        """Ask the bloom filters of files for keys, in one round of reads."""
        coverage = self._coverage(column, "bloom-filter")
        return probe(
            coverage,
            files,
            keys,
            key_type,
            self._read_ranges,
            gap=self._gap,
            rounds=self._rounds,
        )

    def lacking(
        self, column: str, files: Integers, keys: Sequence[Key], key_type: KeyType
    ) -> npt.NDArray[np.bool_]:
        """Which files have a bitmap with none of the keys: small ones are read, many in one."""
        coverage, search = self._coverage(column, "bitmap"), BitmapSearch(keys, key_type)
        return lacking(coverage, files, search, self._read_ranges, gap=self._gap)

    def reader(self, column: str, index_type: str, file: int, key_type: KeyType) -> IndexReader:
        """The index of a file that has a fresh one.

        Raises:
            FormatError: It is damaged; asking it may raise too.
        """
        name = column, index_type, file
        with self._lock:
            known = self._opened.get(name)
            if known is not None:
                self._opened.move_to_end(name)
                return known[0]
        coverage = self._coverage(column, index_type)
        payload = coverage.payload(file)
        reader = coverage.index(file, key_type, payload)
        if payload is None or reader is None:
            raise LookupError(f"{index_type} of {column!r}: none for file {file}")
        with self._lock:
            self._opened[name] = reader, payload
            self._opens += 1
            if self._opens % _LOOK == 0:
                self._forget()
        return reader

    def _forget(self) -> None:
        """Let go of the oldest ones: what they take is only known after they were asked."""
        held = sum(one.taken for _, one in self._opened.values())
        while held > _MOST_BYTES or len(self._opened) > _MOST_OPENED:
            _, (_, oldest) = self._opened.popitem(last=False)
            held -= oldest.taken

    def _coverage(self, column: str, index_type: str) -> Coverage:
        return self._bundles.coverage(Kind.index(column, index_type))
