"""The columns of an ORC file, as its footer lists them.

Columns are numbered in the order of the tree of types: 0 is the row itself, and a nested column is
followed by its children.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from alcid.errors import FormatError, UnsupportedError
from alcid.orc_file.protobuf import Message, unzigzag

__all__ = [
    "BOOLEAN",
    "INSTANT",
    "LIST",
    "MAP",
    "STRUCT",
    "TIMESTAMP",
    "OrcColumn",
    "OrcType",
    "parse_columns",
]

BOOLEAN, TIMESTAMP, LIST, MAP, STRUCT, INSTANT = 0, 9, 10, 11, 12, 18
_UNION, _DECIMAL, _CHAR = 13, 14, 17
_MOST_DIGITS = 38
_MOST_DEPTH = 100
_MOST_MILLIS = (1 << 63) // 10**6 - 86_400_000
"""A day before the moments end that an int64 of nanoseconds has."""


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
        OrcColumn(name, one, _problem(one, statistics, file))
        for name, one in zip(names, row.children, strict=True)
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
    for one in types:
        digits, scale = one.number(5), one.number(6)
        if one.number(1) == _DECIMAL and not (scale <= digits <= _MOST_DIGITS):
            raise FormatError("bad ORC decimal", file=file, found=f"{digits} digits, scale {scale}")


def _problem(column: OrcType, statistics: Sequence[bytes], file: str) -> str:
    """Whether a column has moments that do not fit, by its statistics: Arrow 19 turns them over."""
    for one in column.walk():
        if one.kind == _UNION:
            return "a union, which is not read"
        if one.kind in (TIMESTAMP, INSTANT) and one.number < len(statistics):
            known = Message(statistics[one.number], file).messages(9)
            # Least and greatest, in the time zone of the writer, and as its clock showed them.
            moments = [unzigzag(one.number(field)) for one in known for field in range(1, 5)]
            if any(abs(moment) > _MOST_MILLIS for moment in moments):
                return "moments outside of the years 1677 to 2262, to which ORC is read"
    return ""
