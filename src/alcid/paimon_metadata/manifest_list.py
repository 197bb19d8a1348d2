"""`manifest/manifest-list-*`: the manifests of a snapshot, and what each spans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from alcid.paimon_metadata.avro import nullable, read_as, record_schema, write_records
from alcid.paimon_metadata.manifest import STATS_FIELDS, stats_of, stats_record
from alcid.paimon_metadata.statistics import RowStats
from alcid.paimon_metadata.unknown_fields import UnknownField, put_values

__all__ = ["ManifestMeta", "read_manifest_list", "write_manifest_list"]

_VERSION = 2
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
_SCHEMA = record_schema("", _FIELDS)


@dataclass(frozen=True, slots=True)
class ManifestMeta:
    """A manifest, as a list has it."""

    name: str
    size: int
    added: int
    deleted: int
    partition_stats: RowStats
    schema_id: int
    spans: tuple[int | None, ...] = (None,) * len(_SPANS)
    """Least and greatest bucket, level and row id; None: not known."""
    unknown: tuple[UnknownField, ...] = ()
    """What a newer Paimon says besides; it is written again with the rest."""

    @property
    def extra_files(self) -> list[str]:
        """Files beside it, of newer writers: `<manifest>.avro.sidecar`."""
        values = [one.value for one in self.unknown if one.path == ("_EXTRA_FILES",)]
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
    return read_as(_meta, data, schema=_SCHEMA, version=_VERSION, what="manifest list", file=file)


def write_manifest_list(metas: Iterable[ManifestMeta], compression: str) -> bytes:
    """A list of manifests."""
    listed = list(metas)
    unknown = [one.unknown for one in listed]
    return write_records(_SCHEMA, map(_record, listed), compression, unknown)


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


def _record(meta: ManifestMeta) -> dict[str, Any]:
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
