"""Hypothesis strategies for columns of every type and predicates on them, and edge values.

>>> from alcid import DataType
>>> from hypothesis import given
>>> @given(columns(DataType("INT")))
... def test_rows(column):
...     assert len(column.values) == column.row_count
>>> test_rows()

Values have the form of `alcid.testing.oracle`. Edge values are not random.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from alcid._arrays import Int64Array
from alcid.expressions import And, Column, Comparison, Not, Or, Predicate, col
from alcid.expressions.expression import plain
from alcid.types import DataType

_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
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
            top = 2 ** (_INTEGER_BITS[root] - 1)
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


_CONTAINER_ROWS = 1 << 16  # of a roaring bitmap: one row fewer, just as many, one more

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "DATE": 32, "BIGINT": 64}


@dataclass(frozen=True)
class SampleColumn:
    """A column of few different rows, `pattern`, laid out over `row_count` rows.

    What is asked of single rows can be asked of the pattern, and the answer spread with `rows_of`.

    >>> SampleColumn(DataType("INT"), (7, None), 5).values
    [7, None, 7, None, 7]
    >>> SampleColumn(DataType("INT"), (7, None), 5, "runs").values
    [7, 7, 7, None, None]
    """

    data_type: DataType
    pattern: tuple[Any, ...]
    row_count: int
    layout: Literal["cycle", "runs"] = "cycle"

    @cached_property
    def picks(self) -> Int64Array:
        """For each row, its place in the pattern."""
        rows = np.arange(self.row_count)
        length = len(self.pattern)
        return rows % length if self.layout == "cycle" else rows * length // max(self.row_count, 1)

    @property
    def values(self) -> list[Any]:
        """The value of each row, in the form of `alcid.testing.oracle`."""
        return [self.pattern[pick] for pick in self.picks.tolist()]

    def rows_of(self, places: Iterable[int]) -> Int64Array:
        """The rows that show one of these places of the pattern.

        >>> SampleColumn(DataType("INT"), (7, None), 5).rows_of([1]).tolist()
        [1, 3]
        """
        return np.flatnonzero(np.isin(self.picks, list(places)))

    def to_arrow(self) -> pa.Array:
        """The column in the canonical Arrow type."""
        return _arrow_array(self.pattern, self.data_type).take(pa.array(self.picks))


def _arrow_array(values: Sequence[Any], data_type: DataType) -> pa.Array:
    arrow_type = data_type.to_arrow()
    if data_type.root == "DATE":
        return pa.array(values, pa.int32()).view(arrow_type)
    if data_type.root in ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ"):
        width = pa.int32() if arrow_type.bit_width == 32 else pa.int64()
        unit = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[arrow_type.unit]
        ticks = [None if value is None else value // unit for value in values]
        return pa.array(ticks, width).view(arrow_type)
    return pa.array(values, arrow_type)


@st.composite
def columns(
    draw: st.DrawFn, data_type: DataType, index_type: str | None = None, *, large: bool = True
) -> SampleColumn:
    """Columns of a type: without, with some and with only nulls; of no, one, two or many values.

    Args:
        draw: Given by Hypothesis.
        data_type: The type.
        index_type: Draw only values that this index can hold; bsi cannot hold -2^63.
        large: Also draw columns of about 2^16 rows, where a roaring bitmap starts a new container.
    """
    value = _values(data_type, index_type)
    kind = draw(st.sampled_from(("few", "few", "edges", "edges", "many", "one", "nulls", "empty")))
    match kind:
        case "few":
            pattern = draw(st.lists(st.one_of(st.none(), value), min_size=1, max_size=8))
        case "edges":
            pattern = [*edges(data_type, index_type), *draw(st.lists(value, max_size=4))]
            if draw(st.booleans()):
                pattern += [None, pattern[0], None]
        case "many":
            pattern = _many(data_type, index_type, draw(st.integers(0, 2**32)))
        case "one":
            pattern = [draw(value)]
        case _:
            pattern = [None]
    row_counts = [len(pattern), 2 * len(pattern) + 1]
    if large:
        row_counts.append(_CONTAINER_ROWS + draw(st.sampled_from((-1, 0, 1))))
    weights = (0, 0, 0, 1, 1, 2) if large else (0, 0, 1)
    row_count = 0 if kind == "empty" else row_counts[draw(st.sampled_from(weights))]
    layout: Literal["cycle", "runs"] = draw(st.sampled_from(("cycle", "runs")))
    return SampleColumn(data_type, tuple(pattern), row_count, layout)


def _values(data_type: DataType, index_type: str | None) -> st.SearchStrategy[Any]:
    edge_values = st.sampled_from(edges(data_type, index_type))
    drawn = st.integers(0, 2**32).map(
        lambda seed: _random_value(data_type, index_type, random.Random(seed))
    )
    return edge_values | drawn


def _many(data_type: DataType, index_type: str | None, seed: int) -> list[Any]:
    """Hundreds of values, mostly different, some null."""
    source = random.Random(seed)
    return [
        None if source.random() < 0.1 else _random_value(data_type, index_type, source)
        for _ in range(300)
    ]


def _random_value(data_type: DataType, index_type: str | None, source: random.Random) -> Any:
    """A value of the type; small numbers as often as large ones, so that some repeat."""

    def whole(least: int, greatest: int) -> int:
        size = source.choice((2, 200, greatest))
        return source.randint(max(least, -size), min(greatest, size))

    match data_type.root:
        case "BOOLEAN":
            return source.random() < 0.5
        case "FLOAT" | "DOUBLE":
            number = source.choice((source.uniform(-9, 9), float(whole(-99, 99)), math.nan))
            return float(np.float32(number)) if data_type.root == "FLOAT" else number
        case "DECIMAL":
            most = min(10**data_type.precision - 1, 2**63 - 1)
            return Decimal(whole(-most, most)).scaleb(-data_type.scale)
        case "CHAR" | "VARCHAR":
            return "".join(source.choices("ab\0éz\uffff\U0001f427", k=source.randint(0, 6)))
        case "BINARY":
            return source.randbytes(data_type.length)
        case "VARBINARY":
            return source.randbytes(source.randint(0, 6))
        case "TIME":
            step = tick(data_type)
            return whole(0, _NANOS_PER_DAY // step - 1) * step
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return whole(*timestamp_limits(data_type, index_type)) * tick(data_type)
        case root:
            top = 2 ** (_BITS[root] - 1) - 1
            return whole(-top, top)


def literals(column: SampleColumn) -> st.SearchStrategy[Any]:
    """Literals to compare a column with.

    Those that it holds, their neighbours, the edges of the type, what is out of its range, None.
    """
    present = [value for value in dict.fromkeys(column.pattern) if value is not None][:40]
    beside = [near for value in present for near in neighbours(value, column.data_type)]
    pools = [
        [form for value in pool for form in literals_of(value, column.data_type)]
        for pool in (present, beside, edges(column.data_type))
    ]
    pools += [list(odd_literals(column.data_type)), [None]]
    weighted = [pool for pool in (pools[0], *pools) if pool]
    return st.one_of(*map(_one_of_many, weighted))


def _one_of_many(pool: Sequence[Any]) -> st.SearchStrategy[Any]:
    """As `sampled_from`, whose representation would list all of them."""
    return st.integers(0, len(pool) - 1).map(lambda position: pool[position])


def comparisons(name: str, given: Sequence[Any]) -> list[Predicate]:
    """Every operator with every literal, and lists and ranges of neighbouring ones.

    >>> print(*comparisons("a", [5])[:3], sep="; ")
    a IS NULL; a IS NOT NULL; a = 5
    """
    column = col(name)
    predicates = [column.is_null(), column.is_not_null()]
    for number, literal in enumerate(given):
        predicates += (compare(column, literal) for compare in _OPERATORS)
        predicates.append(Comparison(name, "<=>", plain(literal)))
        listed = column.isin(given[: number + 1])
        predicates += (listed, Not(listed), column.between(given[number - 1], literal))
        if isinstance(literal, str):
            predicates += (column.starts_with(literal), Not(column.starts_with(literal)))
    return predicates


_OPERATORS: tuple[Callable[[Column, Any], Predicate], ...] = (
    Column.__eq__,
    Column.__ne__,
    Column.__lt__,
    Column.__le__,
    Column.__gt__,
    Column.__ge__,
)


def leaves(name: str, column: SampleColumn) -> st.SearchStrategy[Predicate]:
    """One comparison of a column; see `comparisons` for all of them."""
    chosen = st.lists(literals(column), min_size=1, max_size=3)
    return chosen.flatmap(lambda drawn: _one_of_many(comparisons(name, drawn)))


def trees(columns: Mapping[str, SampleColumn]) -> st.SearchStrategy[Predicate]:
    """Predicates over several columns, of AND, OR and NOT."""
    leaf = st.one_of(*(leaves(name, column) for name, column in columns.items()))

    def combine(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        several = st.lists(inner, min_size=2, max_size=3)
        return st.one_of(several.map(And.of), several.map(Or.of), inner.map(Not))

    return st.recursive(leaf, combine, max_leaves=8)
