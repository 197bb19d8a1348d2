"""SQL text to sqlglot's nodes and back, in Spark's dialect; every failure is a `PredicateError`."""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from alcid.errors import PredicateError
from alcid.predicate.sql_checks import check_node, check_text
from alcid.predicate.strings import Strings

__all__ = ["parse_sql", "write_sql"]

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
