"""The file indexes of a Paimon table: each data file has one container, embedded or beside it.

Which indexes a container has is only known from its head. So heads are read for those files that
partitions and statistics have left, in a few rounds. The offsets of indexes are kept in columns,
and the bytes of small containers are cached with them, up to a size.

Which indexes new files get is declared by `file-index.*` options, of the table or of a user
(`table_specs`, `given_specs`, `wanted_specs`).
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
from alcid.storage.ranges import CachedSource
from alcid.storage.threads import wait_for_each
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.metadata.options import file_index_options
from alcid.tables.paimon.metadata.schema import TableSchema

_NOTHING: Mapping[str, int] = {}
_HEAD = 16 << 10  # bytes of a container beside its file that are read with its head


class ContainerPrefix(NamedTuple):
    """The first bytes of a container."""

    size: int
    data: bytes
    path: str
    """The index file, or the data file if the container is embedded in its manifest entry."""
    is_beside: bool

    @property
    def is_whole(self) -> bool:
        """Whether these are all bytes of the container."""
        return len(self.data) == self.size

    def source(self, storage: Storage) -> Source:
        """The container, whose first bytes are not read again."""
        if not self.is_beside:
            return BytesSource(self.data, f"{self.path} in its manifest")
        return CachedSource(storage.source(self.path, self.size), [(0, self.data)])


def read_prefixes(
    storage: Storage, files: Sequence[PlacedFile], sizes: Mapping[str, int] = _NOTHING
) -> list[ContainerPrefix | FormatError | None]:
    """The first bytes of the containers of files, in one round of reads; None: there is none."""
    prefixes: list[ContainerPrefix | FormatError | None] = [None] * len(files)
    beside: list[int] = []
    paths: list[str] = []
    for number, placed in enumerate(files):
        embedded, names = placed.file.embedded_index, placed.file.index_files
        if embedded is not None:
            prefixes[number] = ContainerPrefix(
                len(embedded), embedded, placed.path, is_beside=False
            )
        elif len(names) > 1:
            prefixes[number] = FormatError(
                "index files", file=placed.path, found=len(names), expected="one"
            )
        elif names:
            beside.append(number)
            paths.append(placed.folder + names[0])
    starts = storage.read_heads(paths, _HEAD, sizes)
    for number, path, start in zip(beside, paths, starts, strict=True):
        if start is None:
            prefixes[number] = FormatError("its index file is not there", file=path)
        else:
            prefixes[number] = ContainerPrefix(start.size, start.data, path, is_beside=True)
    return prefixes


def index_sources(
    storage: Storage, files: Sequence[PlacedFile]
) -> list[Source | FormatError | None]:
    """The containers of files; None where there is none.

    Of index files only the first bytes are read, in one round.

    Args:
        storage: The folder of the table.
        files: The data files.
    """
    return [
        prefix.source(storage) if isinstance(prefix, ContainerPrefix) else prefix
        for prefix in read_prefixes(storage, files)
    ]


_MANY, _LISTED = 256, 8  # a folder is listed for so many files, if they are 1/8 of it
_ROUND = 4096  # containers whose heads are read at once
_MAX_CACHED = 256 << 20  # bytes of containers beside their files
_ABSENT = -2  # a start that no index has: -1 is that of an empty one


class IndexOffsets:
    """The offsets of the indexes of one column and type in the containers of all files."""

    def __init__(self, count: int) -> None:
        """Start with none of `count` files."""
        self.starts = np.full(count, _ABSENT, np.int64)
        self.lengths = np.zeros(count, np.int64)

    @property
    def has_index(self) -> BoolArray:
        """The files that have one."""
        mask: BoolArray = self.starts != _ABSENT
        return mask


class IndexContainers:
    """The containers of the data files of a snapshot."""

    def __init__(
        self, storage: Storage, files: Sequence[PlacedFile], *, enabled: bool, strict: bool
    ) -> None:
        """See `PaimonIndexes` for the arguments."""
        self._storage, self._files, self._strict = storage, files, strict
        self._loaded = np.array([not (enabled and placed.file.has_index) for placed in files], bool)
        self._heads, self._lock = ContainerHeads(), Lock()
        self._whole = [b""] * len(files)
        self._beside: dict[int, Source] = {}
        self._cached_bytes = 0
        self.damaged = np.zeros(len(files), bool)
        """The files whose container cannot be read."""
        self.offsets: dict[tuple[str, str], IndexOffsets] = {}
        """By column and index type."""

    def load(self, files: Int64Array) -> None:
        """Read the heads of the containers of some files."""
        with self._lock:
            missing = files[~self._loaded[files]]
            sizes = self._listed_sizes(missing)
            for start in range(0, len(missing), _ROUND):
                some = missing[start : start + _ROUND]
                placed = [self._files[file] for file in some.tolist()]
                self._add(some, read_prefixes(self._storage, placed, sizes))
                self._loaded[some] = True

    def _listed_sizes(self, files: Int64Array) -> dict[str, int]:
        """The sizes of index files, where listing their folder takes fewer requests.

        A request lists a thousand files, but the next has to wait for it.
        """
        sizes: dict[str, int] = {}
        if not self._storage.remote or len(files) < _MANY:
            return sizes
        every = Counter(placed.folder for placed in self._files)
        chosen = (self._files[file] for file in files.tolist())
        needed = Counter(placed.folder for placed in chosen if placed.file.embedded_index is None)
        for folder, count in needed.items():
            if count >= max(_MANY, every[folder] // _LISTED):
                listing = self._storage.list(folder.removesuffix("/"), suffix=".index")
                sizes.update(zip(listing.paths.to_pylist(), listing.sizes.tolist(), strict=True))
        return sizes

    def _add(
        self, files: Int64Array, prefixes: Sequence[ContainerPrefix | FormatError | None]
    ) -> None:
        """Add containers: all with equal heads at once, the others one by one."""
        existing = [prefix for prefix in prefixes if isinstance(prefix, ContainerPrefix)]
        numbers = [
            number for number, prefix in enumerate(prefixes) if isinstance(prefix, ContainerPrefix)
        ]
        is_alike = np.zeros(len(files), bool)
        for like in self._heads.read_like(
            [prefix.data for prefix in existing], [prefix.size for prefix in existing]
        ):
            members = np.array(numbers, np.int64)[like.members]
            is_alike[members] = True
            for number, name in enumerate(like.names):
                self._set_offsets(
                    name, files[members], like.starts[:, number], like.lengths[:, number]
                )
        for file, prefix, is_added in zip(files.tolist(), prefixes, is_alike.tolist(), strict=True):
            if prefix is not None and (is_added or self._add_one(file, prefix)):
                self._cache(file, prefix)

    def _add_one(self, file: int, prefix: ContainerPrefix | FormatError) -> bool:
        """Add a container whose head is its own, or damaged; whether it can be used."""
        try:
            if isinstance(prefix, FormatError):
                raise prefix
            entries = self._heads.read(prefix.source(self._storage), prefix.data)
        except FormatError as error:
            if self._strict:
                raise
            warnings.warn(f"index not used: {error}", DamagedIndexWarning, stacklevel=4)
            self.damaged[file] = True
            return False
        for entry in entries:
            self._set_offsets((entry.column, entry.index_type), file, entry.start, entry.length)
        return True

    def _set_offsets(
        self,
        name: tuple[str, str],
        files: Int64Array | int,
        starts: Int64Array | int,
        lengths: Int64Array | int,
    ) -> None:
        """Set the offsets of indexes, if they are of a type that is read."""
        if name[1] in READERS:
            if name not in self.offsets:
                self.offsets[name] = IndexOffsets(len(self._files))
            offsets = self.offsets[name]
            offsets.starts[files], offsets.lengths[files] = starts, lengths

    def _cache(self, file: int, prefix: ContainerPrefix | FormatError) -> None:
        """Cache what was read of an index file, up to a size."""
        if isinstance(prefix, FormatError):
            return
        if not prefix.is_beside:
            self._whole[file] = prefix.data
            return
        if self._cached_bytes + len(prefix.data) > _MAX_CACHED:
            self._beside[file] = self._storage.source(prefix.path, prefix.size)
            return
        self._cached_bytes += len(prefix.data)
        if prefix.is_whole:
            self._whole[file] = prefix.data
        else:
            self._beside[file] = prefix.source(self._storage)

    def entry(self, column: str, index_type: str, file: int) -> Entry:
        """The entry of an index in the container of its file."""
        offsets = self.offsets[column, index_type]
        return Entry(column, index_type, int(offsets.starts[file]), int(offsets.lengths[file]))

    def source(self, file: int) -> Source:
        """The container of a file that has one."""
        if file in self._beside:
            return self._beside[file]
        placed, whole = self._files[file], self._whole[file]
        if placed.file.embedded_index is None:
            return BytesSource(whole, f"{placed.folder}{placed.file.index_files[0]}")
        return BytesSource(whole, f"{placed.path} in its manifest")

    def cached(self, column: str, index_type: str, files: Int64Array) -> list[bytes]:
        """The cached bytes of indexes that files have; empty where not cached."""
        offsets, whole = self.offsets[column, index_type], self._whole
        starts, ends = offsets.starts[files], offsets.starts[files] + offsets.lengths[files]
        return [
            whole[file][start:end] if start >= 0 else b""
            for file, start, end in zip(files.tolist(), starts.tolist(), ends.tolist(), strict=True)
        ]


_BATCH = 4096  # bloom filters are probed at once


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
        """Take the data files; nothing is read yet.

        Args:
            storage: The folder of the table.
            files: The data files.
            enabled: Whether indexes are used at all; without, files seem to have none.
            strict: Raise where a container is damaged, instead of a warning.
            replaced: Files that were replaced since they were indexed.
        """
        self.disabled = "" if enabled else "file-index.read.enabled"
        self._containers = IndexContainers(storage, files, enabled=enabled, strict=strict)
        self._count, self._remote = len(files), storage.remote
        self._replaced = list(replaced)
        self._opened = OpenedIndexes()

    def load(self, files: Int64Array) -> None:
        """Read the heads of the containers of some files."""
        self._containers.load(files)

    def types(self, column: str) -> list[str]:
        """The index types that some file has for a column, those that read the least first."""
        known = self._containers.offsets
        return [index_type for index_type in READERS if (column, index_type) in known]

    def states(self, column: str, index_type: str) -> Int8Array:
        """One of `State` for each file; ABSENT also where it is not loaded, or reads are disabled.

        The option `file-index.read.enabled` disables them.
        """
        states = np.where(self._containers.damaged, State.DAMAGED, State.ABSENT).astype(np.int8)
        offsets = self._containers.offsets.get((column, index_type))
        if offsets is not None:
            states[offsets.has_index] = State.FRESH
            if self._replaced:
                is_replaced = np.zeros(self._count, bool)
                is_replaced[self._replaced] = True
                states[is_replaced & offsets.has_index] = State.STALE
        return states

    def fresh(self, column: str, index_type: str) -> BoolArray:
        """The files that have an index which can be used."""
        fresh: BoolArray = self.states(column, index_type) == State.FRESH
        return fresh

    def lengths(self, column: str, index_type: str) -> Int64Array:
        """The bytes of the index of each file; 0 where there is none."""
        offsets = self._containers.offsets.get((column, index_type))
        return np.zeros(self._count, np.int64) if offsets is None else offsets.lengths

    def probe(
        self, column: str, files: Int64Array, keys: Sequence[Key], key_type: KeyType
    ) -> ProbeResult:
        """Probe the bloom filters of some files, all of which have one, for keys.

        Cached filters are probed all at once, the others one by one.
        """
        damage: dict[int, FormatError] = {}

        def ask(file: int) -> bool:
            try:
                reader = self.reader(column, "bloom-filter", file, key_type)
                return not reader.is_in(keys).skip
            except FormatError as error:
                damage[file] = error
                return True

        may_match, is_known = np.ones((2, len(files)), bool)
        for start in range(0, len(files), _BATCH):
            some = slice(start, start + _BATCH)
            filters = self._containers.cached(column, "bloom-filter", files[some])
            usual = are_usual(filters)
            answers = may_have_any([*compress(filters, usual.tolist())], keys, key_type)
            may_match[some][usual], is_known[some] = answers, usual
        others = files[~is_known].tolist()
        may_match[~is_known] = wait_for_each(ask, others, remote=self._remote)
        return ProbeResult(may_match, damage)

    def without_keys(
        self, column: str, files: Int64Array, keys: Sequence[Key], key_type: KeyType
    ) -> BoolArray:
        """Which files have a cached bitmap with none of the keys.

        A container has no checksum, so that only keys of one width are looked for: see
        `BitmapSearch.contains_none`. Files are never ruled out by text here, but by their reader.
        """
        search = BitmapSearch(keys, key_type)
        bitmaps = self._containers.cached(column, "bitmap", files)
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
