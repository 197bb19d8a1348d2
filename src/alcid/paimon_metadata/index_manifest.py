"""`manifest/index-manifest-*`: the deletion vectors and hash indexes of a snapshot, all of them.

A snapshot whose commit changed none of them names the file of the one before. Entries of kinds that
are not known here are kept as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVectorRange
from alcid.paimon_metadata.avro import nullable, read_as, record_schema, write_records
from alcid.paimon_metadata.manifest import ADD
from alcid.paimon_metadata.unknown_fields import UnknownField, put_values

__all__ = ["DELETION_VECTORS", "HASH", "IndexEntry", "read_index_manifest", "write_index_manifest"]

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
    """Of a file of deletion vectors, where each of them is."""
    external_path: str | None = None
    global_index: Mapping[str, Any] | None = None
    """Of kinds that are not used here: what is said of them."""
    unknown: tuple[UnknownField, ...] = ()
    """What a newer Paimon says besides; it is written again with the rest."""


def read_index_manifest(data: bytes, *, file: str) -> list[IndexEntry]:
    """The entries of an index manifest.

    Raises:
        FormatError: It is damaged.
    """
    return read_as(_entry, data, schema=_SCHEMA, version=_VERSION, what="index manifest", file=file)


def write_index_manifest(entries: Iterable[IndexEntry], compression: str) -> bytes:
    """An index manifest."""
    listed = list(entries)
    unknown = [one.unknown for one in listed]
    return write_records(_SCHEMA, map(_record, listed), compression, unknown)


def _entry(record: Mapping[str, Any], unknown: tuple[UnknownField, ...], file: str) -> IndexEntry:
    if record["_KIND"] != ADD:
        raise FormatError("kind of an index entry", file=file, found=record["_KIND"], expected=ADD)
    ranges, whole = record.get("_DELETIONS_VECTORS_RANGES"), record.get("_GLOBAL_INDEX")
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
            DeletionVectorRange(one["f0"], one["f1"], one["f2"], one.get("_CARDINALITY"))
            for one in ranges
        ),
        record.get("_EXTERNAL_PATH"),
        None if whole is None else {key: one for key, one in whole.items() if one is not None},
        unknown,
    )


def _record(entry: IndexEntry) -> dict[str, Any]:
    ranges = None
    if entry.ranges is not None:
        ranges = [
            {
                "f0": one.data_file,
                "f1": one.offset,
                "f2": one.length,
                "_CARDINALITY": one.cardinality,
            }
            for one in entry.ranges
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
