"""The containers of file indexes: of each data file one, in the manifest or beside the file.

Which indexes a container has is only known when its head was read. So heads are read for those
files that partitions and statistics have left, in a few rounds. What is found is kept in columns,
and the bytes of small containers with it, up to a size.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from threading import Lock

import numpy as np
import numpy.typing as npt

from alcid.errors import DamagedIndexWarning, FormatError
from alcid.formats.file_index import READERS
from alcid.formats.file_index.container import Entry
from alcid.formats.file_index.container_heads import ContainerHeads
from alcid.formats.source import BytesSource, Source
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.index_beginnings import Beginning, read_beginnings

__all__ = ["IndexContainers", "IndexPlaces"]

Integers = npt.NDArray[np.int64]

_MANY, _LISTED = 256, 8  # files of a folder, and one of so many, for which all of it is listed
_ROUND = 4096  # containers whose heads are in memory together
_MOST_HELD = 256 << 20  # bytes of containers beside their files
_ABSENT = -2  # a start that none has: -1 is that of an index of which nothing is written


class IndexPlaces:
    """Where the indexes of one column and type are, in the containers of all files."""

    def __init__(self, count: int) -> None:
        """Of none of `count` files."""
        self.starts = np.full(count, _ABSENT, np.int64)
        self.lengths = np.zeros(count, np.int64)

    @property
    def is_there(self) -> npt.NDArray[np.bool_]:
        """The files that have one."""
        found: npt.NDArray[np.bool_] = self.starts != _ABSENT
        return found


class IndexContainers:
    """The containers of the data files of a snapshot."""

    def __init__(
        self, storage: Storage, files: Sequence[PlacedFile], *, enabled: bool, strict: bool
    ) -> None:
        """Read nothing yet; see `PaimonIndexes` for the arguments."""
        self._storage, self._files, self._strict = storage, files, strict
        self._loaded = np.array([not (enabled and one.file.has_index) for one in files], bool)
        self._heads, self._lock = ContainerHeads(), Lock()
        self._whole = [b""] * len(files)
        self._beside: dict[int, Source] = {}
        self._held = 0
        self.damaged = np.zeros(len(files), bool)
        """The files whose container cannot be read."""
        self.places: dict[tuple[str, str], IndexPlaces] = {}
        """By column and index type."""

    def load(self, files: Integers) -> None:
        """Read the heads of the containers of some files."""
        with self._lock:
            missing = files[~self._loaded[files]]
            sizes = self._listed_sizes(missing)
            for start in range(0, len(missing), _ROUND):
                some = missing[start : start + _ROUND]
                placed = [self._files[file] for file in some.tolist()]
                self._enter(some, read_beginnings(self._storage, placed, sizes))
                self._loaded[some] = True

    def _listed_sizes(self, files: Integers) -> dict[str, int]:
        """The sizes of containers beside their files, where it takes less to list their folder.

        A request lists a thousand files, but one has to wait for the other.
        """
        found: dict[str, int] = {}
        if not self._storage.remote or len(files) < _MANY:
            return found
        inside = Counter(one.folder for one in self._files)
        placed = (self._files[file] for file in files.tolist())
        asked = Counter(one.folder for one in placed if one.file.embedded_index is None)
        for folder, count in asked.items():
            if count >= max(_MANY, inside[folder] // _LISTED):
                listing = self._storage.list(folder.removesuffix("/"), suffix=".index")
                found.update(zip(listing.paths.to_pylist(), listing.sizes.tolist(), strict=True))
        return found

    def _enter(self, files: Integers, beginnings: Sequence[Beginning | FormatError | None]) -> None:
        """Take what was read of some files: of all that are alike at once, else one by one."""
        there = [place for place, one in enumerate(beginnings) if isinstance(one, Beginning)]
        known = [one for one in beginnings if isinstance(one, Beginning)]
        is_alike = np.zeros(len(files), bool)
        for like in self._heads.read_like([one.data for one in known], [one.size for one in known]):
            members = np.array(there, np.int64)[like.members]
            is_alike[members] = True
            for number, name in enumerate(like.names):
                self._place(name, files[members], like.starts[:, number], like.lengths[:, number])
        for file, one, is_known in zip(files.tolist(), beginnings, is_alike.tolist(), strict=True):
            if one is not None and (is_known or self._enter_one(file, one)):
                self._keep(file, one)

    def _enter_one(self, file: int, beginning: Beginning | FormatError) -> bool:
        """Take one whose head is its own, or is damaged; whether it can be used."""
        try:
            if isinstance(beginning, FormatError):
                raise beginning
            entries = self._heads.read(beginning.source(self._storage), beginning.data)
        except FormatError as error:
            if self._strict:
                raise
            warnings.warn(f"index not used: {error}", DamagedIndexWarning, stacklevel=4)
            self.damaged[file] = True
            return False
        for entry in entries:
            self._place((entry.column, entry.index_type), file, entry.start, entry.length)
        return True

    def _place(
        self,
        name: tuple[str, str],
        files: Integers | int,
        starts: Integers | int,
        lengths: Integers | int,
    ) -> None:
        """Note where the indexes of a name are, if they are of a type that is read."""
        if name[1] in READERS:
            if name not in self.places:
                self.places[name] = IndexPlaces(len(self._files))
            places = self.places[name]
            places.starts[files], places.lengths[files] = starts, lengths

    def _keep(self, file: int, beginning: Beginning | FormatError) -> None:
        """Keep what was read of a container beside its file, as long as there is room."""
        if isinstance(beginning, FormatError):
            return
        if not beginning.is_beside:
            self._whole[file] = beginning.data
            return
        if self._held + len(beginning.data) > _MOST_HELD:
            self._beside[file] = self._storage.source(beginning.path, beginning.size)
            return
        self._held += len(beginning.data)
        if beginning.is_whole:
            self._whole[file] = beginning.data
        else:
            self._beside[file] = beginning.source(self._storage)

    def entry(self, column: str, index_type: str, file: int) -> Entry:
        """Where an index of a file is, which has one."""
        places = self.places[column, index_type]
        return Entry(column, index_type, int(places.starts[file]), int(places.lengths[file]))

    def source(self, file: int) -> Source:
        """The container of a file, which has one."""
        if file in self._beside:
            return self._beside[file]
        one, whole = self._files[file], self._whole[file]
        if one.file.embedded_index is None:
            return BytesSource(whole, f"{one.folder}{one.file.index_files[0]}")
        return BytesSource(whole, f"{one.path} in its manifest")

    def at_hand(self, column: str, index_type: str, files: Integers) -> list[bytes]:
        """The indexes of files, which have one, as far as they are in memory; else empty."""
        places, whole = self.places[column, index_type], self._whole
        starts, ends = places.starts[files], places.starts[files] + places.lengths[files]
        return [
            whole[file][start:end] if start >= 0 else b""
            for file, start, end in zip(files.tolist(), starts.tolist(), ends.tolist(), strict=True)
        ]
