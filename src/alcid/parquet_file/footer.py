"""The footer of a Parquet file: where its column chunks are."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import ReadMany, Source, read_each
from alcid.parquet_file.report import ReadReport
from alcid.parquet_file.tail import END, MAGIC, footer_length, read_tails
from alcid.parquet_file.thrift import AS_STORED, Choice, Struct, StructReader, get

__all__ = ["Chunk", "Footer", "RowGroup", "parse_footer", "read_footer"]

_MOST_CODECS = 64  # 8 are known; a number of one byte
_DATA_PAGES = (0, 3)
_PAGES: Choice = {1: None, 2: None, 3: None}
_COLUMN: Choice = {4: None, 5: None, 7: None, 9: None, 11: None, 12: AS_STORED, 13: _PAGES}
_CHUNK: Choice = {1: None, 3: _COLUMN, 4: None, 5: None, 8: {}}
_METADATA: Choice = {3: None, 4: {1: _CHUNK, 3: None}, 5: None, 6: None, 7: None}
_DICTIONARY = (2, 8)  # encodings: the old number, and the one of today


@dataclass(frozen=True, slots=True)
class Chunk:
    """One leaf column of a row group."""

    codec: int
    values: int
    """With nulls and, in a list, as many as its elements."""
    offset: int
    """Where it begins: with the dictionary page if it has one."""
    length: int
    offset_index: tuple[int, int] | None
    """Where its offset index is, and how long."""
    coded_pages: int | None
    """How many data pages need the dictionary, if that is known."""
    statistics: bytes
    """As they are stored, and not to be trusted: see `alcid.parquet_file.statistics`."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group; a chunk that is encrypted is None."""

    rows: int
    chunks: tuple[Chunk | None, ...]


@dataclass(frozen=True, slots=True)
class Footer:
    """What a footer says, as far as rows are read by it."""

    groups: tuple[RowGroup, ...]
    """Without those that have no rows."""
    group_rows: tuple[int, ...]
    """The rows of every row group; together they are the rows of the file."""
    stated_rows: int
    """The rows that the file states beside, which need not be right."""
    elements: tuple[bytes, ...]
    """The schema elements, each as it was written, the root first."""
    metadata: dict[bytes, bytes]
    """Keys and values that the writer left, such as ARROW:schema."""
    created_by: bytes
    column_orders: tuple[int, ...]
    """For each leaf column the field that its order is in Parquet's union; 0: not known."""
    tail: bytes
    """The last bytes of the file, as far as they were read."""

    @property
    def crc(self) -> int:
        """CRC-32 of the metadata, its length and the magic."""
        return zlib.crc32(self.tail[-END - footer_length(self.tail) :])


def read_footer(source: Source, report: ReadReport, read_ranges: ReadMany = read_each) -> Footer:
    """Read the footer: one request, or a second one if it is longer than 64 KiB.

    Raises:
        FormatError: It is not the footer of a Parquet file.
        UnsupportedError: It is encrypted, or its columns lie in other files.
    """
    (tail,) = read_tails([source], report, read_ranges)
    return parse_footer(source, tail)


def parse_footer(source: Source, tail: bytes) -> Footer:
    """The footer at the end of a file; for its errors, see `read_footer`."""
    name = source.name
    length = footer_length(tail)
    begin = source.size - END - length
    reader = StructReader(tail[-END - length : -END], name=name, offset=begin)
    elements = tuple(reader.spans(2))
    metadata = reader.struct(_METADATA)
    groups = _structs(metadata, 4, name)
    return Footer(
        tuple(_groups(groups, begin, name)),
        tuple(get(group, 3, int, file=name) for group in groups),
        get(metadata, 3, int, file=name),
        elements,
        {
            get(pair, 1, bytes, file=name): get(pair, 2, bytes, b"", file=name)
            for pair in _structs(metadata, 5, name)
        },
        get(metadata, 6, bytes, b"", file=name),
        tuple(next(iter(one), 0) for one in _structs(metadata, 7, name)),
        tail,
    )


def _structs(values: Struct, number: int, file: str) -> list[Struct]:
    found = get(values, number, list, [], file=file)
    if not all(type(one) is dict for one in found):
        raise FormatError(f"bad field {number} in the metadata", file=file, expected="structs")
    return found


def _groups(groups: list[Struct], end: int, file: str) -> Iterator[RowGroup]:
    """The row groups that have rows; the chunks of the others lie nowhere."""
    for values in groups:
        rows = get(values, 3, int, file=file)
        if rows < 0:
            raise FormatError("bad row group in the metadata", file=file, found=f"{rows} rows")
        if rows:
            chunks = _structs(values, 1, file)
            yield RowGroup(rows, tuple(_chunk(one, end, file) for one in chunks))


def _chunk(values: Struct, end: int, file: str) -> Chunk | None:
    """A column chunk of a file whose pages end before `end`."""
    if 1 in values:
        raise UnsupportedError(f"{file}: its columns lie in other files")
    if 8 in values:
        return None
    inner = get(values, 3, dict, file=file)
    offset, dictionary = (
        get(inner, 9, int, file=file),
        get(inner, 11, int, 0, file=file),
    )
    if 0 < dictionary < offset:
        offset = dictionary
    length, codec = get(inner, 7, int, file=file), get(inner, 4, int, file=file)
    if offset < len(MAGIC) or length < 0 or offset + length > end:
        raise FormatError(
            "column chunk outside of the file",
            file=file,
            offset=offset,
            found=f"{length} bytes",
            expected=f"within {len(MAGIC)} to {end}",
        )
    if not 0 <= codec < _MOST_CODECS:
        raise FormatError("unknown codec in the metadata", file=file, found=codec)
    place = get(values, 4, int, 0, file=file), get(values, 5, int, 0, file=file)
    if place[0] < 0 or place[1] < 0 or sum(place) > end:
        raise FormatError("offset index outside of the file", file=file, offset=place[0])
    return Chunk(
        codec,
        get(inner, 5, int, file=file),
        offset,
        length,
        place if place[1] else None,
        _coded_pages(_structs(inner, 13, file), file),
        get(inner, 12, bytes, b"", file=file),
    )


def _coded_pages(statistics: list[Struct], file: str) -> int | None:
    """The data pages with a dictionary, of statistics that count pages by kind and encoding."""
    counts = [tuple(get(one, number, int, file=file) for number in (1, 2, 3)) for one in statistics]
    data = [(encoding, count) for kind, encoding, count in counts if kind in _DATA_PAGES]
    if not data:
        return None
    return sum(count for encoding, count in data if encoding in _DICTIONARY)
