"""Brute force: evaluate predicates row by row in plain Python, with Spark's semantics.

It shares only the predicate's tree with the evaluation by indexes, so that the two can be compared.
It is too slow for more than some thousand rows.

A column is a list of these, None for null:

| type                        | value                                              |
|-----------------------------|----------------------------------------------------|
| BOOLEAN                     | bool                                               |
| TINYINT to BIGINT           | int                                                |
| FLOAT, DOUBLE               | float                                              |
| DECIMAL                     | Decimal                                            |
| CHAR, VARCHAR               | str                                                |
| BINARY, VARBINARY           | bytes                                              |
| DATE                        | int, days since 1970-01-01                         |
| TIME                        | int, nanoseconds of the day                        |
| TIMESTAMP, TIMESTAMP_LTZ    | int, nanoseconds since 1970-01-01 (LTZ: in UTC)    |

CHAR(n) is compared like in Spark, padded with spaces. Numbers compared with a DECIMAL are rounded
where both need more than 38 digits. One constant folding of Spark's optimiser is not followed: it
makes an integer column below a number beyond BIGINT TRUE, also for null rows.

`values_of` converts an Arrow column to such a list. Literals are Python objects; strings are only
literals for strings and bytes, since casting them to dates or numbers would not be brute force.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from alcid.expressions import (
    And,
    Between,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)
from alcid.types import DataType

Truth: TypeAlias = bool | None
Values: TypeAlias = Sequence[Any]

_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_NANOS_PER_DAY = 86_400 * 10**9
_NANOS_PER = {"W": 7 * _NANOS_PER_DAY, "D": _NANOS_PER_DAY, "h": 3600 * 10**9, "m": 60 * 10**9}
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_INTEGER_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_MOST_DIGITS = 38
_EXACT = Context(prec=100)
_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<=>": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def matching_rows(
    values: Mapping[str, Values], types: Mapping[str, DataType], predicate: Predicate
) -> list[int]:
    """The rows for which a predicate is true: neither false nor NULL.

    Args:
        values: The columns, all of one length; names are taken as they stand.
        types: Their types.
        predicate: A tree without `Unknown`.

    >>> from alcid import DataType, col
    >>> scores = [5.0, None, float("nan"), -0.0]
    >>> matching_rows({"score": scores}, {"score": DataType("DOUBLE")}, ~(col("score") <= 5))
    [2]
    """
    return [row for row, truth in enumerate(_truths(values, types, predicate)) if truth]


def top_rows(
    values: Values,
    data_type: DataType,
    k: int,
    *,
    descending: bool = True,
    nulls: Literal["first", "last"] = "last",
    among: Iterable[int] | None = None,
) -> set[int]:
    """The first `k` rows of a sorted column, with every row that equals the last of them.

    >>> from alcid import DataType
    >>> sorted(top_rows([3, 9, None, 9, 1], DataType("INT"), 1))
    [1, 3]
    """
    rows = range(len(values)) if among is None else among

    def rank(row: int) -> tuple[int, Any]:
        if values[row] is None:
            return (-1 if nulls == "first" else 1), 0
        return 0, _value(values[row], data_type, as_double=False)

    ordered = sorted((row for row in rows if rank(row)[0] == 0), key=rank, reverse=descending)
    absent = [row for row in rows if values[row] is None]
    ordered = absent + ordered if nulls == "first" else ordered + absent
    if k <= 0 or not ordered:
        return set()
    last = rank(ordered[:k][-1])
    return {*ordered[:k], *(row for row in ordered if rank(row) == last)}


def values_of(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of an Arrow column, in the form that the oracle takes.

    >>> values_of(pa.array([-1, None], pa.timestamp("us")))
    [-1000, None]
    """
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in values_of(chunk)]
    if pa.types.is_dictionary(array.type):
        return values_of(array.dictionary_decode())
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        numbers = array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
        return [None if number is None else number * _NANOS[kind.unit] for number in numbers]
    if pa.types.is_date32(kind):
        return array.view(pa.int32()).to_pylist()  # type: ignore[no-any-return]
    return array.to_pylist()  # type: ignore[no-any-return]


def _truths(
    values: Mapping[str, Values], types: Mapping[str, DataType], predicate: Predicate
) -> list[Truth]:
    """True, false or NULL for every row."""
    match predicate:
        case Not(child):
            inner = _truths(values, types, child)
            return [None if truth is None else not truth for truth in inner]
        case And(parts) | Or(parts):
            decisive = isinstance(predicate, Or)  # one TRUE decides an OR, one FALSE an AND
            columns = [_truths(values, types, part) for part in parts]
            return [_join(row, decisive) for row in zip(*columns, strict=True)]
        case Constant(value):
            return [value] * max(map(len, values.values()), default=0)
    (column,) = predicate.columns()
    return [_leaf(predicate, value, types[column]) for value in values[column]]


def _join(truths: Sequence[Truth], decisive: bool) -> Truth:
    if decisive in truths:
        return decisive
    return None if None in truths else not decisive


def _leaf(leaf: Predicate, value: Any, data_type: DataType) -> Truth:
    match leaf:
        case IsNull(_, negated):
            return (value is None) != negated
        case Comparison(_, "<=>", literal) if value is None or literal is None:
            return value is literal
        case Comparison(_, name, literal):
            return _compare(name, value, literal, data_type)
        case Between(_, low, high):
            bounds = (_compare(">=", value, low, data_type), _compare("<=", value, high, data_type))
            return _join(bounds, False)
        case In(_, literals, negated):
            is_in = _is_in(value, literals, data_type)
            return None if is_in is None else is_in != negated
        case Like(_, text, prefix, negated) if data_type.root in ("CHAR", "VARCHAR"):
            if value is None:
                return None
            shown = value.ljust(data_type.length) if data_type.root == "CHAR" else value
            return bool(shown.startswith(text) if prefix else shown == text) != negated
    raise TypeError(f"the oracle does not know {leaf!r} of {data_type}")


def _is_in(value: Any, literals: Sequence[object], data_type: DataType) -> Truth:
    if not literals:
        return False
    # Spark brings a list to one type first: a double in it makes doubles of all its numbers.
    doubles = any(isinstance(literal, float) for literal in literals)
    scale = _common_scale(literals, data_type, listed=True)
    equal = [_compare("=", value, literal, data_type, scale, doubles) for literal in literals]
    return _join(equal, True)


def _compare(
    name: str,
    value: Any,
    literal: Any,
    data_type: DataType,
    scale: int | None = None,
    doubles: bool = False,
) -> Truth:
    """One comparison; `scale` and `doubles` say what a list around it has made of its numbers."""
    if value is None or literal is None:
        return None
    if isinstance(literal, Decimal) and not literal.is_finite():
        literal = float(literal)
    as_double = doubles or isinstance(literal, float)
    if not as_double and _digits(literal) is not None:
        # Spark brings an order of integers and a DECIMAL to an order of integers, exactly.
        if scale is None and (data_type.root == "DECIMAL" or name in ("=", "<=>", "<>")):
            scale = _common_scale([literal], data_type, listed=False)
        if scale is not None:
            value, literal = _rounded(value, scale), _rounded(literal, scale)
    if data_type.root == "CHAR":  # both are padded with spaces, to the length of the longer one
        value, literal = value.ljust(len(literal)), literal.ljust(max(data_type.length, len(value)))
    left = _value(value, data_type, as_double=as_double)
    return _HOLDS[name](left, _literal(literal, data_type, as_double=as_double))


def _value(value: Any, data_type: DataType, *, as_double: bool) -> Any:
    """Something that Python orders as Spark orders the value."""
    match data_type.root:
        case "CHAR":
            return value.ljust(data_type.length).encode()
        case "VARCHAR":
            return value.encode()
        case "FLOAT" | "DOUBLE":
            return _double(value)
        case "DATE":
            return value * _NANOS_PER_DAY
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT" | "DECIMAL":
            return _double(value) if as_double else value
    return value


def _literal(literal: Any, data_type: DataType, *, as_double: bool) -> Any:
    """The same of a literal."""
    match data_type.root:
        case "BOOLEAN" if isinstance(literal, bool):
            return literal
        case "CHAR" | "VARCHAR" | "BINARY" | "VARBINARY" if isinstance(literal, str):
            return literal.encode()
        case "BINARY" | "VARBINARY" if isinstance(literal, bytes):
            return literal
        case "FLOAT" | "DOUBLE" if _is_number(literal):
            return _double(literal)
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT" | "DECIMAL" if _is_number(literal):
            return _double(literal) if as_double else literal
        case "TIME" if isinstance(literal, datetime.time) and literal.tzinfo is None:
            seconds = (literal.hour * 60 + literal.minute) * 60 + literal.second
            return (seconds * 10**6 + literal.microsecond) * 1000
        case "DATE" | "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _nanos(literal)
    raise TypeError(f"the oracle does not compare {data_type} with {literal!r}")


def _common_scale(literals: Sequence[object], data_type: DataType, *, listed: bool) -> int | None:
    """The digits behind the point in which Spark compares a column with literals.

    None for a column that is neither an integer nor a DECIMAL.
    """
    if data_type.root == "DECIMAL":
        before, behind = data_type.precision - data_type.scale, data_type.scale
    elif data_type.root in _INTEGER_DIGITS:
        before, behind = _INTEGER_DIGITS[data_type.root], 0
    else:
        return None
    for literal in literals:
        digits = _digits(literal)
        if digits is None:
            continue
        if listed and isinstance(literal, int) and -(2**63) <= literal < 2**63:
            digits = (10 if -(2**31) <= literal < 2**31 else 20), 0
        before, behind = max(before, digits[0]), max(behind, digits[1])
        behind = min(behind, _MOST_DIGITS - before)
    return behind


def _digits(literal: object) -> tuple[int, int] | None:
    """The digits before and behind the point; None for a literal that is no DECIMAL of Spark's."""
    if isinstance(literal, bool) or not isinstance(literal, int | Decimal):
        return None
    number = Decimal(literal)
    if not number.is_finite() or abs(number.adjusted()) > 2 * _MOST_DIGITS:
        return None
    whole, _, fraction = format(number.copy_abs(), "f").partition(".")
    before, behind = len(whole.lstrip("0")), len(fraction)
    if before + behind > _MOST_DIGITS:
        return None
    return max(before, 0 if behind else 1), behind


def _rounded(number: int | Decimal, scale: int) -> Decimal:
    """The number as a DECIMAL of this scale; halves go away from zero."""
    return Decimal(number).quantize(Decimal((0, (1,), -scale)), ROUND_HALF_UP, _EXACT)


def _is_number(literal: object) -> bool:
    return isinstance(literal, int | float | Decimal) and not isinstance(literal, bool)


def _double(number: Any) -> tuple[bool, Any]:
    """The nearest double, NaN above all; a number beyond the finite ones stays what it is.

    Python compares numbers of different types exactly, so that is below infinity.
    """
    try:
        double = float(number)
    except OverflowError:
        return False, number
    if math.isinf(double) and not isinstance(number, float):
        return False, number
    return math.isnan(double), 0.0 if math.isnan(double) else double


def _nanos(moment: Any) -> int:
    """Nanoseconds since 1970 of a date or timestamp; what names no zone is in UTC."""
    match moment:
        case datetime.datetime():
            zoned = moment.replace(tzinfo=None) - (moment.utcoffset() or datetime.timedelta())
            return (zoned - _EPOCH) // _MICROSECOND * 1000
        case datetime.date():
            return (moment - _EPOCH.date()).days * _NANOS_PER_DAY
        case np.datetime64():
            unit, count = np.datetime_data(moment.dtype)
            return int(moment.astype("i8")) * count * (_NANOS | _NANOS_PER)[unit]
    raise TypeError(f"the oracle does not know the moment {moment!r}")
