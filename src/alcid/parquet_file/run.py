"""Files that agree about their columns, read together: plan, fetch, decode, take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import ReadMany, Source, read_each
from alcid.parquet_file.decoding import check_decimals, take_rows
from alcid.parquet_file.int96 import as_bytes, has_int96, restore_int96
from alcid.parquet_file.layout import ColumnLayout
from alcid.parquet_file.page_header import values_of_pages
from alcid.parquet_file.pages import PageSet, Segments, select_pages, select_segments
from alcid.parquet_file.report import ReadReport
from alcid.parquet_file.requests import Coalescing, Fetched, RangeReader
from alcid.parquet_file.schema import Field
from alcid.parquet_file.virtual import DATA_START, arrow_schema, assemble, decode

__all__ = ["Wanted", "read_run"]

Integers = npt.NDArray[np.int64]

_BATCH = 16 << 20
"""Bytes that are fetched and decoded at a time, or as many as a row group has."""


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """Rows of a file, at least one."""

    source: Source
    starts: Integers
    """The first row of each row group, then the number of rows."""
    columns: tuple[ColumnLayout, ...]
    positions: Integers

    @property
    def kind(self) -> tuple[tuple[Field, bool], ...]:
        """Files that are alike in this are decoded together."""
        return tuple((column.field, not column.whole) for column in self.columns)


def read_run(
    files: Sequence[Wanted],
    coalescing: Coalescing,
    report: ReadReport,
    read_ranges: ReadMany = read_each,
) -> pa.Table:
    """Read the rows of files of one kind, of at least one column.

    Raises:
        FormatError: A file is damaged.
        UnsupportedError: INT96 timestamps or decimals of rows that are wanted do not fit their
            type.
    """
    segments = select_segments([file.starts for file in files], [file.positions for file in files])
    reader = RangeReader([file.source for file in files], coalescing, report, read_ranges)
    columns = list(zip(*(file.columns for file in files), strict=True))
    batches = _Batches(segments, reader, tuple(layouts[0].field for layouts in columns))
    sets = select_pages(columns, reader.bases, segments)
    report.row_groups += len(segments.touched)
    for each in sets:
        report.pages += int(np.count_nonzero(each.rows)) * len(each.starts) if each.paged else 0
    report.whole.update((first.field.name, first.whole) for first, *_ in columns if first.whole)
    try:
        return batches.read(sets)
    except FormatError:
        # The metadata may be wrong in that pages need no dictionary; the pages themselves know.
        again = select_pages(columns, reader.bases, segments, every_dictionary=True)
        if all(
            np.array_equal(one.lengths, two.lengths) for one, two in zip(sets, again, strict=True)
        ):
            raise
        return batches.read(again)


def _cut(sets: Sequence[PageSet], segments: int) -> Iterator[tuple[int, int]]:
    """Runs of segments of not much more than the bytes of a batch."""
    sizes = np.zeros(segments, np.int64)
    for each in sets:
        sizes += np.add.reduceat(each.lengths.sum(axis=0), each.cuts[:-1])
    numbers = (np.cumsum(sizes) - sizes) // _BATCH
    cuts = (np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()
    return pairwise((0, *cuts, segments))


@dataclass(frozen=True, slots=True, eq=False)
class _Batches:
    """Reads some segments at a time."""

    segments: Segments
    reader: RangeReader
    fields: tuple[Field, ...]

    def read(self, sets: Sequence[PageSet]) -> pa.Table:
        """The rows of all segments."""
        tables = [
            self._read(sets, begin, end) for begin, end in _cut(sets, len(self.segments.touched))
        ]
        return pa.concat_tables(tables) if len(tables) > 1 else tables[0]

    def _read(self, sets: Sequence[PageSet], begin: int, end: int) -> pa.Table:
        """The rows of the segments from `begin` to before `end`."""
        slots = [_slots(each, begin, end) for each in sets]
        fetched = self.reader.fetch(
            np.concatenate([starts for starts, _ in slots]),
            np.concatenate([lengths for _, lengths in slots]),
        )
        found: dict[int, tuple[pa.Field, pa.ChunkedArray]] = {}
        for each in sets:
            table = self._decode_or_name(each, fetched, begin, end)
            columns = zip(table.schema, table.columns, strict=True)
            found.update(zip(each.columns, columns, strict=True))
        fields, arrays = zip(*(found[place] for place in range(len(found))), strict=True)
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def _decode_or_name(self, pages: PageSet, fetched: Fetched, begin: int, end: int) -> pa.Table:
        try:
            return self._decode(pages, fetched, begin, end)
        except (FormatError, UnsupportedError):
            # Which file is it? The first that cannot be decoded alone.
            for segment in range(begin, end) if end - begin > 1 else ():
                self._decode(pages, fetched, segment, segment + 1)
            raise

    def _decode(self, pages: PageSet, fetched: Fetched, begin: int, end: int) -> pa.Table:
        first, last = pages.cuts[begin], pages.cuts[end]
        bases, bounds = pages.bases, self.segments.bounds
        starts, lengths = _slots(pages, begin, end)
        name, _ = self.reader.place(int(starts[0]))
        fields = tuple(self.fields[place] for place in pages.columns)
        with_int96 = [place for place, field in enumerate(fields) if has_int96(field)]
        data = assemble(
            tuple(map(as_bytes, fields)) if with_int96 else fields,
            pages.codecs[:, begin:end],
            pages.values[:, begin:end],
            np.add.reduceat(pages.lengths[:, first:last], pages.cuts[begin:end] - first, axis=1),
            bases[begin + 1 : end + 1] - bases[begin:end],
            fetched.ranges(starts, lengths),
        )
        if pages.paged:
            self._check_pages(pages, data, first, last)
        table = decode(data, name)
        rows = int(bases[end] - bases[begin])
        if table.shape != (rows, len(pages.columns)):
            raise FormatError(
                "damaged pages",
                file=name,
                found=f"{table.num_rows} rows of {table.num_columns} columns",
                expected=f"{rows} rows of {len(pages.columns)} columns",
            )
        wanted = slice(int(bounds[begin]), int(bounds[end]))
        if wanted.stop - wanted.start < rows:
            table = take_rows(table, pa.array(pages.index[wanted] - bases[begin]))
        if with_int96:
            schema = arrow_schema(tuple(fields[place] for place in with_int96), name)
            table = restore_int96(table, dict(zip(with_int96, schema, strict=True)), name)
        check_decimals(table, name)
        return table

    def _check_pages(self, pages: PageSet, data: pa.Buffer, first: int, last: int) -> None:
        """Compare each page's own number of values with the rows that it must hold."""
        lengths = pages.lengths[:, first:last]
        places = DATA_START + np.cumsum(lengths).reshape(lengths.shape) - lengths
        is_page = pages.rows[first:last] > 0
        rows = np.broadcast_to(pages.rows[first:last], lengths.shape)[:, is_page].ravel()
        values = values_of_pages(data, places[:, is_page].ravel(), lengths[:, is_page].ravel())
        if (values != rows).any():
            wrong = int((values != rows).argmax())
            addresses = pages.starts[:, first:last][:, is_page].ravel()
            file, offset = self.reader.place(int(addresses[wrong]))
            raise FormatError(
                "bad page header",
                file=file,
                offset=offset,
                found=f"{values[wrong]} values" if values[wrong] >= 0 else "no data page",
                expected=f"{rows[wrong]} values",
            )


def _slots(pages: PageSet, begin: int, end: int) -> tuple[Integers, Integers]:
    """The ranges of some segments, leaf by leaf, without those that are empty."""
    first, last = pages.cuts[begin], pages.cuts[end]
    starts = pages.starts[:, first:last].ravel()
    lengths = pages.lengths[:, first:last].ravel()
    filled = lengths > 0
    return starts[filled], lengths[filled]
