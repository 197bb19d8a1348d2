"""Values at the edges of every type, values beside a value, and literals that mean a value.

All in the form of `alcid.testing.oracle`; nothing here is random.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Any

import numpy as np

from alcid.types import DataType

__all__ = ["edges", "literals_of", "neighbours", "odd_literals", "tick"]

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_NANOS_PER_DAY = 86_400 * 10**9
_EPOCH = datetime.datetime(1970, 1, 1)
_PLUS_0530 = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
_EXACT = Context(prec=60)
_LEAST_YEAR, _GREATEST_YEAR = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, in days
# By UTF-8 bytes U+FFFF is below every astral character; by UTF-16 units, as Java sorts, above.
_TEXTS = ("", "\0", "a", "a\0", "ab", "b", "é", "\uffff", "\U0001f427", "\U0010ffff", "x" * 300)
_BYTES = (b"", b"\0", b"\0\0", b"a", b"\x7f", b"\x80", b"\xff", b"\xff" * 40)


def tick(data_type: DataType) -> int:
    """The nanoseconds between neighbouring values of a TIME or TIMESTAMP type.

    >>> tick(DataType("TIMESTAMP", precision=3))
    1000000
    """
    return int(10 ** (9 - data_type.precision))


def edges(data_type: DataType, index_type: str | None = None) -> tuple[Any, ...]:
    """The values of a type at which code goes wrong; for an index type, those that it can hold.

    >>> edges(DataType("TINYINT"))
    (-128, -127, -1, 0, 1, 126, 127)
    >>> edges(DataType("DECIMAL", precision=3, scale=1))
    (Decimal('-99.9'), Decimal('-0.1'), Decimal('0.0'), Decimal('0.1'), Decimal('99.9'))
    """
    match data_type.root:
        case "BOOLEAN":
            return False, True
        case "FLOAT" | "DOUBLE":
            return _float_edges(np.float32 if data_type.root == "FLOAT" else np.float64)
        case "DECIMAL":
            most = 10**data_type.precision - 1
            if index_type is not None:  # every index keeps 64 bits
                most = min(most, 2**63 - 1)
            return tuple(_decimal(n, data_type.scale) for n in (-most, -1, 0, 1, most))
        case "CHAR" | "VARCHAR":
            return _TEXTS
        case "BINARY":
            return tuple(bytes((byte,)) * data_type.length for byte in (0, 0x7F, 0x80, 0xFF))
        case "VARBINARY":
            return _BYTES
        case "DATE":
            days = (_LEAST_YEAR - 1, _LEAST_YEAR, -1, 0, 1, 18_000, _GREATEST_YEAR)
            return (-(2**31), *days, _GREATEST_YEAR + 1, 2**31 - 1)
        case "TIME":
            step = tick(data_type)
            noon = (12 * 3600 * 10**9 + 123_456_789) // step * step
            return 0, step, noon, _NANOS_PER_DAY - step
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return tuple(dict.fromkeys(_timestamp_edges(data_type, index_type)))
        case root:
            top = 2 ** (_BITS[root] - 1)
            least = (-top,) if (root, index_type) != ("BIGINT", "bsi") else ()
            return (*least, -top + 1, -1, 0, 1, top - 2, top - 1)


def _float_edges(kind: type[np.float32 | np.float64]) -> tuple[float, ...]:
    info = np.finfo(kind)
    sizes = (info.smallest_subnormal, info.smallest_normal, kind(0.1), 1.0, info.max, math.inf)
    positive = (0.0, *map(float, sizes))
    return (*(-size for size in reversed(positive)), *positive, math.nan)


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def timestamp_limits(data_type: DataType, index_type: str | None = None) -> tuple[int, int]:
    """The least and greatest timestamp, in ticks, that Arrow and the index's keys both hold."""
    per_key = max(tick(data_type) // (10**6 if data_type.precision <= 3 else 10**3), 1)
    greatest = (2**63 - 1) // per_key
    return (-greatest if per_key > 1 or index_type == "bsi" else -(2**63)), greatest


def _timestamp_edges(data_type: DataType, index_type: str | None) -> Iterator[int]:
    step = tick(data_type)
    least, greatest = timestamp_limits(data_type, index_type)
    moments = (-_NANOS_PER_DAY, -1_000_001, -1_500, -1, 0, 1, 1_500, 1_600_000_000_123_456_789)
    years = (_LEAST_YEAR * _NANOS_PER_DAY, (_GREATEST_YEAR + 1) * _NANOS_PER_DAY - step)
    for nanos in (least * step, -step, *moments, *years, greatest * step):
        if least <= nanos // step <= greatest:
            yield nanos // step * step


def neighbours(value: Any, data_type: DataType) -> tuple[Any, ...]:
    """Values just below and above, some of which the type does not hold.

    >>> neighbours(127, DataType("TINYINT"))
    (126, 128)
    """
    match data_type.root:
        case "BOOLEAN":
            return ()
        case "FLOAT" | "DOUBLE":
            # The doubles beside a float of four bytes lie between it and the next one.
            near: list[float] = [math.nextafter(value, -math.inf), math.nextafter(value, math.inf)]
            if data_type.root == "FLOAT":
                with np.errstate(over="ignore"):
                    single = np.float32(value)
                    near += (float(np.nextafter(single, np.float32(s))) for s in (-np.inf, np.inf))
            return tuple(near)
        case "DECIMAL":
            steps = (_decimal(n, data_type.scale + 1) for n in (-10, -5, 5, 10))
            return tuple(_EXACT.add(value, step) for step in steps)
        case "CHAR" | "VARCHAR":
            return value[:-1], value + "\0", value + "a"
        case "BINARY" | "VARBINARY":
            return value[:-1], value + b"\0"
        case "TIME" | "TIMESTAMP" | "TIMESTAMP_LTZ":
            step = tick(data_type)
            return tuple(value + offset for offset in {-step, -1, 1, step})
    return value - 1, value + 1


def literals_of(value: Any, data_type: DataType) -> tuple[Any, ...]:
    """The Python objects that mean a value; none where there is no such object.

    >>> literals_of(1, DataType("DATE"))
    (datetime.date(1970, 1, 2), np.datetime64('1970-01-02'), datetime.datetime(1970, 1, 2, 0, 0))
    """
    match data_type.root:
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            exact = (float(value),) if abs(value) < 2**53 else ()
            return value, Decimal(value), *exact
        case "FLOAT" | "DOUBLE":
            if not math.isfinite(value):
                return (value,)
            whole = (int(value),) if value == int(value) else ()
            return value, Decimal(value), *whole
        case "DECIMAL":
            whole = (int(value),) if value == value.to_integral_value() else ()
            return value, float(value), *whole
        case "DATE":
            return tuple(_dates(value))
        case "TIME":
            return tuple(_times(value))
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return tuple(_moments(value, local=data_type.root == "TIMESTAMP_LTZ"))
    return (value,)


def _dates(days: int) -> Iterator[Any]:
    if _LEAST_YEAR <= days <= _GREATEST_YEAR:
        yield _EPOCH.date() + datetime.timedelta(days)
    yield np.datetime64(days, "D")
    if _LEAST_YEAR <= days <= _GREATEST_YEAR:
        yield _EPOCH + datetime.timedelta(days)


def _times(nanos: int) -> Iterator[datetime.time]:
    if 0 <= nanos < _NANOS_PER_DAY and nanos % 1000 == 0:
        yield (_EPOCH + datetime.timedelta(microseconds=nanos // 1000)).time()


def _moments(nanos: int, *, local: bool) -> Iterator[Any]:
    if nanos % 1000 == 0 and _LEAST_YEAR < nanos // _NANOS_PER_DAY < _GREATEST_YEAR:
        moment = _EPOCH + datetime.timedelta(microseconds=nanos // 1000)
        yield moment
        if local:
            yield moment.replace(tzinfo=datetime.UTC)
            yield moment.replace(tzinfo=datetime.UTC).astimezone(_PLUS_0530)
    for unit, size in (("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9)):
        if nanos % size == 0 and -(2**63) < nanos // size < 2**63:
            yield np.int64(nanos // size).view(f"M8[{unit}]")
            break


def odd_literals(data_type: DataType) -> tuple[Any, ...]:
    """Literals that the type takes, though no value of it is equal.

    Out of its range, or between two values.
    """
    match data_type.root:
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT" | "DECIMAL":
            return (*_ODD_NUMBERS, 2**53 + 1, 2.0**53, 2.0**63, -(2.0**63), 2**63, -(2**63) - 1)
        case "FLOAT" | "DOUBLE":
            return (*_ODD_NUMBERS, 1e39, -1e39, 5e-324, 0.1, Decimal("0.1"), 2**24 + 1, 10**400)
        case "DATE":
            noon = datetime.datetime(1970, 1, 1, 12)
            return noon, np.datetime64(-1, "ns"), np.datetime64(2**40, "D")
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            far = np.datetime64(2**62, "s"), np.datetime64(-(2**62), "s")
            return datetime.date(1970, 1, 2), *far, np.datetime64(-1, "ns")
    return ()


_ODD_NUMBERS = (
    *(5.5, -0.5, 1e300, -1e300, math.inf, -math.inf, math.nan, 2**200, -(2**200)),
    *map(Decimal, ("5.5", "-0.05", "1E+40", "-1E+5000", "1E-5000", "-1E-5000", "Infinity", "NaN")),
)
