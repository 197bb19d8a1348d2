"""The file indexes of a Paimon table: of each file a container, in the manifest or beside the file.

Which indexes a container has is only known when its head was read. So heads are read for those
files that partitions and statistics have left, all in one round.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import numpy as np
import numpy.typing as npt

from alcid.bundle import State
from alcid.bundle.bloom import Answer
from alcid.bundle.kept import KeptSource
from alcid.errors import DamagedIndexWarning, FileGoneError, FormatError
from alcid.formats.file_index import READERS, open_index
from alcid.formats.file_index.container import Container, Entry
from alcid.formats.file_index.keys import Key, KeyType
from alcid.formats.file_index.reader import IndexReader
from alcid.formats.source import BytesSource, Range, Source
from alcid.plan.threads import wait_for_each
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile

__all__ = ["PaimonIndexes", "index_sources"]

Integers = npt.NDArray[np.int64]

_HEAD = 16 << 10  # bytes of a sidecar that are read with its head
_MOST_OPENED = 512


def index_sources(
    storage: Storage, files: Sequence[PlacedFile]
) -> list[Source | FormatError | None]:
    """The containers of files; None where there is none.

    Of a file beside the data nothing is read but its first bytes, all of them in one round.
    """
    found: list[Source | FormatError | None] = [None] * len(files)
    beside: list[tuple[int, str]] = []
    for place, one in enumerate(files):
        if one.file.embedded_index is not None:
            found[place] = BytesSource(one.file.embedded_index, f"{one.path} in its manifest")
        elif len(one.file.index_files) > 1:
            found[place] = FormatError(
                "index files", file=one.path, found=len(one.file.index_files), expected="one"
            )
        elif one.file.index_files:
            beside.append((place, f"{one.folder}{one.file.index_files[0]}"))
    for (place, _), source in zip(
        beside, _kept(storage, [path for _, path in beside]), strict=True
    ):
        found[place] = source
    return found


def _kept(storage: Storage, paths: Sequence[str]) -> list[Source | FormatError]:
    """Files whose first bytes are held."""

    def open_one(path: str) -> Source | FormatError:
        try:
            source = KeptSource(storage.source(path))
        except FileGoneError:
            return FormatError("its index file is not there", file=path)
        return source

    sources = wait_for_each(open_one, paths, remote=storage.remote)
    kept = [one for one in sources if isinstance(one, KeptSource)]
    heads = storage.read_ranges([Range(one.whole, 0, min(one.size, _HEAD)) for one in kept])
    for one, head in zip(kept, heads, strict=True):
        one.hold(0, head)
    return sources


class PaimonIndexes:
    """The indexes of the data files of a snapshot."""

    def __init__(
        self, storage: Storage, files: Sequence[PlacedFile], *, enabled: bool, strict: bool
    ) -> None:
        """Read nothing yet.

        Args:
            storage: The folder of the table.
            files: The data files.
            enabled: False: what indexes there are is not looked at.
            strict: Raise where a container is damaged, in place of a warning.
        """
        self._storage, self._files, self._strict = storage, files, strict
        self._loaded = np.array([not (enabled and one.file.has_index) for one in files], bool)
        self._containers: dict[int, Container] = {}
        self._damaged = np.zeros(len(files), bool)
        self._entries: dict[tuple[str, str], dict[int, Entry]] = {}
        self._opened: OrderedDict[tuple[str, str, int], IndexReader] = OrderedDict()
        self._lock, self._loading = Lock(), Lock()

    def load(self, files: Integers) -> None:
        """Read the heads of the containers of some files."""
        with self._loading:
            missing = files[~self._loaded[files]]
            if not len(missing):
                return
            placed = [self._files[file] for file in missing.tolist()]
            sources = index_sources(self._storage, placed)
            for file, source in zip(missing.tolist(), sources, strict=True):
                self._enter(file, source)
            self._loaded[missing] = True

    def _enter(self, file: int, source: Source | FormatError | None) -> None:
        if source is None:
            return
        try:
            if isinstance(source, FormatError):
                raise source
            container = Container.open(source)
        except FormatError as error:
            if self._strict:
                raise
            warnings.warn(f"index not used: {error}", DamagedIndexWarning, stacklevel=2)
            self._damaged[file] = True
            return
        self._containers[file] = container
        for entry in container.entries:
            if entry.index_type in READERS:
                self._entries.setdefault((entry.column, entry.index_type), {})[file] = entry

    def types(self, column: str) -> list[str]:
        """The index types that some file has for a column, those that read the least first."""
        return [index_type for index_type in READERS if (column, index_type) in self._entries]

    def kinds(self) -> list[tuple[str, str]]:
        """Every column and type of which there is an index, sorted."""
        return sorted(self._entries)

    def states(self, column: str, index_type: str) -> npt.NDArray[np.int8]:
        """One of `State` for each file."""
        states = np.where(self._damaged, State.DAMAGED, State.ABSENT).astype(np.int8)
        states[list(self._entries.get((column, index_type), ()))] = State.FRESH
        return states

    def fresh(self, column: str, index_type: str) -> npt.NDArray[np.bool_]:
        """The files that have one which can be used."""
        fresh: npt.NDArray[np.bool_] = self.states(column, index_type) == State.FRESH
        return fresh

    def lengths(self, column: str, index_type: str) -> Integers:
        """The bytes of the index of each file; 0 where there is none."""
        lengths = np.zeros(len(self._files), np.int64)
        for file, entry in self._entries.get((column, index_type), {}).items():
            lengths[file] = entry.length
        return lengths

    def probe(self, column: str, files: Integers, keys: Sequence[Key], key_type: KeyType) -> Answer:
        """Ask the bloom filters of files, which have one, for keys."""
        damage: dict[int, FormatError] = {}

        def may_match(file: int) -> bool:
            try:
                reader = self.reader(column, "bloom-filter", file, key_type)
                return not reader.is_in(keys).skip
            except FormatError as error:
                damage[file] = error
                return True

        found = wait_for_each(may_match, files.tolist(), remote=self._storage.remote)
        return Answer(np.array(found, bool), damage)

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
        reader = open_index(
            self._containers[file], self._entries[column, index_type][file], key_type
        )
        with self._lock:
            self._opened[name] = reader
            while len(self._opened) > _MOST_OPENED:
                self._opened.popitem(last=False)
        return reader
