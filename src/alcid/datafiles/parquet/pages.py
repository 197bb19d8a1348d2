"""Pages that hold requested rows, of several files and columns at once: plan, fetch, decode, take.

The files of a read are thought of as one after the other: rows, row groups and bytes are numbered
through. A row group that holds a requested row is a *segment*. Columns whose pages begin at the
same rows are planned, and later decoded, together.

A page must hold the rows that the offset index says, so the first fields of its header are read:

    15 kind  15 bytes decoded  15 bytes  [15 checksum]  2c 15 values ...     kind 0, a data page
    15 kind  15 bytes decoded  15 bytes  [15 checksum]  5c 15 values ...     kind 3, version 2

The header of the data page is field 5 or 8, so its first byte is one less after a checksum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.datafiles.parquet.decoding import check_decimals, take_rows
from alcid.datafiles.parquet.int96 import as_bytes, has_int96, restore_int96
from alcid.datafiles.parquet.layout import ColumnLayout, LeafLayout
from alcid.datafiles.parquet.schema import Field
from alcid.datafiles.parquet.thrift import StructReader, get, read_varints, unzigzag
from alcid.datafiles.parquet.virtual import (
    DATA_START,
    arrow_schema,
    assemble,
    decode,
)
from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import ReadMany, Source, read_each
from alcid.storage.ranges import Coalescing, RangeReader, ReadReport, Responses


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """The row groups of several files that hold given rows."""

    positions: Int64Array
    """The rows, numbered through all files, ascending."""
    bases: Int64Array
    """The number of each file's first row, then the number of rows."""
    starts: Int64Array
    """The number of each row group's first row, then the number of rows."""
    touched: Int64Array
    """The row groups that hold a position: the segments."""
    bounds: Int64Array
    """The first position of each segment, then the number of positions."""


def select_segments(starts: Sequence[Int64Array], positions: Sequence[Int64Array]) -> Segments:
    """Number rows and row groups through, and see which row groups are needed.

    Args:
        starts: For each file the first row of each row group, then its rows.
        positions: For each file the requested rows.

    >>> segments = select_segments(
    ...     [np.array([0, 5, 9]), np.array([0, 4])], [np.array([6, 8]), np.array([3])]
    ... )
    >>> segments.positions.tolist(), segments.touched.tolist(), segments.bounds.tolist()
    ([6, 8, 12], [1, 2], [0, 2, 3])
    """
    bases = np.cumsum([0, *(int(file[-1]) for file in starts)])
    rows = _through(positions, bases)
    groups = np.append(_through([file[:-1] for file in starts], bases), bases[-1])
    bounds = np.searchsorted(rows, groups)
    touched = np.flatnonzero(bounds[1:] - bounds[:-1])
    return Segments(rows, bases, groups, touched, np.append(bounds[touched], len(rows)))


@dataclass(frozen=True, slots=True, eq=False)
class PageSet:
    """What is read of columns whose pages begin at the same rows.

    What is read of a chunk is a run of slots: one for its dictionary page, which may be empty, and
    one for each page that holds a position. Arrays of two dimensions have a row for each leaf.
    """

    columns: tuple[int, ...]
    """The places of the columns among those that are read."""
    paged: bool
    """The slots are data pages, not whole chunks."""
    starts: Int64Array
    """The address of each slot, of each leaf."""
    lengths: Int64Array
    """The bytes of each slot, of each leaf."""
    rows: Int64Array
    """The rows of each slot; 0 of a dictionary page."""
    cuts: Int64Array
    """The first slot of each segment, then the number of slots."""
    codecs: Int64Array
    """Of each segment, of each leaf."""
    values: Int64Array
    """Of each segment, of each leaf."""
    bases: Int64Array
    """The rows in all slots before each segment, then in all."""
    index: Int64Array
    """The place of each position among the rows of all slots."""


def select_pages(
    columns: Sequence[Sequence[ColumnLayout]],
    addresses: Int64Array,
    segments: Segments,
    *,
    every_dictionary: bool = False,
) -> list[PageSet]:
    """Choose the pages that hold the positions.

    Args:
        columns: Each column in each file; of a column, either pages are known in every file or
            whole chunks are read.
        addresses: The address of each file's first byte.
        segments: The positions.
        every_dictionary: Also those that the pages do not use, as far as the layout says.
    """
    alike: dict[tuple[bool, bytes], list[int]] = {}
    for position, layouts in enumerate(columns):
        firsts = _firsts(layouts, segments)
        alike.setdefault((not layouts[0].whole, firsts.tobytes()), []).append(position)
    return [
        _select(
            positions,
            paged,
            [columns[position] for position in positions],
            addresses,
            segments,
            every_dictionary,
        )
        for (paged, _), positions in alike.items()
    ]


def _select(
    places: Sequence[int],
    paged: bool,
    columns: Sequence[Sequence[ColumnLayout]],
    addresses: Int64Array,
    segments: Segments,
    every_dictionary: bool,
) -> PageSet:
    positions, touched = segments.positions, segments.touched
    firsts = _firsts(columns[0], segments)
    bounds = np.searchsorted(positions, np.append(firsts, segments.bases[-1]))
    counts = bounds[1:] - bounds[:-1]
    needed = np.flatnonzero(counts)
    rows = np.append(firsts[1:], segments.bases[-1])[needed] - firsts[needed]
    before = np.cumsum(rows) - rows
    if len(positions) == rows.sum():  # all rows of all these pages
        index = np.arange(len(positions))
    else:
        index = positions - np.repeat(firsts[needed] - before, counts[needed])

    # The slots: before the first page of each segment comes its dictionary.
    heads = np.searchsorted(firsts, segments.starts[touched])
    cuts = np.searchsorted(needed, heads)
    dictionaries = cuts + np.arange(len(cuts))
    pages = np.ones(len(needed) + len(cuts), np.bool_)
    pages[dictionaries] = False
    leaves = [
        [layout.leaves[leaf] for layout in column]
        for column in columns
        for leaf in range(len(column[0].leaves))
    ]
    codecs, values, begins, coded = _stacked(leaves, "groups", addresses, 2)[:, :, touched]
    offsets, sizes, _ = _stacked(leaves, "pieces", addresses, 0)
    starts = np.empty((len(leaves), len(pages)), np.int64)
    starts[:, pages] = offsets[:, needed]
    starts[:, dictionaries] = begins
    lengths = np.empty_like(starts)
    lengths[:, pages] = sizes[:, needed]
    # Where a dictionary grew too large, the writer went on without it.
    uses = firsts[needed[cuts]] - segments.starts[touched] < coded
    lengths[:, dictionaries] = np.where(uses | every_dictionary, offsets[:, heads] - begins, 0)
    slot_rows = np.zeros(len(pages), np.int64)
    slot_rows[pages] = rows
    return PageSet(
        tuple(places),
        paged,
        starts,
        lengths,
        slot_rows,
        np.append(dictionaries, len(pages)),
        codecs,
        np.broadcast_to(np.add.reduceat(rows, cuts), codecs.shape) if paged else values,
        np.append(before[cuts], rows.sum()),
        index,
    )


def _firsts(layouts: Sequence[ColumnLayout], segments: Segments) -> Int64Array:
    """The first row of each page of a column, numbered through."""
    return _through([layout.leaves[0].pieces[2] for layout in layouts], segments.bases)


def _stacked(
    leaves: Sequence[Sequence[LeafLayout]], name: str, addresses: Int64Array, row: int
) -> Int64Array:
    """The arrays of each leaf in each file: (rows, leaves, numbers of all files).

    The numbers of one row count from the beginning of their file and become addresses.
    """
    files = [
        np.stack([getattr(leaf, name) for leaf in file], axis=1)
        for file in zip(*leaves, strict=True)
    ]
    joined: Int64Array = files[0] if len(files) == 1 else np.concatenate(files, axis=2)
    joined[row] += np.repeat(addresses, [file.shape[2] for file in files])
    return joined


def _through(parts: Sequence[Int64Array], bases: Int64Array) -> Int64Array:
    """Numbers of several files, each counted from its file's base."""
    moved = [part + base for part, base in zip(parts, bases.tolist(), strict=False)]
    return np.concatenate(moved) if len(moved) > 1 else moved[0]


_MOST_BYTES = 32  # of these fields: 5 numbers of up to 5 bytes, and their headers
_NUMBERS = 11
"""So many varints are read, the field headers counted; without a checksum two of them are more."""


def values_of_pages(data: bytes | pa.Buffer, starts: Int64Array, sizes: Int64Array) -> Int64Array:
    """The number of values that each page's header gives; -1 for what is no data page.

    >>> page = bytes.fromhex("15 00 15 10 15 10 2c 15 04 15 00 15 06 15 06 00 00") + bytes(8)
    >>> values_of_pages(page, np.array([0]), np.array([len(page)])).tolist()
    [2]
    """
    window = np.arange(_MOST_BYTES)
    whole = np.frombuffer(data, np.uint8)
    heads = whole[np.minimum(starts[:, None] + window, len(whole) - 1)]
    numbers = read_varints(
        heads.ravel(), np.arange(len(starts)) * _MOST_BYTES, np.full(len(starts), _NUMBERS)
    ).reshape(-1, _NUMBERS)
    checked = (numbers[:, 6] == 0x15).astype(np.int64)
    rows = np.arange(len(starts))
    head, mark, values = (numbers[rows, 6 + 2 * checked + more] for more in range(3))
    kinds = unzigzag(numbers[:, 1])
    regular = (numbers[:, 0:5:2] == 0x15).all(axis=1) & (mark == 0x15) & (values >= 0)
    regular &= ((kinds == 0) & (head == 0x2C - 0x10 * checked)) | (
        (kinds == 3) & (head == 0x5C - 0x10 * checked)
    )
    counts = np.where(regular, unzigzag(values), -1)
    for number in np.flatnonzero(~regular).tolist():
        begin = int(starts[number])
        counts[number] = _values(whole[begin : begin + int(sizes[number])].tobytes())
    return counts


def _values(page: bytes) -> int:
    """Field by field, for a header that is not written as all known writers do."""
    try:
        header = StructReader(page).struct()
        kind = get(header, 1, int, file="")
        return get(get(header, 8 if kind == 3 else 5, dict, file=""), 1, int, file="")
    except FormatError:
        return -1


_BATCH = 16 << 20
"""Bytes that are responses and decoded at a time, or as many as a row group has."""


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """Rows of a file, at least one."""

    source: Source
    starts: Int64Array
    """The first row of each row group, then the number of rows."""
    columns: tuple[ColumnLayout, ...]
    positions: Int64Array

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
            np.array_equal(before.lengths, after.lengths)
            for before, after in zip(sets, again, strict=True)
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
        responses = self.reader.fetch(
            np.concatenate([starts for starts, _ in slots]),
            np.concatenate([lengths for _, lengths in slots]),
        )
        by_position: dict[int, tuple[pa.Field, pa.ChunkedArray]] = {}
        for each in sets:
            table = self._decode_or_name(each, responses, begin, end)
            columns = zip(table.schema, table.columns, strict=True)
            by_position.update(zip(each.columns, columns, strict=True))
        fields, arrays = zip(
            *(by_position[position] for position in range(len(by_position))), strict=True
        )
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def _decode_or_name(
        self, pages: PageSet, responses: Responses, begin: int, end: int
    ) -> pa.Table:
        try:
            return self._decode(pages, responses, begin, end)
        except (FormatError, UnsupportedError):
            # Which file is it? The first that cannot be decoded alone.
            for segment in range(begin, end) if end - begin > 1 else ():
                self._decode(pages, responses, segment, segment + 1)
            raise

    def _decode(self, pages: PageSet, responses: Responses, begin: int, end: int) -> pa.Table:
        first, last = pages.cuts[begin], pages.cuts[end]
        bases, bounds = pages.bases, self.segments.bounds
        starts, lengths = _slots(pages, begin, end)
        name, _ = self.reader.locate(int(starts[0]))
        fields = tuple(self.fields[position] for position in pages.columns)
        with_int96 = [position for position, field in enumerate(fields) if has_int96(field)]
        data = assemble(
            tuple(map(as_bytes, fields)) if with_int96 else fields,
            pages.codecs[:, begin:end],
            pages.values[:, begin:end],
            np.add.reduceat(pages.lengths[:, first:last], pages.cuts[begin:end] - first, axis=1),
            bases[begin + 1 : end + 1] - bases[begin:end],
            responses.joined(starts, lengths),
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
            schema = arrow_schema(tuple(fields[position] for position in with_int96), name)
            table = restore_int96(table, dict(zip(with_int96, schema, strict=True)), name)
        check_decimals(table, name)
        return table

    def _check_pages(self, pages: PageSet, data: pa.Buffer, first: int, last: int) -> None:
        """Compare each page's own number of values with the rows that it must hold."""
        lengths = pages.lengths[:, first:last]
        offsets = DATA_START + np.cumsum(lengths).reshape(lengths.shape) - lengths
        is_page = pages.rows[first:last] > 0
        rows = np.broadcast_to(pages.rows[first:last], lengths.shape)[:, is_page].ravel()
        values = values_of_pages(data, offsets[:, is_page].ravel(), lengths[:, is_page].ravel())
        if (values != rows).any():
            wrong = int((values != rows).argmax())
            addresses = pages.starts[:, first:last][:, is_page].ravel()
            file, offset = self.reader.locate(int(addresses[wrong]))
            raise FormatError(
                "bad page header",
                file=file,
                offset=offset,
                found=f"{values[wrong]} values" if values[wrong] >= 0 else "no data page",
                expected=f"{rows[wrong]} values",
            )


def _slots(pages: PageSet, begin: int, end: int) -> tuple[Int64Array, Int64Array]:
    """The ranges of some segments, leaf by leaf, without those that are empty."""
    first, last = pages.cuts[begin], pages.cuts[end]
    starts = pages.starts[:, first:last].ravel()
    lengths = pages.lengths[:, first:last].ravel()
    filled = lengths > 0
    return starts[filled], lengths[filled]
