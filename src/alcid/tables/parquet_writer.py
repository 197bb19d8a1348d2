"""Parquet files, written so that few of their bytes have to be read again, and indexed.

Row groups have 131,072 rows. Pages have 2,048, and an offset index, so that a row is read with its
page: other writers fill pages of 1 MB. A dictionary is given up when it has 64 KiB: it must be read
with any page that needs it, and it pays for columns of few values only.

Types are those that Spark and Paimon write: timestamps as instants or as times of a clock, small
decimals as integers. Arrow's own schema is left out, so that the types of a column are the same
whoever wrote its files.

`roll_files` puts rows into files of about the same length, each of one partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from inspect import signature
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from alcid.errors import ColumnError
from alcid.formats.source import BytesSource
from alcid.index.build import IndexedFile, index_file
from alcid.options import IndexSpec

GROUP_ROWS = 1 << 17
PAGE_ROWS = 1 << 11
_DICTIONARY_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Encoding:
    """How the values of a file are written."""

    compression: str
    """As Arrow calls it."""
    level: int | None = None
    """Of the compression; None: its own default."""
    int96: bool = False
    """Timestamps as INT96: it is what Paimon reads nanoseconds from. They have no bounds."""


SNAPPY = Encoding("snappy")
"""What Spark writes."""


@dataclass(frozen=True, slots=True, eq=False)
class WrittenFile:
    """A file that nobody has put anywhere yet."""

    data: pa.Buffer
    indexed: IndexedFile
    """What a bundle keeps of it; its version is empty."""

    def placed(self, version: str) -> IndexedFile:
        """What a bundle keeps of the file, when it lies in a storage, which tells its version."""
        entry = replace(self.indexed.entry, version=version)
        return replace(self.indexed, entry=entry)


def write_file(
    rows: pa.Table,
    specs: Iterable[IndexSpec],
    *,
    path: str,
    metadata: Mapping[str, str] | None = None,
) -> WrittenFile:
    """Write rows as one file, and make its indexes, statistics and page offsets of them.

    Columns have types that `written_type` gives. What cannot be built is in `IndexedFile.skipped`.

    >>> from alcid.options import parse_options
    >>> specs = parse_options({"file-index.bitmap.columns": "id"})
    >>> written = write_file(pa.table({"id": range(10_000)}), specs, path="a.parquet")
    >>> written.indexed.entry.rows, list(map(str, written.indexed.payloads))
    (10000, ["bitmap of 'id'", "pages of 'id'"])
    """
    writer = FileWriter(rows.schema, metadata)
    writer.add(rows)
    return writer.finish(specs, path=path)


class FileWriter:
    """A file that is being written, in memory; its rows are buffered too, for the indexes."""

    def __init__(
        self,
        schema: pa.Schema,
        metadata: Mapping[str, str] | None = None,
        encoding: Encoding = SNAPPY,
    ) -> None:
        """Begin a file; `metadata` goes into its footer.

        A field of the schema that cannot be null is required in the file, and `PARQUET:field_id` in
        its metadata is its id there.

        Raises:
            ColumnError: There is no column: such a file cannot say how many rows it has.
        """
        if not len(schema):
            raise ColumnError("a file without columns cannot hold rows")
        self._schema, self._metadata, self._encoding = schema, metadata, encoding
        self._sink = pa.BufferOutputStream()
        self._writer = self._open_writer(self._sink)
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self._groups: list[pa.Table] = []
        self.rows = 0
        """How many were added."""
        self.buffered_bytes = 0
        """The memory that its rows take."""

    @property
    def written_bytes(self) -> int:
        """How long the file is so far, without rows that wait for their row group."""
        return int(self._sink.tell())

    def add(self, rows: pa.Table) -> None:
        """Add rows; a row group is written as soon as it is full."""
        self._pending.append(rows)
        self._pending_rows += rows.num_rows
        self.rows += rows.num_rows
        self.buffered_bytes += rows.nbytes
        while self._pending_rows >= GROUP_ROWS:
            self._write_group()

    def cut(self) -> pa.Table | None:
        """Take back the rows that wait for their row group, for the next file; None if none do.

        A file without a full row group keeps what it has.
        """
        if not self._groups or not self._pending:
            return None
        rest = pa.concat_tables(self._pending)
        self.rows -= rest.num_rows
        self.buffered_bytes -= rest.nbytes
        self._pending, self._pending_rows = [], 0
        return rest

    def finish(self, specs: Iterable[IndexSpec], *, path: str) -> WrittenFile:
        """Write the rest, and make what a bundle keeps."""
        data, rows = self.close()
        source = BytesSource(memoryview(data), path)
        indexed = index_file(source, specs, path=path, size=data.size, version="", rows=rows)
        return WrittenFile(data, indexed)

    def close(self) -> tuple[pa.Buffer, pa.Table]:
        """Write the rest; the file, and its rows."""
        if self._pending_rows:
            self._write_group()
        self._writer.close()
        data = self._sink.getvalue()
        if any(map(_has_nan, _leaves(self._groups))):
            data = self._without_bounds(data)
        rows = pa.concat_tables(self._groups) if self._groups else self._schema.empty_table()
        return data, rows

    def _write_group(self) -> None:
        """Write one row group, in one piece: else pages would end where pieces do."""
        rows = pa.concat_tables(self._pending)
        group = rows.slice(0, GROUP_ROWS).combine_chunks()
        self._writer.write_table(group, row_group_size=GROUP_ROWS)
        self._groups.append(group)
        rest = rows.slice(GROUP_ROWS)
        self._pending, self._pending_rows = [rest] if rest.num_rows else [], rest.num_rows

    def _without_bounds(self, data: pa.Buffer) -> pa.Buffer:
        """The file without least and greatest values of the columns that have a NaN.

        Arrow leaves NaN out of these, and Spark, for which it is above every number, would pass
        over it.
        """
        paths = pq.ParquetFile(pa.BufferReader(data)).schema
        described = [
            paths.column(position).path
            for position, leaf in enumerate(_leaves(self._groups))
            if not _has_nan(leaf)
        ]
        sink = pa.BufferOutputStream()
        with self._open_writer(sink, described) as writer:
            for group in self._groups:
                writer.write_table(group, row_group_size=GROUP_ROWS)
        return sink.getvalue()

    def _open_writer(self, sink: pa.NativeFile, described: Sequence[str] | bool = True) -> Any:
        """A writer; `described` are the leaf columns of which there are to be statistics."""
        writer = pq.ParquetWriter(
            sink,
            self._schema,
            compression=self._encoding.compression,
            compression_level=self._encoding.level,
            use_deprecated_int96_timestamps=self._encoding.int96,
            write_batch_size=PAGE_ROWS,  # a page ends where a batch does
            write_page_index=True,
            write_statistics=described,
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
            store_schema=False,
            store_decimal_as_integer=True,
            **_page_options(),
        )
        writer.add_key_value_metadata(dict(self._metadata or {}))
        return writer


def _leaves(groups: Sequence[pa.Table]) -> Iterator[list[pa.Array]]:
    """The values of each leaf column, in the order of the file, in pieces."""
    for columns in zip(*(group.columns for group in groups), strict=True):
        yield from _within([chunk for column in columns for chunk in column.chunks])


def _within(arrays: list[pa.Array]) -> Iterator[list[pa.Array]]:
    arrow_type = arrays[0].type if arrays else pa.null()
    if types.is_struct(arrow_type):
        for position in range(arrow_type.num_fields):
            yield from _within([array.field(position) for array in arrays])
    elif types.is_map(arrow_type):
        yield from _within([array.keys for array in arrays])
        yield from _within([array.items for array in arrays])
    elif types.is_list(arrow_type):
        yield from _within([array.flatten() for array in arrays])
    else:
        yield arrays


def _has_nan(leaf: Sequence[pa.Array]) -> bool:
    if not leaf or not types.is_floating(leaf[0].type):
        return False
    return any(pc.any(pc.is_nan(array)).as_py() for array in leaf)


@cache
def _page_options() -> dict[str, int]:
    """What makes pages of few rows."""
    if "max_rows_per_page" in signature(pq.ParquetWriter).parameters:
        return {"max_rows_per_page": PAGE_ROWS}
    # Before Arrow 23: a page ends after each batch that makes it long enough. A column of nulls is
    # never so long, nor need it be. With fewer bytes Arrow 22 writes a page without a row where a
    # list is the only one of its row group, and cannot read that.
    return {"data_page_size": 8}


def written_type(arrow_type: Any) -> Any:
    """The type in which values are written: the one that is read again, without Arrow's schema.

    >>> written_type(pa.list_(pa.dictionary(pa.int8(), pa.large_string())))
    ListType(list<element: string>)
    """
    if isinstance(arrow_type, pa.BaseExtensionType):
        return written_type(arrow_type.storage_type)
    if types.is_dictionary(arrow_type) or types.is_run_end_encoded(arrow_type):
        return written_type(arrow_type.value_type)
    if types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        return pa.string()
    if types.is_large_binary(arrow_type) or types.is_binary_view(arrow_type):
        return pa.binary()
    if types.is_date64(arrow_type):
        return pa.date32()
    if types.is_time32(arrow_type):
        return pa.time32("ms")
    if types.is_timestamp(arrow_type):
        unit = "ms" if arrow_type.unit == "s" else arrow_type.unit
        return pa.timestamp(unit, None if arrow_type.tz is None else "UTC")
    if types.is_map(arrow_type):
        return pa.map_(written_type(arrow_type.key_type), written_type(arrow_type.item_type))
    if types.is_struct(arrow_type):
        return pa.struct([(field.name, written_type(field.type)) for field in arrow_type])
    if types.is_nested(arrow_type) and not types.is_union(arrow_type):  # every kind of list
        return pa.list_(pa.field("element", written_type(arrow_type.value_type)))
    return arrow_type


Place = TypeVar("Place")

MAX_BUFFERED_BYTES = 512 << 20
"""A file is closed when its rows take so much memory, however short it is."""


def roll_files(
    parts: Iterable[tuple[Place, pa.Table]],
    begin: Callable[[], FileWriter],
    *,
    target_bytes: int,
    buffered_bytes: int = MAX_BUFFERED_BYTES,
) -> Iterator[tuple[Place, FileWriter]]:
    """Files that are to be closed, and the partitions that they belong to.

    Rows of a partition come one after the other. A file ends with the row group that makes it as
    long as the target, or when its rows take too much memory.
    """
    current: tuple[Place, FileWriter] | None = None
    for partition, rows in parts:
        if current is not None and current[0] != partition:
            yield current
            current = None
        if current is None:
            current = partition, begin()
        file = current[1]
        file.add(rows)
        if file.written_bytes >= target_bytes or file.buffered_bytes >= buffered_bytes:
            rest = file.cut()
            yield current
            current = None
            if rest is not None:
                current = partition, begin()
                current[1].add(rest)
    if current is not None:
        yield current


def equal_runs(keys: Sequence[pa.Array], count: int) -> Iterator[tuple[int, int]]:
    """Where rows of the same keys begin and end.

    >>> list(equal_runs([pa.array(["a", "a", None, "b"])], 4))
    [(0, 2), (2, 3), (3, 4)]
    """
    if not count:
        return
    change = np.zeros(count - 1, bool)
    for values in keys:
        codes = values.dictionary_encode(null_encoding="encode").indices.to_numpy()
        change |= codes[1:] != codes[:-1]
    yield from pairwise([0, *(np.flatnonzero(change) + 1).tolist(), count])
