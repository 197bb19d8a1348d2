"""What is to become of a bucket: files that a task has written, and nobody has committed yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from alcid.options import IndexSpec
from alcid.paimon_metadata.index_manifest import IndexEntry
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.table_options import TableOptions
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.keyed.bucket import Bucket
from alcid.tables.paimon.new_files import WrittenData
from alcid.tables.writing import Encoding

__all__ = ["BucketChange", "KeyedTable", "Settlement"]


@dataclass(frozen=True, slots=True, eq=False)
class KeyedTable:
    """What work on buckets needs to know of their table; it pickles."""

    storage: Storage
    schema: TableSchema
    """That new files are written with."""
    schemas: Mapping[int, TableSchema]
    """Those of the files that are there, by their ids."""
    options: TableOptions
    specs: tuple[IndexSpec, ...]
    """The indexes of new files."""
    encoding: Encoding


@dataclass(frozen=True, slots=True, eq=False)
class Settlement:
    """What a compaction makes of a bucket: level 0 is lifted, older rows are marked.

    Not one row of level 0 stays behind, see `alcid.tables.paimon.keyed.settling`.
    """

    base: Bucket
    """The bucket that it was made for. Files of it that are not in `removed` stay."""
    removed: tuple[PlacedFile, ...] = ()
    added: tuple[PlacedFile, ...] = ()
    """Files that come: the same ones on another level, or new ones."""
    vectors: IndexEntry | None = None
    """The new index file of all deletion vectors of the bucket; None: there are none."""
    written: tuple[str, ...] = ()
    """Paths of what was written for it, to be removed if it does not come to a commit."""
    marked: int = 0
    """Rows that are not live any more."""


@dataclass(frozen=True, slots=True, eq=False)
class BucketChange:
    """What an upsert makes of a bucket."""

    base: Bucket
    """The bucket that it was made for."""
    upserts: tuple[WrittenData, ...] = ()
    """Files of rows that are live, one sorted run; on level 0."""
    deletes: tuple[WrittenData, ...] = ()
    """Files of rows that delete, apart from the others: so those need not be written again."""
    hashes: IndexEntry | None = None
    """The new hash index; None: no key is new."""
    settlement: Settlement | None = None
    """What the compaction is to do. None: it has to be worked out when it comes to it."""
    written: tuple[str, ...] = ()
    """Paths of all that was written, the settlement's included."""
