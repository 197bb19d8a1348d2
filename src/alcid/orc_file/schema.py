"""The columns of an ORC file, as its footer lists them.

Columns are numbered in the order of the tree of types: 0 is the row itself, and a nested column is
followed by its children.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from alcid.errors import FormatError, UnsupportedError
from alcid.orc_file.protobuf import Message, unzigzag

__all__ = ["OrcColumn", "parse_columns"]

_STRUCT, _DECIMAL, _CHAR = 12, 14, 17
_TIMESTAMPS = (9, 18)  # without, and with, a time zone
_MOST_DIGITS = 38
_MOST_MILLIS = (1 << 63) // 10**6 - 86_400_000
"""A day before the moments end that an int64 of nanoseconds has."""


@dataclass(frozen=True, slots=True)
class OrcColumn:
    """A top-level column."""

    name: str
    numbers: range
    """Its own, and those of its children."""
    problem: str = ""
    """Why it cannot be read; empty if it can."""
    is_padded: bool = False
    """Whether it is CHAR(n), which is filled up with spaces that are no part of it."""


def parse_columns(footer: Message, file: str) -> tuple[OrcColumn, ...]:
    """The top-level columns, in the order of the file.

    Raises:
        FormatError: They are damaged.
        UnsupportedError: The rows are no structs.
    """
    types = footer.messages(4)
    if not types or types[0].number(1) != _STRUCT:
        raise UnsupportedError(f"{file}: an ORC file whose rows are no structs")
    _check_decimals(types, file)
    names, begins = types[0].texts(3), types[0].numbers(2)
    bounds = [*begins, len(types)]
    ascend = all(begin < end for begin, end in pairwise(bounds))
    if len(names) != len(begins) or bounds[0] != 1 or not ascend:
        raise FormatError(
            "damaged ORC schema",
            file=file,
            found=f"columns {begins} of {len(types)} types",
            expected=f"{len(names)} columns",
        )
    statistics = footer.parts(7)
    columns = (range(begin, end) for begin, end in zip(begins, bounds[1:], strict=True))
    return tuple(
        OrcColumn(
            name,
            numbers,
            _problem(numbers, types, statistics, file),
            types[numbers.start].number(1) == _CHAR,
        )
        for name, numbers in zip(names, columns, strict=True)
    )


def _check_decimals(types: Sequence[Message], file: str) -> None:
    """See that decimals have digits: of one that has too many, Arrow ends the process."""
    for one in types:
        digits, scale = one.number(5), one.number(6)
        if one.number(1) == _DECIMAL and not (scale <= digits <= _MOST_DIGITS):
            raise FormatError("bad ORC decimal", file=file, found=f"{digits} digits, scale {scale}")


def _problem(
    numbers: range, types: Sequence[Message], statistics: Sequence[bytes], file: str
) -> str:
    """Whether a column has moments that do not fit, by its statistics: Arrow 19 turns them over."""
    for number in numbers:
        if types[number].number(1) in _TIMESTAMPS and number < len(statistics):
            known = Message(statistics[number], file).messages(9)
            # Least and greatest, in the time zone of the writer, and as its clock showed them.
            moments = [unzigzag(one.number(field)) for one in known for field in range(1, 5)]
            if any(abs(moment) > _MOST_MILLIS for moment in moments):
                return "moments outside of the years 1677 to 2262, to which ORC is read"
    return ""
