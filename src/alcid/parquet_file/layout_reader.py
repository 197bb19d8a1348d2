"""The layout of a file, from its footer and its offset indexes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from alcid.errors import ColumnError, FormatError
from alcid.formats.source import ReadMany, Source, read_each
from alcid.parquet_file.footer import Chunk, Footer, RowGroup, read_footer
from alcid.parquet_file.layout import ColumnLayout, FileLayout, LeafLayout
from alcid.parquet_file.offset_index import parse_offset_indexes
from alcid.parquet_file.report import ReadReport
from alcid.parquet_file.requests import Coalescing, RangeReader
from alcid.parquet_file.schema import Field, arrow_fields, split_fields

__all__ = ["UNPAGED", "read_layout"]

Integers = npt.NDArray[np.int64]

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
        report: Is told what was read.
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
        every = [_chunks(groups, leaf + place) for place in range(len(field.leaves))]
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
    """The columns that are asked for, each with the number of its first leaf."""
    found: list[tuple[Field, int]] = []
    leaf = 0
    for field in fields:
        if columns is None or field.name in columns:
            found.append((field, leaf))
        leaf += len(field.leaves)
    missing = set(columns or ()) - {field.name for field, _ in found}
    if missing:
        raise ColumnError(f"{file}: column {min(missing)}: found no such column")
    return found


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
) -> list[list[Integers]]:
    """The page locations of each of these leaf columns in each row group."""
    places = [chunk.offset_index for chunks in columns for chunk in chunks if chunk.offset_index]
    if not places:
        return [[] for _ in columns]
    begin = source.size - len(footer.tail)
    data: list[bytes]
    if min(offset for offset, _ in places) >= begin:
        data = [footer.tail[at - begin : at - begin + length] for at, length in places]
    else:
        offsets, lengths = np.array(places, np.int64).T
        fetched = reader.fetch(offsets, lengths)
        data = [bytes(fetched.range(*place)) for place in places]
    parsed = iter(parse_offset_indexes(data, source.name))
    return [[next(parsed) for _ in chunks] for chunks in columns]


def _whole_leaf(chunks: Sequence[Chunk], starts: Integers) -> LeafLayout:
    pieces = _columns([(chunk.offset, chunk.length, 0) for chunk in chunks])
    pieces[2] = starts[:-1]
    return LeafLayout(_groups(chunks, np.diff(starts)), pieces)


def _paged_leaf(
    chunks: Sequence[Chunk], starts: Integers, pages: Sequence[Integers], file: str
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


def _coded_rows(pages: int | None, first_rows: Integers, rows: int) -> int:
    """The rows of the first so many pages; a writer that gave up a dictionary never returns."""
    return rows if pages is None or pages >= len(first_rows) else int(first_rows[max(pages, 0)])


def _groups(chunks: Sequence[Chunk], coded: Integers) -> Integers:
    plain = _columns([(chunk.codec, chunk.values, chunk.offset) for chunk in chunks])
    return np.vstack((plain, coded))


def _columns(rows: Sequence[tuple[int, int, int]]) -> Integers:
    return np.array(rows, np.int64).reshape(-1, 3).T
