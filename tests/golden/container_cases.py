"""The tables and raw columns of the container files, with the questions about them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.golden.values import Json, f32, f64, timestamp


@dataclass(frozen=True)
class Table:
    """Rows, the options that name what to index, and the questions."""

    name: str
    fields: dict[str, str]
    options: dict[str, str]
    rows: list[list[Json]]
    questions: list[Json] = field(default_factory=list)
    top_n: list[tuple[str, tuple[str, str], int]] = field(default_factory=list)


def leaf(column: str, function: str, *literals: Json) -> Json:
    """One comparison in its JSON form."""
    return {"column": column, "function": function, "literals": list(literals)}


_KINDS = ["auk", "puffin", None, "murre", "razorbill"]

BIRDS = Table(
    "birds",
    {"ring": "INT", "kind": "STRING", "weight": "BIGINT"},
    {
        "file-index.bitmap.columns": "ring, kind",
        "file-index.bitmap.ring.version": "1",
        "file-index.bloom-filter.columns": "kind",
        "file-index.bloom-filter.kind.items": "30",
        "file-index.range-bitmap.columns": "weight,ring",
        "file-index.range-bitmap.weight.chunk-size": "64 b",
        "file-index.bsi.columns": "weight",
    },
    [
        [row % 7, _KINDS[row * 3 % 5], None if row % 8 == 5 else row * row % 41 - 15]
        for row in range(45)
    ],
    [
        leaf("ring", "EQUAL", 4),
        leaf("ring", "IN", 1, 5, 99),
        leaf("ring", "NOT_IN", 1, 5),
        leaf("kind", "EQUAL", "murre"),
        leaf("kind", "EQUAL", "gull"),
        leaf("kind", "NOT_EQUAL", "murre"),
        leaf("kind", "IS_NULL"),
        leaf("kind", "STARTS_WITH", "mu"),
        leaf("weight", "IS_NOT_NULL"),
        leaf("weight", "NOT_EQUAL", 1),
        leaf("weight", "LESS_THAN", -10),
        leaf("weight", "GREATER_OR_EQUAL", 20),
        leaf("weight", "BETWEEN", -5, 5),
        {"and": [leaf("ring", "EQUAL", 4), leaf("weight", "GREATER_THAN", 0)]},
        {"and": [leaf("ring", "EQUAL", 4), leaf("kind", "GREATER_THAN", "b")]},
        {"and": [leaf("ring", "EQUAL", 4), leaf("kind", "EQUAL", "gull")]},
        {"or": [leaf("ring", "EQUAL", 4), leaf("weight", "GREATER_THAN", 20)]},
        {"or": [leaf("ring", "EQUAL", 4), leaf("kind", "GREATER_THAN", "b")]},
        {"or": [leaf("ring", "EQUAL", 70), leaf("kind", "EQUAL", "gull")]},
        {
            "or": [
                {"and": [leaf("ring", "LESS_THAN", 2), leaf("weight", "LESS_THAN", 0)]},
                leaf("weight", "EQUAL", 25),
            ]
        },
    ],
    [
        (column, (direction, nulls), limit)
        for column in ("weight", "kind")
        for direction, nulls in (("ASCENDING", "NULLS_LAST"), ("DESCENDING", "NULLS_FIRST"))
        for limit in (1, 6, 45)
    ],
)

TYPES = Table(
    "many_types",
    {
        "b": "BOOLEAN",
        "s": "SMALLINT",
        "d": "DOUBLE",
        "day": "DATE",
        "at": "TIMESTAMP(6)",
        "seen": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
        "price": "DECIMAL(9, 2)",
        "code": "CHAR(4)",
        "größe": "FLOAT",
    },
    {
        "file-index.bitmap.columns": "b,code,day",
        "file-index.range-bitmap.columns": "s,d,at,price, größe",
        "file-index.bsi.columns": "s,day,seen,price",
        "file-index.bloom-filter.columns": "d,seen",
        "file-index.bloom-filter.d.items": "20",
        "file-index.bloom-filter.seen.items": "20",
    },
    [
        [
            None if row == 3 else row % 2 == 0,
            row * 5 - 40,
            None if row % 6 == 4 else f64(row / 8),
            20_000 + row % 4,
            timestamp(1_700_000_000_000 + row, row * 1000),
            None if row % 5 == 0 else timestamp(row * 3_600_000),
            f"{row - 6}.{row:02}",
            f"c{row % 3}",
            None if row % 4 else f32(row / 4),
        ]
        for row in range(16)
    ],
    [
        leaf("b", "EQUAL", True),
        leaf("s", "GREATER_THAN", 12),
        leaf("d", "LESS_OR_EQUAL", f64(0.5)),
        leaf("day", "EQUAL", 20_002),
        leaf("at", "LESS_THAN", timestamp(1_700_000_000_004, 4000)),
        leaf("seen", "EQUAL", timestamp(7_200_000)),
        leaf("price", "GREATER_OR_EQUAL", "3.10"),
        leaf("code", "IN", "c0", "c2"),
        leaf("größe", "IS_NULL"),
    ],
)

MAP = Table(
    "map_keys",
    {"id": "INT", "m": "MAP<STRING, STRING>"},
    {
        "file-index.bloom-filter.columns": "m[size], m[colour], id, m[ünî]",
        "file-index.bloom-filter.m.items": "25",
        "file-index.bloom-filter.m[colour].items": "60",
        "file-index.bloom-filter.id.items": "10",
        "file-index.bitmap.columns": "m[colour]",
        "file-index.range-bitmap.columns": "m[size]",
    },
    [
        [1, {"map": [["colour", "red"], ["size", "s"]]}],
        [2, {"map": [["size", "m"]]}],
        [3, None],
        [4, {"map": []}],
        [5, {"map": [["colour", None], ["other", "x"]]}],
        [6, {"map": [["ünî", "é"], ["colour", "blue"], ["size", "l"]]}],
        [7, {"map": [["colour", "red"]]}],
    ],
    [
        leaf("m[colour]", "EQUAL", "red"),
        leaf("m[colour]", "EQUAL", "green"),
        leaf("m[colour]", "IS_NULL"),
        leaf("m[size]", "LESS_THAN", "m"),
        leaf("m[size]", "EQUAL", "m"),
        leaf("m[ünî]", "EQUAL", "é"),
        leaf("m[ünî]", "EQUAL", "e"),
        leaf("m[other]", "EQUAL", "x"),
        leaf("id", "EQUAL", 8),
    ],
)

NO_ROWS = Table(
    "no_rows",
    {"i": "INT", "s": "STRING"},
    {
        "file-index.bitmap.columns": "i,s",
        "file-index.range-bitmap.columns": "i",
        "file-index.bsi.columns": "i",
        "file-index.bloom-filter.columns": "s",
        "file-index.bloom-filter.s.items": "8",
    },
    [],
    [leaf("i", "EQUAL", 1), leaf("i", "IS_NULL"), leaf("s", "NOT_EQUAL", "a")],
)

EMPTY_MAP = Table(
    "map_keys_no_rows",
    {"i": "INT", "m": "MAP<STRING, STRING>"},
    {
        "file-index.bitmap.columns": "i,m[a],m[b]",
        "file-index.bloom-filter.columns": "m[a]",
        "file-index.bloom-filter.m.items": "8",
    },
    [],
    [
        leaf("m[a]", function, "x")
        for function in ("EQUAL", "NOT_EQUAL", "LESS_THAN", "STARTS_WITH", "ENDS_WITH", "CONTAINS")
    ]
    + [
        leaf("m[b]", "LIKE", "x%"),
        leaf("m[b]", "IN", "x", "y"),
        leaf("m[b]", "NOT_IN", "x", "y"),
        leaf("m[b]", "IS_NULL"),
        leaf("m[b]", "IS_NOT_NULL"),
        leaf("m[b]", "BETWEEN", "x", "y"),
        leaf("i", "EQUAL", 1),
    ],
)

TABLES = [BIRDS, TYPES, MAP, NO_ROWS, EMPTY_MAP]

RAW: dict[str, dict[str, dict[str, bytes | None]]] = {
    "no_columns": {},
    "column_without_index": {"bare": {}, "c": {"bitmap": b"\x01\x02"}},
    "odd_names": {
        "": {"bsi": b"empty name"},
        "größe": {"bitmap": b"\x00"},
        "鳥": {"bloom-filter": b"\xff" * 5, "range-bitmap": b""},
        "🐧": {"bitmap": b"astral"},
        "nul\0inside": {"bitmap": b"n"},
        "with.dot": {"bsi": None},
        "a b[c]": {"an-unknown-type": b"?"},
        "x" * 300: {"bitmap": b"long name"},
    },
    "empty_index": {"e": {"bitmap": None, "bsi": b"\x07", "range-bitmap": None}},
}
