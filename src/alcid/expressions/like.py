"""LIKE with any pattern, on text.

No index can answer one, so the SQL reader leaves it `Unknown`, with its text, which is read again
here. `_` is one character, `%` any number of them, line breaks included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import PredicateError

_ROWS = 1 << 16
PatternParts: TypeAlias = tuple[str | None, ...]
"""Text, `_` as an empty text, `%` as None."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A column that is LIKE a pattern; negated, one that is not."""

    column: str
    parts: PatternParts
    negated: bool
    length: int = 0
    """Of CHAR(n): text is padded to that many characters first."""

    def padded_to(self, length: int) -> Pattern:
        """The same, of text that is padded."""
        return replace(self, length=length)

    def match(self, array: pa.Array) -> pa.BooleanArray:
        """True where a text matches, whether negated or not; null where it is null.

        >>> pattern = read_pattern("a LIKE '%b_'")
        >>> pattern.match(pa.array(["abc", "b", None])).to_pylist()
        [True, False, None]
        """
        if self.length:  # block by block: padding may multiply the bytes
            blocks = [array[start : start + _ROWS] for start in range(0, len(array), _ROWS)]
            matches = [self._match(pc.utf8_rpad(block, self.length)) for block in blocks]
            return pa.concat_arrays(matches) if matches else pa.array([], pa.bool_())
        return self._match(array)

    def _match(self, array: pa.Array) -> Any:
        match self.parts:
            case (None, str(text)) if text:
                return pc.ends_with(array, pattern=text)
            case (None, str(text), None) if text:
                return pc.match_substring(array, pattern=text)
        regex = "".join(map(_regex, self.parts))
        try:
            return pc.match_substring_regex(array, pattern=rf"(?s)\A{regex}\z")
        except pa.ArrowInvalid as error:
            raise PredicateError(f"LIKE on {self.column}: the pattern is too long") from error


def _regex(part: str | None) -> str:
    if part is None:
        return ".*"
    return "".join(map(_escaped, part)) if part else "."


def _escaped(character: str) -> str:
    if character.isalnum() or character > "\x7f":
        return character
    return rf"\x{ord(character):02x}"


def read_pattern(text: str) -> Pattern | None:
    """The pattern that SQL text of an `Unknown` asks for; None if it is anything else.

    >>> read_pattern("NOT (name LIKE 'a%z')")
    Pattern(column='name', parts=('a', None, 'z'), negated=True, length=0)
    >>> read_pattern("upper(name) LIKE 'A%Z'") is None
    True
    """
    from sqlglot import exp  # here, as in `parse`: not every predicate is text

    from alcid.expressions.sql_parser import parse_sql
    from alcid.expressions.sql_reader import column_name, read_like

    node, strings = parse_sql(text)
    node, negated = node.unnest(), False
    while isinstance(node, exp.Not):
        node, negated = node.this.unnest(), not negated
    like = read_like(node, strings)
    column = None if like is None else column_name(like.operand, strings)
    if like is None or column is None:
        return None
    return Pattern(column, like.parts, negated != like.negated)


def split_pattern(pattern: str, escape: str) -> PatternParts | None:
    r"""The parts of a pattern; None for one that Spark refuses.

    >>> split_pattern(r"50\%_a%", "\\")
    ('50%', '', 'a', None)
    """
    parts: list[str | None] = []
    characters = iter(pattern)
    for character in characters:
        text = character
        if character == escape:
            text = next(characters, "")
            if text not in ("%", "_", escape):
                return None
        elif character == "%":
            parts += [None] if parts[-1:] != [None] else []
            continue
        elif character == "_":
            parts.append("")
            continue
        if parts and parts[-1]:
            parts[-1] += text
        else:
            parts.append(text)
    return tuple(parts)
