"""Columns of a new table as text: `id BIGINT NOT NULL, name STRING`."""

from __future__ import annotations

import re

from alcid.errors import OptionError, UnsupportedError
from alcid.options import did_you_mean
from alcid.types import ROOTS, DataType

__all__ = ["near_type", "parse_columns"]

_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s,()<>`]+))\s+")
_NOT_NULL = re.compile(r"\s+NOT\s+NULL\s*$", re.IGNORECASE)
_UNKNOWN = re.compile(r"found '(\w+)', expected the name of a type$")
_OPENING, _CLOSING = "(<", ")>"


def parse_columns(text: str) -> list[tuple[str, DataType, bool]]:
    """Names, types and whether null is allowed.

    Types are those of Paimon, and of Spark where Paimon has none of the name.

    Raises:
        OptionError: The text is not understood.

    >>> parse_columns("id BIGINT NOT NULL, price DECIMAL(9, 2), m MAP<STRING, INT>")[:1]
    [('id', DataType.parse('BIGINT'), False)]
    >>> parse_columns("`order id` LONG")
    [('order id', DataType.parse('BIGINT'), True)]
    """
    return [_column(part, text) for part in _parts(text)]


def _parts(text: str) -> list[str]:
    """What stands between commas, but not within brackets or backticks."""
    parts, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == "`"
        depth += 0 if quoted else (letter in _OPENING) - (letter in _CLOSING)
        if letter == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _column(part: str, text: str) -> tuple[str, DataType, bool]:
    found = _NAME.match(part)
    if found is None:
        raise OptionError(f"--schema: found {part.strip() or text!r}, expected NAME TYPE")
    name = found[2] if found[1] is None else found[1].replace("``", "`")
    kind = part[found.end() :]
    try:
        return name, _type(kind), _NOT_NULL.search(kind) is None
    except UnsupportedError as error:
        raise OptionError(f"--schema: column {name}: {error}{near_type(error)}") from None


def _type(text: str) -> DataType:
    try:
        return DataType.parse(text)
    except UnsupportedError as problem:
        try:
            return DataType.from_spark(text)
        except UnsupportedError:
            raise problem from None


def near_type(error: UnsupportedError) -> str:
    """A hint for the end of an error: the type whose name is nearly the one that was found."""
    unknown = _UNKNOWN.search(str(error))
    return did_you_mean(unknown[1], [*ROOTS, "STRING", "BYTES"]) if unknown else ""
