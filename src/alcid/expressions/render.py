"""Names and literals as SQL text that Spark, and `parse`, read back as the same."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal

import numpy as np

from alcid.config import current_settings
from alcid.expressions.casts_from_text import SessionTimestamp

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAP_KEY = re.compile(r"([^\[\]]+)\[(.*)\]", re.DOTALL)
# Words that mean something of their own where a column could stand.
_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
        ALL ALTER AND ANTI ANY ARRAY AS ASC BETWEEN BINARY BY CALL CASE CAST CONNECT_BY_ROOT
        CREATE CROSS CURRENT_CATALOG CURRENT_DATE CURRENT_DATETIME CURRENT_ROLE CURRENT_SCHEMA
        CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DESC DISTINCT DIV DROP ELSE END ESCAPE EXCEPT
        EXECUTE EXISTS EXPLAIN FALSE FETCH FILTER FOR FROM FULL GLOB GRANT GROUP HAVING IF ILIKE
        IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT LOCALTIME
        LOCALTIMESTAMP MAP MINUS NATURAL NOT NOTNULL NULL OFFSET ON OPTIMIZE OR ORDER OUTER OVER
        OVERLAPS PARTITIONED_BY PIVOT PREPARE PRIOR QUALIFY REGEXP RENAME RETURNING REVOKE RIGHT
        RLIKE ROLLBACK SELECT SEMI SERDEPROPERTIES SESSION_USER SET SHOW SOME STRUCT TABLE
        TABLESAMPLE THEN TRUE UNCACHE UNION UNIQUE UNNEST UNPIVOT USER USING VACUUM VALUES WHEN
        WHERE WINDOW WITH X XOR
        """,
    )
)
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_ESCAPED = re.compile("[" + re.escape("".join(_ESCAPES)) + "]")
_MOST_DIGITS = 60


def quote_name(name: str) -> str:
    """A column name, in backticks where it needs them.

    >>> print(quote_name("a"), quote_name("a.b"), quote_name("m[key]"))
    a `a.b` m['key']
    """
    if match := _MAP_KEY.fullmatch(name):
        return f"{quote_name(match[1])}[{quote_text(match[2])}]"
    if _PLAIN.fullmatch(name) and name.upper() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """A text literal, which means the same to a session that reads no escapes."""
    if current_settings().escaped_string_literals and _ESCAPED.search(text):
        return f"CAST(X'{text.encode().hex().upper()}' AS STRING)"
    return "'" + _ESCAPED.sub(lambda match: _ESCAPES[match[0]], text) + "'"


def quote_literal(literal: object) -> str:
    r"""A literal, in a form that keeps its type.

    >>> from decimal import Decimal
    >>> print(*map(quote_literal, [5, 5.5, Decimal("5.5"), "it's", None, b"a"]))
    5 5.5D 5.5 'it\'s' NULL X'61'
    """
    match literal:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if literal else "FALSE"
        case int():
            return str(Decimal(literal))  # str(int) refuses thousands of digits
        case float():
            return _quote_float(literal)
        case Decimal():
            return _quote_decimal(literal)
        case str():
            return quote_text(literal)
        case bytes():
            return f"X'{literal.hex().upper()}'"
        case SessionTimestamp():
            return f"TIMESTAMP {quote_text(literal.text)}"
        case datetime.datetime():
            kind = "TIMESTAMP_NTZ" if literal.tzinfo is None else "TIMESTAMP"
            return f"{kind} '{literal.isoformat(' ')}'"
        case datetime.date():
            return f"DATE '{literal.isoformat()}'"
        case datetime.time():
            return f"TIME '{literal.isoformat()}'"
        case np.datetime64():
            return _quote_datetime64(literal)
    return quote_text(str(literal))


def _quote_float(number: float) -> str:
    if math.isfinite(number):
        return f"{float(number)!r}D"
    word = "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return f"CAST('{word}' AS DOUBLE)"


def _quote_decimal(number: Decimal) -> str:
    if not number.is_finite():  # SQL's decimals are; the double is equal
        return _quote_float(math.nan if number.is_nan() else float(number))
    if len(number.as_tuple().digits) + abs(number.adjusted()) > _MOST_DIGITS:
        return f"{number}BD"
    plain = format(number, "f")
    return plain if "." in plain else f"{plain}BD"


def _quote_datetime64(moment: np.datetime64) -> str:
    if np.isnat(moment):  # no type takes it; this is what the error shows
        return f"CAST('NaT' AS {'DATE' if moment.dtype == 'M8[D]' else 'TIMESTAMP_NTZ'})"
    text = str(moment).replace("T", " ")
    # Spark wants a sign, and takes one, where a year has more than four digits.
    text = text if text[0] in "+-" else f"+{text}" if text.index("-") > 4 else text
    return f"DATE '{text}'" if moment.dtype == "M8[D]" else f"TIMESTAMP_NTZ '{text}'"
