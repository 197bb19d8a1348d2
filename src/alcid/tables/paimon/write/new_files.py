"""Data files that a worker puts into a Paimon table, with their statistics and indexes.

Files lie under their last names from the start, which nobody else has: a table sees a file when a
commit names it, and not before. What a worker wrote in vain is left for `clean`.

Rows become data files of an append table, with their indexes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

import pyarrow as pa

from alcid._arrays import IntArray
from alcid.errors import StorageError
from alcid.formats.binary_row import hash_rows
from alcid.formats.buckets import fixed_bucket
from alcid.formats.file_index.container import write_container
from alcid.index.build import build_payloads
from alcid.options import IndexSpec
from alcid.storage import Storage
from alcid.tables.key_order import sort_rows
from alcid.tables.paimon.data_files import PlacedFile, check_lengths, table_paths
from alcid.tables.paimon.metadata.manifest import ADD, DataFile, ManifestEntry
from alcid.tables.paimon.metadata.options import TableOptions
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.statistics import (
    EMPTY,
    NO_STATS,
    RowStats,
    StatsMode,
    collect,
    pack_rows,
)
from alcid.tables.parquet_writer import GROUP_ROWS, Encoding, FileWriter, equal_runs, roll_files
from alcid.tables.schema import TargetColumns

__all__ = ["DataJob", "NewFiles", "Span", "WrittenData"]

_NONE = StatsMode("none")  # of values within values Paimon keeps nothing


@dataclass(frozen=True, slots=True)
class WrittenData:
    """A data file that no snapshot names yet."""

    entry: ManifestEntry
    """In a table without a key its sequence numbers begin at 0."""
    folder: str
    """Where it and its index file lie, with a `/` at its end."""
    index_bytes: int
    skipped: tuple[tuple[str, str, str], ...]
    """Column, index type and reason of what was not built."""

    @property
    def placed(self) -> PlacedFile:
        """The file and its folder."""
        return PlacedFile(self.entry, self.folder)

    @property
    def paths(self) -> list[str]:
        """Every file that was written."""
        file = self.entry.file
        return [self.folder + name for name in (file.name, *file.extra_files)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What rows of a file there are: which keys, how new, and where among the levels."""

    min_sequence: int
    max_sequence: int
    min_key: bytes = EMPTY
    """The least key as a packed row; without columns in a table without a key."""
    max_key: bytes = EMPTY
    key_stats: RowStats = NO_STATS
    level: int = 0
    delete_rows: int = 0
    source: int = 0
    """0: written by an append, 1: by a compaction."""


class NewFiles:
    """What puts the files of one worker, at one try, where they belong."""

    def __init__(
        self,
        storage: Storage,
        schema: TableSchema,
        options: TableOptions,
        specs: Sequence[IndexSpec],
    ) -> None:
        """Write nothing yet.

        Args:
            storage: The folder of the table.
            schema: Of the files.
            options: Of the table.
            specs: The indexes of each file.
        """
        self._storage, self._schema, self._options = storage, schema, options
        self._specs, self._unique, self._number = specs, uuid.uuid4(), 0

    def put(
        self,
        place: tuple[bytes, int],
        folder: str,
        data: pa.Buffer,
        rows: pa.Table,
        span: Span,
        *,
        total_buckets: int,
    ) -> WrittenData:
        """Put a file into a bucket, and its indexes into its entry or beside it.

        Args:
            place: A partition, and a bucket in it.
            folder: Of the bucket, with a `/` at its end.
            data: The file.
            rows: All columns of the table, as the file has them.
            span: What the manifest says of the rows.
            total_buckets: How many buckets the partition has, -1 if as many as needed.
        """
        name = f"{self._options.data_file_prefix}{self._unique}-{self._number}.parquet"
        self._number += 1
        made = build_payloads(rows.column, self._schema.types, self._specs)
        index = write_container(made.built) if made.built else b""
        beside = len(index) > self._options.file_index_in_manifest_threshold
        stats, described = self._statistics(rows)
        now = datetime.now().replace(tzinfo=UTC)  # what the clock shows here, as if it were UTC
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
        skipped = tuple((*kind, reason) for kind, reason in made.skipped.items())
        entry = ManifestEntry(ADD, *place, total_buckets, file)
        written = WrittenData(entry, folder, len(index), skipped)
        try:
            for path, content in zip(written.paths, (data.to_pybytes(), index), strict=False):
                self._storage.put(path, content)
        except BaseException:
            self.remove([written])
            raise
        return written

    def remove(self, written: Sequence[WrittenData]) -> None:
        """Take back files that no snapshot will name."""
        with suppress(StorageError):  # `clean` removes them later
            self._storage.delete([path for one in written for path in one.paths])

    def _statistics(self, rows: pa.Table) -> tuple[RowStats, tuple[str, ...] | None]:
        """The statistics of a file, and of which columns they are; None: of all."""
        names = self._schema.names
        types = list(self._schema.types.values())
        modes = [
            _NONE if data_type.children else StatsMode.parse(mode)
            for data_type, mode in zip(types, self._options.stats_modes(names), strict=True)
        ]
        kept = list(range(len(names)))
        if self._options.stats_dense_store:
            kept = [place for place in kept if modes[place] != _NONE]
        stats = collect(
            rows.select(kept), [types[place] for place in kept], [modes[place] for place in kept]
        )
        described = tuple(names[place] for place in kept)
        return stats, None if len(kept) == len(names) else described


_Place: TypeAlias = tuple[bytes, int]
"""A partition, and a bucket in it."""


@dataclass(frozen=True, slots=True)
class DataJob:
    """What every worker does with its rows; it pickles."""

    storage: Storage
    schema: TableSchema
    options: TableOptions
    columns: TargetColumns
    """All columns of the table: those of its partitions stand in the files too."""
    specs: tuple[IndexSpec, ...]
    encoding: Encoding

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[WrittenData]:
        """Write rows; those of a partition and bucket are best given one after the other.

        Args:
            batches: The given columns, as `TargetColumns.rows` takes them; others behind them are
                passed over.

        Raises:
            UnsupportedError: A value does not fit the table.
        """
        return _Writer(self).run(
            self.columns.rows(batch.columns) for batch in batches if batch.num_rows
        )

    def write_table(self, given: pa.Table) -> Iterator[WrittenData]:
        """Write all rows of a table, whatever their order; those of a bucket stay in theirs."""
        sources = [place for place in self.columns.sources if place is not None]
        rows = self.columns.rows([given.column(place) for place in sources])
        return _Writer(self).run(self._arranged(rows))

    def _arranged(self, rows: pa.Table) -> Iterator[pa.Table]:
        keys = self._keys(rows)
        order = sort_rows(keys, len(rows))[0] if keys else None
        for start in range(0, len(rows), GROUP_ROWS):
            if order is None:
                yield rows.slice(start, GROUP_ROWS)
            else:
                yield rows.take(pa.array(order[start : start + GROUP_ROWS]))

    def _keys(self, rows: pa.Table) -> list[pa.ChunkedArray | pa.Array]:
        """What tells rows of different files apart: their partition and bucket."""
        keys = [rows.column(name) for name in self.schema.partition_keys]
        buckets = self.buckets(rows)
        return keys if buckets is None else [*keys, pa.array(buckets)]

    def buckets(self, rows: pa.Table) -> IntArray | None:
        """The bucket of each row; None in a table without buckets.

        Args:
            rows: As `TargetColumns.rows` gives them.
        """
        options = self.options
        if options.bucket < 0:
            return None
        columns = [rows.column(name) for name in options.bucket_key]
        hashes = hash_rows(columns, [self.schema.types[name] for name in options.bucket_key])
        return fixed_bucket(hashes, options.bucket)


class _Writer:
    """One worker, at one try."""

    def __init__(self, job: DataJob) -> None:
        self._job = job
        self._paths = table_paths(job.schema, job.options)
        self._files = NewFiles(job.storage, job.schema, job.options, job.specs)

    def run(self, tables: Iterable[pa.Table]) -> Iterator[WrittenData]:
        """Write rows that are as files hold them."""
        job = self._job
        for place, file in roll_files(
            (part for rows in tables for part in self._parts(rows)),
            lambda: FileWriter(job.columns.schema, None, job.encoding),
            target_bytes=job.options.target_file_size,
        ):
            data, rows = file.close()
            yield self._files.put(
                place,
                self._paths.bucket(*place),
                data,
                rows,
                Span(min_sequence=0, max_sequence=len(rows) - 1),
                total_buckets=job.options.bucket,
            )

    def _parts(self, rows: pa.Table) -> Iterator[tuple[_Place, pa.Table]]:
        job = self._job
        check_lengths(rows, job.schema)
        keys = [pa.chunked_array(key).combine_chunks() for key in job._keys(rows)]
        count = len(job.schema.partition_keys)
        for start, stop in equal_runs(keys, len(rows)):
            values = [key.slice(start, 1) for key in keys[:count]]
            partition = pack_rows(values, job.schema.partition_types)[0] if values else EMPTY
            bucket = keys[count][start].as_py() if len(keys) > count else 0
            yield (partition, bucket), rows.slice(start, stop - start)
