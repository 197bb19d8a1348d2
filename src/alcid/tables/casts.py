"""Columns of files that were written before the type of the column was changed.

Paimon's and Iceberg's Java cast each value when they read; here the same rules apply. A value that
they do not cover is an error, and so is a change that is not in this table:

| from                     | to                                                                 |
|--------------------------|--------------------------------------------------------------------|
| integers                 | integers, floats, DECIMAL, BOOLEAN, VARCHAR                        |
| INT, BIGINT              | TIMESTAMP                                                          |
| FLOAT, DOUBLE            | floats, integers                                                   |
| DECIMAL                  | DECIMAL, integers, floats, VARCHAR                                 |
| BOOLEAN                  | numbers, VARCHAR                                                   |
| CHAR, VARCHAR            | numbers, BOOLEAN, DATE, TIMESTAMP, VARCHAR, VARBINARY              |
| BINARY, VARBINARY        | VARBINARY, VARCHAR                                                 |
| DATE                     | TIMESTAMP, VARCHAR                                                 |
| TIMESTAMP                | INT, BIGINT, DATE, VARCHAR                                         |
| TIME, TIMESTAMP, LTZ     | the same with other digits                                         |

Fields of a ROW are the same if their ids are, as columns are; one that was added is null.

Values are cast as Paimon's Java casts them:

| from             | to           | how                                                            |
|------------------|--------------|----------------------------------------------------------------|
| integers         | integers     | the lowest bits                                                |
| FLOAT, DOUBLE    | INT, BIGINT  | towards zero, the nearest that there is, NaN is 0              |
| FLOAT, DOUBLE    | TINYINT, ... | first INT, then its lowest bits                                |
| DECIMAL          | integers     | towards zero, then the lowest bits                             |
| numbers          | DECIMAL      | half away from zero; too many digits are an error              |
| INT, BIGINT      | TIMESTAMP    | seconds since 1970                                             |
| TIMESTAMP        | INT, BIGINT  | seconds, of the milliseconds below, towards zero               |
| TIMESTAMP        | DATE         | days, of the milliseconds below, towards zero                  |
| TIMESTAMP        | VARCHAR      | `1970-01-01 00:00:00.000`, with as many digits as the type has |
| TIMESTAMP        | TIMESTAMP    | see `_truncated`                                               |
| text, bytes      | shorter ones | cut off                                                        |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array
from alcid.errors import UnsupportedError
from alcid.types import FLOAT_TYPES, INTEGER_TYPES, DataType

_NUMBERS: Final = (*INTEGER_TYPES, *FLOAT_TYPES, "DECIMAL")
_TEXT_TO: Final = (*_NUMBERS, "BOOLEAN", "DATE", "TIMESTAMP", "VARCHAR", "VARBINARY")
CASTS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT"), (*_NUMBERS, "BOOLEAN", "VARCHAR")),
    **dict.fromkeys(("INT", "BIGINT"), (*_NUMBERS, "BOOLEAN", "VARCHAR", "TIMESTAMP")),
    **dict.fromkeys(FLOAT_TYPES, (*FLOAT_TYPES, *INTEGER_TYPES)),
    "DECIMAL": (*_NUMBERS, "VARCHAR"),
    "BOOLEAN": (*_NUMBERS, "VARCHAR"),
    **dict.fromkeys(("CHAR", "VARCHAR"), _TEXT_TO),
    **dict.fromkeys(("BINARY", "VARBINARY"), ("VARBINARY", "VARCHAR")),
    "DATE": ("TIMESTAMP", "VARCHAR"),
    "TIME": ("TIME",),
    "TIMESTAMP": ("TIMESTAMP", "INT", "BIGINT", "DATE", "VARCHAR"),
    "TIMESTAMP_LTZ": ("TIMESTAMP_LTZ",),
}
"""What is cast to what; any other change is not read."""

_WHOLE: Final = r"^(?:\+|(-))?([0-9]+)(?:\.[0-9]*)?$"
_TRUE: Final = ("t", "true", "y", "yes", "1")
_FALSE: Final = ("f", "false", "n", "no", "0")
_UNITS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY: Final = 86_400_000  # milliseconds
_WIDEST: Final = 76
_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_800  # seconds


def cast_leaf(values: pa.Array, before: DataType, after: DataType, arrow_type: Any) -> pa.Array:
    """Values of a type that is not nested as those of another, among those of `CASTS`.

    Raises:
        pa.ArrowException: A value cannot be cast.
        UnsupportedError: A value would not be what Java reads.
    """
    made = _made(values, before, after, arrow_type)
    if after.root == "VARCHAR" and before.root not in ("BINARY", "VARBINARY"):
        return pc.utf8_slice_codeunits(made, 0, after.length)
    if after.root == "VARBINARY":
        return pc.binary_slice(made, 0, after.length)
    return made


def _made(values: pa.Array, before: DataType, after: DataType, arrow_type: Any) -> pa.Array:
    match before.root, after.root:
        case (
            ("TINYINT" | "SMALLINT" | "INT" | "BIGINT"),
            ("TINYINT" | "SMALLINT" | "INT" | "BIGINT" | "FLOAT" | "DOUBLE"),
        ):
            return values.cast(arrow_type, safe=False)
        case (("FLOAT" | "DOUBLE"), ("TINYINT" | "SMALLINT" | "INT" | "BIGINT")):
            return _float_to_integer(values, arrow_type)
        case "DECIMAL", ("TINYINT" | "SMALLINT" | "INT" | "BIGINT"):
            whole = pc.trunc(values.cast(pa.decimal256(_WIDEST, before.scale)))
            return whole.cast(pa.int64()).cast(arrow_type, safe=False)
        case (("CHAR" | "VARCHAR"), _):
            return _of_text(values, before, after, arrow_type)
        case "DECIMAL", ("FLOAT" | "DOUBLE"):
            return values.cast(pa.string()).cast(arrow_type)  # Arrow's own way is a division
        case "DECIMAL", "VARCHAR":
            return _decimal_to_text(values, before)
        case "BOOLEAN", ("FLOAT" | "DOUBLE" | "DECIMAL"):
            numbers = values.cast(pa.int8()).cast(pa.int64())
            return _made(numbers, DataType("BIGINT"), after, arrow_type)
        case (("TINYINT" | "SMALLINT" | "INT" | "BIGINT" | "DECIMAL"), "DECIMAL"):
            return _to_decimal(values, after, arrow_type)
        case (("INT" | "BIGINT"), "TIMESTAMP"):
            return values.cast(pa.int64()).cast(pa.timestamp("s")).cast(arrow_type)
        case "TIMESTAMP", ("INT" | "BIGINT" | "DATE"):
            return _timestamp_to_integer(values, after, arrow_type)
        case "TIMESTAMP", "VARCHAR":
            return _timestamp_to_text(values, before)
        case (("TIMESTAMP" | "TIMESTAMP_LTZ"), ("TIMESTAMP" | "TIMESTAMP_LTZ")):
            return _truncated(values, after, arrow_type)
    return values.cast(arrow_type)


def _changed(values: pa.Array, change: Callable[[Any], npt.NDArray[Any]]) -> pa.Array:
    """The same nulls with other values, which are made of those of NumPy."""
    filled = pc.fill_null(values, pa.scalar(0).cast(values.type))
    made = change(filled.to_numpy(zero_copy_only=False))
    return pa.array(made, mask=values.is_null().to_numpy(zero_copy_only=False))


def _float_to_integer(values: pa.Array, arrow_type: Any) -> pa.Array:
    width = 64 if arrow_type == pa.int64() else 32

    def change(floats: npt.NDArray[np.floating[Any]]) -> npt.NDArray[Any]:
        doubles = np.nan_to_num(floats.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
        limit = 2.0 ** (width - 1)
        above, below = doubles >= limit, doubles <= -limit
        whole = np.where(above | below, 0.0, doubles).astype(np.int64)
        return np.where(above, 2 ** (width - 1) - 1, np.where(below, -(2 ** (width - 1)), whole))

    return _changed(values, change).cast(pa.int64()).cast(arrow_type, safe=False)


def _of_text(values: pa.Array, before: DataType, after: DataType, arrow_type: Any) -> pa.Array:
    """Of a text as an integer, digits behind a point are cut off."""
    made, is_fine = values, values.is_valid()
    if after.root in INTEGER_TYPES:
        is_fine = pc.match_substring_regex(values, _WHOLE)  # Arrow would take hexadecimal ones
        made = pc.replace_substring_regex(values, _WHOLE, r"\1\2")
    elif after.root == "BOOLEAN":
        lowered = pc.utf8_lower(values)
        is_true = pc.is_in(lowered, pa.array(_TRUE))
        is_fine = pc.or_(is_true, pc.is_in(lowered, pa.array(_FALSE)))
        made = pc.if_else(values.is_valid(), is_true, pa.scalar(None, pa.bool_()))
    wrong = values.filter(pc.and_(values.is_valid(), pc.invert(is_fine)))
    if len(wrong):
        found = f"{before} with {wrong[0].as_py()!r:.40}"
        raise UnsupportedError(f"found {found}, expected {after} as in the table")
    return made.cast(arrow_type)


def _to_decimal(values: pa.Array, after: DataType, arrow_type: Any) -> pa.Array:
    scale = values.type.scale if pa.types.is_decimal(values.type) else 0
    wide = values.cast(pa.decimal256(_WIDEST, scale))
    if scale > after.scale:
        wide = pc.round(wide, after.scale, "half_towards_infinity")
    most = pa.scalar(Decimal(10 ** (after.precision - after.scale)), wide.type)
    if pc.any(pc.greater_equal(pc.abs(wide), most)).as_py():
        # Java's row then has a null that it does not show as one, at which its readers fail.
        raise UnsupportedError(
            f"found a number of too many digits, expected {after} as in the table"
        )
    return wide.cast(arrow_type)


def _decimal_to_text(values: pa.Array, before: DataType) -> pa.Array:
    """All digits, never with an exponent."""
    scale = before.scale
    bare = pa.decimal128(values.type.precision, 0)
    digits = pa.Array.from_buffers(bare, len(values), values.buffers(), -1, values.offset)
    text = digits.cast(pa.string())
    if not scale:
        return text
    sign = pc.if_else(pc.starts_with(text, "-"), "-", "")
    padded = pc.utf8_lpad(pc.utf8_ltrim(text, "-"), scale + 1, "0")
    pointed = pc.replace_substring_regex(padded, rf"^(\d+)(\d{{{scale}}})$", r"\1.\2")
    return pc.binary_join_element_wise(sign, pointed, "")


def _counts(values: pa.Array) -> tuple[pa.Array, int]:
    """Timestamps as numbers, and how many of these there are in a second."""
    return values.cast(pa.int64()), _UNITS[values.type.unit]


def _milliseconds(counts: Int64Array, per_second: int) -> Int64Array:
    """The milliseconds below."""
    if per_second <= 1000:
        return counts * (1000 // per_second)
    return counts // (per_second // 1000)


def _towards_zero(numbers: Int64Array, divisor: int) -> Int64Array:
    whole: Int64Array = np.sign(numbers) * (np.abs(numbers) // divisor)
    return whole


def _timestamp_to_integer(values: pa.Array, after: DataType, arrow_type: Any) -> pa.Array:
    counts, per_second = _counts(values)
    divisor = _DAY if after.root == "DATE" else 1000
    numbers = _changed(
        counts, lambda some: _towards_zero(_milliseconds(some, per_second), divisor)
    ).cast(pa.int64())
    if after.root == "DATE":
        return numbers.cast(pa.int32()).cast(arrow_type)
    return numbers.cast(arrow_type, safe=False)


def _timestamp_to_text(values: pa.Array, before: DataType) -> pa.Array:
    seconds = pc.floor_temporal(values, unit="second").cast(pa.timestamp("s")).cast(pa.int64())
    span = pc.min_max(seconds)
    if span["min"].is_valid and (
        span["min"].as_py() < _YEAR_1 or span["max"].as_py() >= _YEAR_10000
    ):
        raise UnsupportedError(f"found {before} outside of the years 1 to 9999")
    text = pc.strftime(values, "%Y-%m-%d %H:%M:%S")  # with the digits of the unit
    digits = before.precision
    plain = len("1970-01-01 00:00:00")
    return pc.utf8_slice_codeunits(text, 0, plain + 1 + digits if digits else plain)


def _truncated(values: pa.Array, after: DataType, arrow_type: Any) -> pa.Array:
    """Timestamps with fewer digits.

    Java counts the digits of the nanoseconds without their leading zeros, and leaves a value alone
    that has few enough; others are cut off, up to milliseconds towards zero.
    """
    counts, per_second = _counts(values)
    digits = after.precision

    def change(some: Int64Array) -> Int64Array:
        nanos = some % per_second * (10**9 // per_second)
        millis = _milliseconds(some, per_second)
        if digits <= 3:
            step = 10 ** (3 - digits)
            cut = _towards_zero(millis, step) * step
            cut = cut * (per_second // 1000) if per_second >= 1000 else cut // (1000 // per_second)
        else:
            step = 10 ** (9 - digits)
            below = nanos % 10**6 // step * step
            cut = millis * (per_second // 1000) + below // (10**9 // per_second)
        return np.where(nanos < 10**digits, some, cut)

    if per_second <= 10 ** min(digits, 9):
        return values.cast(arrow_type)
    made = _changed(counts, change).cast(pa.int64()).cast(values.type)
    return pc.floor_temporal(made, unit=_NAMES[arrow_type.unit]).cast(arrow_type)


_NAMES: Final = {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}


def column_type(data_type: DataType) -> Any:
    """The Arrow type of a column; BINARY(n) as bytes of any length, as Paimon does not pad."""
    return pa.binary() if data_type.root == "BINARY" else data_type.to_arrow()


class TypedField(Protocol):
    """A column of a schema that has ids."""

    @property
    def data_type(self) -> DataType:
        """Its type."""

    @property
    def inner_ids(self) -> tuple[int, ...]:
        """The ids of the fields within its type, each before those within it."""


def convert(own: TypedField, wanted: TypedField) -> FieldConversion | None:
    """What makes values of the table out of those of a file; None if they are the same.

    Args:
        own: The column as the schema of the file has it.
        wanted: The same as the table has it.
    """
    before, after = _Node.of(own), _Node.of(wanted)
    if before == after or _is_longer(before.data_type, after.data_type):
        return None
    return FieldConversion(before, after, column_type(after.data_type))


def _is_longer(before: DataType, after: DataType) -> bool:
    """Whether a text or bytes may only be longer than before."""
    return before.root == after.root in ("VARCHAR", "VARBINARY") and before.length <= after.length


@dataclass(frozen=True, slots=True)
class _Node:
    """A type, with the ids of its fields if it is a ROW."""

    data_type: DataType
    ids: tuple[int, ...]
    children: tuple[_Node, ...]

    @classmethod
    def of(cls, field: TypedField) -> _Node:
        return cls._next(field.data_type, iter(field.inner_ids))

    @classmethod
    def _next(cls, data_type: DataType, ids: Iterator[int]) -> _Node:
        own, children = [], []
        for child in data_type.children:
            if data_type.root == "ROW":
                own.append(next(ids))
            children.append(cls._next(child, ids))
        return cls(data_type, tuple(own), tuple(children))


@dataclass(frozen=True, slots=True)
class FieldConversion:
    """A change of the type of a column."""

    own: _Node
    wanted: _Node
    arrow_type: Any

    def __call__(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """The values as the table has them.

        Raises:
            UnsupportedError: One of them would not be what Java reads.
        """
        chunks = [_convert(one, self.own, self.wanted, self.arrow_type) for one in values.chunks]
        return pa.chunked_array(chunks, self.arrow_type)


def _convert(values: pa.Array, own: _Node, wanted: _Node, arrow_type: Any) -> pa.Array:
    before, after = own.data_type, wanted.data_type
    if own == wanted:
        return _cast(values, before, after, arrow_type)
    if before.root == after.root and after.root in _NESTED:
        if values.type.id != arrow_type.id:  # the file is not what its schema says
            return _cast(values, before, after, arrow_type)
        return _NESTED[after.root](values, own, wanted, arrow_type)
    if after.root not in CASTS.get(before.root, ()):
        raise UnsupportedError(
            f"found {before}, expected {after} as in the table: such a change is not read"
        )
    try:
        # Some files hold other digits than their schema says, as ORC nanoseconds.
        values = _cast(values, before, before, column_type(before))
        return cast_leaf(values, before, after, arrow_type)
    except pa.ArrowException as error:
        raise _problem(before, after, error) from None


def _cast(values: pa.Array, before: DataType, after: DataType, arrow_type: Any) -> pa.Array:
    try:
        return values if values.type == arrow_type else values.cast(arrow_type)
    except pa.ArrowException as error:
        raise _problem(before, after, error) from None


def _problem(before: DataType, after: DataType, error: pa.ArrowException) -> UnsupportedError:
    problem = str(error).splitlines()[0]
    return UnsupportedError(f"found {before}, expected {after} as in the table: {problem}")


def _row(values: pa.StructArray, own: _Node, wanted: _Node, arrow_type: Any) -> pa.Array:
    names = dict(zip(own.ids, own.data_type.names, strict=True))
    nodes = dict(zip(own.ids, own.children, strict=True))
    children = []
    for number, child, field in zip(wanted.ids, wanted.children, arrow_type, strict=True):
        place = values.type.get_field_index(names[number]) if number in names else -1
        children.append(
            pa.nulls(len(values), field.type)
            if place < 0
            else _convert(values.field(place), nodes[number], child, field.type)
        )
    return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=values.is_null())


def _array(values: pa.ListArray, own: _Node, wanted: _Node, arrow_type: Any) -> pa.Array:
    (before,), (after,) = own.children, wanted.children
    return _filled(
        values, arrow_type, _convert(values.values, before, after, arrow_type.value_type)
    )


def _map(values: pa.MapArray, own: _Node, wanted: _Node, arrow_type: Any) -> pa.Array:
    kinds = arrow_type.key_type, arrow_type.item_type
    inside = zip((values.keys, values.items), own.children, wanted.children, kinds, strict=True)
    pairs = [_convert(*one) for one in inside]
    fields = [arrow_type.key_field, arrow_type.item_field]
    return _filled(values, arrow_type, pa.StructArray.from_arrays(pairs, fields=fields))


def _filled(values: pa.Array, arrow_type: Any, child: pa.Array) -> pa.Array:
    """Lists or maps of the same lengths as others, with another child."""
    return pa.Array.from_buffers(
        arrow_type, len(values), values.buffers()[:2], -1, values.offset, [child]
    )


_NESTED: Final = {"ROW": _row, "ARRAY": _array, "MAP": _map}
