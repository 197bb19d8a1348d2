"""Values, columns and predicates of random Iceberg tables, in Spark's SQL."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

__all__ = ["INNER", "NAMES", "NESTED", "TRANSFORMS", "VALUES", "WIDER", "draw_predicate", "quoted"]

_LONG = "a text of more than sixteen characters"
VALUES: dict[str, Sequence[str]] = {
    "INT": ("-7", "0", "3", "2147483647", "-2147483648", "41"),
    "BIGINT": ("-7L", "0L", "3L", "9223372036854775807L", "5000000000L"),
    "FLOAT": (
        "0.0F",
        "-0.0F",
        "CAST('NaN' AS FLOAT)",
        "CAST('-Infinity' AS FLOAT)",
        "1.5F",
        "0.1F",
    ),
    "DOUBLE": ("0.0D", "-0.0D", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)", "1.5D"),
    "STRING": (
        "''",
        "'a'",
        "'é'",
        f"'{_LONG} 1'",
        f"'{_LONG} 2'",
        f"'{_LONG} \U0001f427'",
        "'x/y=z %'",
    ),
    "BINARY": ("X''", "X'00'", "X'FF'", f"X'{'FF' * 18}'", f"X'{'61' * 18}'"),
    "BOOLEAN": ("true", "false"),
    "DATE": ("DATE'1969-12-31'", "DATE'1970-01-01'", "DATE'2024-02-29'", "DATE'0001-01-01'"),
    "TIMESTAMP": (
        "TIMESTAMP'1969-12-31 23:59:59.999999Z'",
        "TIMESTAMP'2024-03-10 01:30:00Z'",
        "TIMESTAMP'2024-11-03 06:30:00Z'",
    ),
    "TIMESTAMP_NTZ": (
        "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'",
        "TIMESTAMP_NTZ'2024-02-29 00:00:00'",
    ),
    "DECIMAL(9, 2)": ("-1.25BD", "0.00BD", "9999999.99BD", "-9999999.99BD", "12.50BD"),
    "STRUCT<x: INT, y: STRING>": (
        "named_struct('x', 1, 'y', 'a')",
        "named_struct('x', null, 'y', '')",
    ),
    "ARRAY<FLOAT>": ("array(1.5F, null)", "array(CAST('NaN' AS FLOAT))"),
    "MAP<STRING, INT>": ("map('k', 1)", "map('k', null, 'l', 2)"),
}
WIDER = {
    "INT": "BIGINT",
    "FLOAT": "DOUBLE",
    "DECIMAL(9, 2)": "DECIMAL(18, 2)",
}
VALUES["DECIMAL(18, 2)"] = VALUES["DECIMAL(9, 2)"]
NESTED = ("STRUCT", "ARRAY", "MAP")
INNER = {
    "STRUCT<x: INT, y: STRING>": (
        "ADD COLUMN {0}.z DATE",
        "ADD COLUMN {0}.y2 STRING",
        "DROP COLUMN {0}.x",
        "DROP COLUMN {0}.y",
        "RENAME COLUMN {0}.y TO w",
        "ADD COLUMN {0}.y INT",
        "ALTER COLUMN {0}.x TYPE BIGINT",
        "ALTER COLUMN {0}.x AFTER y",
    ),
    "ARRAY<FLOAT>": ("ALTER COLUMN {0}.element TYPE DOUBLE",),
    "MAP<STRING, INT>": ("ALTER COLUMN {0}.value TYPE BIGINT",),
}
"""Changes within a column."""
NAMES = ("a", "b", "c-d e", "ä", "x")
TRANSFORMS: dict[str, Sequence[str]] = {
    "INT": ("{0}", "bucket(3, {0})", "truncate(10, {0})"),
    "BIGINT": ("{0}", "bucket(3, {0})", "truncate(10, {0})"),
    "STRING": ("{0}", "bucket(3, {0})", "truncate(3, {0})"),
    "BINARY": ("bucket(2, {0})", "truncate(1, {0})"),
    "BOOLEAN": ("{0}",),
    "FLOAT": ("{0}",),
    "DOUBLE": ("{0}",),
    "DATE": ("{0}", "years({0})", "months({0})", "days({0})", "bucket(3, {0})"),
    "TIMESTAMP": ("{0}", "years({0})", "days({0})", "hours({0})", "bucket(3, {0})"),
    "TIMESTAMP_NTZ": ("{0}", "months({0})", "hours({0})"),
    "DECIMAL(9, 2)": ("{0}", "bucket(3, {0})", "truncate(100, {0})"),
}
_BEGINNINGS = ("a", _LONG, "é", "x/y=z \\\\%", "")
_OPERATORS = ("=", "<", "<=", ">", ">=", "<>", "<=>")


def quoted(name: str) -> str:
    """A name in SQL."""
    return "`" + name.replace("`", "``") + "`"


def draw_predicate(
    source: random.Random, columns: Mapping[str, str], most: int, depth: int = 2
) -> str:
    """A predicate over columns, which are given with their types, and `id`, which is below most."""
    if not depth or source.random() < 0.4:
        return _draw_leaf(source, columns, most)
    parts = [draw_predicate(source, columns, most, depth - 1) for _ in range(2)]
    joined = source.choice((" AND ", " OR ")).join(f"({part})" for part in parts)
    return f"NOT ({joined})" if source.random() < 0.2 else joined


def _draw_leaf(source: random.Random, columns: Mapping[str, str], most: int) -> str:
    name, kind = source.choice([("id", "BIGINT"), *columns.items()])
    shape = source.randrange(6)
    if shape == 0 or kind.startswith(NESTED):
        return f"{quoted(name)} IS {source.choice(('', 'NOT '))}NULL"
    if name == "id":
        literals = [str(source.randrange(most + 2)) for _ in range(3)]
    else:  # a cast to FLOAT is for Spark alone
        literals = [
            choice.replace(" AS FLOAT", " AS DOUBLE")
            for choice in source.choices(VALUES[kind], k=3)
        ]
    if shape == 1:
        return f"{quoted(name)} IN ({', '.join(literals)})"
    if shape == 2:
        return f"{quoted(name)} BETWEEN {literals[0]} AND {literals[1]}"
    if shape == 3 and kind == "STRING":
        return f"{quoted(name)} LIKE '{source.choice(_BEGINNINGS)}%'"
    return f"{quoted(name)} {source.choice(_OPERATORS)} {literals[0]}"
