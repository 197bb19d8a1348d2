"""SQL text to an expression tree, in Spark's dialect.

What an index could answer becomes a leaf; all else becomes `Unknown`, never an error. sqlglot
parses, and is imported on the first call only.
"""

from __future__ import annotations

from alcid.errors import PredicateError
from alcid.expressions.expression import Predicate

__all__ = ["parse"]


def parse(predicate: str | Predicate) -> Predicate:
    """A predicate from SQL text; a predicate is given back as it is.

    Args:
        predicate: What may stand behind WHERE in Spark's SQL.

    Returns:
        The expression tree.

    Raises:
        PredicateError: The text is not one boolean expression.

    >>> parse("a = 1 AND 5 < b")
    And(parts=(Comparison(column='a', operator='=', literal=1),
               Comparison(column='b', operator='>', literal=5)))
    >>> parse("upper(a) = 'X'")
    Unknown(text="upper(a) = 'X'", names=('a',))
    """
    if isinstance(predicate, Predicate):
        return predicate
    if not isinstance(predicate, str):
        raise PredicateError(f"a predicate is text or a Predicate, not {type(predicate).__name__}")
    # Here, not above: sqlglot takes as long to import as all the rest of Alcid.
    from alcid.expressions.sql_reader import read_sql

    return read_sql(predicate)
