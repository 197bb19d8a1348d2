"""The types of column that a random table draws from, and literals for them.

Values have the form of `alcid.testing`: days, nanoseconds, `Decimal`, and plain Python.
DuckDB holds years 1 to 9999 of all of them, and 1678 to 2261 of nanoseconds.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from alcid import DataType
from alcid.testing.strategies import (
    edges,
    literals_of,
    neighbours,
    tick,
)
from alcid.types import indexes_for

_NANOS_PER_DAY = 86_400 * 10**9
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_895  # 0001-01-01 and 9999-12-30
_FIRST_NANO_DAY, _LAST_NANO_DAY = -106_650, 106_650  # 1678 and 2261
_MOMENTS = ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ")
_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_LETTERS = "abBz%_\\'\"é\0ß\uffff\U0001f427 "


@dataclass(frozen=True)
class ColumnKind:
    """A type of column, as Arrow has it."""

    arrow_type: Any

    @cached_property
    def data_type(self) -> DataType:
        return DataType.from_arrow(self.arrow_type)

    @property
    def index_types(self) -> tuple[str, ...]:
        return indexes_for(self.data_type)

    @property
    def is_text(self) -> bool:
        return self.data_type.root == "VARCHAR"

    def holds(self, value: Any) -> bool:
        """Whether this type, and DuckDB's, can hold a value."""
        data_type, arrow_type = self.data_type, self.arrow_type
        if pa.types.is_integer(arrow_type):
            bits = arrow_type.bit_width
            if pa.types.is_signed_integer(arrow_type):
                return bool(-(1 << bits - 1) <= value < 1 << bits - 1)
            return bool(value == int(value) and 0 <= value < 1 << bits)
        if pa.types.is_float16(arrow_type):
            with np.errstate(over="ignore"):
                return math.isnan(value) or float(np.float16(value)) == value
        if data_type.root == "DATE":
            return bool(_FIRST_DAY <= value <= _LAST_DAY)
        if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            days = value // _NANOS_PER_DAY
            if data_type.precision > 6:
                return bool(_FIRST_NANO_DAY <= days <= _LAST_NANO_DAY)
            return bool(_FIRST_DAY <= days <= _LAST_DAY)
        return True

    def edges(self) -> list[Any]:
        return [value for value in edges(self.data_type) if self.holds(value)]

    def draw(self, source: random.Random) -> Any:
        """A value: from a small range, a wide one, or at a limit."""
        if source.random() < 0.15:
            return source.choice(self.edges())
        data_type = self.data_type
        match data_type.root:
            case "BOOLEAN":
                return source.random() < 0.5
            case "FLOAT" | "DOUBLE":
                return self._draw_float(source)
            case "DECIMAL" if pa.types.is_integer(self.arrow_type):
                return Decimal(_whole(source, 0, 2**64 - 1))
            case "DECIMAL":
                most = 10**data_type.precision - 1
                return Decimal(_whole(source, -most, most)).scaleb(-data_type.scale)
            case "VARCHAR":
                return "".join(source.choices(_LETTERS, k=source.randint(0, 5)))
            case "BINARY":
                return bytes(source.choices(b"\0a\x7f\xff", k=data_type.length))
            case "VARBINARY":
                return bytes(source.choices(b"\0a\x7f\xff", k=source.randint(0, 5)))
            case "DATE":
                return source.choice((18_000, _whole(source, _FIRST_DAY, _LAST_DAY)))
            case "TIME":
                step = tick(data_type)
                return _whole(source, 0, _NANOS_PER_DAY // step - 1) * step
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                return self._draw_timestamp(source)
        bits = self.arrow_type.bit_width
        if pa.types.is_signed_integer(self.arrow_type):
            return _whole(source, -(1 << bits - 1), (1 << bits - 1) - 1)
        return _whole(source, 0, (1 << bits) - 1)

    def _draw_float(self, source: random.Random) -> float:
        numbers = (source.uniform(-9, 9), float(source.randint(-99, 99)), math.nan, 0.0, -0.0)
        number = source.choice(numbers)
        return float(np.array(number, f"f{self.arrow_type.bit_width // 8}"))

    def _draw_timestamp(self, source: random.Random) -> int:
        step = tick(self.data_type)
        per_day = _NANOS_PER_DAY // step
        fine = self.data_type.precision > 6
        first = _FIRST_NANO_DAY if fine else _FIRST_DAY
        last = _LAST_NANO_DAY if fine else _LAST_DAY
        return _whole(source, first * per_day, (last + 1) * per_day - 1) * step

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """A column of values."""
        data_type, arrow_type = self.data_type, self.arrow_type
        if pa.types.is_dictionary(arrow_type):
            return pa.array(values, arrow_type.value_type).dictionary_encode().cast(arrow_type)
        if data_type.root == "DATE":
            return pa.array(values, pa.int32()).view(pa.date32()).cast(arrow_type)
        if data_type.root in _MOMENTS:
            unit = _UNITS[arrow_type.unit]
            width = pa.int32() if arrow_type.bit_width == 32 else pa.int64()
            ticks = [None if value is None else value // unit for value in values]
            return pa.array(ticks, width).view(arrow_type)
        if pa.types.is_uint64(arrow_type):
            return pa.array([None if v is None else int(v) for v in values], arrow_type)
        if pa.types.is_float16(arrow_type):
            floats = [None if v is None else np.float16(v) for v in values]
            return pa.array(floats, arrow_type)
        return pa.array(values, arrow_type)

    def literal(self, source: random.Random, present: Sequence[Any]) -> Any:
        """A literal: equal to a value of the column, next to one, or anywhere."""
        for _ in range(20):
            value = self.draw(source)
            if present and source.random() < 0.7:
                value = source.choice(present)
                near = neighbours(value, self.data_type) if source.random() < 0.25 else ()
                value = source.choice(near) if near else value
            forms = [form for form in literals_of(value, self.data_type) if self._is_fair(form)]
            if forms:
                return forms[0] if source.random() < 0.6 else source.choice(forms)
        return None

    def _is_fair(self, literal: Any) -> bool:
        """Whether DuckDB compares with the literal as exactly as Spark does."""
        data_type = self.data_type
        match literal:
            case bool() | str() | bytes() | datetime.time():
                return True
            case np.datetime64():
                return self._is_fair_moment(_nanos(literal))
            case datetime.datetime():
                return self._is_fair_moment(_nanos(np.datetime64(_naive(literal), "us")))
            case datetime.date():
                return 1 < literal.year < 9999
        if data_type.root in ("FLOAT", "DOUBLE"):
            return True
        if isinstance(literal, float):  # DuckDB divides by a power of ten, which may round twice
            return data_type.root != "DECIMAL" or data_type.precision <= 15
        # Spark considers comparisons with whole numbers beyond BIGINT TRUE, of null rows too.
        if data_type.root != "DECIMAL":
            return bool(-(2**63) <= literal < 2**63)
        whole_digits = max(data_type.precision - data_type.scale, Decimal(literal).adjusted() + 1)
        return whole_digits + scale_of(self, literal) <= 38

    def _is_fair_moment(self, nanos: int) -> bool:
        data_type = self.data_type
        if data_type.precision > 6:
            return self.holds(nanos)
        whole_days = data_type.root != "DATE" or nanos % _NANOS_PER_DAY == 0
        days = nanos // _NANOS_PER_DAY
        return nanos % 1000 == 0 and whole_days and _FIRST_DAY <= days <= _LAST_DAY


def scale_of(kind: ColumnKind, literal: Any) -> int:
    """The scale that a column and an exact literal have in common."""
    exponent = Decimal(literal).as_tuple().exponent
    return max(kind.data_type.scale, -exponent if isinstance(exponent, int) else 0)


def _whole(source: random.Random, least: int, greatest: int) -> int:
    size = source.choice((3, 200, greatest))
    return source.randint(max(least, -size), min(greatest, size))


def _naive(moment: datetime.datetime) -> datetime.datetime:
    return moment if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None)


def _nanos(moment: np.datetime64) -> int:
    unit, count = np.datetime_data(moment.dtype)
    size = {"D": _NANOS_PER_DAY, **_UNITS}[unit]
    return int(moment.astype(np.int64)) * size * count


def moment_text(literal: np.datetime64 | datetime.datetime | datetime.date) -> str:
    """The moment in UTC, with nanoseconds if it has any."""
    if isinstance(literal, datetime.datetime):
        return _naive(literal).isoformat(" ")
    if isinstance(literal, datetime.date):
        return literal.isoformat()
    return str(literal).replace("T", " ")


KINDS: dict[str, ColumnKind] = {
    str(arrow_type): ColumnKind(arrow_type)
    for arrow_type in (
        pa.bool_(),
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64()),
        *(pa.decimal128(1, 0), pa.decimal128(9, 3), pa.decimal128(15, 2), pa.decimal128(18, 18)),
        *(pa.decimal128(18, 0), pa.decimal128(20, 2), pa.decimal128(37, 4)),
        *(pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())),
        *(pa.binary(), pa.large_binary(), pa.binary(3)),
        *(pa.date32(), pa.date64()),
        *(pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
        *(pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")),
        *(pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
        *(pa.timestamp("us", "Europe/Warsaw"), pa.timestamp("ns", "UTC")),
    )
}
"""By Arrow's name of the type."""
