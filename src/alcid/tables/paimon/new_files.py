"""Data files that a worker puts into a Paimon table, with their statistics and indexes.

Files lie under their last names from the start, which nobody else has: a table sees a file when a
commit names it, and not before. What a worker wrote in vain is left for `clean`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from alcid.errors import StorageError
from alcid.formats.file_index.container import write_container
from alcid.options import IndexSpec
from alcid.paimon_metadata.manifest import ADD, DataFile, ManifestEntry
from alcid.paimon_metadata.row_bytes import EMPTY
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.statistics import NO_STATS, RowStats, StatsMode, collect
from alcid.paimon_metadata.table_options import TableOptions
from alcid.storage import Storage
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.payloads import build_payloads

__all__ = ["NewFiles", "Span", "WrittenData"]

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
