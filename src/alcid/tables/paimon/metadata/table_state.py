"""A table at one snapshot: its live data files and index files, from the snapshot's manifests.

`manifest/index-manifest-*` lists the index files of a snapshot, all of them: deletion vectors and
hash indexes. A snapshot whose commit changed none of them has the file of the one before. Entries
of unknown index types are kept as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVectorRange
from alcid.storage import Storage
from alcid.tables.paimon.metadata.manifest import (
    ADD,
    BucketId,
    Identity,
    ManifestEntry,
    ManifestMeta,
    read_manifest,
    read_manifest_list,
)
from alcid.tables.paimon.metadata.records import (
    UnknownField,
    nullable,
    put_values,
    read_as,
    record_schema,
    uncollected,
    write_records,
)
from alcid.tables.paimon.metadata.snapshot import Snapshot

DELETION_VECTORS, HASH = "DELETION_VECTORS", "HASH"

_VERSION = 1
_RANGE = record_schema(
    "__DELETIONS_VECTORS_RANGES",
    [("f0", "string"), ("f1", "int"), ("f2", "int"), nullable("_CARDINALITY", "long")],
)
_GLOBAL = record_schema(
    "__GLOBAL_INDEX",
    [
        ("_ROW_RANGE_START", "long"),
        ("_ROW_RANGE_END", "long"),
        ("_INDEX_FIELD_ID", "int"),
        nullable("_EXTRA_FIELD_IDS", {"type": "array", "items": "int"}),
        nullable("_INDEX_META", "bytes"),
        nullable("_SOURCE_META", "bytes"),
    ],
)
_SCHEMA = record_schema(
    "",
    [
        ("_VERSION", "int"),
        ("_KIND", "int"),
        ("_PARTITION", "bytes"),
        ("_BUCKET", "int"),
        ("_INDEX_TYPE", "string"),
        ("_FILE_NAME", "string"),
        ("_FILE_SIZE", "long"),
        ("_ROW_COUNT", "long"),
        nullable("_DELETIONS_VECTORS_RANGES", {"type": "array", "items": ["null", _RANGE]}),
        nullable("_EXTERNAL_PATH", "string"),
        nullable("_GLOBAL_INDEX", _GLOBAL),
    ],
)


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """An index file of a bucket."""

    partition: bytes
    bucket: int
    index_type: str
    name: str
    size: int
    rows: int
    """Hashes, or data files that have a vector."""
    ranges: tuple[DeletionVectorRange, ...] | None = None
    """In a file of deletion vectors, the range of each of them."""
    external_path: str | None = None
    global_index: Mapping[str, Any] | None = None
    """The metadata of a global index, which is kept as it is."""
    unknown: tuple[UnknownField, ...] = ()
    """Fields of a newer Paimon, which are written again with the entry."""

    @property
    def bucket_id(self) -> BucketId:
        """Its partition and bucket."""
        return self.partition, self.bucket


def read_index_manifest(data: bytes, *, file: str) -> list[IndexEntry]:
    """The entries of an index manifest.

    Raises:
        FormatError: It is damaged.
    """
    return read_as(_entry, data, schema=_SCHEMA, version=_VERSION, what="index manifest", file=file)


def write_index_manifest(entries: Iterable[IndexEntry], compression: str) -> bytes:
    """An index manifest."""
    entries = list(entries)
    unknown = [entry.unknown for entry in entries]
    return write_records(_SCHEMA, map(_record, entries), compression, unknown)


def _entry(record: Mapping[str, Any], unknown: tuple[UnknownField, ...], file: str) -> IndexEntry:
    if record["_KIND"] != ADD:
        raise FormatError("kind of an index entry", file=file, found=record["_KIND"], expected=ADD)
    ranges, index = record.get("_DELETIONS_VECTORS_RANGES"), record.get("_GLOBAL_INDEX")
    return IndexEntry(
        record["_PARTITION"],
        record["_BUCKET"],
        record["_INDEX_TYPE"],
        record["_FILE_NAME"],
        record["_FILE_SIZE"],
        record["_ROW_COUNT"],
        None
        if ranges is None
        else tuple(
            DeletionVectorRange(item["f0"], item["f1"], item["f2"], item.get("_CARDINALITY"))
            for item in ranges
        ),
        record.get("_EXTERNAL_PATH"),
        None
        if index is None
        else {key: value for key, value in index.items() if value is not None},
        unknown,
    )


def _record(entry: IndexEntry) -> dict[str, Any]:
    ranges = None
    if entry.ranges is not None:
        ranges = [
            {
                "f0": vector.data_file,
                "f1": vector.offset,
                "f2": vector.length,
                "_CARDINALITY": vector.cardinality,
            }
            for vector in entry.ranges
        ]
    record = {
        "_VERSION": _VERSION,
        "_KIND": ADD,
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_INDEX_TYPE": entry.index_type,
        "_FILE_NAME": entry.name,
        "_FILE_SIZE": entry.size,
        "_ROW_COUNT": entry.rows,
        "_DELETIONS_VECTORS_RANGES": ranges,
        "_EXTERNAL_PATH": entry.external_path,
        "_GLOBAL_INDEX": entry.global_index and {**entry.global_index},
    }
    return put_values(record, entry.unknown)


MANIFEST_FOLDER = "manifest"


class TableState:
    """The manifests of a snapshot; each part is read when it is first needed.

    Reading raises FileGoneError where the snapshot has expired, and FormatError where a file is
    damaged.
    """

    def __init__(self, storage: Storage, snapshot: Snapshot | None) -> None:
        """Take a snapshot; None: before the first commit."""
        self._storage, self.snapshot = storage, snapshot
        self._cached: dict[str, list[ManifestEntry]] = {}

    def at(self, snapshot: Snapshot | None) -> TableState:
        """The same table at another snapshot: manifests that both have are not read again."""
        if snapshot == self.snapshot:
            return self
        other = TableState(self._storage, snapshot)
        other._cached = self._cached
        return other

    @cached_property
    def manifests(self) -> tuple[ManifestMeta, ...]:
        """The manifests, the oldest first."""
        if self.snapshot is None:
            return ()
        base = self.snapshot.base_manifest_list, self.snapshot.base_manifest_list_size
        return (*self._list(*base), *self.delta)

    @cached_property
    def delta(self) -> tuple[ManifestMeta, ...]:
        """The manifests that the commit of this snapshot added."""
        if self.snapshot is None:
            return ()
        return self._list(self.snapshot.delta_manifest_list, self.snapshot.delta_manifest_list_size)

    @cached_property
    def entries(self) -> tuple[ManifestEntry, ...]:
        """The live data files, in the order in which they were added."""
        added, deleted = self._all
        return tuple(entry for identity, entry in added.items() if identity not in deleted)

    @property
    def deleted(self) -> Set[Identity]:
        """The files that must not be added again, as they would stay deleted."""
        return self._all[1]

    @cached_property
    def live(self) -> dict[Identity, ManifestEntry]:
        """The live data files by identity."""
        return {entry.identity: entry for entry in self.entries}

    @cached_property
    def indexes(self) -> tuple[IndexEntry, ...]:
        """The live index files."""
        if self.snapshot is None or self.snapshot.index_manifest is None:
            return ()
        name = self.snapshot.index_manifest
        (data,) = self._read([(name, None)])
        return tuple(read_index_manifest(data, file=f"{MANIFEST_FOLDER}/{name}"))

    @uncollected()
    def read(self, manifests: Sequence[ManifestMeta]) -> list[list[ManifestEntry]]:
        """The entries of some manifests; those that are not cached are read in one round."""
        missing = [meta for meta in manifests if meta.name not in self._cached]
        parts = self._read([(meta.name, meta.size) for meta in missing])
        new = {
            meta.name: read_manifest(data, file=f"{MANIFEST_FOLDER}/{meta.name}")
            for meta, data in zip(missing, parts, strict=True)
        }
        return [new[m.name] if m.name in new else self._cached[m.name] for m in manifests]

    @cached_property
    @uncollected()
    def _all(self) -> tuple[dict[Identity, ManifestEntry], set[Identity]]:
        added: dict[Identity, ManifestEntry] = {}
        deleted: set[Identity] = set()
        parts = self.read(self.manifests)
        self._cached = {meta.name: part for meta, part in zip(self.manifests, parts, strict=True)}
        for entries in parts:
            for entry in entries:
                if entry.kind == ADD:
                    added[entry.identity] = entry
                else:
                    deleted.add(entry.identity)
        return added, deleted

    def _list(self, name: str, size: int | None) -> tuple[ManifestMeta, ...]:
        (data,) = self._read([(name, size)])
        return tuple(read_manifest_list(data, file=f"{MANIFEST_FOLDER}/{name}"))

    def _read(self, files: Sequence[tuple[str, int | None]]) -> list[bytes]:
        """Whole files of the manifest folder."""
        paths = [f"{MANIFEST_FOLDER}/{name}" for name, _ in files]
        sources = [
            self._storage.source(path, size) for path, (_, size) in zip(paths, files, strict=True)
        ]
        return self._storage.read_many(
            (path, 0, source.size) for path, source in zip(paths, sources, strict=True)
        )
