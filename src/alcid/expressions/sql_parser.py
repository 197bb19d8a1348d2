"""SQL text to sqlglot's nodes and back, in Spark's dialect; every failure is a `PredicateError`.

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

import re
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from alcid.errors import PredicateError
from alcid.expressions.strings import Strings

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


def check_text(strings: Strings) -> None:
    """Refuse what would be read as something else.

    Raises:
        PredicateError: The text has a parameter that was not filled in, a malformed number, a comma
            without a value, or a string of a kind that Spark does not have.
    """
    for match in _TOKEN.finditer(strings.text):
        found = " ".join(strings.restore(match[0]).split())[:_MOST_SHOWN]
        match match.lastgroup:
            case "national":
                raise PredicateError("not a predicate: Spark has no N'..' strings")
            case "number" if not _is_number_or_name(match[0]):
                raise PredicateError(
                    f"not a predicate: {found} is no number; the name of a column takes backticks"
                )
            case "placeholder":
                raise PredicateError(f"not a predicate: the placeholder {found} has no value")
            case "comma":
                raise PredicateError(f"not a predicate: expected a value within {found}")


def _is_number_or_name(word: str) -> bool:
    if _NUMBER.fullmatch(word):
        return True
    return bool(_NAME.fullmatch(word)) and not _NUMBER.fullmatch(word.partition(".")[0])


def check_node(tree: exp.Expr) -> None:
    """Refuse what `check_text` cannot tell from other text, and Spark's SQL does not have.

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


def parse_sql(strings: Strings) -> exp.Expr:
    """The node of the one boolean expression that the text is."""
    check_text(strings)
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
    found = [node for node in parsed if node is not None and not isinstance(node, exp.Semicolon)]
    if len(found) != 1:
        what = f"{len(found)} statements" if found else "no text"
        raise PredicateError(f"not a predicate: {what}, expected one boolean expression")
    inner = found[0].unnest()
    if not isinstance(inner, exp.Condition) or isinstance(inner, _VALUES):
        raise PredicateError("not a predicate: a value or a query, expected a boolean expression")
    check_node(found[0])
    return found[0]


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
