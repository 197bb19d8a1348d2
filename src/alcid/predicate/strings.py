"""Spark's string literals and LIKE patterns, which SQL parsers of other dialects read otherwise.

`take_strings` takes every string literal out of SQL text before it is parsed, reads it as Spark's
lexer does, and leaves a mark in its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Strings", "like_prefix", "take_strings"]

# Comments, quoted names and strings, in the order in which Spark's lexer would find them.
_TOKEN = re.compile(
    r"""
      --(?:\\\n|[^\r\n])*
    | /\*.*?\*/
    | `(?:[^`]|``)*`
    | (?<![A-Za-z0-9_])[rR](?:'(?P<raw1>[^']*)'|"(?P<raw2>[^"]*)")
    | '(?P<single>(?:[^'\\]|\\.|'')*)'
    | "(?P<double>(?:[^"\\]|\\.|"")*)"
    """,
    re.VERBOSE | re.DOTALL,
)
_MARK = re.compile(r"'f[0-9]+f'")
_ESCAPE = r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))"
_SINGLE = re.compile(_ESCAPE + "|''", re.DOTALL)
_DOUBLE = re.compile(_ESCAPE + '|""', re.DOTALL)
_LETTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_INTERVAL = re.compile(r"\binterval\s*\Z", re.IGNORECASE)
# The backslash stays, for LIKE to read.
_KEPT = {"%": "\\%", "_": "\\_"}


@dataclass(frozen=True, slots=True)
class Strings:
    """SQL text with a mark for every string literal, and what the marks stand for."""

    text: str
    values: tuple[str, ...]
    """The value of each literal."""
    written: tuple[str, ...]
    """Each literal as it was written."""

    def value(self, mark: str) -> str:
        """The value that the mark in a parsed literal stands for."""
        return self.values[int(mark[1:-1])]

    def restore(self, text: str) -> str:
        """Text with its marks replaced by the literals as they were written."""
        marks = {f"'f{at}f'": literal for at, literal in enumerate(self.written)}
        return _MARK.sub(lambda match: marks.get(match[0], match[0]), text)


def take_strings(text: str) -> Strings:
    r"""Replace string literals by marks.

    The mark is hexadecimal, so that it may stand in X'..', and is no number.

    >>> take_strings(r"a = 'it\'s' AND b = R'\n'")
    Strings(text="a = 'f0f' AND b = 'f1f'", values=("it's", '\\n'), written=("'it\\'s'", "R'\\n'"))
    """
    values: list[str] = []
    written: list[str] = []

    def take(match: re.Match[str]) -> str:
        if _INTERVAL.search(text, max(match.start() - 20, 0), match.start()):
            return match[0]  # sqlglot looks into it; no index does
        raw = match["raw1"] if match["raw1"] is not None else match["raw2"]
        if raw is not None:
            value = raw
        elif match["single"] is not None:
            value = _unescape(match["single"], _SINGLE)
        elif match["double"] is not None:
            value = _unescape(match["double"], _DOUBLE)
        else:
            return match[0] if match[0].startswith("`") else " "
        values.append(value)
        written.append(match[0])
        return f"'f{len(values) - 1}f'"

    return Strings(_TOKEN.sub(take, text), tuple(values), tuple(written))


def _unescape(text: str, escape: re.Pattern[str]) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[1] or match[2]:
            code = int(match[1] or match[2], 16)
            return chr(code) if code <= 0x10FFFF else "??"
        if match[3]:
            return chr(int(match[3], 8))
        if match[4]:
            return _LETTERS.get(match[4]) or _KEPT.get(match[4]) or match[4]
        return match[0][0]

    # Two escapes may spell one character beyond U+FFFF, in UTF-16's halves, as in Java.
    halves = escape.sub(replace, text).encode("utf-16-le", "surrogatepass")
    return halves.decode("utf-16-le", "replace")


def like_prefix(pattern: str, escape: str = "\\") -> tuple[str, bool] | None:
    r"""The text of a LIKE pattern, and whether more may follow; None for any other pattern.

    >>> like_prefix("abc%"), like_prefix(r"50\%"), like_prefix("a_c")
    (('abc', True), ('50%', False), None)
    """
    text: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            position += 1
            if pattern[position : position + 1] not in ("%", "_", escape):
                return None  # Spark refuses the pattern; it is for Spark to say so
            text.append(pattern[position])
        elif character == "%":
            return ("".join(text), True) if not pattern[position:].strip("%") else None
        elif character == "_":
            return None
        else:
            text.append(character)
        position += 1
    return "".join(text), False
