"""The containers of file indexes: of each data file one, in the manifest or beside the file.

Which indexes a container has is only known when its head was read. So heads are read for those
files that partitions and statistics have left, in a few rounds. What is found is kept in columns,
and the bytes of small containers with it, up to a size.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from threading import Lock

import numpy as np
import numpy.typing as npt

from alcid.bundle.kept import KeptSource
from alcid.errors import DamagedIndexWarning, FileGoneError, FormatError
from alcid.formats.file_index import READERS
from alcid.formats.file_index.container import Entry
from alcid.formats.file_index.container_heads import ContainerHeads
from alcid.formats.source import BytesSource, Range, Source
from alcid.plan.threads import wait_for_each
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile

__all__ = ["IndexContainers", "IndexPlaces", "index_sources"]

Integers = npt.NDArray[np.int64]

_NOTHING: Mapping[str, int] = {}
_HEAD = 16 << 10  # bytes of a sidecar that are read with its head
_MANY, _LISTED = 256, 8  # files of a folder, and one of so many, for which all of it is listed
_ROUND = 4096  # containers whose heads are in memory together
_MOST_HELD = 256 << 20  # bytes of containers beside their files
_ABSENT = -2  # a start that none has: -1 is that of an index of which nothing is written


def index_sources(
    storage: Storage, files: Sequence[PlacedFile], sizes: Mapping[str, int] = _NOTHING
) -> list[Source | FormatError | None]:
    """The containers of files; None where there is none.

    Of a file beside the data nothing is read but its first bytes, all of them in one round.

    Args:
        storage: The folder of the table.
        files: The data files.
        sizes: Of files beside the data, by their paths, as far as they are known.
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
        beside, _kept(storage, [path for _, path in beside], sizes), strict=True
    ):
        found[place] = source
    return found


def _kept(
    storage: Storage, paths: Sequence[str], sizes: Mapping[str, int]
) -> list[Source | FormatError]:
    """Files whose first bytes are held."""

    def open_one(path: str) -> Source | FormatError:
        try:
            source = KeptSource(storage.source(path, sizes.get(path)))
        except FileGoneError:
            return FormatError("its index file is not there", file=path)
        return source

    sources = wait_for_each(open_one, paths, remote=storage.remote)
    kept = [one for one in sources if isinstance(one, KeptSource)]
    heads = storage.read_ranges([Range(one.whole, 0, min(one.size, _HEAD)) for one in kept])
    for one, head in zip(kept, heads, strict=True):
        one.hold(0, head)
    return sources


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
        self._whole: dict[int, bytes] = {}
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
                some = missing[start : start + _ROUND].tolist()
                placed = [self._files[file] for file in some]
                sources = index_sources(self._storage, placed, sizes)
                for file, source in zip(some, sources, strict=True):
                    self._enter(file, source)
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

    def _enter(self, file: int, source: Source | FormatError | None) -> None:
        if source is None:
            return
        try:
            if isinstance(source, FormatError):
                raise source
            begin = source.read(0, min(source.size, _HEAD))
            entries = self._heads.read(source, begin)
        except FormatError as error:
            if self._strict:
                raise
            warnings.warn(f"index not used: {error}", DamagedIndexWarning, stacklevel=3)
            self.damaged[file] = True
            return
        if isinstance(source, KeptSource):
            self._keep(file, source, begin)
        for entry in entries:
            if entry.index_type in READERS:
                name = entry.column, entry.index_type
                if name not in self.places:
                    self.places[name] = IndexPlaces(len(self._files))
                places = self.places[name]
                places.starts[file], places.lengths[file] = entry.start, entry.length

    def _keep(self, file: int, source: KeptSource, begin: bytes) -> None:
        """Keep what was read of a container beside its file, as long as there is room."""
        if self._held + len(begin) > _MOST_HELD:
            self._beside[file] = source.whole
            return
        self._held += len(begin)
        if len(begin) == source.size:
            self._whole[file] = begin
        else:
            self._beside[file] = source

    def entry(self, column: str, index_type: str, file: int) -> Entry:
        """Where an index of a file is, which has one."""
        places = self.places[column, index_type]
        return Entry(column, index_type, int(places.starts[file]), int(places.lengths[file]))

    def source(self, file: int) -> Source:
        """The container of a file, which has one."""
        if file in self._beside:
            return self._beside[file]
        one = self._files[file]
        if file in self._whole:
            return BytesSource(self._whole[file], f"{one.folder}{one.file.index_files[0]}")
        return BytesSource(one.file.embedded_index or b"", f"{one.path} in its manifest")

    def at_hand(self, column: str, index_type: str, files: Integers) -> list[bytes]:
        """The indexes of files, which have one, as far as they are in memory; else empty."""
        places = self.places[column, index_type]
        starts, ends = places.starts[files], places.starts[files] + places.lengths[files]
        found = []
        for file, start, end in zip(files.tolist(), starts.tolist(), ends.tolist(), strict=True):
            whole = self._files[file].file.embedded_index or self._whole.get(file, b"")
            found.append(whole[start:end] if start >= 0 else b"")
        return found
