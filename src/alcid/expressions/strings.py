"""Spark's string literals and LIKE patterns, which SQL parsers of other dialects read otherwise.

`take_strings` takes every string literal, X'..' too, out of SQL text before it is parsed, reads it
as Spark's lexer does, and leaves a mark in its place that the text itself does not contain.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from alcid.config import current_settings
from alcid.errors import PredicateError
from alcid.expressions.render import quote_text

# Comments, quoted names and strings, in the order in which Spark's lexer would find them.
_TOKEN = re.compile(
    r"""
      --(?:\\\n|[^\r\n])*
    | /\*(?P<comment>.*?)\*/
    | `(?:[^`]|``)*`
    | (?<![A-Za-z0-9_])[rR](?:'(?P<raw1>[^']*)'|"(?P<raw2>[^"]*)")
    | (?<![A-Za-z0-9_.])[xX]\s*(?:'(?P<hex1>[^']*)'|"(?P<hex2>[^"]*)")
    | '(?P<single>(?:[^'\\]|\\.|'')*)'
    | "(?P<double>(?:[^"\\]|\\.|"")*)"
    | (?P<open>/\*|['"`])
    """,
    re.VERBOSE | re.DOTALL,
)
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]*")
# A private character, and the number of a text's marks.
_TAKEN = re.compile(r"\ue000([0-9]+)")
_QUOTED_MARK = re.compile(r"'(\ue000[0-9]+\.[0-9]+)'")
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
    values: dict[str, str | bytes]
    """The value of each literal, by its mark."""
    written: dict[str, str]
    """Each literal as it was written, by its mark."""

    def value(self, text: str) -> str | bytes | None:
        """The value of a parsed literal; None for one that is no mark."""
        return self.values.get(text)

    def restore(self, text: str) -> str:
        """Text with its marks replaced by the literals as they were written."""
        return _QUOTED_MARK.sub(lambda match: self.written.get(match[1], match[0]), text)


def take_strings(text: str) -> Strings:
    r"""Replace string literals by marks.

    >>> strings = take_strings(r"a = 'it\'s' AND b = R'\n'")
    >>> strings.text
    "a = '\ue0000.0' AND b = '\ue0000.1'"
    >>> strings.values
    {'\ue0000.0': "it's", '\ue0000.1': '\\n'}

    Raises:
        PredicateError: X'..' has other than hexadecimal digits, a quote or a comment is not closed,
            or a comment holds another.
    """
    taken = set(_TAKEN.findall(text))
    free = next(number for number in map(str, itertools.count()) if number not in taken)
    values: dict[str, str | bytes] = {}
    written: dict[str, str] = {}

    def take(match: re.Match[str]) -> str:
        value = _value(match)
        if value is None:
            return match[0] if match[0].startswith("`") else " "
        of_interval = _INTERVAL.search(text, max(match.start() - 20, 0), match.start())
        if of_interval and isinstance(value, str):
            return quote_text(value)  # sqlglot looks into it; no index does
        mark = f"\ue000{free}.{len(values)}"
        values[mark], written[mark] = value, match[0]
        return f"'{mark}'"

    return Strings(_TOKEN.sub(take, text), values, written)


def _value(match: re.Match[str]) -> str | bytes | None:
    """The value of a string; None for a comment or a quoted name."""
    match match.lastgroup:
        case "open":  # at once: to look on would take a time that grows with the square
            raise PredicateError("not a predicate: a quote or a comment is not closed")
        case "comment" if "/*" in match["comment"]:  # Spark's nest, so its end is elsewhere
            raise PredicateError("not a predicate: a comment within a comment")
        case "raw1" | "raw2" | "single" | "double" if current_settings().escaped_string_literals:
            return match[0][1:-1]  # Spark cuts off two characters, so that r'..' keeps a quote
        case "raw1" | "raw2" as group:
            return match[group]
        case "hex1" | "hex2" as group:
            return _bytes(match[group])
        case "single":
            return _unescape(match["single"], _SINGLE)
        case "double":
            return _unescape(match["double"], _DOUBLE)
    return None


def _bytes(digits: str) -> bytes:
    if not _HEXADECIMAL.fullmatch(digits):
        raise PredicateError("not a predicate: X'..' takes hexadecimal digits")
    return bytes.fromhex("0" * (len(digits) % 2) + digits)


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
