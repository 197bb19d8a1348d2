"""Rows for the binary-row files: every type at its limits, several columns, many, and random."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.golden.payload_columns import LTZ, slug
from tests.golden.values import Json, binary, f32, f64, timestamp

TEXTS = ["", "a", "abcdefg", "abcdefgh", "abcdefghi", "é" * 3, "é" * 4, "čas 日本語", "🐧", "x\0y"]
TEXTS += ["fifteen letters", "sixteen letters!", "seventeen letters", "z" * 100]
BYTES = [b"", b"\0", b"\xff" * 6, b"\x80" * 7, bytes(8), b"\xfe" * 9, bytes(range(40)), b"\0" * 7]


@dataclass(frozen=True)
class Rows:
    """Rows with the same types; `brief` files have only the hashes."""

    name: str
    types: list[str]
    rows: list[list[Json]]
    brief: bool = False


def _decimals(precision: int, scale: int) -> list[Json]:
    """Unscaled values where the shortest big-endian form grows by a byte, and the largest value."""
    edges = {0, 1, 12_345, 10**precision - 1, 2**63 - 1, 2**63, 2**64}
    for size in range(1, 17):
        edges |= {2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1), 2 ** (8 * size - 1) + 1}
    unscaled = sorted({sign * edge for edge in edges for sign in (1, -1) if edge < 10**precision})
    return [decimal_text(number, scale) for number in unscaled]


def decimal_text(unscaled: int, scale: int) -> str:
    """The text of a decimal, with all digits of its scale.

    >>> decimal_text(-5, 2), decimal_text(12345, 0)
    ('-0.05', '12345')
    """
    digits = str(abs(unscaled)).zfill(scale + 1)
    whole, fraction = (digits[:-scale], digits[-scale:]) if scale else (digits, "")
    return ("-" if unscaled < 0 else "") + whole + ("." + fraction if scale else "")


def _cut(millis: int, nanos: int, precision: int) -> Json:
    """An instant without the digits beyond the precision."""
    total = millis * 10**6 + nanos
    return timestamp(*divmod(total - total % 10 ** (9 - precision), 10**6))


def _timestamps(precision: int) -> list[Json]:
    instants = [(0, 0), (1_700_000_000_123, 456_789), (-1, 999_999), (-1, 0), (-86_400_001, 1)]
    # Nanoseconds must fit into 64 bits of them, as Arrow's do; the others into years 1 to 9999.
    first, last = (
        (-62_135_596_800_000, 253_402_300_799_999) if precision <= 6 else (-(2**43), 2**43)
    )
    instants += [(1, 999_999), (first, 0), (last, 999_999)]
    return [_cut(*instant, precision) for instant in instants]


def _integers(bits: int) -> list[Json]:
    return [0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 2 ** (bits - 2) + 3, -100]


_FLOATS = [0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), float("nan")]
EDGES: dict[str, list[Json]] = {
    "BOOLEAN": [True, False],
    "TINYINT": _integers(8),
    "SMALLINT": _integers(16),
    "INT": _integers(32),
    "BIGINT": _integers(64),
    "DATE": [0, -1, 19_000, -719_162, 2_932_896],
    "TIME(0)": [0, 1000, 86_399_000],
    "TIME(3)": [0, 1, 43_200_000, 86_399_999],
    "FLOAT": [f32(number) for number in (*_FLOATS, 1e-45, 3.4028234663852886e38, 0x7FC00001)],
    "DOUBLE": [f64(number) for number in (*_FLOATS, 5e-324, 1.7976931348623157e308, 2**63 - 1)],
    "CHAR(9)": TEXTS[:9],
    "VARCHAR(200)": list(TEXTS),
    "STRING": list(TEXTS),
    "BINARY(7)": [binary(BYTES[3]), binary(BYTES[7])],
    "BINARY(8)": [binary(BYTES[4]), binary(b"abcdefgh")],
    "VARBINARY(60)": [binary(data) for data in BYTES],
    "BYTES": [binary(data) for data in BYTES],
    "DECIMAL(5, 0)": _decimals(5, 0),
    "DECIMAL(10, 2)": _decimals(10, 2),
    "DECIMAL(18, 18)": _decimals(18, 18),
    "DECIMAL(19, 0)": _decimals(19, 0),
    "DECIMAL(20, 2)": _decimals(20, 2),
    "DECIMAL(38, 10)": _decimals(38, 10),
}
EDGES |= {
    f"TIMESTAMP({precision}){zone}": _timestamps(precision)
    for zone in ("", LTZ)
    for precision in (0, 1, 3, 4, 6, 9)
}


def _wide(count: int) -> Rows:
    """Many columns of changing types: one row full, one with nulls, one of nulls."""
    kinds = ["INT", "STRING", "BIGINT", "DECIMAL(20, 2)", "BOOLEAN", "TIMESTAMP(6)", "BYTES"]
    types = [kinds[number % len(kinds)] for number in range(count)]
    full = [EDGES[kind][number % len(EDGES[kind])] for number, kind in enumerate(types)]
    some = [
        None if number % 3 == 1 or number == count - 1 else full[number] for number in range(count)
    ]
    return Rows(f"columns_{count}", types, [full, some, [None] * count])


def _several() -> Iterator[Rows]:
    yield Rows("columns_0", [], [[]])
    yield Rows(
        "several_bigint_string_int",
        ["BIGINT", "STRING", "INT"],
        [[1_234_567_890_123, "k-é-longer", -5], [0, "", 0], [-1, "1234567", None], [None] * 3],
    )
    yield Rows(
        "several_nulls_before_text",
        ["DECIMAL(20, 2)", "TIMESTAMP(6)", "STRING", "DECIMAL(20, 2)", "BYTES"],
        [
            [None, None, "abcdefgh", None, binary(b"123456789")],
            ["1.28", timestamp(-1, 999_000), "abcdefgh", "-1.29", binary(b"")],
            [None, timestamp(0), None, "-1.28", None],
            ["1.27", None, "abcdefghijklmnop", None, binary(bytes(17))],
        ],
    )
    yield Rows(
        "several_dates",
        ["DATE", "CHAR(9)", "TIME(3)", "SMALLINT", "TINYINT", "FLOAT"],
        [[19_000, "abc", 1, -2, -3, f32(2.5)], [None, "abc", None, 7, None, f32(-0.0)]],
    )


def _text(chance: random.Random) -> str:
    return "".join(chance.choice("abcXYZ019 -_éßč日🐧") for _ in range(chance.randrange(20)))


def random_value(chance: random.Random, kind: str) -> Json:
    root = kind.partition("(")[0]
    if root in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        bits = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}[root]
        return chance.getrandbits(bits) - 2 ** (bits - 1)
    if root == "DECIMAL":
        precision, scale = (int(part) for part in kind[8:-1].split(","))
        unscaled = chance.randrange(10 ** chance.randint(1, precision))
        return decimal_text(unscaled * chance.choice((1, -1)), scale)
    if root == "TIMESTAMP":
        instant = chance.randrange(-(2**43), 2**43), chance.randrange(10**6)
        return _cut(*instant, int(kind[10]))
    others: dict[str, Callable[[], Json]] = {
        "BOOLEAN": lambda: chance.random() < 0.5,
        "DATE": lambda: chance.randrange(-50_000, 50_000),
        "TIME": lambda: chance.randrange(86_400_000),
        "FLOAT": lambda: f32(chance.gauss(0, 1e6)),
        "DOUBLE": lambda: f64(chance.gauss(0, 1e6)),
        "STRING": lambda: _text(chance),
        "BYTES": lambda: binary(chance.randbytes(chance.randrange(20))),
    }
    return others[root]()


RANDOM_TYPES: list[list[str]] = [
    ["BIGINT"],
    ["STRING"],
    ["INT", "STRING"],
    ["STRING", "BYTES", "STRING"],
    ["DECIMAL(38, 10)", "DECIMAL(18, 3)", "STRING"],
    ["TIMESTAMP(6)", "TIMESTAMP(3)", f"TIMESTAMP(9){LTZ}"],
    ["BOOLEAN", "TINYINT", "SMALLINT", "DATE", "TIME(3)"],
    ["FLOAT", "DOUBLE", "BYTES"],
    ["BIGINT", "STRING", "DECIMAL(20, 2)", "TIMESTAMP(6)"],
    ["STRING", "INT", "DECIMAL(25, 0)", "BYTES", "DOUBLE", "DATE"],
]


def cases() -> Iterator[Rows]:
    """Every file: each type alone with a null, several columns, many, then 2,000 rows at random."""
    for kind, values in EDGES.items():
        yield Rows(slug(kind), [kind], [[value] for value in [*values, None]])
    yield from _several()
    for count in (55, 56, 57, 64, 120, 121):
        yield _wide(count)
    chance = random.Random(20_250_801)
    for number, types in enumerate(RANDOM_TYPES):
        rows = [
            [None if chance.random() < 0.08 else random_value(chance, kind) for kind in types]
            for _ in range(200)
        ]
        yield Rows(f"random_{number}", types, rows, brief=True)
