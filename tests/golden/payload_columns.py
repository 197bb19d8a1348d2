"""The columns of the payload files: data types with their limits, then shapes of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.golden.values import Json, binary, distinct, f32, f64, timestamp

LTZ = " WITH LOCAL TIME ZONE"


@dataclass(frozen=True)
class Column:
    """One payload: what to index, with which options, and the literals of its questions."""

    name: str
    index_type: str
    data_type: str
    values: list[Json] = field(default_factory=list)
    absent: list[Json] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    limits: tuple[int, ...] = (2,)  # the k of the top-n questions
    present: int = 9  # how many values of the rows are used as literals
    rule: Json = None  # instead of values


# Every type: rows with its limits, nulls and repetitions; then literals that no row has.
_I64 = 2**63
_NAN, _INFINITY = float("nan"), float("inf")
_TEXT = ["plum", "", None, "čas", "plum", "日本語", "🐧 auk", "plu", None, "plump", "x" * 300]
_TEXT_ABSENT = ["pear", "plumb", "zz", " "]
_BYTES = [b"\x00", b"", b"\xff\xfe", None, b"\x00\x00", b"puffin", b"\xff\xfe", b"razorbill" * 20]


def _timestamps(precision: int) -> tuple[list[Json], list[Json]]:
    """Instants cut to the precision; nanoseconds fit into 64 bits."""
    wide = precision <= 6
    first, last = (-62_135_596_800_000, 253_402_300_799_999) if wide else (-(2**43), 2**43)
    rows = [(1_755_000_000_123, 456_789), (0, 0), None, (-1, 999_999), (1_755_000_000_123, 456_001)]
    rows += [(first, 0), (1_755_000_001_000, 0), (0, 0), (last, 999_999)]
    absent = [(1_755_000_002_125, 1_000), (-86_400_000, 0)]

    def cut(row: tuple[int, int] | None) -> Json:
        if row is None:
            return None
        nanos = row[0] * 10**6 + row[1]
        nanos -= nanos % 10 ** (9 - precision)
        return timestamp(*divmod(nanos, 10**6))

    return [cut(row) for row in rows], [cut(row) for row in absent]


EDGES: dict[str, tuple[list[Json], list[Json]]] = {
    "BOOLEAN": ([True, None, False, True, True, None, False], []),
    "TINYINT": ([-128, 127, None, 0, -1, 7, 0, None, 7, 1], [3, -2]),
    "SMALLINT": ([-32768, 32767, 0, None, -1, 300, 300, -129, 0], [299, -32767]),
    "INT": (
        [-(2**31), 2**31 - 1, 0, -1, None, 65536, 65536, -70_000, None, 0, 12],
        [11, 2**31 - 2, -2],
    ),
    "BIGINT": (
        [-_I64, _I64 - 1, 0, None, -1, 2**32, 2**32, -(2**32), 0, 9],
        [10, -_I64 + 1, 2**31],
    ),
    "DATE": ([0, -1, 20_300, None, -719_162, 2_932_896, 20_300, 0], [20_301, -2]),
    "TIME(3)": ([0, 86_399_999, None, 43_200_000, 1, 0, 43_200_000], [2, 86_399_998]),
    "FLOAT": (
        [None if x is None else f32(x) for x in (0.0, -0.0, 1.5, -1.5, _NAN, 0x7FC00001, None)]
        + [f32(x) for x in (_INFINITY, -_INFINITY, 1e-45, 3.4028234663852886e38, 1.5)],
        [f32(2.5), f32(-3.25)],
    ),
    "DOUBLE": (
        [None if x is None else f64(x) for x in (-0.0, 0.0, 0.1, _NAN, 0x7FF8000000000001, None)]
        + [f64(x) for x in (_INFINITY, -_INFINITY, 5e-324, 1.7976931348623157e308, 0.1, -2.75)],
        [f64(0.2), f64(-1e300)],
    ),
    "DECIMAL(9, 3)": (["1.500", "-999999.999", None, "0.000", "999999.999", "1.500"], ["1.501"]),
    "DECIMAL(18, 0)": (["9" * 18, "-" + "9" * 18, "0", None, "-1", "42"], ["41"]),
    "DECIMAL(30, 4)": (["12.3400", None, "-0.0001", "922337203685477.5807", "0.0000"], ["12.3401"]),
    "CHAR(12)": (_TEXT[:-1], _TEXT_ABSENT),
    "VARCHAR(400)": (_TEXT, _TEXT_ABSENT),
    "STRING": (_TEXT[::-1], _TEXT_ABSENT),
    "BINARY(3)": ([binary(b"abc"), None, binary(b"\0\0\0"), binary(b"\xff\x80\x7f")], []),
    "VARBINARY(200)": ([None if b is None else binary(b) for b in _BYTES], [binary(b"auk")]),
    "BYTES": ([None if b is None else binary(b) for b in _BYTES[::-1]], [binary(b"\0\0\0")]),
}
EDGES |= {
    f"TIMESTAMP({precision}){zone}": _timestamps(precision)
    for zone in ("", LTZ)
    for precision in (0, 3, 6, 9)
}

_NUMBERS = ["TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "TIME(3)"]
_DECIMALS = ["DECIMAL(9, 3)", "DECIMAL(18, 0)"]
_TEXTS = ["CHAR(12)", "VARCHAR(400)", "STRING"]
_MICROS = [name for name in EDGES if name.startswith("TIMESTAMP") and "(9)" not in name]
_NANOS = [name for name in EDGES if name.startswith("TIMESTAMP(9)")]
_BITMAP = ["BOOLEAN", *_NUMBERS, "FLOAT", "DOUBLE", *_TEXTS, *_MICROS, *_NANOS]

# index type as it is in file names -> index type, options, data types
SMALL_BLOOM = {"items": "40", "fpp": "0.02"}
KINDS: dict[str, tuple[str, dict[str, str], list[str]]] = {
    "bloom": (
        "bloom-filter",
        SMALL_BLOOM,
        [name for name in EDGES if not name.startswith(("BOOLEAN", "DECIMAL"))],
    ),
    "bitmap_v1": ("bitmap", {"version": "1"}, _BITMAP),
    "bitmap_v2": ("bitmap", {"version": "2"}, _BITMAP),
    "range": (
        "range-bitmap",
        {},
        ["BOOLEAN", *_NUMBERS, "FLOAT", "DOUBLE", *_DECIMALS, *_TEXTS, *_MICROS],
    ),
    "bsi": (
        "bsi",
        {},
        [*_NUMBERS, *_DECIMALS, "DECIMAL(30, 4)", *_MICROS, *_NANOS],
    ),
}

# Shapes of an INT column, asked of every index type.
SHAPES: dict[str, list[Json]] = {
    "no_rows": [],
    "all_null": [None] * 4,
    "one_null": [None],
    "one_row": [-6],
    "one_value": [None, 5, 5, None, 5],
    "two_values": [9, 4, None, 9, 9, 4],
    "no_null": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5],
    "single_null": [8, 8, None, 8, 2],
    "zeros": [0, 0, None, 0],
    "negative": [-3, -9, None, -3, -1],
    "runs": [1] * 9 + [None] * 7 + [2] * 8 + [1] * 6,
}

# Name, rule, and what is indexed. Version 1 of mixed_containers would repeat 46 kB of version 2.
LONG: list[tuple[str, dict[str, int], tuple[str, ...]]] = [
    (
        "mixed_containers",
        {"rows": 138_000, "block": 1, "modulo": 2, "null_every": 0},
        ("bitmap_v2", "range", "bsi"),
    ),
    (
        "run_containers",
        {"rows": 150_000, "block": 1000, "modulo": 7, "null_every": 97},
        ("bitmap_v1", "bitmap_v2", "range", "bsi"),
    ),
    ("many_values", {"rows": 1600, "block": 1, "modulo": 1500, "null_every": 40}, ("bitmap_v2",)),
    ("many_values", {"rows": 5000, "block": 1, "modulo": 4500, "null_every": 50}, ("range",)),
]


def columns() -> Iterator[Column]:
    """All payload columns."""
    for kind, (index_type, options, data_types) in KINDS.items():
        for data_type in data_types:
            values, absent = EDGES[data_type]
            if index_type == "bsi":  # its writer fails on the lowest BIGINT
                values = [-_I64 + 1 if value == -_I64 else value for value in values]
            name = f"{kind}_{slug(data_type)}"
            yield Column(name, index_type, data_type, values, absent, options)
        for shape, values in SHAPES.items():
            name = f"{kind}_int_{shape}"
            yield Column(name, index_type, "INT", values, [0, 7, -4], options, (0, 2, 5))
    yield from _sizes()
    yield from _long_columns()


def _sizes() -> Iterator[Column]:
    """Options that divide dictionaries into several blocks or chunks; sizes of bloom filters."""
    numbers = [row * 37 % 53 - 26 if row % 11 else None for row in range(70)]
    texts = [None if row % 9 == 0 else f"auk-{row * 7 % 23}" for row in range(50)]
    sized = [("bitmap", "index-block-size", size) for size in ("20", "64b", "1 kb")]
    sized += [("range-bitmap", "chunk-size", size) for size in ("0", "8", "40 b", "1kb")]
    for index_type, option, size in sized:
        options = {option: size}
        name = f"{index_type.split('-')[0]}_%s_{option}_{size.replace(' ', '')}"
        name = name.replace("-", "_")
        number_type = "BIGINT" if option == "chunk-size" else "INT"
        for data_type, values, absent in (
            (number_type, numbers, [27, -27]),
            ("STRING", texts, ["auk", "b"]),
        ):
            if (data_type, size) != ("STRING", "20"):  # no text fits into such a block
                made = name % data_type.lower()
                yield Column(made, index_type, data_type, values, absent, options, (4,), 3)
    for index_type in ("bitmap", "range-bitmap", "bsi"):
        name = f"{index_type.split('-')[0]}_smallint_default_options"
        yield Column(name, index_type, "SMALLINT", numbers, [27, -27], {}, (4,), 3)
    for name, options in (
        ("one_item", {"items": "1", "fpp": "0.5"}),
        ("small_fpp", {"items": "100", "fpp": "0.0001"}),
        ("default_fpp", {"items": "100"}),
        ("default_items", {"fpp": "0.99"}),
    ):
        yield Column(f"bloom_int_{name}", "bloom-filter", "INT", numbers, [27, 400], options)


def _long_columns() -> Iterator[Column]:
    """Several Roaring containers of all three kinds, and dictionaries of more than one chunk."""
    for name, rule, kinds in LONG:
        for kind in kinds:
            index_type, options, _ = KINDS[kind]
            made = f"{kind}_int_{name}"
            yield Column(made, index_type, "INT", options=options, rule={"rule": "blocks", **rule})


def literals(column: Column, values: list[Json]) -> list[Json]:
    """Some values that rows have, then some that no row has, then null."""
    return [*distinct(values)[: column.present], *column.absent, None]


def slug(data_type: str) -> str:
    """A data type as part of a file name.

    >>> slug("TIMESTAMP(6) WITH LOCAL TIME ZONE"), slug("DECIMAL(9, 3)")
    ('timestamp_ltz6', 'decimal_9_3')
    """
    name = data_type.replace("TIMESTAMP", "TIMESTAMP_LTZ") if LTZ in data_type else data_type
    name = name.replace(LTZ, "").replace("DECIMAL(", "DECIMAL_").replace(", ", "_")
    return name.replace("(", "").replace(")", "").lower()
