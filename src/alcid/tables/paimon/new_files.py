"""New data files of a Paimon table, with their statistics and indexes.

Files are written under their final, unique names: a table sees a file when a commit adds it, and
not before. What a killed task has written is left for `clean`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa

from alcid.errors import UnsupportedError
from alcid.formats.file_index.container import write_container
from alcid.index.build import build_payloads
from alcid.index.bundle import PayloadKind
from alcid.options import IndexSpec
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile, has_nanoseconds
from alcid.tables.paimon.metadata.commit import discard
from alcid.tables.paimon.metadata.manifest import ADD, BucketId, DataFile, ManifestEntry
from alcid.tables.paimon.metadata.option_keys import VERBS
from alcid.tables.paimon.metadata.options import TableOptions, WriteOperation
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.statistics import (
    EMPTY,
    NO_STATS,
    RowStats,
    StatsMode,
    collect,
)
from alcid.tables.parquet_writer import Encoding
from alcid.tables.reports import Skipped, SkippedCounter

_COMPRESSIONS: Final = {
    "zstd": "zstd",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4": "lz4",
    "none": "none",
    "uncompressed": "none",
}

_NONE = StatsMode("none")  # the mode of nested columns, as in Paimon


@dataclass(frozen=True, slots=True)
class WrittenData:
    """A data file that no snapshot has yet."""

    entry: ManifestEntry
    """In a table without a primary key its sequence numbers start at 0."""
    folder: str
    """The folder of its bucket, which ends with `/`."""
    index_bytes: int
    skipped: tuple[tuple[str, str, str], ...]
    """Column, index type and reason of each index that was not built."""

    @property
    def placed(self) -> PlacedFile:
        """The file and its folder."""
        return PlacedFile(self.entry, self.folder)

    @property
    def paths(self) -> list[str]:
        """All files that were written: the data file, and its index file."""
        file = self.entry.file
        return [self.folder + name for name in (file.name, *file.extra_files)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What the manifest says of the rows of a new file: keys, sequence numbers, level."""

    min_sequence: int
    max_sequence: int
    min_key: bytes = EMPTY
    """The smallest key as a packed row, which has no columns in a table without a primary key."""
    max_key: bytes = EMPTY
    key_stats: RowStats = NO_STATS
    level: int = 0
    delete_rows: int = 0
    source: int = 0
    """0: written by an append, 1: by a compaction."""


class NewFiles:
    """Writes the data files of one task."""

    def __init__(
        self,
        storage: Storage,
        schema: TableSchema,
        options: TableOptions,
        specs: Sequence[IndexSpec],
    ) -> None:
        """Take what the files have in common.

        Args:
            storage: The folder of the table.
            schema: The schema of the files.
            options: Options of the table.
            specs: The indexes of each file.
        """
        self._storage, self._schema, self._options = storage, schema, options
        self._specs, self._unique, self._number = specs, uuid.uuid4(), 0

    def put(
        self,
        bucket: BucketId,
        folder: str,
        data: pa.Buffer,
        rows: pa.Table,
        span: Span,
        *,
        total_buckets: int,
    ) -> WrittenData:
        """Write a data file into a bucket, and its indexes into its entry or a file beside it.

        Args:
            bucket: Its partition and number.
            folder: The folder of the bucket, which ends with `/`.
            data: The bytes of the file.
            rows: Its rows, in all columns of the table.
            span: What the manifest says of the rows.
            total_buckets: Number of buckets of the partition; -1: dynamic.
        """
        name = f"{self._options.data_file_prefix}{self._unique}-{self._number}.parquet"
        self._number += 1
        payloads = build_payloads(rows.column, self._schema.types, self._specs)
        index = write_container(payloads.built) if payloads.built else b""
        beside = len(index) > self._options.file_index_in_manifest_threshold
        stats, described = self._statistics(rows)
        now = datetime.now().replace(tzinfo=UTC)  # Paimon stores local wall clock time
        file = DataFile(
            name=name,
            size=data.size,
            rows=len(rows),
            min_key=span.min_key,
            max_key=span.max_key,
            key_stats=span.key_stats,
            value_stats=stats,
            min_sequence=span.min_sequence,
            max_sequence=span.max_sequence,
            schema_id=self._schema.id,
            level=span.level,
            extra_files=(f"{name}.index",) if beside else (),
            creation_time=now.replace(microsecond=now.microsecond // 1000 * 1000),
            delete_rows=span.delete_rows,
            embedded_index=index if index and not beside else None,
            source=span.source,
            stats_columns=described,
        )
        skipped = tuple((*kind, reason) for kind, reason in payloads.skipped.items())
        entry = ManifestEntry(ADD, *bucket, total_buckets, file)
        written = WrittenData(entry, folder, len(index), skipped)
        try:
            for path, content in zip(written.paths, (data.to_pybytes(), index), strict=False):
                self._storage.put(path, content)
        except BaseException:
            discard(self._storage, written.paths)
            raise
        return written

    def _statistics(self, rows: pa.Table) -> tuple[RowStats, tuple[str, ...] | None]:
        """The statistics of a file, and the columns that they cover; None: all."""
        names = self._schema.names
        types = list(self._schema.types.values())
        modes = [
            _NONE if data_type.children else StatsMode.parse(mode)
            for data_type, mode in zip(types, self._options.stats_modes(names), strict=True)
        ]
        chosen = list(range(len(names)))
        if self._options.stats_dense_store:
            chosen = [column for column in chosen if modes[column] != _NONE]
        stats = collect(
            rows.select(chosen),
            [types[column] for column in chosen],
            [modes[column] for column in chosen],
        )
        described = tuple(names[column] for column in chosen)
        return stats, None if len(chosen) == len(names) else described


def count_skipped(written: Iterable[WrittenData]) -> tuple[Skipped, ...]:
    """The indexes that new files were to have and do not have, with the reasons."""
    skipped = SkippedCounter()
    for file in written:
        for column, index_type, reason in file.skipped:
            skipped.add(PayloadKind.index(column, index_type), reason, file.paths[0])
    return skipped.reasons


def writing_options(
    options: TableOptions, entries: Iterable[ManifestEntry], schemas: Mapping[int, TableSchema]
) -> TableOptions:
    """The options that new files are written by, with statistics in the layout of existing files.

    Statistics are dense unless the table says otherwise: they omit columns of nested types, which
    have none. Paimon before 0.9.1 does not notice, and takes the bounds of one column for those of
    another. Where such a writer wrote all files, new ones have statistics of all columns as well.

    Args:
        options: Options of the table.
        entries: Its data files.
        schemas: The schemas of these files, by id.
    """
    if "metadata.stats-dense-store" in options.raw:
        return options
    nested = {
        schema_id: len(schema.names)
        for schema_id, schema in schemas.items()
        if any(data_type.children for data_type in schema.types.values())
    }
    has_all = False
    for file in (entry.file for entry in entries if entry.file.schema_id in nested):
        arity = int.from_bytes(file.value_stats.minimum[:4], "big")
        if file.stats_columns is not None or arity != nested[file.schema_id]:
            return options
        has_all = True
    return replace(options, stats_dense_store=False) if has_all else options


def encoding_of(schema: TableSchema, options: TableOptions, operation: WriteOperation) -> Encoding:
    """The encoding of new files.

    Raises:
        UnsupportedError: A compression that is not written.
    """
    compression = _COMPRESSIONS.get(options.file_compression)
    if compression is None:
        raise UnsupportedError(
            f"file.compression={options.file_compression}: cannot {VERBS[operation]}: "
            f"expected {', '.join(_COMPRESSIONS)}"
        )
    level = options.zstd_level if compression == "zstd" else None
    return Encoding(compression, level, int96=has_nanoseconds(schema))
