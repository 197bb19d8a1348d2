"""SQL text to sqlglot's nodes and back, in Spark's dialect; every failure is a `PredicateError`.

Spark reads string literals otherwise than sqlglot. So each of them, X'..' too, is taken out of the
text before it is parsed, and read as Spark's lexer does; a mark that the text does not contain
stands for it.

Text that sqlglot takes, and gives a meaning, where Spark has none or another.

| text                              | sqlglot                   | Spark                         |
|-----------------------------------|---------------------------|-------------------------------|
| `0x1F`, `1e`, `1_000`, `1e5L`     | bytes, a number, a name   | the name of a column          |
| `1.2.3`, `1.5e`                   | a field of a number       | an error                      |
| `:x`, `?`, `${x}`, `{{x}}`, `@x`  | a parameter               | a parameter, or an error      |
| `IN (1,,2)`, `f(a,)`              | as if nothing was missing | an error                      |
| `N'x'`                            | a string                  | an error                      |

No index could answer the first three but with any row, which hides the mistake.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from alcid.config import current_settings
from alcid.errors import PredicateError
from alcid.expressions.render import quote_text

# Comments, quoted names and strings, in the order in which Spark's lexer would find them.
_QUOTED = re.compile(
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


def _take_strings(text: str) -> Strings:
    r"""Replace string literals by marks.

    >>> strings = _take_strings(r"a = 'it\'s' AND b = R'\n'")
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

    return Strings(_QUOTED.sub(take, text), values, written)


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


_TOKEN = re.compile(
    r"""
      `(?:[^`]|``)*`
    | (?P<national>(?<![\w.])[nN]['"])
    | '(?:[^'\\]|\\.|'')*'
    | "(?:[^"\\]|\\.|"")*"
    | (?P<number>(?<![\w.])(?=\.?[0-9])(?:[0-9]*(?:\.[0-9]*)?[eE][+-](?=[0-9]))?[\w.]+)
    | (?P<placeholder>\$?\{\{?[^}]*\}{0,2} | [$@]+\w* | \? | (?<![\w\])`:]):\s*\w+)
    | (?P<comma>[(\[,]\s*, | ,\s*[)\]])
    """,
    re.VERBOSE | re.DOTALL,
)
_PLACEHOLDERS = (exp.Placeholder, exp.Parameter, exp.SessionParameter)
_SUSPECTS = (exp.Column, exp.Dot, exp.HexString, exp.JSONExtract, exp.Literal, exp.Star)
_MOST_SHOWN = 40
_NUMBER = re.compile(
    r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?(?:bd|[df])?|[0-9]+[lsy]", re.IGNORECASE
)
# A name may begin with a digit; 0x1F, 0b1, 1_000, 1e and 1e5L were meant as numbers.
_NAME = re.compile(r"(?!0[xX]|0[bB][01]|[0-9_]+\b|[0-9]+[eE](?:[0-9]+[lLsSyY]?)?\b)\w+(?:\.\w+)*")


def _check_text(strings: Strings) -> None:
    """Refuse what would be read as something else.

    Raises:
        PredicateError: The text has a parameter that was not filled in, a malformed number, a comma
            without a value, or a string of a kind that Spark does not have.
    """
    for match in _TOKEN.finditer(strings.text):
        shown = " ".join(strings.restore(match[0]).split())[:_MOST_SHOWN]
        match match.lastgroup:
            case "national":
                raise PredicateError("not a predicate: Spark has no N'..' strings")
            case "number" if not _is_number_or_name(match[0]):
                raise PredicateError(
                    f"not a predicate: {shown} is no number; the name of a column takes backticks"
                )
            case "placeholder":
                raise PredicateError(f"not a predicate: the placeholder {shown} has no value")
            case "comma":
                raise PredicateError(f"not a predicate: expected a value within {shown}")


def _is_number_or_name(word: str) -> bool:
    if _NUMBER.fullmatch(word):
        return True
    return bool(_NAME.fullmatch(word)) and not _NUMBER.fullmatch(word.partition(".")[0])


def _check_node(tree: exp.Expr) -> None:
    """Refuse what `_check_text` cannot tell from other text, and Spark's SQL does not have.

    Raises:
        PredicateError: The expression has a part that Spark would refuse.
    """
    for node in tree.find_all(*_PLACEHOLDERS, *_SUSPECTS):
        if isinstance(node, _PLACEHOLDERS):
            raise PredicateError(f"not a predicate: the placeholder {_shown(node)} has no value")
        if _is_misread(node):
            raise PredicateError(f"not a predicate: cannot read the text near {_shown(node)}")


def _is_misread(node: exp.Expr) -> bool:
    match node:
        case exp.Literal():  # ² or . 1.
            return not node.is_string and not _NUMBER.fullmatch(node.this)
        case exp.Column():  # a . TRUE
            return not isinstance(node.this, exp.Identifier | exp.Star)
        case exp.Dot():  # 1 .5, or 1D.x, whose 1D is a cast
            outer = node.this.this if isinstance(node.this, exp.Cast) else node.this
            return any(isinstance(part, exp.Literal) for part in (outer, node.expression))
        case exp.Star():  # * < 5
            return not isinstance(node.parent, exp.Anonymous | exp.Column)
    return True


def _shown(node: exp.Expr) -> str:
    return str(node.sql("spark"))[:_MOST_SHOWN]


# How sqlglot's messages say what was expected.
_MISSING = re.compile(r"Required keyword: '(\w+)' missing for")
_EXPECTING = re.compile(r"Expect(?:ing|ed) (.+)")
_VALUES = (exp.Literal, exp.Tuple, exp.Star, exp.Query)


class _Dialect(Spark):
    """Spark's, with every function left as it is written: none of them is looked into."""

    class Parser(Spark.Parser):  # type: ignore[misc,valid-type]
        FUNCTIONS: ClassVar[dict[str, object]] = {}

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        """The path as it is: nothing looks into it, and sqlglot would log what it cannot read."""
        return path


def parse_sql(text: str) -> tuple[exp.Expr, Strings]:
    """The node of the one boolean expression that the text is, and its string literals."""
    strings = _take_strings(text)
    _check_text(strings)
    try:
        parsed = _Dialect().parse_into(exp.Condition, strings.text)
    except ParseError as error:
        raise PredicateError(f"not a predicate: {_problem(error, strings)}") from None
    except SqlglotError:
        raise PredicateError("not a predicate: a quote or a comment is not closed") from None
    except RecursionError:
        raise
    except Exception as error:  # sqlglot has no promise for text that is no SQL
        raise PredicateError("not a predicate: cannot read the text") from error
    nodes = [node for node in parsed if node is not None and not isinstance(node, exp.Semicolon)]
    if len(nodes) != 1:
        what = f"{len(nodes)} statements" if nodes else "no text"
        raise PredicateError(f"not a predicate: {what}, expected one boolean expression")
    inner = nodes[0].unnest()
    if not isinstance(inner, exp.Condition) or isinstance(inner, _VALUES):
        raise PredicateError("not a predicate: a value or a query, expected a boolean expression")
    _check_node(nodes[0])
    return nodes[0], strings


def write_sql(node: exp.Expr, strings: Strings) -> str:
    """The text of a node, with the strings as they were written."""
    try:
        text = node.sql(
            _Dialect,
            comments=False,
            normalize_functions=False,
            unsupported_level=ErrorLevel.IGNORE,
        )
    except RecursionError:
        raise
    except Exception as error:
        raise PredicateError("not a predicate: cannot read the text") from error
    return strings.restore(text)


def _problem(error: ParseError, strings: Strings) -> str:
    """Where the text could not be read, and what was expected there, if sqlglot tells."""
    first = error.errors[0] if error.errors else {}
    near = " ".join(strings.restore(str(first.get("highlight") or "the end")).split())
    said = str(first.get("description"))
    expected = ""
    if match := _MISSING.match(said):
        expected = ": expected AND and a value" if match[1] == "high" else ": expected a value"
    elif match := _EXPECTING.match(said):
        expected = f": expected {match[1]}"
    return f"cannot read the text near {near}{expected}"
