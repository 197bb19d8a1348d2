"""Whole row groups of a Parquet file, decoded by Arrow.

For most or all rows of a file this is as fast as Arrow itself; for a few, see `read_rows`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from alcid._arrays import Int64Array, storage_type, without_extensions
from alcid.datafiles.parquet.decoding import (
    ColumnPositions,
    arrow_file,
    check_decimals,
    naming_damage,
    rows_without_columns,
)
from alcid.datafiles.parquet.footer import (
    END,
    Chunk,
    Footer,
    RowGroup,
    ScanField,
    footer_length,
    parse_footer,
    parse_metadata,
    read_tails,
    rows_of,
    scan_fields,
)
from alcid.datafiles.parquet.int96 import footer_as_bytes, restore_int96
from alcid.datafiles.parquet.statistics import FooterStatistics
from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import ReadMany, Source, read_each
from alcid.storage.ranges import ArrowFile, CachedSource, Coalescing, RangeReader, ReadReport


def open_scan(
    source: Source, *, read_ranges: ReadMany = read_each, report: ReadReport | None = None
) -> ParquetScan:
    """Read the footer of a file; see `open_scans`."""
    return open_scans([source], read_ranges=read_ranges, report=report)[0]


def open_scans(
    sources: Sequence[Source],
    *,
    read_ranges: ReadMany = read_each,
    report: ReadReport | None = None,
) -> list[ParquetScan]:
    """Read the footers of files, all of them in one round; longer ones than 64 KiB in a second.

    Raises:
        FormatError: A file is no Parquet file, or its footer is damaged.
        UnsupportedError: A footer is encrypted.
    """
    tails = read_tails(sources, ReadReport() if report is None else report, read_ranges)
    return [
        ParquetScan(source, tail[-END - footer_length(tail) :])
        for source, tail in zip(sources, tails, strict=True)
    ]


class ParquetScan:
    """A file whose footer was read; nothing of it stays open, and many threads may use it.

    >>> import io, pyarrow.parquet as pq
    >>> from alcid.formats.source import BytesSource
    >>> file = io.BytesIO()
    >>> pq.write_table(pa.table({"id": range(5), "a": list("vwxyz")}), file, row_group_size=2)
    >>> scan = open_scan(BytesSource(file.getvalue()))
    >>> scan.metadata.num_row_groups
    3
    >>> scan.read([0, 2], ["a"]).to_pydict()
    {'a': ['v', 'w', 'z']}
    """

    def __init__(self, source: Source, footer: bytes) -> None:
        """For `open_scan`."""
        self.source, self._footer = source, footer
        self.metadata = parse_metadata(footer, source.name)
        """What Arrow says of the file. Its `row_group(i).column(j)` ends the process if a column
        is encrypted: call `check` before."""

    @property
    def footer_crc(self) -> int:
        """CRC-32 of the footer: the metadata, its length and the magic."""
        return zlib.crc32(self._footer)

    @cached_property
    def fields(self) -> tuple[ScanField, ...]:
        """The top-level columns, in the order of the file.

        Raises:
            FormatError: Its schemas contradict each other.
        """
        return scan_fields(self.metadata, self.source.name)

    @property
    def names(self) -> list[str]:
        """The names of the top-level columns."""
        return [field.name for field in self.fields]

    @cached_property
    def group_rows(self) -> tuple[int, ...]:
        """The rows of each row group, the empty ones too.

        Raises:
            FormatError: A number is negative.
        """
        return rows_of(self.metadata, self.source.name)

    def check(self, row_groups: Iterable[int], leaves: Iterable[int]) -> None:
        """See that column chunks can be read, and that `metadata` may be accessed for them.

        Raises:
            FormatError: A chunk is not within the file.
            UnsupportedError: One is encrypted.
        """
        columns = [*leaves]
        for group in row_groups:
            if self._has_rows(group):
                self._chunks(group, columns)

    def group_bytes(self, group: int) -> int:
        """The bytes of a row group when it is decompressed."""
        return int(self.metadata.row_group(group).total_byte_size)

    def column_sizes(self, columns: Sequence[str]) -> Int64Array:
        """Bytes of some columns in each row group.

        Raises:
            FormatError: A column chunk is not within the file.
            UnsupportedError: One is encrypted.
        """
        wanted = set(columns)
        leaves = [leaf for field in self.fields if field.name in wanted for leaf in field.leaves]
        filled = [group for group, rows in enumerate(self.group_rows) if rows]
        self.check(filled, leaves)
        sizes = np.zeros(len(self.group_rows), np.int64)
        for group in filled:
            chunks = map(self.metadata.row_group(group).column, leaves)
            sizes[group] = sum(chunk.total_compressed_size for chunk in chunks)
        return sizes

    def read(
        self,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
        *,
        coalescing: Coalescing | None = None,
        read_ranges: ReadMany = read_each,
        report: ReadReport | None = None,
    ) -> pa.Table:
        """Read row groups, with the types and the order of columns that `read_rows` gives.

        All that is needed is read in one round, and stays in memory until it is decoded.

        Args:
            row_groups: Their numbers, as in `metadata`, in the order that is wanted; by default
                all.
            columns: The columns, in the order that is wanted; by default all.
            coalescing: Which ranges are read in one request.
            read_ranges: Reads the ranges; `Storage.read_ranges` for files of a storage.
            report: Counts what is read.

        Raises:
            FormatError: The file is damaged, or has no such row group.
            ColumnError: It has no such column, or more than one.
            UnsupportedError: A column is encrypted or empty, or INT96 timestamps or decimals do not
                fit their type.
        """
        report = ReadReport() if report is None else report
        every = range(len(self.group_rows)) if row_groups is None else row_groups
        groups = [group for group in every if self._has_rows(group)]
        rows = sum(self.group_rows[group] for group in groups)
        chosen = (
            range(len(self.fields)) if columns is None else [*map(self._positions.find, columns)]
        )
        report.row_groups += len(groups)
        if not chosen:
            return rows_without_columns(rows)
        fields = sorted(set(chosen))
        for field in (self.fields[field] for field in fields):
            if not field.leaves:
                raise UnsupportedError(
                    f"{self.source.name}: column {field.name}: a struct of nothing"
                )
        leaves = [self.fields[field].leaves for field in fields]
        together = [leaf for several in leaves for leaf in several]
        reader = RangeReader([self.source], coalescing or Coalescing(), report, read_ranges)
        file = ArrowFile(self._fetch(groups, together, reader), report)
        # Beside an encrypted column, Arrow 19 does not read two others at a time.
        encrypted = any(self._groups[group].chunks.encrypted for group in groups)
        with_int96 = not self._int96_leaves.isdisjoint(together)
        metadata = self._metadata_as_bytes if with_int96 else self.metadata
        table = self._decode(file, metadata, groups, leaves if encrypted else [together])
        if table.shape != (rows, len(fields)):
            raise FormatError(
                "damaged pages",
                file=self.source.name,
                found=f"{table.num_rows} rows of {table.num_columns} columns",
                expected=f"{rows} rows of {len(fields)} columns",
            )
        if with_int96:
            schema = self._arrow_schema()
            restored = {
                position: schema.field(field).with_type(storage_type(schema.field(field).type))
                for position, field in enumerate(fields)
                if not self._int96_leaves.isdisjoint(self.fields[field].leaves)
            }
            table = restore_int96(table, restored, self.source.name)
        check_decimals(table, self.source.name)
        order = {field: position for position, field in enumerate(fields)}
        return table.select([order[field] for field in chosen])

    def _decode(
        self,
        file: ArrowFile,
        metadata: pq.FileMetaData,
        groups: Sequence[int],
        parts: Sequence[Sequence[int]],
    ) -> pa.Table:
        """The columns of each part, side by side."""
        with naming_damage(self.source.name):
            reader = arrow_file(pa.PythonFile(file, mode="r"), metadata).reader
            tables = [
                reader.read_row_groups(groups, column_indices=leaves, use_threads=False)
                for leaves in parts
            ]
            fields = [field for table in tables for field in table.schema]
            arrays = [array for table in tables for array in table.columns]
            return without_extensions(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))

    @cached_property
    def _int96_leaves(self) -> frozenset[int]:
        schema = self.metadata.schema
        return frozenset(
            leaf for leaf in range(len(schema)) if schema.column(leaf).physical_type == "INT96"
        )

    @cached_property
    def _metadata_as_bytes(self) -> pq.FileMetaData:
        """The metadata of the file with bytes in the place of INT96, see `int96`."""
        return parse_metadata(footer_as_bytes(self._footer, self.source.name), self.source.name)

    def _arrow_schema(self) -> pa.Schema:
        """The columns as Arrow describes them, with INT96 in the requested unit."""
        with naming_damage(self.source.name, "damaged footer"):
            return arrow_file(pa.BufferReader(b""), self.metadata).schema_arrow

    def _has_rows(self, group: int) -> bool:
        if not 0 <= group < len(self.group_rows):
            raise FormatError(
                "no such row group",
                file=self.source.name,
                found=group,
                expected=f"0 to {len(self.group_rows) - 1}" if self.group_rows else "none",
            )
        return self.group_rows[group] > 0

    @cached_property
    def _positions(self) -> ColumnPositions:
        return ColumnPositions((field.name for field in self.fields), self.source.name)

    @cached_property
    def statistics(self) -> FooterStatistics:
        """What the footer says of its columns, as far as it is trusted.

        Raises:
            FormatError: It is damaged.
        """
        return FooterStatistics(self._parsed, self.source.name)

    @cached_property
    def _parsed(self) -> Footer:
        return parse_footer(self.source, self._footer)

    @cached_property
    def _groups(self) -> dict[int, RowGroup]:
        """The row groups that have rows, by their numbers."""
        footer = self._parsed
        numbers = [number for number, rows in enumerate(self.group_rows) if rows]
        if [group.rows for group in footer.groups] != [
            self.group_rows[group_number] for group_number in numbers
        ]:
            raise FormatError("bad row group in the metadata", file=self.source.name)
        return dict(zip(numbers, footer.groups, strict=True))

    def _chunks(self, group: int, leaves: Sequence[int]) -> list[Chunk]:
        every = self._groups[group].chunks
        if len(every) != self.metadata.num_columns:
            raise FormatError(
                "bad row group in the metadata",
                file=self.source.name,
                found=f"{len(every)} columns",
                expected=self.metadata.num_columns,
            )
        chunks: list[Chunk] = []
        for leaf in leaves:
            chunk = every[leaf]
            if chunk is None:
                name = next(field.name for field in self.fields if leaf in field.leaves)
                raise UnsupportedError(f"{self.source.name}: column {name}: encrypted")
            chunks.append(chunk)
        return chunks

    def _fetch(
        self, groups: Sequence[int], leaves: Sequence[int], reader: RangeReader
    ) -> CachedSource:
        """The file, with the column chunks in memory."""
        chunks = [chunk for group in groups for chunk in self._chunks(group, leaves)]
        ranges = [(chunk.offset, chunk.length) for chunk in chunks]
        if not ranges:
            return CachedSource(self.source)
        responses = reader.fetch(*np.array(ranges, np.int64).T)
        parts = ((offset, responses.range(offset, length)) for offset, length in ranges)
        return CachedSource(self.source, parts)
