"""The file indexes of a Paimon table, as planning asks for them.

The first bytes of file indexes: of each data file a container, in the manifest or beside it.

The containers of file indexes: of each data file one, in the manifest or beside the file.

Which indexes a container has is only known when its head was read. So heads are read for those
files that partitions and statistics have left, in a few rounds. What is found is kept in columns,
and the bytes of small containers with it, up to a size.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from threading import Lock
from typing import NamedTuple

import numpy as np

from alcid._arrays import BoolArray, Int8Array, Int64Array
from alcid.errors import (
    AlcidWarning,
    ColumnError,
    DamagedIndexWarning,
    FormatError,
    UnsupportedError,
)
from alcid.formats.file_index import READERS
from alcid.formats.file_index.bitmap_search import BitmapSearch
from alcid.formats.file_index.bloom_filter import are_usual, may_have_any
from alcid.formats.file_index.container import ContainerHeads, Entry
from alcid.formats.file_index.keys import Key, KeyType
from alcid.formats.file_index.reader import EmptyReader, IndexReader
from alcid.formats.source import BytesSource, Section, Source
from alcid.index.bundle import State
from alcid.index.bundle.probing import ProbeResult
from alcid.index.opened import OpenedIndexes
from alcid.options import ColumnNames, IndexSpec, OptionValue, parse_options
from alcid.storage import Storage
from alcid.storage.cached import CachedSource
from alcid.storage.threads import wait_for_each
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.metadata.options import file_index_options
from alcid.tables.paimon.metadata.schema import TableSchema

__all__ = [
    "Beginning",
    "IndexContainers",
    "IndexPlaces",
    "PaimonIndexes",
    "given_specs",
    "index_sources",
    "read_beginnings",
    "table_specs",
    "wanted_specs",
]

_NOTHING: Mapping[str, int] = {}
_HEAD = 16 << 10  # bytes of a container beside its file that are read with its head


class Beginning(NamedTuple):
    """The first bytes of a container."""

    size: int
    data: bytes
    path: str
    """Of the file that it is, or of the data file in whose manifest it is."""
    is_beside: bool

    @property
    def is_whole(self) -> bool:
        """Whether that is all of it."""
        return len(self.data) == self.size

    def source(self, storage: Storage) -> Source:
        """The container, of which these bytes are not read again."""
        if not self.is_beside:
            return BytesSource(self.data, f"{self.path} in its manifest")
        return CachedSource(storage.source(self.path, self.size), [(0, self.data)])


def read_beginnings(
    storage: Storage, files: Sequence[PlacedFile], sizes: Mapping[str, int] = _NOTHING
) -> list[Beginning | FormatError | None]:
    """The first bytes of the containers of files, in one round of reads; None: there is none."""
    found: list[Beginning | FormatError | None] = [None] * len(files)
    beside: list[int] = []
    paths: list[str] = []
    for place, one in enumerate(files):
        file = one.entry.file
        embedded, names = file.embedded_index, file.index_files
        if embedded is not None:
            found[place] = Beginning(len(embedded), embedded, one.path, is_beside=False)
        elif len(names) > 1:
            found[place] = FormatError(
                "index files", file=one.path, found=len(names), expected="one"
            )
        elif names:
            beside.append(place)
            paths.append(one.folder + names[0])
    starts = storage.read_heads(paths, _HEAD, sizes)
    for place, path, start in zip(beside, paths, starts, strict=True):
        if start is None:
            found[place] = FormatError("its index file is not there", file=path)
        else:
            found[place] = Beginning(start.size, start.data, path, is_beside=True)
    return found


def index_sources(
    storage: Storage, files: Sequence[PlacedFile]
) -> list[Source | FormatError | None]:
    """The containers of files; None where there is none.

    Of a file beside the data nothing is read but its first bytes, all of them in one round.

    Args:
        storage: The folder of the table.
        files: The data files.
    """
    return [
        one.source(storage) if isinstance(one, Beginning) else one
        for one in read_beginnings(storage, files)
    ]


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
    def is_there(self) -> BoolArray:
        """The files that have one."""
        found: BoolArray = self.starts != _ABSENT
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

    def load(self, files: Int64Array) -> None:
        """Read the heads of the containers of some files."""
        with self._lock:
            missing = files[~self._loaded[files]]
            sizes = self._listed_sizes(missing)
            for start in range(0, len(missing), _ROUND):
                some = missing[start : start + _ROUND]
                placed = [self._files[file] for file in some.tolist()]
                self._enter(some, read_beginnings(self._storage, placed, sizes))
                self._loaded[some] = True

    def _listed_sizes(self, files: Int64Array) -> dict[str, int]:
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

    def _enter(
        self, files: Int64Array, beginnings: Sequence[Beginning | FormatError | None]
    ) -> None:
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
        files: Int64Array | int,
        starts: Int64Array | int,
        lengths: Int64Array | int,
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

    def at_hand(self, column: str, index_type: str, files: Int64Array) -> list[bytes]:
        """The indexes of files, which have one, as far as they are in memory; else empty."""
        places, whole = self.places[column, index_type], self._whole
        starts, ends = places.starts[files], places.starts[files] + places.lengths[files]
        return [
            whole[file][start:end] if start >= 0 else b""
            for file, start, end in zip(files.tolist(), starts.tolist(), ends.tolist(), strict=True)
        ]


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
        self._opened = OpenedIndexes()

    def load(self, files: Int64Array) -> None:
        """Read the heads of the containers of some files."""
        self._containers.load(files)

    def types(self, column: str) -> list[str]:
        """The index types that some file has for a column, those that read the least first."""
        known = self._containers.places
        return [index_type for index_type in READERS if (column, index_type) in known]

    def states(self, column: str, index_type: str) -> Int8Array:
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

    def fresh(self, column: str, index_type: str) -> BoolArray:
        """The files that have one which can be used."""
        fresh: BoolArray = self.states(column, index_type) == State.FRESH
        return fresh

    def lengths(self, column: str, index_type: str) -> Int64Array:
        """The bytes of the index of each file; 0 where there is none."""
        places = self._containers.places.get((column, index_type))
        return np.zeros(self._count, np.int64) if places is None else places.lengths

    def probe(
        self, column: str, files: Int64Array, keys: Sequence[Key], key_type: KeyType
    ) -> ProbeResult:
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
        return ProbeResult(may_match, damage)

    def without_keys(
        self, column: str, files: Int64Array, keys: Sequence[Key], key_type: KeyType
    ) -> BoolArray:
        """Which files have a bitmap at hand with none of the keys; a container has no checksum."""
        search = BitmapSearch(keys, key_type)
        bitmaps = self._containers.at_hand(column, "bitmap", files)
        return np.fromiter(map(search.contains_none, bitmaps), bool, len(bitmaps))

    def reader(self, column: str, index_type: str, file: int, key_type: KeyType) -> IndexReader:
        """The index of a file that has a fresh one.

        Raises:
            FormatError: It is damaged; asking it may raise too.
        """
        return self._opened.get(
            (column, index_type, file),
            lambda: (self._open(column, index_type, file, key_type), None),
        )

    def _open(self, column: str, index_type: str, file: int, key_type: KeyType) -> IndexReader:
        entry = self._containers.entry(column, index_type, file)
        if entry.is_empty:
            return EmptyReader()
        section = Section(self._containers.source(file), entry.start, entry.length)
        return READERS[index_type](section, key_type)


def table_specs(schema: TableSchema) -> tuple[list[IndexSpec], list[str]]:
    """The indexes that the options of a table declare, and the problems with these options.

    Paimon ignores options that it does not know: report them to the user, and build the rest.

    >>> from alcid.types import DataType
    >>> options = {"file-index.bitmap.columns": "ID,no", "file-index.bitmap.version": "1"}
    >>> specs, problems = table_specs(TableSchema.of([("id", DataType("INT"))], [], [], options))
    >>> [(spec.column, spec.index_type) for spec in specs]
    [('id', 'bitmap')]
    >>> problems
    ['file-index.bitmap.version: use file-index.bitmap.<column>.version',
     'column no: not in the table']
    """
    usable, problems = file_index_options(schema.options)
    specs, names = [], ColumnNames(schema.names)
    for spec in parse_options(usable) if usable else ():
        try:
            specs.append(_spelled(spec, names))
        except (ColumnError, UnsupportedError) as error:
            problems.append(str(error))
    return specs, list(dict.fromkeys(problems))


def given_specs(schema: TableSchema, options: Mapping[str, OptionValue]) -> list[IndexSpec]:
    """The indexes that a user's options declare.

    Raises:
        OptionError: An invalid option, or none that declares an index.
        ColumnError: The table has no such column.
    """
    names = ColumnNames(schema.names)
    return [_spelled(spec, names) for spec in parse_options(options)]


def _spelled(spec: IndexSpec, names: ColumnNames) -> IndexSpec:
    """An index with its column spelled as in the table."""
    name = names.find(spec.top_level)
    return replace(spec, column=name + spec.column[len(name) :])


def wanted_specs(
    schema: TableSchema, options: Mapping[str, OptionValue] | None
) -> tuple[IndexSpec, ...]:
    """The indexes of new files: those of a user's options, or by default of the table's."""
    if options is not None:
        return tuple(given_specs(schema, options)) if options else ()
    specs, problems = table_specs(schema)
    for problem in problems:
        warnings.warn(f"no index: {problem}", AlcidWarning, stacklevel=2)
    return tuple(specs)
