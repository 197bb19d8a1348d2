"""Options of Paimon that ask for what we do not do: refused by name, never passed over.

A refusal is for an operation: a table whose rows we read right may still be one where a row that we
append, or delete, breaks a promise that its options make. Values that ask for nothing, as the
default does, are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from alcid.errors import UnsupportedError

__all__ = ["REFUSALS", "VERBS", "Operation", "Refusal", "refusal_of", "refuse"]

Operation: TypeAlias = Literal["read", "build", "append", "delete", "upsert", "compact"]
"""`build` swaps the indexes of files that stay as they are, and `compact` writes rows anew that
stay as they are; `append`, `delete` and `upsert` change rows."""

_ALL: Final = frozenset({"read", "build", "append", "delete", "upsert", "compact"})
_COMMITS: Final = _ALL - {"read"}
_ROWS: Final = frozenset({"append", "delete", "upsert"})
_MERGES: Final = _ROWS | {"compact"}
_FILES: Final = frozenset({"append", "upsert", "compact"})
_NEW_ROWS: Final = frozenset({"append", "upsert"})
_APPEND: Final = frozenset({"append"})
_DELETE: Final = frozenset({"delete"})
_NUMBERED: Final = frozenset({"upsert", "delete"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """What makes an option impossible to follow."""

    operations: frozenset[str]
    why: str
    allowed: tuple[str, ...] = ()
    """Values in lower case that ask for nothing."""
    keyed: bool | None = None
    """True: only in a table with a primary key, in others Paimon does not look at the option.
    False: only in a table without."""


_OFF: Final = ("false",)
_TRAVEL: Final = Refusal(
    _ALL, "it reads another state of the table; remove it, and name a snapshot or tag when opening"
)
_BRANCH: Final = Refusal(
    _ALL, "it reads from several branches, which is not supported; name one when opening"
)
_ROW_IDS: Final = Refusal(_ALL, "tables with row ids are not supported", _OFF)
_APART: Final = Refusal(_ALL, "it keeps columns in files of their own, which is not supported")
_PER_LEVEL: Final = Refusal(_FILES, "files are written the same way on every level", ("",))
_KEY_INDEX: Final = Refusal(
    _COMMITS, "indexes over the primary key would not be kept up; write with Paimon's Java"
)

REFUSALS: Final[dict[str, Refusal]] = {
    # What a table is.
    "type": Refusal(_ALL, "only tables of type table are supported", ("table",)),
    "branch": Refusal(_ALL, "remove it, and name the branch when opening", ("main",)),
    "chain-table.enabled": Refusal(_ALL, "chain tables are not supported", _OFF),
    "row-tracking.enabled": _ROW_IDS,
    "data-evolution.enabled": _ROW_IDS,
    "query-auth.enabled": Refusal(_ALL, "a catalog says who may see which rows", _OFF),
    "primary-key.nullable": Refusal(_ALL, "nulls in keys are not supported", _OFF, keyed=True),
    "sequence.snapshot-ordering": Refusal(
        _ALL, "rows ordered by their snapshot are not supported", _OFF, keyed=True
    ),
    "pk-clustering-override": Refusal(
        _ALL, "files in another order than that of their key are not supported", _OFF, keyed=True
    ),
    "blob-field": _APART,
    "blob-descriptor-field": _APART,
    "blob-view-field": _APART,
    "vector-field": _APART,
    "vector.file.format": _APART,
    "video-frame-field": _APART,
    "fields.<column>.map.storage-layout": Refusal(
        _ALL, "only the plain layout of maps is supported", ("default",)
    ),
    # What is read of it.
    "scan.mode": Refusal(_ALL, _TRAVEL.why, ("default", "latest-full", "full", "latest")),
    "scan.timestamp": _TRAVEL,
    "scan.timestamp-millis": _TRAVEL,
    "scan.watermark": _TRAVEL,
    "scan.file-creation-time-millis": _TRAVEL,
    "scan.creation-time-millis": _TRAVEL,
    "scan.snapshot-id": _TRAVEL,
    "scan.tag-name": _TRAVEL,
    "scan.version": _TRAVEL,
    "incremental-between": _TRAVEL,
    "incremental-between-timestamp": _TRAVEL,
    "incremental-to-auto-tag": _TRAVEL,
    "batch-scan-mode": Refusal(_ALL, _TRAVEL.why, ("none",)),
    "scan.bucket": Refusal(_ALL, "it reads a part of the table; remove it"),
    "scan.fallback-branch": _BRANCH,
    "scan.primary-branch": _BRANCH,
    "scan.fallback-snapshot-branch": _BRANCH,
    "scan.fallback-delta-branch": _BRANCH,
    # What a commit must do besides.
    "manifest.format": Refusal(
        _COMMITS, "manifests are written in Avro only; write with Paimon's Java", ("avro",)
    ),
    "metadata.iceberg.storage": Refusal(
        _COMMITS, "no Iceberg metadata would be written; commit with Paimon's Java", ("disabled",)
    ),
    "commit.callbacks": Refusal(
        _COMMITS, "they would not be called; commit with Paimon's Java", ("",)
    ),
    "commit.strict-mode.last-safe-snapshot": Refusal(
        _COMMITS, "snapshots of others would not be checked for; remove it"
    ),
    "pk-bitmap.index.columns": _KEY_INDEX,
    "pk-btree.index.columns": _KEY_INDEX,
    "pk-full-text.index.columns": _KEY_INDEX,
    "pk-multivalue.index.columns": _KEY_INDEX,
    "pk-vector.index.columns": _KEY_INDEX,
    # What a change of rows must do besides.
    "changelog-producer": Refusal(
        _MERGES, "no changelog would be written; write with Paimon's Java", ("none",), keyed=True
    ),
    "merge-engine": Refusal(
        _MERGES, "only rows that replace each other can be written", ("deduplicate",), keyed=True
    ),
    "tag.automatic-creation": Refusal(
        _ROWS,
        "no tag would be made; write with Paimon's Java",
        ("none", "process-time", "watermark"),
    ),
    "metastore.tag-to-partition.preview": Refusal(
        _ROWS, "the metastore would not be told; write with Paimon's Java", ("none",)
    ),
    "delete.force-produce-changelog": Refusal(
        _DELETE, "no changelog would be written; delete with Paimon's Java", _OFF, keyed=False
    ),
    "ignore-delete": Refusal(_DELETE, "the table ignores deletes; remove it", _OFF, keyed=True),
    "upsert-key": Refusal(_APPEND, "rows of the same key would not be replaced; remove it"),
    "bucket-function.type": Refusal(
        _NEW_ROWS, "rows would come into other buckets; write with Paimon's Java", ("default",)
    ),
    "write.sequence-number-init-mode": Refusal(
        _NUMBERED, "the next number would not be kept in the snapshot", ("scan",), keyed=True
    ),
    "file.format.per.level": _PER_LEVEL,
    "file.compression.per.level": _PER_LEVEL,
    "metadata.stats-mode.per.level": _PER_LEVEL,
    "data-file.external-paths.strategy": Refusal(
        _FILES, "files are written below the table; write with Paimon's Java", ("none",)
    ),
    "metastore.partitioned-table": Refusal(
        _NEW_ROWS, "the metastore would not be told of a partition; write with Paimon's Java", _OFF
    ),
    "partition.end-input-to-done": Refusal(
        _NEW_ROWS, "no partition would be marked; write with Paimon's Java", _OFF
    ),
    "partition.timestamp-format.strict": Refusal(
        _NEW_ROWS, "values of partitions would not be checked; write with Paimon's Java", _OFF
    ),
    "visibility-callback.enabled": Refusal(
        _NEW_ROWS, "a compaction would not be waited for; write with Paimon's Java", _OFF
    ),
}

_MAP_LAYOUT: Final = re.compile(r"fields\..+\.map\.storage-layout")


def refusal_of(key: str) -> Refusal | None:
    """The refusal of a key, also of one with a column in it.

    >>> refusal_of("fields.tags.map.storage-layout").allowed
    ('default',)
    """
    if _MAP_LAYOUT.fullmatch(key):
        key = "fields.<column>.map.storage-layout"
    return REFUSALS.get(key)


def refuse(options: Mapping[str, str], operation: Operation, *, keyed: bool) -> None:
    """Raise for the first option, by name, that an operation cannot follow.

    Raises:
        UnsupportedError: There is one.

    >>> refuse({"branch": "main", "scan.tag-name": "may"}, "read", keyed=False)
    Traceback (most recent call last):
    alcid.errors.UnsupportedError: scan.tag-name=may: cannot read the table: it reads another state
    of the table; remove it, and name a snapshot or tag when opening
    """
    for key, value, refusal in _refused(options, operation):
        if refusal.keyed is None or refusal.keyed == keyed:
            raise UnsupportedError(f"{key}={value}: cannot {VERBS[operation]}: {refusal.why}")


VERBS: Final[dict[Operation, str]] = {
    "read": "read the table",
    "build": "build its indexes",
    "append": "append rows",
    "delete": "delete rows",
    "upsert": "upsert rows",
    "compact": "compact the table",
}
"""What an error says of an operation, behind `cannot`."""


def _refused(
    options: Mapping[str, str], operation: Operation
) -> Iterator[tuple[str, str, Refusal]]:
    for key, value in sorted(options.items()):
        refusal = refusal_of(key)
        if refusal and operation in refusal.operations and value.lower() not in refusal.allowed:
            yield key, value, refusal
