"""The layout of a file: where its pages are, which is all it takes to read rows without its footer.

A layout is made of plain arrays, bytes and text, so that it can be stored in an index. Row groups
without rows and pages without values are left out. It is read from the footer and the offset
indexes, which say where the pages of a column chunk are, and which rows they begin with. An offset
index is a struct whose field 1 is a list of page locations, for three pages:

    19 3c | 16 offset 15 size 16 first row 00 | 16 ... 00 | 16 ... 00 | 00

The size is that of the page with its header, the first row counts from the row group's first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from alcid._arrays import Int64Array
from alcid.datafiles.parquet.decoding import ColumnPositions
from alcid.datafiles.parquet.footer import (
    Chunk,
    Footer,
    RowGroup,
    read_footer,
)
from alcid.datafiles.parquet.schema import Field, arrow_fields, split_fields
from alcid.datafiles.parquet.thrift import StructReader, get, read_varints, unzigzag
from alcid.errors import ColumnError, FormatError
from alcid.formats.source import ReadMany, Source, read_each
from alcid.storage.ranges import Coalescing, RangeReader, ReadReport

_MAGIC_LENGTH = 4  # nothing begins before the file's first four bytes
_MOST_CODECS = 64  # 8 are known; the number is one byte
_MOST_VALUES = 1 << 33  # of a chunk; Arrow itself stops at 2^31
_MOST_BYTES = 1 << 61


@dataclass(frozen=True, slots=True, eq=False)
class LeafLayout:
    """The chunks of a leaf column, and the pieces in which they are read.

    A piece is a data page; where pages are not known, the whole chunk. What lies in a chunk before
    its first piece is its dictionary page.
    """

    groups: Int64Array
    """For each row group: codec, values, where the chunk begins, and how many of its first rows
    may need the dictionary. An array of 4 rows."""
    pieces: Int64Array
    """For each piece: offset, size, first row counted from the file's first. 3 rows."""

    def problem(self, starts: Int64Array, *, flat: bool) -> str:
        """Why these cannot be the pieces of a leaf, or an empty text.

        Args:
            starts: The first row of each row group, then the number of rows.
            flat: There is a value for each row.
        """
        if self.groups.shape != (4, len(starts) - 1) or len(self.pieces) != 3:
            return f"arrays of {self.groups.shape} and {self.pieces.shape}"
        codecs, values, begins, _ = self.groups
        offsets, sizes, rows = self.pieces
        if ((codecs < 0) | (codecs >= _MOST_CODECS)).any():
            return "an unknown codec"
        if (values != np.diff(starts) if flat else (values < 0) | (values >= _MOST_VALUES)).any():
            return "a number of values that is not that of its rows"
        if (rows[1:] <= rows[:-1]).any() or (rows < 0).any() or (rows >= starts[-1]).any():
            return "first rows that do not ascend"
        firsts = np.searchsorted(rows, starts[:-1])
        if (firsts == len(rows)).any() or (rows[firsts] != starts[:-1]).any():
            return "a row group without a first page"
        if ((sizes <= 0) | (sizes > _MOST_BYTES) | (offsets > _MOST_BYTES)).any():
            return "a page of no size"
        ends = np.zeros(len(rows), np.int64)
        ends[1:] = (offsets + sizes)[:-1]
        ends[firsts] = begins
        if (offsets < ends).any() or (begins < _MAGIC_LENGTH).any():
            return "pages that overlap"
        return ""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnLayout:
    """A top-level column."""

    field: Field
    leaves: tuple[LeafLayout, ...]
    """As many as the field has; none if the column cannot be read at all."""
    whole: str = ""
    """Why whole row groups are read of it; empty if its pages are known."""


@dataclass(frozen=True, eq=False)
class FileLayout:
    """The columns of a file, all or the requested ones.

    Raises:
        FormatError: The arrays contradict each other.
    """

    starts: Int64Array
    """The first row of each row group, then the number of rows."""
    columns: tuple[ColumnLayout, ...]
    file: str = "<layout>"
    """What errors call it."""
    footer_crc: int | None = None
    """CRC-32 of the footer, where it was read for this layout."""

    def __post_init__(self) -> None:
        """Check the arrays, so that whoever reads by them need not."""
        starts = self.starts
        if not len(starts) or starts[0] != 0 or (starts[1:] <= starts[:-1]).any():
            raise FormatError("row groups that do not ascend", file=self.file, found=starts)
        for column in self.columns:
            flat = not column.field.nested
            for leaf in column.leaves:
                problem = leaf.problem(starts, flat=flat)
                if problem:
                    raise FormatError(
                        f"bad layout of column {column.field.name}", file=self.file, found=problem
                    )

    @property
    def rows(self) -> int:
        """The rows of the file."""
        return int(self.starts[-1])

    @cached_property
    def end(self) -> int:
        """Where the last of the pieces ends; the file cannot be shorter."""
        leaves = [leaf.pieces for column in self.columns for leaf in column.leaves]
        return max((int((pieces[0] + pieces[1]).max(initial=0)) for pieces in leaves), default=0)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the file."""
        return tuple(column.field.name for column in self.columns)

    def column(self, name: str) -> ColumnLayout:
        """The column of this name, spelled exactly so.

        Raises:
            ColumnError: There is none, or more than one.
        """
        return self.columns[self._positions.find(name)]

    @cached_property
    def _positions(self) -> ColumnPositions:
        return ColumnPositions(self.names, self.file)


_LIST_OF_STRUCTS = 0x19, 0x0C
_HEADERS = np.array([[0x16], [0x15], [0x16], [0x00]])
_SHORTEST = 7  # bytes of a page location, and its varints, the field headers counted


def parse_offset_indexes(indexes: Sequence[bytes], file: str) -> list[Int64Array]:
    """The offsets, sizes and first rows of the pages: three rows of numbers for each index.

    >>> parse_offset_indexes([bytes.fromhex("19 1c 16 08 15 c801 16 00 00 00")], "a")
    [array([[  4],
           [100],
           [  0]])]

    Raises:
        FormatError: It is no offset index.
    """
    data = b"".join(indexes)
    begins = np.cumsum([0, *map(len, indexes)])
    heads = [_head(index) for index in indexes]
    counts = np.array([count for count, _ in heads], np.int64)
    starts = begins[:-1] + np.array([skip for _, skip in heads], np.int64)
    numbers = read_varints(np.frombuffer(data, np.uint8), starts, _SHORTEST * counts)
    table = numbers.reshape(-1, _SHORTEST).T
    pages = unzigzag(table[1::2])
    regular = (table[::2] == _HEADERS).all(axis=0) & (table[1::2] >= 0).all(axis=0)
    ends = np.cumsum(counts)
    parsed: list[Int64Array] = []
    for index, begin, end in zip(indexes, (ends - counts).tolist(), ends.tolist(), strict=True):
        if end > begin and regular[begin:end].all():
            parsed.append(pages[:, begin:end])
        else:
            parsed.append(_parse(index, file))
    return parsed


def _head(index: bytes) -> tuple[int, int]:
    """How many locations follow, and after how many bytes; (0, 0) if it begins otherwise."""
    if len(index) < 2 or index[0] != _LIST_OF_STRUCTS[0] or index[1] & 15 != _LIST_OF_STRUCTS[1]:
        return 0, 0
    count, skip = index[1] >> 4, 2
    if count == 15:
        count = shift = 0
        while skip < min(len(index), 7):
            byte = index[skip]
            count |= (byte & 0x7F) << shift
            shift += 7
            skip += 1
            if byte < 0x80:
                break
    return (count, skip) if _SHORTEST * count <= len(index) - skip else (0, 0)


def _parse(index: bytes, file: str) -> Int64Array:
    """Field by field, for an index whose writer orders or adds fields as no other does."""
    locations = get(StructReader(index, name=file).struct(), 1, list, file=file)
    rows: list[tuple[int, int, int]] = []
    for location in locations:
        if type(location) is not dict:
            raise FormatError("bad page location in an offset index", file=file)
        offset, size, row = (get(location, number, int, file=file) for number in (1, 2, 3))
        rows.append((offset, size, row))
    if rows and not -(1 << 62) < min(map(min, rows)) <= max(map(max, rows)) < 1 << 62:
        raise FormatError("bad page location in an offset index", file=file)
    return np.array(rows, np.int64).reshape(-1, 3).T


UNPAGED = "no offset index"
"""Why single pages of a column are not read, if its writer has not said where they are."""
_OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


def read_layout(
    source: Source,
    columns: Collection[str] | None = None,
    *,
    report: ReadReport | None = None,
    coalescing: Coalescing | None = None,
    read_ranges: ReadMany = read_each,
) -> FileLayout:
    """Read where the pages of a file are.

    Args:
        source: The file.
        columns: Only these columns, spelled as in the file; by default all.
        report: Counts what is read.
        coalescing: How offset indexes are read that did not come with the footer.
        read_ranges: Reads the ranges of a round; `Storage.read_ranges` for files of a storage.

    Raises:
        FormatError: The footer or an offset index is not what Parquet says.
        UnsupportedError: The footer is encrypted.
        ColumnError: There is no such column.
    """
    report = ReadReport() if report is None else report
    footer = read_footer(source, report, read_ranges)
    fields = _fields(footer, source.name)
    _check_groups(footer, sum(len(field.leaves) for field in fields), source.name)
    groups = footer.groups
    starts = np.cumsum([0, *(group.rows for group in groups)])
    chosen = [
        (field, leaf, _whole(field, leaf, groups, footer))
        for field, leaf in _choose(fields, columns, source.name)
    ]
    paged = [_chunks(groups, leaf) for _, leaf, whole in chosen if not whole]
    reader = RangeReader([source], coalescing or Coalescing(), report, read_ranges)
    pages = iter(_read_pages(source, footer, reader, paged))
    layouts: list[ColumnLayout] = []
    for field, leaf, whole in chosen:
        every = [_chunks(groups, leaf + number) for number in range(len(field.leaves))]
        if any(len(chunks) < len(groups) for chunks in every):
            leaves: tuple[LeafLayout, ...] = ()
        elif whole:
            leaves = tuple(_whole_leaf(chunks, starts) for chunks in every)
        else:
            leaves = (_paged_leaf(every[0], starts, next(pages), source.name),)
        layouts.append(ColumnLayout(field, leaves, whole))
    return FileLayout(starts, tuple(layouts), source.name, footer.crc)


def _fields(footer: Footer, file: str) -> tuple[Field, ...]:
    """The columns, each with what Arrow's own schema says of it."""
    fields = split_fields(footer.elements, file)
    arrow: Sequence[bytes] = [b""] * len(fields)
    if b"ARROW:schema" in footer.metadata:
        try:
            arrow = arrow_fields(footer.metadata[b"ARROW:schema"])
        except FormatError as error:
            raise FormatError(error.problem, file=file) from None
    if len(arrow) != len(fields):
        raise FormatError(
            "damaged ARROW:schema in the metadata",
            file=file,
            found=f"{len(arrow)} columns",
            expected=len(fields),
        )
    return tuple(
        replace(field, arrow=schema, created_by=footer.created_by)
        for field, schema in zip(fields, arrow, strict=True)
    )


def _check_groups(footer: Footer, leaves: int, file: str) -> None:
    for group in footer.groups:
        if len(group.chunks) != leaves:
            raise FormatError(
                "bad row group in the metadata",
                file=file,
                found=f"{len(group.chunks)} columns",
                expected=leaves,
            )


def _choose(
    fields: Sequence[Field], columns: Collection[str] | None, file: str
) -> list[tuple[Field, int]]:
    """The requested columns, each with the number of its first leaf."""
    chosen: list[tuple[Field, int]] = []
    leaf = 0
    for field in fields:
        if columns is None or field.name in columns:
            chosen.append((field, leaf))
        leaf += len(field.leaves)
    missing = set(columns or ()) - {field.name for field, _ in chosen}
    if missing:
        raise ColumnError(f"{file}: column {min(missing)}: found no such column")
    return chosen


def _whole(field: Field, leaf: int, groups: Sequence[RowGroup], footer: Footer) -> str:
    """Why single pages of a column are not read, or an empty text."""
    chunks = _chunks(groups, leaf)
    if len(chunks) < len(groups):
        return "encrypted"
    for key in _OLD_CALENDAR:
        if key in footer.metadata:
            return f"dates of the old calendar ({key.decode()})"
    if field.nested:
        return "nested"
    return "" if all(chunk.offset_index for chunk in chunks) else UNPAGED


def _chunks(groups: Sequence[RowGroup], leaf: int) -> list[Chunk]:
    """The chunks of a leaf column that are not encrypted."""
    return [chunk for group in groups if (chunk := group.chunks[leaf]) is not None]


def _read_pages(
    source: Source, footer: Footer, reader: RangeReader, columns: Sequence[Sequence[Chunk]]
) -> list[list[Int64Array]]:
    """The page locations of each of these leaf columns in each row group."""
    ranges = [chunk.offset_index for chunks in columns for chunk in chunks if chunk.offset_index]
    if not ranges:
        return [[] for _ in columns]
    begin = source.size - len(footer.tail)
    data: list[bytes]
    if min(offset for offset, _ in ranges) >= begin:
        data = [footer.tail[at - begin : at - begin + length] for at, length in ranges]
    else:
        offsets, lengths = np.array(ranges, np.int64).T
        data = reader.fetch(offsets, lengths).each(offsets, lengths)
    parsed = iter(parse_offset_indexes(data, source.name))
    return [[next(parsed) for _ in chunks] for chunks in columns]


def _whole_leaf(chunks: Sequence[Chunk], starts: Int64Array) -> LeafLayout:
    pieces = _columns([(chunk.offset, chunk.length, 0) for chunk in chunks])
    pieces[2] = starts[:-1]
    return LeafLayout(_groups(chunks, np.diff(starts)), pieces)


def _paged_leaf(
    chunks: Sequence[Chunk], starts: Int64Array, pages: Sequence[Int64Array], file: str
) -> LeafLayout:
    counts = [numbers.shape[1] for numbers in pages]
    pieces = np.concatenate(pages, axis=1) if pages else _columns([])
    bounds = _columns([(chunk.offset, chunk.length, 0) for chunk in chunks])
    offsets, sizes, rows = pieces
    within = offsets - np.repeat(bounds[0], counts)
    bad = (within < 0) | (sizes < 0) | (within + sizes > np.repeat(bounds[1], counts))
    if bad.any():
        raise FormatError(
            "page outside of its column chunk", file=file, offset=int(offsets[bad.argmax()])
        )
    coded = np.array(
        [
            _coded_rows(chunk.coded_pages, numbers[2], end)
            for chunk, numbers, end in zip(chunks, pages, np.diff(starts).tolist(), strict=True)
        ],
        np.int64,
    )
    rows += np.repeat(starts[:-1], counts)
    filled = np.diff(rows, append=starts[-1]) != 0
    return LeafLayout(_groups(chunks, coded), pieces[:, filled])


def _coded_rows(pages: int | None, first_rows: Int64Array, rows: int) -> int:
    """The rows of the first so many pages; a writer that gave up a dictionary never returns."""
    return rows if pages is None or pages >= len(first_rows) else int(first_rows[max(pages, 0)])


def _groups(chunks: Sequence[Chunk], coded: Int64Array) -> Int64Array:
    plain = _columns([(chunk.codec, chunk.values, chunk.offset) for chunk in chunks])
    return np.vstack((plain, coded))


def _columns(rows: Sequence[tuple[int, int, int]]) -> Int64Array:
    return np.array(rows, np.int64).reshape(-1, 3).T
