"""The footer of a Parquet file: schema, row groups and column chunks.

    pages ... | column indexes | offset indexes | footer: FileMetaData | u32 its length | PAR1

It is read together with what lies before it, usually the offset indexes. Arrow parses it in C++
(`parse_metadata`) but hides where offset indexes are, and what of the statistics was written; for
these it is parsed here (`parse_footer`), of long footers only the column chunks that are requested.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, overload

import pyarrow as pa
import pyarrow.parquet as pq

from alcid.datafiles.parquet.decoding import naming_damage
from alcid.datafiles.parquet.thrift import (
    AS_STORED,
    Choice,
    Lazy,
    LazyStructs,
    Struct,
    StructReader,
    get,
)
from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import Range, ReadMany, Source, read_each
from alcid.storage.ranges import ReadReport, read_counted


class ScanField(NamedTuple):
    """A top-level column."""

    name: str
    leaves: range
    """The numbers of its leaf columns, as in `pq.FileMetaData`."""


def parse_metadata(footer: bytes, file: str) -> pq.FileMetaData:
    """A footer with all that follows it in the file.

    Raises:
        FormatError: It is damaged.
    """
    with naming_damage(file, "damaged footer"):
        return pq.read_metadata(pa.BufferReader(footer))


def scan_fields(metadata: pq.FileMetaData, file: str) -> tuple[ScanField, ...]:
    """The top-level columns.

    Raises:
        FormatError: The schemas of Parquet and of Arrow contradict each other.
    """
    with naming_damage(file, "damaged footer"):
        schema = metadata.schema.to_arrow_schema()
    fields: list[ScanField] = []
    begin = 0
    for field in schema:
        end = begin + leaf_count(field.type)
        fields.append(ScanField(field.name, range(begin, end)))
        begin = end
    if begin != metadata.num_columns:
        raise FormatError(
            "damaged footer",
            file=file,
            found=f"{metadata.num_columns} leaf columns",
            expected=begin,
        )
    return tuple(fields)


def leaf_count(kind: pa.DataType) -> int:
    """How many leaf columns of Parquet hold a column of a type."""
    if isinstance(kind, pa.BaseExtensionType):
        return leaf_count(kind.storage_type)
    if not pa.types.is_nested(kind):
        return 1
    return sum(leaf_count(kind.field(number).type) for number in range(kind.num_fields))


def rows_of(metadata: pq.FileMetaData, file: str) -> tuple[int, ...]:
    """The rows of each row group, the empty ones too.

    Their sum is the number of rows of the file, whatever its footer states beside.

    Raises:
        FormatError: A number is negative.
    """
    rows = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    if min(rows, default=0) < 0:
        raise FormatError("bad row group in the metadata", file=file, found=f"{min(rows)} rows")
    return rows


def row_count_problem(metadata: pq.FileMetaData) -> str:
    """How the footer contradicts itself about the number of rows; empty if it does not.

    Early versions of parquet-rs wrote 0. Nothing else of such a footer is used to leave out rows.
    """
    stated = metadata.num_rows
    total = sum(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    if stated == total:
        return ""
    return f"the footer says {stated} rows, its row groups have {total}"


MAGIC = b"PAR1"
END = 4 + len(MAGIC)
"""Bytes after the footer: its length, and the magic."""
_ENCRYPTED = b"PARE"
_SMALLEST = len(MAGIC) + END
_TAIL = 64 << 10


def read_tails(sources: Sequence[Source], report: ReadReport, read_ranges: ReadMany) -> list[bytes]:
    """The last bytes of each file, with its footer.

    One round of reads, or a second one for the footers that are longer than 64 KiB.

    Raises:
        FormatError: It is not the end of a Parquet file.
        UnsupportedError: The footer is encrypted.
    """
    for source in sources:
        if source.size < _SMALLEST:
            raise FormatError(
                "no Parquet file",
                file=source.name,
                found=f"{source.size} bytes",
                expected="12 at least",
            )
    tails = read_counted([_end(source, _TAIL) for source in sources], report, read_ranges)
    needed = [
        _checked_length(source, tail) + END for source, tail in zip(sources, tails, strict=True)
    ]
    long = [number for number, tail in enumerate(tails) if needed[number] > len(tail)]
    again = [_end(sources[number], needed[number]) for number in long]
    for number, tail in zip(long, read_counted(again, report, read_ranges), strict=True):
        tails[number] = tail
    return tails


def footer_length(tail: bytes) -> int:
    """The bytes of the footer, as the end of a file gives them.

    >>> footer_length(bytes.fromhex("0a 00 00 00") + b"PAR1")
    10
    """
    return int.from_bytes(tail[-END : -len(MAGIC)], "little")


def _end(source: Source, length: int) -> Range:
    length = min(length, source.size)
    return Range(source, source.size - length, length)


def _checked_length(source: Source, tail: bytes) -> int:
    size, name = source.size, source.name
    magic = tail[-len(MAGIC) :]
    if magic == _ENCRYPTED:
        raise UnsupportedError(f"{name}: its footer is encrypted")
    if magic != MAGIC:
        raise FormatError("no Parquet file", file=name, offset=size - len(MAGIC), found=magic)
    length = footer_length(tail)
    if length > size - _SMALLEST:
        raise FormatError(
            "footer longer than the file",
            file=name,
            offset=size - END,
            found=length,
            expected=f"up to {size - _SMALLEST}",
        )
    return length


_MOST_CODECS = 64  # 8 are known; a number of one byte
_DATA_PAGES = (0, 3)
_PAGES: Choice = {1: None, 2: None, 3: None}
_COLUMN: Choice = {4: None, 5: None, 7: None, 9: None, 11: None, 12: AS_STORED, 13: _PAGES}
_CHUNK: Choice = {1: None, 3: _COLUMN, 4: None, 5: None, 8: {}}
_DICTIONARY = (2, 8)  # encodings: the old number, and the one of today
_LONG = 64 << 10
"""Bytes of a footer from which on column chunks, some hundreds, are parsed one by one as needed."""


def _metadata_fields(length: int) -> Choice:
    """The fields that are wanted of a footer so many bytes long."""
    chunks = _CHUNK if length < _LONG else Lazy(_CHUNK, _regular_chunk())
    return {3: None, 4: {1: chunks, 3: None}, 5: None, 6: None, 7: None}


@cache
def _regular_chunk() -> re.Pattern[bytes]:
    """A column chunk as most writers store it: neither encrypted nor in another file.

    Whatever it matches is a struct of Thrift from its first to its last byte, with the fields 2 and
    3, and 4 to 7 as far as there are page indexes. It knows neither texts of 64 bytes or more nor
    paths of more than five names: such a chunk is one that it does not match.
    """
    varint = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
    text = b"(?>%b)" % b"|".join(b"\\x%02x.{%d}" % (size, size) for size in range(64))

    def heads(*kinds: int, high: Iterable[int] = range(1, 16)) -> bytes:
        return b"[%b]" % b"".join(b"\\x%02x" % (up << 4 | kind) for up in high for kind in kinds)

    def lists(kinds: Sequence[int], element: bytes, most: int) -> bytes:
        return b"|".join(
            b"%b(?:%b){%d}+" % (heads(*kinds, high=[count]), element, count)
            for count in range(most + 1)
        )

    def struct(*fields: bytes) -> bytes:
        return rb"(?:%b)*+\x00" % b"|".join(fields)

    integers = (4, 5, 6)
    number, truth = heads(*integers) + varint, heads(1, 2)
    numbers = lists(integers, varint, 14)
    statistics = struct(number, truth, heads(8) + text, b"%b(?:%b)" % (heads(9), numbers))
    encodings = lists([12], struct(number, truth), 6)
    column = struct(
        number,
        b"%b(?:%b)" % (heads(9), b"|".join((numbers, lists([8], text, 5), encodings))),
        heads(12) + statistics,
    )
    index = b"%b" + varint + rb"\x15" + varint
    offset_index, column_index = (index % head for head in (rb"\x16", rb"[\x16\x36]"))
    chunk = rb"(?:\x26%b)?\x1c%b(?:%b)?(?:%b)?\x00" % (varint, column, offset_index, column_index)
    return re.compile(chunk, re.DOTALL)


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
    """As they are stored, and not to be trusted: see `alcid.datafiles.parquet.statistics`."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group; a chunk that is encrypted is None."""

    rows: int
    chunks: ColumnChunks


class ColumnChunks(Sequence["Chunk | None"]):
    """The column chunks of a row group, each checked on demand.

    A file of many columns has thousands, of which a look-up needs a few.
    """

    def __init__(self, structs: Sequence[Struct], end: int, file: str) -> None:
        """Take chunks of a file whose pages end before `end`.

        Raises:
            FormatError: One that is not as usual is damaged.
            UnsupportedError: They lie in other files.
        """
        self._structs, self._end, self._file = structs, end, file
        self._checked: dict[int, Chunk | None] = {}
        unusual = structs.irregular if isinstance(structs, LazyStructs) else range(len(structs))
        self.encrypted = None in [self[number] for number in unusual]
        """Whether any of them is encrypted."""

    def __len__(self) -> int:
        return len(self._structs)

    @overload
    def __getitem__(self, number: int) -> Chunk | None: ...
    @overload
    def __getitem__(self, number: slice) -> list[Chunk | None]: ...
    def __getitem__(self, number: int | slice) -> Chunk | list[Chunk | None] | None:
        """The chunk of a leaf column; None if it is encrypted.

        Raises:
            FormatError: It is damaged, or not within the file.
        """
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        if number not in self._checked:
            self._checked[number] = _chunk(self._structs[number], self._end, self._file)
        return self._checked[number]


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
    metadata = reader.struct(_metadata_fields(length))
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
        tuple(next(iter(order), 0) for order in _structs(metadata, 7, name)),
        tail,
    )


def _structs(values: Struct, number: int, file: str) -> Sequence[Struct]:
    """A field that is a list of structs; an empty one if it is not there."""
    structs = values.get(number, [])
    if isinstance(structs, LazyStructs) or (
        type(structs) is list and all(type(each) is dict for each in structs)
    ):
        return structs
    raise FormatError(f"bad field {number} in the metadata", file=file, expected="structs")


def _groups(groups: Sequence[Struct], end: int, file: str) -> Iterator[RowGroup]:
    """The row groups that have rows; the chunks of the others lie nowhere."""
    for values in groups:
        rows = get(values, 3, int, file=file)
        if rows < 0:
            raise FormatError("bad row group in the metadata", file=file, found=f"{rows} rows")
        if rows:
            yield RowGroup(rows, ColumnChunks(_structs(values, 1, file), end, file))


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
    offset_index = get(values, 4, int, 0, file=file), get(values, 5, int, 0, file=file)
    if offset_index[0] < 0 or offset_index[1] < 0 or sum(offset_index) > end:
        raise FormatError("offset index outside of the file", file=file, offset=offset_index[0])
    return Chunk(
        codec,
        get(inner, 5, int, file=file),
        offset,
        length,
        offset_index if offset_index[1] else None,
        _coded_pages(_structs(inner, 13, file), file),
        get(inner, 12, bytes, b"", file=file),
    )


def _coded_pages(statistics: Sequence[Struct], file: str) -> int | None:
    """The data pages with a dictionary, of statistics that count pages by kind and encoding."""
    counts = [
        tuple(get(each, number, int, file=file) for number in (1, 2, 3)) for each in statistics
    ]
    data = [(encoding, count) for kind, encoding, count in counts if kind in _DATA_PAGES]
    if not data:
        return None
    return sum(count for encoding, count in data if encoding in _DICTIONARY)
