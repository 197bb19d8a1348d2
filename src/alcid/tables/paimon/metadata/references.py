"""References: which files the snapshots, tags, changelogs and branches of a table need.

`clean` asks it about all files that are listed, `expire_snapshots` about those that snapshots named
which are to expire. Of manifests only the names of files are kept, in columns, and manifests are
read in rounds: each file of a table takes less than 400 bytes while it is asked, its name included.

A data file, with its indexes, is needed where it is live: an entry by which it was deleted does not
keep it. A newer Paimon names files in fields that are not known here, in lists, maps or bytes. All
files of Paimon have a UUID in their names: those whose UUID occurs in such a field are needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from alcid._arrays import BoolArray, Int32Array, Int64Array
from alcid.errors import FileGoneError, FormatError
from alcid.storage import Storage
from alcid.storage.threads import run_in_threads
from alcid.tables.paimon.metadata.manifest import (
    ADD,
    ManifestMeta,
    read_manifest_list,
    read_names,
)
from alcid.tables.paimon.metadata.records import uncollected
from alcid.tables.paimon.metadata.snapshot import Snapshot, SnapshotFolder, snapshot_path
from alcid.tables.paimon.metadata.table_state import (
    MANIFEST_FOLDER,
    IndexEntry,
    read_index_manifest,
)

UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
ROUND_BYTES: Final = 32 << 20
"""The bytes of manifests that are in memory at a time, unless a single one has more."""
ROUND_FILES: Final = 256
"""How many manifests are read at a time."""

_ROOT = re.compile(
    r"(branch/branch-[^/]+/)?(snapshot/snapshot-\d+|tag/tag-[^/]+|changelog/changelog-\d+)"
)
_SNAPSHOT = re.compile(r"snapshot/snapshot-\d+")
_CHANGELOG = re.compile(r"(^|/)changelog/")
TAG_FOLDERS: Final = ("tag", "changelog", "branch")
"""The folders of what needs files, beside that of snapshots."""


@dataclass(frozen=True, slots=True)
class Root:
    """A snapshot, tag or changelog, which needs files."""

    path: str
    snapshot: Snapshot

    @property
    def is_snapshot(self) -> bool:
        """Whether it is a snapshot of the main branch."""
        return _SNAPSHOT.fullmatch(self.path) is not None

    @property
    def may_be_incomplete(self) -> bool:
        """Whether files of it may be gone: a changelog outlives its snapshot."""
        return _CHANGELOG.search(self.path) is not None

    @property
    def states(self) -> list[list[str]]:
        """Lists of manifests: those that together are its data files, and that of changes."""
        changes = self.snapshot.changelog_manifest_list
        data = [self.snapshot.base_manifest_list, self.snapshot.delta_manifest_list]
        return [data] if changes is None else [data, [changes]]

    @property
    def lists(self) -> list[str]:
        """All lists of manifests."""
        return [name for names in self.states for name in names]

    @property
    def index_manifests(self) -> list[str]:
        """The index manifest, if there is one."""
        name = self.snapshot.index_manifest
        return [] if name is None else [name]


def read_roots(storage: Storage, folders: Sequence[str] = ("snapshot", *TAG_FOLDERS)) -> list[Root]:
    """All snapshots, tags and changelogs of a table and its branches, or those of some folders.

    Raises:
        FormatError: One of them is damaged.
    """
    paths = [path for folder in folders for path in storage.list(folder).paths.to_pylist()]

    def read(path: str) -> Root | None:
        try:
            source = storage.source(path)
            return Root(path, Snapshot.parse(source.read(0, source.size), file=source.name))
        except FileGoneError:  # expired since
            return None

    chosen = [path for path in paths if _ROOT.fullmatch(path)]
    if "snapshot" in folders:
        chosen += _unlisted(storage, set(chosen))
    return [root for root in run_in_threads(read, chosen, waiting=storage.remote) if root]


def _unlisted(storage: Storage, listed: Set[str]) -> list[str]:
    """Newer snapshots than a listing knows, where listings are behind: their files are needed."""
    latest = SnapshotFolder(storage).latest()
    paths: list[str] = []
    for number in range(0 if latest is None else latest.id, 0, -1):
        path = snapshot_path(number)
        if path in listed or not storage.exists(path):
            break
        paths.append(path)
    return paths


def uuids_in(values: Iterable[Any]) -> Iterator[str]:
    """The UUIDs in texts and bytes, however deep within lists and maps."""
    for value in values:
        match value:
            case str():
                yield from UUID.findall(value)
            case bytes():
                yield from UUID.findall(value.decode("latin-1"))
            case Mapping():
                yield from uuids_in(value.keys())
                yield from uuids_in(value.values())
            case list() | tuple():
                yield from uuids_in(value)


# -- manifests -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class NamedFiles:
    """The files that the entries of a manifest name: data files, and the files beside them."""

    is_added: BoolArray
    """Of each entry, whether it adds its data file or deletes it."""
    identities: Any
    """Of each entry, 16 bytes that stand for the `Identity` of its data file."""
    names: Any
    """The names of the files of all entries: a string array."""
    entries: Int64Array
    """The entry that each name is of."""
    unknown: Mapping[int, frozenset[str]]
    """Of entries with unknown fields, the UUIDs in these."""
    partitions: Any
    """Of each entry, its partition: a binary array with a dictionary."""
    buckets: Int32Array
    sizes: Int64Array
    """Of each entry, the bytes of its data file."""
    external: BoolArray
    """Of each entry, whether its data file lies outside of the table."""

    def __len__(self) -> int:
        return len(self.is_added)


@uncollected()
def read_named_files(data: bytes, *, file: str) -> NamedFiles:
    """Read the names of files from a manifest, and pass over statistics and keys.

    Raises:
        FormatError: It is damaged, or has an entry of an unknown kind.
    """
    kinds, identities, partitions, buckets = list[int](), list[bytes](), list[bytes](), list[int]()
    sizes, external = list[int](), list[bool]()
    names, owners = list[str](), list[int]()
    unknown: dict[int, frozenset[str]] = {}
    try:
        for number, (record, fields) in enumerate(read_names(data, file=file)):
            data_file = record["_FILE"]
            name, extra = data_file["_FILE_NAME"], tuple(data_file["_EXTRA_FILES"])
            path = data_file.get("_EXTERNAL_PATH")
            partition, bucket = record["_PARTITION"], record["_BUCKET"]
            index = data_file.get("_EMBEDDED_FILE_INDEX")
            identity = (partition, bucket, data_file["_LEVEL"], name, extra, index, path)
            kinds.append(record["_KIND"])
            identities.append(xxhash.xxh3_128_digest(repr(identity).encode()))
            partitions.append(partition)
            buckets.append(bucket)
            sizes.append(data_file["_FILE_SIZE"])
            external.append(path is not None)
            names.append(name)
            names.extend(extra)
            owners.extend([number] * (1 + len(extra)))
            if fields:
                unknown[number] = frozenset(uuids_in(field.value for field in fields))
        return NamedFiles(
            np.array(kinds, np.int8) == ADD,
            pa.array(identities, pa.binary(16)),
            pa.array(names, pa.string()),
            np.array(owners, np.int64),
            unknown,
            pa.array(partitions, pa.binary()).dictionary_encode(),
            np.array(buckets, np.int32),
            np.array(sizes, np.int64),
            np.array(external, bool),
        )
    except (KeyError, TypeError, AttributeError, OverflowError, pa.ArrowException) as error:
        raise FormatError(f"damaged manifest: {error!r}", file=file) from None


class MetadataReader:
    """Reads files of the manifest folder in rounds, and checks their sizes."""

    def __init__(self, storage: Storage, sizes: Mapping[str, int] | None = None) -> None:
        """Take the folder of a table, and the sizes of its files by path, if they were listed."""
        self._storage, self._sizes = storage, sizes

    @cached_property
    def _listed(self) -> Mapping[str, int]:
        if self._sizes is not None:
            return self._sizes
        listing = self._storage.list(MANIFEST_FOLDER)
        return dict(zip(listing.paths.to_pylist(), listing.sizes.tolist(), strict=True))

    def exists(self, name: str) -> bool:
        """Whether there is a file of that name in the manifest folder."""
        path = manifest_path(name)
        return path in self._listed or self._storage.exists(path)

    def rounds(self, names: Mapping[str, int | None]) -> Iterator[Iterator[tuple[str, bytes]]]:
        """The contents of files by name, as many at a time as `ROUND_BYTES` allows.

        Args:
            names: Their sizes by name; None: unknown.

        Raises:
            FileGoneError: One of them is not there.
            FormatError: One is of another size.
        """
        batch: list[tuple[str, int]] = []
        total = 0
        for name in sorted(names):
            size = self.size(name, names[name])
            if batch and (total + size > ROUND_BYTES or len(batch) == ROUND_FILES):
                yield self._read(batch)
                batch, total = [], 0
            batch.append((name, size))
            total += size
        if batch:
            yield self._read(batch)

    def _read(self, batch: Sequence[tuple[str, int]]) -> Iterator[tuple[str, bytes]]:
        parts = self._storage.read_many((manifest_path(name), 0, size) for name, size in batch)
        return zip((name for name, _ in batch), parts, strict=True)

    def size(self, name: str, expected: int | None = None) -> int:
        """The size of a file, which must be the expected one: a part of it would name less.

        Raises:
            FileGoneError: It is not there.
            FormatError: It is of another size.
        """
        path = manifest_path(name)
        size = self._listed.get(path)
        if size is None:
            size = self._storage.source(path).size
        if expected is not None and size != expected:
            raise FormatError(
                "size of a manifest",
                file=f"{self._storage.location}/{path}",
                found=size,
                expected=expected,
            )
        return size

    def read_lists(self, names: Mapping[str, int | None]) -> dict[str, list[ManifestMeta]]:
        """The manifest lists of these names; see `rounds`."""
        return {
            name: read_manifest_list(data, file=manifest_path(name))
            for contents in self.rounds(names)
            for name, data in contents
        }

    def read_indexes(self, names: Iterable[str]) -> Iterator[tuple[str, list[IndexEntry]]]:
        """The entries of index manifests, one index manifest after the other; see `rounds`."""
        for contents in self.rounds(dict.fromkeys(names)):
            for name, data in contents:
                yield name, read_index_manifest(data, file=manifest_path(name))

    def read_entries(
        self, sizes: Mapping[str, int | None]
    ) -> Iterator[list[tuple[str, NamedFiles]]]:
        """The names in manifests, those of a round at a time; see `rounds`."""
        for contents in self.rounds(sizes):
            yield [
                (name, read_named_files(data, file=manifest_path(name))) for name, data in contents
            ]


def manifest_path(name: str) -> str:
    """The path of a manifest, manifest list or index manifest."""
    return f"{MANIFEST_FOLDER}/{name}"


def list_sizes(snapshot: Snapshot) -> dict[str, int | None]:
    """The manifest lists of a snapshot, with their sizes as far as it says them."""
    sizes = {
        snapshot.base_manifest_list: snapshot.base_manifest_list_size,
        snapshot.delta_manifest_list: snapshot.delta_manifest_list_size,
    }
    if snapshot.changelog_manifest_list is not None:
        sizes[snapshot.changelog_manifest_list] = None
    return sizes


# -- what is needed --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Manifest:
    """The entries of a manifest that name a file which is asked for, or have unknown fields."""

    is_added: BoolArray
    identities: Any


class _Liveness:
    """The entries of all manifests, as far as they are about files that are asked for."""

    def __init__(self, names: Any) -> None:
        self._names = names
        self._manifests: dict[str, _Manifest] = {}
        self._pairs: list[tuple[Any, Int64Array]] = []  # identities, and numbers of names
        self._unknown: dict[bytes, frozenset[str]] = {}

    def add(self, manifests: Sequence[tuple[str, NamedFiles]]) -> None:
        """Add the manifests of a round."""
        texts = pa.chunked_array([files.names for _, files in manifests], pa.string())
        numbers = pc.index_in(texts.combine_chunks(), value_set=self._names)
        start = 0
        for name, files in manifests:
            own = numbers.slice(start, len(files.names))
            start += len(files.names)
            is_asked = pc.is_valid(own).to_numpy(zero_copy_only=False)
            keep = np.zeros(len(files), bool)
            keep[files.entries[is_asked]] = True
            keep[list(files.unknown)] = True
            self._manifests[name] = _Manifest(
                files.is_added[keep], files.identities.filter(pa.array(keep))
            )
            if is_asked.any():
                asked = pa.array(files.entries[is_asked])
                chosen = own.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
                self._pairs.append((files.identities.take(asked), chosen))
            for entry, uuids in files.unknown.items():
                identity = files.identities[entry].as_py()
                self._unknown[identity] = self._unknown.get(identity, frozenset()) | uuids

    def live(self, states: Iterable[Sequence[str]]) -> tuple[BoolArray, frozenset[str]]:
        """The files that are live in some state, and the UUIDs that their unknown fields name.

        Args:
            states: Each the manifests of a state; manifests that were not added are passed over.
        """
        needed = np.zeros(len(self._names), bool)
        if not self._manifests:
            return needed, frozenset()
        dictionary, numbers = self._numbered()
        live = np.zeros(len(dictionary), bool)
        for state in states:
            live |= _live_in(state, self._manifests, numbers, len(dictionary))
        if self._pairs:
            identities = pa.chunked_array([part for part, _ in self._pairs]).combine_chunks()
            owners = pc.index_in(identities, value_set=dictionary).to_numpy(zero_copy_only=False)
            named = np.concatenate([part for _, part in self._pairs])
            needed[named[live[owners]]] = True
        uuids: frozenset[str] = frozenset()
        if self._unknown:
            some = pa.array(list(self._unknown), pa.binary(16))
            for number, part in zip(
                pc.index_in(some, value_set=dictionary).to_pylist(),
                self._unknown.values(),
                strict=True,
            ):
                uuids |= part if live[number] else frozenset()
        return needed, uuids

    def _numbered(self) -> tuple[Any, dict[str, Int64Array]]:
        """All identities, and the numbers of those of each manifest."""
        every = [manifest.identities for manifest in self._manifests.values()]
        encoded = pa.chunked_array(every, pa.binary(16)).combine_chunks().dictionary_encode()
        numbers = encoded.indices.to_numpy(zero_copy_only=False)
        ends = np.cumsum([len(part) for part in every])
        parts = np.split(numbers, ends[:-1])
        return encoded.dictionary, dict(zip(self._manifests, parts, strict=True))


def _live_in(
    state: Iterable[str],
    manifests: Mapping[str, _Manifest],
    numbers: Mapping[str, Int64Array],
    count: int,
) -> BoolArray:
    """Which identities are live: added in one of the manifests, and deleted in none."""
    live = np.zeros(count, bool)
    present = [name for name in state if name in manifests]
    for name in present:
        live[numbers[name][manifests[name].is_added]] = True
    for name in present:
        live[numbers[name][~manifests[name].is_added]] = False
    return live


def needed_names(
    storage: Storage,
    roots: Sequence[Root],
    names: Any,
    sizes: Mapping[str, int] | None = None,
) -> BoolArray:
    """Which files some of the roots need, by their names, which are unique in a table.

    Args:
        storage: The folder of the table.
        roots: What needs files.
        names: The names of the files that are asked for: a string array.
        sizes: Of the files of the manifest folder by path, if they were listed.

    Raises:
        FormatError: Something that names files is damaged, or gone, so that it is not known which
            of them are needed.
        FileGoneError: A root is gone by now, and with it what it named.
    """
    try:
        return _needed_names(MetadataReader(storage, sizes), roots, names)
    except FileGoneError as error:
        if all(storage.exists(root.path) for root in roots):
            problem = "a snapshot names it, and it is not there"
            raise FormatError(problem, file=error.file) from None
        raise


def _needed_names(reader: MetadataReader, roots: Sequence[Root], names: Any) -> BoolArray:
    encoded = pa.chunked_array([names], pa.string()).combine_chunks().dictionary_encode()
    listed = [(root, list_sizes(root.snapshot)) for root in roots]
    lists = reader.read_lists(_present(reader, listed))
    metas = [
        (root, {meta.name: meta.size for name in root.lists for meta in lists.get(name, ())})
        for root in roots
    ]
    sizes = _present(reader, metas)
    liveness = _Liveness(encoded.dictionary)
    for manifests in reader.read_entries(sizes):
        liveness.add(manifests)
    states = (
        [meta.name for name in state for meta in lists.get(name, ())]
        for root in roots
        for state in root.states
    )
    needed, live_uuids = liveness.live(states)
    texts, uuids = set[str](), set[str](live_uuids)
    texts.update(lists, sizes)
    for root in roots:
        snapshot = root.snapshot
        texts.update([] if snapshot.statistics is None else [snapshot.statistics])
        uuids.update(uuids_in([snapshot.extra, snapshot.properties]))
    for metas_of_list in lists.values():
        for meta in metas_of_list:
            texts.update(meta.extra_files)
            others = [field.value for field in meta.unknown if field.value != meta.extra_files]
            uuids.update(uuids_in(others))
    indexes = _present(reader, [(root, dict.fromkeys(root.index_manifests)) for root in roots])
    texts.update(indexes)
    for _, entries in reader.read_indexes(indexes):
        for entry in entries:
            texts.add(entry.name)
            if entry.external_path is not None:
                texts.add(entry.external_path.rpartition("/")[2])
            if entry.global_index is not None or entry.unknown:
                values = [entry.global_index, *(field.value for field in entry.unknown)]
                uuids.update(uuids_in(values))
    named = pc.is_in(encoded.dictionary, value_set=pa.array(sorted(texts), pa.string()))
    needed |= named.to_numpy(zero_copy_only=False)
    needed |= _has_uuid(encoded.dictionary, uuids)
    taken: BoolArray = needed[encoded.indices.to_numpy(zero_copy_only=False)]
    return taken


def _present(
    reader: MetadataReader, roots: Iterable[tuple[Root, Mapping[str, int | None]]]
) -> dict[str, int | None]:
    """The files that roots name, and their sizes; what only a changelog names may be gone."""
    needed: dict[str, int | None] = {}
    others: dict[str, int | None] = {}
    for root, sizes in roots:
        (others if root.may_be_incomplete else needed).update(sizes)
    return {name: size for name, size in others.items() if reader.exists(name)} | needed


def _has_uuid(names: Any, uuids: Set[str]) -> BoolArray:
    """Which names have one of some UUIDs in them."""
    has = np.zeros(len(names), bool)
    if not uuids or not len(names):
        return has
    pattern = f"(?P<first>{UUID.pattern})"
    first = pc.struct_field(pc.extract_regex(names, pattern), "first")
    wanted = pa.array(sorted(uuids), pa.string())
    has |= pc.is_in(first, value_set=wanted).to_numpy(zero_copy_only=False)
    # Few names have a second one, as `.data-<uuid>.parquet.<uuid>.tmp`.
    several = pc.match_substring_regex(names, f"{UUID.pattern}.*{UUID.pattern}")
    for number in np.flatnonzero(several.to_numpy(zero_copy_only=False)).tolist():
        has[number] |= not uuids.isdisjoint(UUID.findall(names[number].as_py()))
    return has
