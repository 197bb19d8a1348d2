"""The file indexes of a Paimon table, as planning asks for them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import compress
from threading import Lock

import numpy as np
import numpy.typing as npt

from alcid.bundle import State
from alcid.bundle.bloom import Answer
from alcid.errors import FormatError
from alcid.formats.file_index import READERS
from alcid.formats.file_index.bitmap_search import BitmapSearch
from alcid.formats.file_index.bloom_filters import are_usual, may_have_any
from alcid.formats.file_index.keys import Key, KeyType
from alcid.formats.file_index.reader import EmptyReader, IndexReader
from alcid.formats.source import Section
from alcid.plan.threads import wait_for_each
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.index_containers import IndexContainers

__all__ = ["PaimonIndexes"]

Integers = npt.NDArray[np.int64]

_MOST_OPENED = 512
_TOGETHER = 4096  # bloom filters that are asked at once


class PaimonIndexes:
    """The indexes of the data files of a snapshot."""

    def __init__(
        self,
        storage: Storage,
        files: Sequence[PlacedFile],
        *,
        enabled: bool,
        strict: bool,
        replaced: Iterable[int] = (),
    ) -> None:
        """Read nothing yet.

        Args:
            storage: The folder of the table.
            files: The data files.
            enabled: False: what indexes there are is not looked at.
            strict: Raise where a container is damaged, in place of a warning.
            replaced: Files whose indexes are those of others.
        """
        self._containers = IndexContainers(storage, files, enabled=enabled, strict=strict)
        self._count, self._remote = len(files), storage.remote
        self._replaced = list(replaced)
        self._opened: OrderedDict[tuple[str, str, int], IndexReader] = OrderedDict()
        self._lock = Lock()

    def load(self, files: Integers) -> None:
        """Read the heads of the containers of some files."""
        self._containers.load(files)

    def types(self, column: str) -> list[str]:
        """The index types that some file has for a column, those that read the least first."""
        known = self._containers.places
        return [index_type for index_type in READERS if (column, index_type) in known]

    def states(self, column: str, index_type: str) -> npt.NDArray[np.int8]:
        """One of `State` for each file."""
        states = np.where(self._containers.damaged, State.DAMAGED, State.ABSENT).astype(np.int8)
        places = self._containers.places.get((column, index_type))
        if places is not None:
            states[places.is_there] = State.FRESH
            if self._replaced:
                is_there = np.zeros(self._count, bool)
                is_there[self._replaced] = True
                states[is_there & places.is_there] = State.STALE
        return states

    def fresh(self, column: str, index_type: str) -> npt.NDArray[np.bool_]:
        """The files that have one which can be used."""
        fresh: npt.NDArray[np.bool_] = self.states(column, index_type) == State.FRESH
        return fresh

    def lengths(self, column: str, index_type: str) -> Integers:
        """The bytes of the index of each file; 0 where there is none."""
        places = self._containers.places.get((column, index_type))
        return np.zeros(self._count, np.int64) if places is None else places.lengths

    def probe(self, column: str, files: Integers, keys: Sequence[Key], key_type: KeyType) -> Answer:
        """Ask the bloom filters of files, which have one, for keys."""
        damage: dict[int, FormatError] = {}

        def ask(file: int) -> bool:
            try:
                reader = self.reader(column, "bloom-filter", file, key_type)
                return not reader.is_in(keys).skip
            except FormatError as error:
                damage[file] = error
                return True

        may_match, is_known = np.ones((2, len(files)), bool)
        for start in range(0, len(files), _TOGETHER):
            some = slice(start, start + _TOGETHER)
            filters = self._containers.at_hand(column, "bloom-filter", files[some])
            usual = are_usual(filters)
            answers = may_have_any([*compress(filters, usual.tolist())], keys, key_type)
            may_match[some][usual], is_known[some] = answers, usual
        others = files[~is_known].tolist()
        may_match[~is_known] = wait_for_each(ask, others, remote=self._remote)
        return Answer(may_match, damage)

    def lacking(
        self, column: str, files: Integers, keys: Sequence[Key], key_type: KeyType
    ) -> npt.NDArray[np.bool_]:
        """Which files have a bitmap at hand with none of the keys; a container has no checksum."""
        search = BitmapSearch(keys, key_type)
        bitmaps = self._containers.at_hand(column, "bitmap", files)
        return np.fromiter(map(search.is_in_vain, bitmaps), bool, len(bitmaps))

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
                return known
        reader = self._open(column, index_type, file, key_type)
        with self._lock:
            self._opened[name] = reader
            while len(self._opened) > _MOST_OPENED:
                self._opened.popitem(last=False)
        return reader

    def _open(self, column: str, index_type: str, file: int, key_type: KeyType) -> IndexReader:
        entry = self._containers.entry(column, index_type, file)
        if entry.is_empty:
            return EmptyReader()
        section = Section(self._containers.source(file), entry.start, entry.length)
        return READERS[index_type](section, key_type)
