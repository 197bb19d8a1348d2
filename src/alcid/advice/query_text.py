"""A query as text: what may stand behind WHERE, with ORDER BY and LIMIT."""

from __future__ import annotations

import re

from alcid.plan import Query

__all__ = ["parse_query"]

# An order has words, and names, some in backticks. So what follows an ORDER BY within a text, a
# name or brackets is none: a quote, a backtick or a bracket would be left over.
_ORDER = r"(?:^|\s)ORDER\s+BY\s+(?P<order>(?:`(?:[^`]|``)*`|[^`'\"()])+?)"
_LIMIT = r"(?:^|\s)LIMIT\s+(?P<limit>\d+)"
_QUERY = re.compile(rf"(?P<where>.*?)(?:{_ORDER})?(?:{_LIMIT})?\s*", re.IGNORECASE | re.DOTALL)


def parse_query(text: str) -> Query:
    """Take a query apart; each part is read where it is used.

    >>> parse_query("score > 5 ORDER BY score DESC LIMIT 10")
    Query(where='score > 5', columns=None, order_by='score DESC', limit=10, use_indexes=True)
    >>> parse_query("ORDER BY `a limit 3`").order_by
    '`a limit 3`'
    >>> parse_query("name = 'x ORDER BY y LIMIT 3'").where
    "name = 'x ORDER BY y LIMIT 3'"
    """
    found = _QUERY.fullmatch(text)
    assert found is not None  # all of it may be the predicate
    order, limit = found["order"], found["limit"]
    where: str | None = found["where"]
    if order is None and limit is None:
        where = text
    elif not found["where"].strip():
        where = None
    return Query(where, order_by=order, limit=None if limit is None else int(limit))
