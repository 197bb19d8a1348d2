"""`manifest/manifest-*` and `manifest/manifest-list-*`: the data files of a snapshot.

An entry of a manifest adds (ADD) or deletes (DELETE) a data file. A file is live if it is added and
nowhere deleted, whatever the order. So a deleted entry must never be added again as it was: the
file would stay deleted. A manifest list has the manifests of a snapshot, with what each spans.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeAlias

from alcid.errors import FormatError
from alcid.formats.avro import read_records
from alcid.tables.paimon.metadata.records import (
    FieldFinder,
    UnknownField,
    is_orc,
    nullable,
    put_values,
    read_as,
    read_orc,
    record_schema,
    write_records,
)
from alcid.tables.paimon.metadata.statistics import NO_STATS, RowStats

ADD, DELETE = 0, 1

_VERSION = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STATS_FIELDS: Sequence[tuple[str, Any] | dict[str, Any]] = [
    ("_MIN_VALUES", "bytes"),
    ("_MAX_VALUES", "bytes"),
    nullable("_NULL_COUNTS", {"type": "array", "items": ["null", "long"]}),
]
_TEXTS = {"type": "array", "items": "string"}
# Field of the dataclass, field of the record, its type, and whether it may be null.
_FILE: tuple[tuple[str, str, Any, bool], ...] = (
    ("name", "_FILE_NAME", "string", False),
    ("size", "_FILE_SIZE", "long", False),
    ("rows", "_ROW_COUNT", "long", False),
    ("min_key", "_MIN_KEY", "bytes", False),
    ("max_key", "_MAX_KEY", "bytes", False),
    ("key_stats", "_KEY_STATS", record_schema("__FILE__KEY_STATS", STATS_FIELDS), False),
    ("value_stats", "_VALUE_STATS", record_schema("__FILE__VALUE_STATS", STATS_FIELDS), False),
    ("min_sequence", "_MIN_SEQUENCE_NUMBER", "long", False),
    ("max_sequence", "_MAX_SEQUENCE_NUMBER", "long", False),
    ("schema_id", "_SCHEMA_ID", "long", False),
    ("level", "_LEVEL", "int", False),
    ("extra_files", "_EXTRA_FILES", _TEXTS, False),
    ("creation_time", "_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}, True),
    ("delete_rows", "_DELETE_ROW_COUNT", "long", True),
    ("embedded_index", "_EMBEDDED_FILE_INDEX", "bytes", True),
    ("source", "_FILE_SOURCE", "int", True),
    ("stats_columns", "_VALUE_STATS_COLS", _TEXTS, True),
    ("external_path", "_EXTERNAL_PATH", "string", True),
    ("first_row_id", "_FIRST_ROW_ID", "long", True),
    ("write_columns", "_WRITE_COLS", _TEXTS, True),
)
_CHECKED: tuple[tuple[str, type], ...] = (
    ("_FILE_NAME", str),
    ("_FILE_SIZE", int),
    ("_ROW_COUNT", int),
    ("_SCHEMA_ID", int),
    ("_LEVEL", int),
)
_SCHEMA = record_schema(
    "",
    [
        ("_VERSION", "int"),
        ("_KIND", "int"),
        ("_PARTITION", "bytes"),
        ("_BUCKET", "int"),
        ("_TOTAL_BUCKETS", "int"),
        (
            "_FILE",
            record_schema(
                "__FILE",
                [nullable(name, kind) if null else (name, kind) for _, name, kind, null in _FILE],
            ),
        ),
    ],
)

_OF_ENTRY = frozenset({"_VERSION", "_KIND", "_PARTITION", "_BUCKET", "_FILE"})
_OF_FILE = frozenset(
    {
        *("_FILE_NAME", "_FILE_SIZE", "_LEVEL", "_EXTRA_FILES"),
        *("_EMBEDDED_FILE_INDEX", "_EXTERNAL_PATH"),
    }
)

BucketId: TypeAlias = tuple[bytes, int]
"""A packed partition, and the number of a bucket in it."""
Identity: TypeAlias = tuple[bytes, int, int, str, tuple[str, ...], bytes | None, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """The metadata of a data file in a manifest."""

    name: str
    size: int
    rows: int
    min_key: bytes
    max_key: bytes
    key_stats: RowStats
    value_stats: RowStats
    min_sequence: int
    max_sequence: int
    schema_id: int
    level: int
    extra_files: tuple[str, ...] = ()
    """Files beside it; the one with the suffix `.index` has its file indexes."""
    creation_time: datetime | None = None
    delete_rows: int | None = None
    """How many of its rows delete."""
    embedded_index: bytes | None = None
    source: int | None = None
    """0: written by an append, 1: by a compaction."""
    stats_columns: tuple[str, ...] | None = None
    """The columns of `value_stats`; None: all."""
    external_path: str | None = None
    first_row_id: int | None = None
    write_columns: tuple[str, ...] | None = None
    unknown: tuple[UnknownField, ...] = ()
    """Fields of a newer Paimon, which are written again with the entry."""

    @property
    def has_index(self) -> bool:
        """Whether it has file indexes."""
        return self.embedded_index is not None or bool(self.index_files)

    @property
    def index_files(self) -> list[str]:
        """The extra files with file indexes."""
        return [name for name in self.extra_files if name.endswith(".index")]


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A data file that a commit added or deleted."""

    kind: int
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFile
    unknown: tuple[UnknownField, ...] = ()
    """Fields of a newer Paimon, apart from those of the file."""

    @property
    def bucket_id(self) -> BucketId:
        """Its partition and bucket."""
        return self.partition, self.bucket

    @property
    def identity(self) -> Identity:
        """The fields by which Paimon matches the DELETE of a file with its ADD."""
        file = self.file
        return (
            *(self.partition, self.bucket, file.level, file.name),
            *(file.extra_files, file.embedded_index, file.external_path),
        )

    @property
    def bytes_about(self) -> int:
        """Its approximate size in a manifest, without compression."""
        file = self.file
        nulls = 2 * len(file.value_stats.null_counts or ())
        stats = len(file.value_stats.minimum) + len(file.value_stats.maximum) + nulls
        texts = (file.name, *file.extra_files, *(file.stats_columns or ()))
        index = len(file.embedded_index or b"")
        return 200 + stats + index + sum(map(len, texts)) + 4 * (len(file.min_key))

    def deleted(self) -> ManifestEntry:
        """The entry that deletes the file."""
        return replace(self, kind=DELETE)

    def on_level(self, level: int) -> ManifestEntry:
        """The same file on another level."""
        return self.with_file(replace(self.file, level=level))

    def with_file(self, file: DataFile) -> ManifestEntry:
        """The entry that adds the file with other metadata."""
        return replace(self, kind=ADD, file=file)


def read_manifest(data: bytes, *, file: str) -> list[ManifestEntry]:
    """The entries of a manifest, in order.

    Raises:
        FormatError: It is damaged.
    """
    return read_as(_entry, data, schema=_SCHEMA, version=_VERSION, what="manifest", file=file)


def read_names(
    data: bytes, *, file: str
) -> Iterator[tuple[dict[str, Any], tuple[UnknownField, ...]]]:
    """The records of a manifest with the fields that identify data files, and unknown fields.

    Statistics and keys, most of a manifest, are passed over where all fields are known.

    Raises:
        FormatError: It is damaged.
    """
    if is_orc(data):
        written, records = read_orc(data, file=file)
    else:
        written, records = read_records(data, file=file, project=partial(_project, file=file))
    unknown = FieldFinder(written, _SCHEMA, file=file)
    for record in records:
        version, kind = record.get("_VERSION", _VERSION), record["_KIND"]
        if version > _VERSION:
            raise FormatError("version of a manifest", file=file, found=version, expected=_VERSION)
        if kind not in (ADD, DELETE):
            raise FormatError("kind of an entry", file=file, found=kind, expected="0 or 1")
        yield record, unknown.find(record)


def _project(written: Any, *, file: str) -> Any:
    """The schema of a manifest with fields that identify data files; None: with all of them."""
    if not FieldFinder(written, _SCHEMA, file=file).is_empty:
        return None
    projected = copy.deepcopy(written)
    projected["fields"] = [field for field in projected["fields"] if field["name"] in _OF_ENTRY]
    for field in projected["fields"]:
        if field["name"] == "_FILE":
            branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
            (record,) = (branch for branch in branches if branch != "null")
            record["fields"] = [one for one in record["fields"] if one["name"] in _OF_FILE]
    return projected


def write_manifest(entries: Iterable[ManifestEntry], compression: str) -> bytes:
    """A manifest of entries, in this order.

    Raises:
        UnsupportedError: An unknown field has two types.
    """
    entries = list(entries)
    unknown = [both for entry in entries if (both := (*entry.unknown, *entry.file.unknown))]
    return write_records(_SCHEMA, map(_record, entries), compression, unknown)


def stats_of(record: Mapping[str, Any]) -> RowStats:
    """Statistics from a record of a manifest or a manifest list."""
    counts = record.get("_NULL_COUNTS")
    return RowStats(
        record["_MIN_VALUES"], record["_MAX_VALUES"], None if counts is None else tuple(counts)
    )


def _key_stats_of(record: Mapping[str, Any]) -> RowStats:
    """Statistics of a key; tables without a primary key share one object."""
    return NO_STATS if record == _NO_STATS else stats_of(record)


def stats_record(stats: RowStats) -> dict[str, Any]:
    """Statistics as a record."""
    counts = None if stats.null_counts is None else list(stats.null_counts)
    return {
        "_MIN_VALUES": stats.minimum,
        "_MAX_VALUES": stats.maximum,
        "_NULL_COUNTS": counts,
    }


_NO_STATS = stats_record(NO_STATS)


def _entry(
    record: Mapping[str, Any], unknown: tuple[UnknownField, ...], file: str
) -> ManifestEntry:
    kind, data_file = record["_KIND"], record["_FILE"]
    if kind not in (ADD, DELETE):
        raise FormatError("kind of an entry", file=file, found=kind, expected="0 or 1")
    for name, expected in _CHECKED:
        value = data_file[name]
        if not isinstance(value, expected) or (isinstance(value, int) and value < 0):
            raise FormatError(
                f"entry: {name}", file=file, found=repr(value)[:80], expected=expected
            )
    columns, written = data_file.get("_VALUE_STATS_COLS"), data_file.get("_WRITE_COLS")
    return ManifestEntry(
        kind,
        record["_PARTITION"],
        record["_BUCKET"],
        record["_TOTAL_BUCKETS"],
        DataFile(
            name=data_file["_FILE_NAME"],
            size=data_file["_FILE_SIZE"],
            rows=data_file["_ROW_COUNT"],
            min_key=data_file["_MIN_KEY"],
            max_key=data_file["_MAX_KEY"],
            key_stats=_key_stats_of(data_file["_KEY_STATS"]),
            value_stats=stats_of(data_file["_VALUE_STATS"]),
            min_sequence=data_file["_MIN_SEQUENCE_NUMBER"],
            max_sequence=data_file["_MAX_SEQUENCE_NUMBER"],
            schema_id=data_file["_SCHEMA_ID"],
            level=data_file["_LEVEL"],
            extra_files=tuple(data_file["_EXTRA_FILES"]),
            creation_time=_time(data_file.get("_CREATION_TIME")),
            delete_rows=data_file.get("_DELETE_ROW_COUNT"),
            embedded_index=data_file.get("_EMBEDDED_FILE_INDEX"),
            source=data_file.get("_FILE_SOURCE"),
            stats_columns=None if columns is None else tuple(columns),
            external_path=data_file.get("_EXTERNAL_PATH"),
            first_row_id=data_file.get("_FIRST_ROW_ID"),
            write_columns=None if written is None else tuple(written),
            unknown=tuple(extra for extra in unknown if extra.path[0] == "_FILE"),
        ),
        tuple(extra for extra in unknown if extra.path[0] != "_FILE"),
    )


def _time(value: datetime | int | None) -> datetime | None:
    """A timestamp, which some writers store as plain milliseconds."""
    return _EPOCH + timedelta(milliseconds=value) if isinstance(value, int) else value


def _record(entry: ManifestEntry) -> dict[str, Any]:
    file = {name: getattr(entry.file, own) for own, name, _, _ in _FILE}
    for name in ("_KEY_STATS", "_VALUE_STATS"):
        file[name] = stats_record(file[name])
    for name in ("_EXTRA_FILES", "_VALUE_STATS_COLS", "_WRITE_COLS"):
        file[name] = None if file[name] is None else list(file[name])
    record = {
        "_VERSION": _VERSION,
        "_KIND": entry.kind,
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": file,
    }
    return put_values(record, (*entry.unknown, *entry.file.unknown))


_SPANS = (
    *("_MIN_BUCKET", "_MAX_BUCKET", "_MIN_LEVEL", "_MAX_LEVEL"),
    *("_MIN_ROW_ID", "_MAX_ROW_ID"),
)
_FIELDS: list[tuple[str, Any] | dict[str, Any]] = [
    ("_VERSION", "int"),
    ("_FILE_NAME", "string"),
    ("_FILE_SIZE", "long"),
    ("_NUM_ADDED_FILES", "long"),
    ("_NUM_DELETED_FILES", "long"),
    ("_PARTITION_STATS", record_schema("__PARTITION_STATS", STATS_FIELDS)),
    ("_SCHEMA_ID", "long"),
    *(nullable(name, "int") for name in _SPANS[:4]),
    *(nullable(name, "long") for name in _SPANS[4:]),
]
_LIST_SCHEMA = record_schema("", _FIELDS)


@dataclass(frozen=True, slots=True)
class ManifestMeta:
    """A manifest in a manifest list."""

    name: str
    size: int
    added: int
    deleted: int
    partition_stats: RowStats
    schema_id: int
    spans: tuple[int | None, ...] = (None,) * len(_SPANS)
    """Minimum and maximum bucket, level and row id; None: unknown."""
    unknown: tuple[UnknownField, ...] = ()
    """Fields of a newer Paimon, which are written again with the entry."""

    @property
    def extra_files(self) -> list[str]:
        """Files beside it, of newer writers: `<manifest>.avro.sidecar`."""
        values = [extra.value for extra in self.unknown if extra.path == ("_EXTRA_FILES",)]
        return [
            name
            for names in values
            if isinstance(names, list)
            for name in names
            if isinstance(name, str)
        ]


def read_manifest_list(data: bytes, *, file: str) -> list[ManifestMeta]:
    """The manifests of a list, in order.

    Raises:
        FormatError: It is damaged.
    """
    return read_as(
        _meta, data, schema=_LIST_SCHEMA, version=_VERSION, what="manifest list", file=file
    )


def write_manifest_list(metas: Iterable[ManifestMeta], compression: str) -> bytes:
    """A list of manifests."""
    metas = list(metas)
    unknown = [meta.unknown for meta in metas]
    return write_records(_LIST_SCHEMA, map(_list_record, metas), compression, unknown)


def _meta(record: Mapping[str, Any], unknown: tuple[UnknownField, ...], _file: str) -> ManifestMeta:
    return ManifestMeta(
        record["_FILE_NAME"],
        record["_FILE_SIZE"],
        record["_NUM_ADDED_FILES"],
        record["_NUM_DELETED_FILES"],
        stats_of(record["_PARTITION_STATS"]),
        record["_SCHEMA_ID"],
        tuple(record.get(name) for name in _SPANS),
        unknown,
    )


def _list_record(meta: ManifestMeta) -> dict[str, Any]:
    record = {
        "_VERSION": _VERSION,
        "_FILE_NAME": meta.name,
        "_FILE_SIZE": meta.size,
        "_NUM_ADDED_FILES": meta.added,
        "_NUM_DELETED_FILES": meta.deleted,
        "_PARTITION_STATS": stats_record(meta.partition_stats),
        "_SCHEMA_ID": meta.schema_id,
        **dict(zip(_SPANS, meta.spans, strict=True)),
    }
    return put_values(record, meta.unknown)
