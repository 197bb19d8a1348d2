"""Rows become data files of an append table, with their indexes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from alcid.formats.arrays import IntArray
from alcid.formats.binary_row import hash_rows
from alcid.formats.buckets import fixed_bucket
from alcid.options import IndexSpec
from alcid.paimon_metadata.row_bytes import EMPTY, pack_rows
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.table_options import TableOptions
from alcid.storage import Storage
from alcid.tables.paimon.data_files import table_paths
from alcid.tables.paimon.key_order import sort_rows
from alcid.tables.paimon.new_files import NewFiles, Span, WrittenData
from alcid.tables.paimon.stored_types import check_lengths
from alcid.tables.rolling import equal_runs, roll_files
from alcid.tables.target_columns import TargetColumns
from alcid.tables.writing import GROUP_ROWS, Encoding, FileWriter

__all__ = ["DataJob", "WrittenData"]

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
