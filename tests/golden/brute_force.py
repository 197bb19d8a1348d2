"""Which rows match, row by row: this marks wrong answers of a release."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Sequence
from decimal import Decimal

from tests.golden.values import Json

COMPARE = {
    "eq": operator.eq,
    "neq": operator.ne,
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}


def loses_rows(data_type: str, values: Sequence[Json], question: Json, answer: Json) -> bool:
    """Whether an answer leaves out a row that matches.

    >>> asked = {"op": "lt", "literals": [3]}
    >>> loses_rows("INT", [1, None, 2], asked, {"ranges": [[0, 1]]})
    True
    """
    if answer in ("REMAIN", "null") or (isinstance(answer, dict) and "error" in answer):
        return False
    if None in question["literals"]:
        return False  # no row matches a null
    keys = [_key(data_type, value) for value in values]
    literals = [_key(data_type, value) for value in question["literals"]]
    kept = set() if answer == "SKIP" else _rows(answer)
    return any(
        row not in kept and _matches(question["op"], key, literals) for row, key in enumerate(keys)
    )


def misses_rows(data_type: str, values: Sequence[Json], question: Json, answer: Json) -> bool:
    """Whether a top-n answer leaves out a row that belongs to it.

    A question that is not strict has more sort columns, so all ties of the last row belong.

    >>> asked = {"k": 1, "direction": "ASC", "nulls": "NULLS LAST", "strict": False}
    >>> misses_rows("INT", [4, 4, 5], {**asked, "found_set": None}, {"ranges": [[1, 2]]})
    True
    """
    allowed, limit = question["found_set"], question["k"]
    candidates = set(range(len(values))) if allowed is None else _rows(allowed)
    if answer == "REMAIN" or not candidates or not limit:
        return False
    keys = [_key(data_type, value) for value in values]
    ascending = sorted({key for key in keys if key is not None})
    step = 1 if question["direction"] == "ASC" else -1
    ranks = {key: step * rank for rank, key in enumerate(ascending)}
    ranks[None] = (-1 if question["nulls"] == "NULLS FIRST" else 1) * (len(keys) + 1)
    ordered = sorted((ranks[keys[row]], row) for row in candidates)[:limit]
    last = ordered[-1][0]
    needed = {row for row in candidates if ranks[keys[row]] < last}
    if not question["strict"]:
        needed |= {row for row in candidates if ranks[keys[row]] == last}
    kept = _rows(answer) & candidates
    return not needed <= kept or len(kept) < len(ordered)


def _rows(answer: Json) -> set[int]:
    return {row for start, end in answer["ranges"] for row in range(start, end)}


def _matches(name: str, key: Json, literals: list[Json]) -> bool:
    if name == "is_null":
        return key is None
    if key is None:
        return False
    if name in COMPARE:
        return bool(COMPARE[name](key, literals[0]))
    if name in ("in", "not_in"):
        return (key in literals) == (name == "in")
    if name in ("between", "not_between"):
        return bool(literals[0] <= key <= literals[1]) == (name == "between")
    return name == "is_not_null"


def _key(data_type: str, value: Json) -> Json:
    """A value that compares as Java compares it: -0.0 below 0.0, NaN above all."""
    if data_type.startswith("DECIMAL") and value is not None:
        return Decimal(value)
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, dict):
        return value
    if "millis" in value:
        return value["millis"] * 10**6 + value["nano_of_millis"]
    if "hex" in value:
        return bytes.fromhex(value["hex"])
    layout, bits = (">f", value["f32"]) if "f32" in value else (">d", value["f64"])
    number: float = struct.unpack(layout, bytes.fromhex(bits))[0]
    return (1, 0.0, 0.0) if math.isnan(number) else (0, number, math.copysign(1, number))
