"""The footer of an ORC file: its columns and stripes.

    ORC | stripes ... | stripe statistics | footer | postscript | u8 its length

    stripe: index streams | data streams | stripe footer

The postscript is not compressed. Columns are numbered in the order of the tree of types: 0 is the
row itself, and a nested column is followed by its children. The ends of several files are read in
one round, as `alcid.datafiles.parquet.footer` does for Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from alcid.datafiles.orc.protobuf import Message, decompress_chunks, unzigzag
from alcid.datafiles.parquet import ReadReport
from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import Range, ReadMany, Source
from alcid.storage.ranges import read_counted

BOOLEAN, TIMESTAMP, LIST, MAP, STRUCT, INSTANT = 0, 9, 10, 11, 12, 18
_UNION, _DECIMAL, _CHAR = 13, 14, 17
_MOST_DIGITS = 38
_MOST_DEPTH = 100
_MOST_MILLIS = (1 << 63) // 10**6 - 86_400_000
"""A day before the last timestamp that an int64 of nanoseconds holds."""


@dataclass(frozen=True, slots=True)
class OrcType:
    """A column with its children."""

    kind: int
    numbers: range
    """Its own, and those of its children."""
    children: tuple[OrcType, ...]

    @property
    def number(self) -> int:
        """Its own number."""
        return self.numbers.start

    def walk(self) -> Iterator[OrcType]:
        """Itself, and all types below."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class OrcColumn:
    """A top-level column."""

    name: str
    type: OrcType
    problem: str = ""
    """Why it cannot be read; empty if it can."""

    @property
    def numbers(self) -> range:
        """Its own number, and those of its children."""
        return self.type.numbers

    @property
    def is_padded(self) -> bool:
        """Whether it is CHAR(n), which is filled up with spaces that are no part of it."""
        return self.type.kind == _CHAR


def parse_columns(footer: Message, file: str) -> tuple[OrcColumn, ...]:
    """The top-level columns, in the order of the file.

    Raises:
        FormatError: They are damaged.
        UnsupportedError: The rows are no structs.
    """
    types = footer.messages(4)
    if not types or types[0].number(1) != STRUCT:
        raise UnsupportedError(f"{file}: an ORC file whose rows are no structs")
    _check_decimals(types, file)
    row = _parse_type(types, 0, 0, file)
    names = types[0].texts(3)
    if len(names) != len(row.children) or row.numbers.stop != len(types):
        raise FormatError(
            "damaged ORC schema",
            file=file,
            found=f"{len(row.children)} columns, {row.numbers.stop} of {len(types)} types",
            expected=f"{len(names)} columns",
        )
    statistics = footer.parts(7)
    return tuple(
        OrcColumn(name, child, _problem(child, statistics, file))
        for name, child in zip(names, row.children, strict=True)
    )


def _parse_type(types: Sequence[Message], number: int, depth: int, file: str) -> OrcType:
    """A type, of which the children have to follow one another."""
    end, children = number + 1, []
    for child in types[number].numbers(2):
        if child != end or child >= len(types) or depth == _MOST_DEPTH:
            raise FormatError(
                "damaged ORC schema",
                file=file,
                found=f"child {child} of type {number}, {depth} levels deep",
                expected=f"child {end} of {len(types)} types, up to {_MOST_DEPTH} levels",
            )
        children.append(_parse_type(types, child, depth + 1, file))
        end = children[-1].numbers.stop
    kind = types[number].number(1)
    if kind in (LIST, MAP) and len(children) != (1 if kind == LIST else 2):
        raise FormatError(
            "damaged ORC schema", file=file, found=f"{len(children)} children of type {number}"
        )
    return OrcType(kind, range(number, end), tuple(children))


def _check_decimals(types: Sequence[Message], file: str) -> None:
    """See that decimals have digits: of one that has too many, Arrow ends the process."""
    for column in types:
        digits, scale = column.number(5), column.number(6)
        if column.number(1) == _DECIMAL and not (scale <= digits <= _MOST_DIGITS):
            raise FormatError("bad ORC decimal", file=file, found=f"{digits} digits, scale {scale}")


def _problem(column: OrcType, statistics: Sequence[bytes], file: str) -> str:
    """Whether a column has timestamps that do not fit, by its statistics: Arrow 19 wraps them."""
    for inner in column.walk():
        if inner.kind == _UNION:
            return "a union, which is not read"
        if inner.kind in (TIMESTAMP, INSTANT) and inner.number < len(statistics):
            known = Message(statistics[inner.number], file).messages(9)
            # Least and greatest, in the time zone of the writer, and as its clock showed them.
            timestamps = [unzigzag(inner.number(field)) for inner in known for field in range(1, 5)]
            if any(abs(millis) > _MOST_MILLIS for millis in timestamps):
                return "timestamps outside of the years 1677 to 2262, to which ORC is read"
    return ""


MAGIC = b"ORC"
_MOST_BLOCK = 1 << 23  # bytes: the header of a chunk counts no more


@dataclass(frozen=True, slots=True)
class PostScript:
    """How to read the footer."""

    footer_length: int
    codec: int
    block_size: int
    length: int
    """Its own, with the last byte of the file."""

    @classmethod
    def parse(cls, tail: bytes, source: Source) -> PostScript:
        """Read it from the last bytes of a file, of which there are 256, or all.

        Raises:
            FormatError: They are not the end of an ORC file.
        """
        name, length = source.name, tail[-1]
        if length >= len(tail):
            raise FormatError("no ORC file", file=name, offset=source.size - 1, found=length)
        message = Message(tail[-1 - length : -1], name)
        if message.parts(8000) != [MAGIC]:
            raise FormatError(
                "no ORC file", file=name, offset=source.size - 1 - length, found=tail[-1 - length :]
            )
        postscript = cls(message.number(1), message.number(2), message.number(3), length + 1)
        if postscript.footer_length > source.size - postscript.length - len(MAGIC):
            raise FormatError(
                "footer longer than the file", file=name, found=postscript.footer_length
            )
        if postscript.codec and not 0 < postscript.block_size <= _MOST_BLOCK:
            raise FormatError("bad compression block size", file=name, found=postscript.block_size)
        return postscript


@dataclass(frozen=True, slots=True)
class Stripe:
    """A part of the rows, with all columns."""

    offset: int
    index_length: int
    data_length: int
    footer_length: int
    rows: int

    @property
    def footer_offset(self) -> int:
        """Where the stripe footer begins."""
        return self.offset + self.index_length + self.data_length


@dataclass(frozen=True, slots=True)
class Footer:
    """What is used of it."""

    columns: tuple[OrcColumn, ...]
    stripes: tuple[Stripe, ...]


def parse_footer(data: bytes, postscript: PostScript, source: Source) -> Footer:
    """Read the footer, which has the length that the postscript gives.

    Raises:
        FormatError: It is damaged.
        UnsupportedError: The file is encrypted, or its rows are no structs.
    """
    content = decompress_chunks(data, postscript.codec, postscript.block_size, source.name)
    message = Message(content, source.name)
    if message.has(10):
        raise UnsupportedError(f"{source.name}: an encrypted ORC file")
    end = source.size - postscript.length - postscript.footer_length
    stripes = tuple(_stripe(inner, end, source.name) for inner in message.messages(3))
    rows = message.number(6)
    if sum(stripe.rows for stripe in stripes) != rows:
        total = sum(stripe.rows for stripe in stripes)
        raise FormatError("bad number of rows", file=source.name, found=total, expected=rows)
    return Footer(parse_columns(message, source.name), stripes)


def _stripe(message: Message, end: int, file: str) -> Stripe:
    stripe = Stripe(*map(message.number, range(1, 6)))
    if stripe.offset < len(MAGIC) or stripe.footer_offset + stripe.footer_length > end:
        raise FormatError(
            "stripe outside of the file",
            file=file,
            offset=stripe.offset,
            found=f"to {stripe.footer_offset + stripe.footer_length}",
            expected=f"{len(MAGIC)} to {end}",
        )
    return stripe


_READ = 64 << 10
_KEPT = 16 << 10  # Arrow reads so many bytes at the end of a file, to find the footer


@dataclass(frozen=True, slots=True)
class Tail:
    """The last bytes of a file, with its footer."""

    data: bytes
    start: int
    """Where they begin in the file."""
    postscript: PostScript

    @property
    def footer(self) -> bytes:
        """The footer, as it was compressed."""
        end = len(self.data) - self.postscript.length
        return self.data[end - self.postscript.footer_length : end]

    def footer_message(self, file: str) -> Message:
        """The fields of the footer."""
        how = self.postscript.codec, self.postscript.block_size
        return Message(decompress_chunks(self.footer, *how, file), file)

    def find(self, offset: int, length: int) -> bytes | None:
        """Bytes of the file, if they are among these."""
        begin = offset - self.start
        return self.data[begin : begin + length] if begin >= 0 else None

    def kept(self) -> Tail:
        """What Arrow reads of it."""
        needed = max(_KEPT, self.postscript.length + self.postscript.footer_length)
        cut = max(0, len(self.data) - needed)
        return Tail(self.data[cut:], self.start + cut, self.postscript)


def read_tails(sources: Sequence[Source], report: ReadReport, read_ranges: ReadMany) -> list[Tail]:
    """The end of each file, in one round; a second one for footers longer than 64 KiB.

    Raises:
        FormatError: It is not the end of an ORC file.
    """
    for source in sources:
        if source.size <= len(MAGIC):
            raise FormatError("no ORC file", file=source.name, found=f"{source.size} bytes")
    ends = read_counted([_end(source, _READ) for source in sources], report, read_ranges)
    tails = [_tail(source, end) for source, end in zip(sources, ends, strict=True)]
    needed = [tail.postscript.length + tail.postscript.footer_length for tail in tails]
    long = [number for number, tail in enumerate(tails) if needed[number] > len(tail.data)]
    again = [_end(sources[number], needed[number]) for number in long]
    for number, end in zip(long, read_counted(again, report, read_ranges), strict=True):
        tails[number] = _tail(sources[number], end)
    return tails


def _end(source: Source, length: int) -> Range:
    length = min(length, source.size)
    return Range(source, source.size - length, length)


def _tail(source: Source, data: bytes) -> Tail:
    return Tail(data, source.size - len(data), PostScript.parse(data, source))
