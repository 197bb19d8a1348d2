"""Rows to be written, wherever they are: an Arrow table in this process, or a DataFrame of Spark.

A table makes a writer, and gives it to the rows. These bring themselves to where writers run, in
the order that the writer asks for, and return what was written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeVar

import pyarrow as pa

from alcid._arrays import Int32Array, Int64Array, IntArray
from alcid.tables.schema import TargetColumns

_IN_MEMORY = 8
"""Rows that the caller has in memory are written in larger pieces: their copies are no more."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class RowWriter(Protocol[T_co]):
    """Writes rows as files; it pickles, and every task has one."""

    @property
    def columns(self) -> TargetColumns:
        """The columns of the files."""

    @property
    def cluster_by(self) -> Sequence[str]:
        """Columns of the files; rows with the same values are best written one after the other."""

    @property
    def has_buckets(self) -> bool:
        """Whether rows are clustered by bucket, too."""

    def buckets(self, rows: pa.Table) -> IntArray | None:
        """The bucket of each row; None without buckets."""

    def write(self, batches: Iterable[pa.RecordBatch], task: int) -> Iterable[T_co]:
        """Write the rows of one task.

        Args:
            batches: The columns that `columns.sources` names, then the partition columns as text.
                Columns behind them are ignored.
            task: The number of the task.
        """

    def write_table(self, rows: pa.Table) -> Iterable[T_co]:
        """Write all rows of a table, whatever their order."""


@dataclass(frozen=True, slots=True, eq=False)
class Routed:
    """The hash, bucket and channel of rows."""

    hashes: Int32Array
    buckets: Int32Array
    """Negative where the channel has to assign one."""
    channels: Int32Array
    arrival: Int64Array | None = None
    """Numbers that ascend with the arrival of rows; None: rows are in that order."""


@dataclass(frozen=True, slots=True, eq=False)
class RowPiece:
    """Some of the rows of a channel, as many as are to be in memory at a time."""

    columns: Sequence[pa.ChunkedArray]
    """The columns that `KeyedRowWriter.columns.sources` names, then that of the row kinds."""
    routed: Routed | None
    """What `KeyedRowWriter.route` returned; None if all rows of all channels are here."""
    is_last: bool


@dataclass(frozen=True, slots=True)
class SizeEstimate:
    """How much there is to be written, as far as that can be known without reading it."""

    bytes: int
    rows: int | None = None


class KeyedRowWriter(Protocol[T_co]):
    """Writes rows by their key: all rows of a key come to the same task, which is its channel."""

    @property
    def columns(self) -> TargetColumns:
        """The columns of the files."""

    @property
    def kind_column(self) -> tuple[int, str] | None:
        """Position and name of the input column with row kinds, if there is one."""

    @property
    def key_columns(self) -> Sequence[str]:
        """The columns of the files that rows are routed by."""

    @property
    def channels(self) -> int:
        """How many tasks there are."""

    @property
    def lookup_tasks(self) -> int:
        """How many tasks rows are to be brought to before `route`, by `lookup_ranges`; 0: none."""

    @property
    def piece_bytes(self) -> int:
        """How many bytes of rows a task should have in memory at a time."""

    def lookup_ranges(self, rows: pa.Table) -> Int64Array:
        """Numbers of rows: `route` needs little memory where rows of a number follow each other."""

    def route(self, rows: pa.Table) -> Routed:
        """Find the channels of rows, of which the key columns are given."""

    def write_rows(self, pieces: Iterable[RowPiece], threads: int = 1) -> Iterable[T_co]:
        """Write the rows of a channel.

        Args:
            pieces: The rows; the next piece is read after the one before is taken care of.
            threads: How many threads to use.
        """


class RowSource(Protocol):
    """Rows to be written. They may be asked for more than once."""

    @property
    def schema(self) -> pa.Schema:
        """The columns, in the types in which they are written."""

    @property
    def parallelism(self) -> int:
        """How many tasks write at a time."""

    def size(self) -> SizeEstimate | None:
        """About how much there is; None if that is not known."""

    def count(self) -> int:
        """How many rows there are."""

    def footer_metadata(self, columns: TargetColumns) -> Mapping[str, str]:
        """What footers of files have to say of the columns, so that they are read as they were."""

    def write(self, writer: RowWriter[T]) -> Iterator[T]:
        """Write the rows; what tasks have written comes also if others fail, before that is raised.

        Raises:
            AlcidError: What a task raised.
        """

    def write_by_key(self, writer: KeyedRowWriter[T]) -> Iterator[T]:
        """Write the rows, those of a channel in one task; otherwise as `write`."""


class ArrowRows:
    """Rows in the memory of this process."""

    parallelism = 1

    def __init__(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Take a table or a record batch."""
        self._rows = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows

    @property
    def schema(self) -> pa.Schema:
        """The columns as they are."""
        return self._rows.schema

    def size(self) -> SizeEstimate:
        """Exactly how much there is."""
        return SizeEstimate(self._rows.nbytes, self._rows.num_rows)

    def count(self) -> int:
        """How many rows there are."""
        return int(self._rows.num_rows)

    def footer_metadata(self, _columns: TargetColumns) -> Mapping[str, str]:
        """Nothing: Arrow's own types say it all."""
        return {}

    def write(self, writer: RowWriter[T]) -> Iterator[T]:
        """Write all rows."""
        yield from writer.write_table(self._rows)

    def write_by_key(self, writer: KeyedRowWriter[T]) -> Iterator[T]:
        """Write all rows, in as many threads as there are cores."""
        if not self._rows.num_rows:
            return
        positions = [source for source in writer.columns.sources if source is not None]
        if writer.kind_column is not None:
            positions.append(writer.kind_column[0])
        rows = pa.Table.from_arrays(
            [self._rows.column(position) for position in positions], list(map(str, positions))
        )
        pieces = max(-(-rows.nbytes // (_IN_MEMORY * writer.piece_bytes)), 1)
        starts = [number * len(rows) // pieces for number in range(pieces + 1)]
        yield from writer.write_rows(
            (
                RowPiece(rows.slice(start, end - start).columns, None, is_last=end == len(rows))
                for start, end in pairwise(starts)
                if start < end
            ),
            threads=os.cpu_count() or 1,
        )
