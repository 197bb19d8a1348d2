"""The types that Spark brings numbers, text and times to before it compares or computes.

Expressions bound to the columns of a table, and the values that they have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from sqlglot import exp

from alcid._arrays import BoolArray
from alcid.config import current_settings
from alcid.errors import SparkNeededError
from alcid.expressions.columns import RowTable
from alcid.expressions.scalar_casts import can_cast, cast
from alcid.expressions.scalar_values import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGERS,
    LONG,
    MOST_DIGITS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    Failure,
    Values,
    decimal_data,
    from_arrow,
)
from alcid.expressions.sql_parser import Strings, write_sql
from alcid.types import DATETIME_TYPES, FLOAT_TYPES, DataType


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows that an expression is evaluated on: all of a table, or some."""

    table: RowTable
    rows: Any = None
    """The positions of the rows; None for all."""

    @property
    def count(self) -> int:
        """How many there are."""
        return self.table.row_count if self.rows is None else len(self.rows)

    def array(self, name: str) -> pa.ChunkedArray:
        """A column of them."""
        array = self.table.array(name)
        return array if self.rows is None else array.take(pa.array(self.rows))

    def those(self, mask: BoolArray) -> Batch:
        """Some of them."""
        chosen = np.flatnonzero(mask)
        return Batch(self.table, chosen if self.rows is None else self.rows[chosen])


@dataclass(frozen=True, slots=True)
class Scalar:
    """An expression bound to the columns of a table."""

    type: DataType | None
    """None for a NULL without a type."""
    values: Callable[[Batch], Values]
    is_literal: bool = False
    literal: object = None


def constant(value: object, data_type: DataType) -> Scalar:
    """A literal."""

    def values(batch: Batch) -> Values:
        count, valid = batch.count, np.ones(batch.count, bool)
        if data_type == STRING:
            return Values(STRING, pa.repeat(pa.scalar(value, pa.large_string()), count), valid)
        if data_type.root == "DECIMAL":
            unscaled = int(Decimal(value).scaleb(data_type.scale))  # type: ignore[arg-type]
            data = decimal_data(np.full(count, unscaled, object), data_type.precision)
            return Values(data_type, data, valid)
        dtypes: dict[str, Any] = {"BOOLEAN": np.bool_, "DOUBLE": np.float64}
        return Values(data_type, np.full(count, value, dtypes.get(data_type.root, np.int64)), valid)

    return Scalar(data_type, values, is_literal=True, literal=value)


def null() -> Scalar:
    """NULL, of no type yet."""

    def values(batch: Batch) -> Values:
        return Values(BOOLEAN, np.zeros(batch.count, bool), np.zeros(batch.count, bool))

    return Scalar(None, values, is_literal=True)


def typed_null(side: Scalar, target: DataType) -> Scalar:
    """An expression as it is; a NULL without a type as one of a type."""
    if side.type is not None:
        return side

    def values(batch: Batch) -> Values:
        return from_arrow(pa.nulls(batch.count, target.to_arrow()), target)

    return Scalar(target, values, is_literal=True)


def cast_scalar(side: Scalar, target: DataType, failure: Failure) -> Scalar:
    """An expression cast to a type, which `can_cast` allows."""
    if side.type == target:
        return side
    return Scalar(target, lambda batch: cast(side.values(batch), target, failure), side.is_literal)


def literal_type(value: object) -> DataType | None:
    """The type that Spark gives to a literal; None for one that is not taken here."""
    match value:
        case bool():
            return BOOLEAN
        case int() if -(1 << 31) <= value < 1 << 31:
            return INT
        case int() if -LONG <= value < LONG:
            return BIGINT
        case float():
            return DOUBLE
        case str():
            return STRING
        case int() | Decimal():
            _, digits, exponent = Decimal(value).as_tuple()
            scale = max(0, -int(exponent))
            precision = max(len(digits) + max(0, int(exponent)), scale)
            if precision <= MOST_DIGITS:
                return DataType("DECIMAL", precision=precision, scale=scale)
    return None


def negated(values: Values) -> Values:
    """Numbers with the other sign."""
    return Values(values.type, -values.data, values.valid)


def known(truth: BoolArray) -> Values:
    """A condition that is never NULL."""
    return Values(BOOLEAN, truth, np.ones(len(truth), bool))


def inverted(values: Values) -> Values:
    """NOT."""
    return Values(BOOLEAN, ~values.data, values.valid)


def both(first: Values, second: Values) -> Values:
    """AND."""
    no = (~first.data & first.valid) | (~second.data & second.valid)
    return Values(BOOLEAN, ~no, no | first.valid & second.valid)


def filled(values: Values, missing: BoolArray, others: Values) -> Values:
    """Values with others in place of the missing ones."""
    valid = values.valid.copy()
    valid[missing] = others.valid
    if values.type == STRING:
        picks = np.arange(len(values))
        picks[missing] = len(values) + np.arange(len(others))
        joined = pa.concat_arrays([_whole(values.data), _whole(others.data)])
        return Values(STRING, joined.take(pa.array(picks)), valid)
    data = values.data.copy()
    data[missing] = others.data
    return Values(values.type, data, valid)


def _whole(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_LEAST_SCALE = 6
_MOST_SHOWN = 80


class TypeRules:
    """Common types, by the rules of the session: with ANSI, or without."""

    def __init__(self, strings: Strings) -> None:
        """Take the string literals of the text, which errors show."""
        self.strings = strings
        self.ansi = current_settings().ansi
        self.failure = Failure.ERROR if self.ansi else Failure.LEGACY

    def refuse(self, node: exp.Expr, why: str = "") -> NoReturn:
        """Say that a part of a predicate is left to Spark."""
        shown = shortened(write_sql(node, self.strings))
        raise SparkNeededError(f"only Spark can evaluate {shown}" + (f": {why}" if why else ""))

    def alike(
        self, node: exp.Expr, sides: Sequence[Scalar], *, compared: bool = False
    ) -> list[Scalar]:
        """Expressions brought to one type, as Spark would; DECIMALs keep their own scales."""
        kinds = [side.type for side in sides if side.type is not None]
        if not kinds:
            return [typed_null(side, BOOLEAN) for side in sides]
        target = kinds[0]
        for kind in kinds[1:]:
            target = self.common(node, target, kind, compared)
        # Beside a literal Spark casts that one, which differs on the days when clocks change.
        moves = compared and target == TIMESTAMP_LTZ
        if moves and any(side.is_literal and side.type == target for side in sides):
            for side in sides:
                if side.type in (DATE, TIMESTAMP) and not side.is_literal:
                    self.refuse(node, f"{side.type} beside {target}: write the CAST that is meant")
        return [self.as_type(node, side, target) for side in sides]

    def common(self, node: exp.Expr, first: DataType, second: DataType, compared: bool) -> DataType:
        """The type of two together."""
        if first == second:
            return first
        roots = {first.root, second.root}
        if is_number(first) and is_number(second):
            return self.common_number(node, first, second)
        if roots <= set(DATETIME_TYPES):
            return TIMESTAMP_LTZ if "TIMESTAMP_LTZ" in roots else TIMESTAMP
        if compared and "VARCHAR" in roots and roots & set(DATETIME_TYPES):  # a literal, or refused
            return second if first == STRING else first
        return self.refuse(node, f"{first} beside {second}: write the CAST that is meant")

    def common_number(self, node: exp.Expr, first: DataType, second: DataType) -> DataType:
        """The type of two numbers together."""
        roots = {first.root, second.root}
        if "DOUBLE" in roots or roots == {"DECIMAL", "FLOAT"}:
            return DOUBLE
        if "FLOAT" in roots:
            return DOUBLE if self.ansi else FLOAT
        if "DECIMAL" not in roots:
            return max(first, second, key=lambda kind: INTEGERS[kind.root])
        digits = [_as_decimal(kind) for kind in (first, second)]
        scale = max(kind.scale for kind in digits)
        precision = scale + max(kind.precision - kind.scale for kind in digits)
        if precision > MOST_DIGITS:
            self.refuse(node, f"{first} beside {second} takes more than 38 digits")
        return DataType("DECIMAL", precision=precision, scale=scale)

    def as_type(self, node: exp.Expr, side: Scalar, target: DataType) -> Scalar:
        """An expression as one of a type that `common` found."""
        source = side.type
        if source is None:
            return typed_null(side, target)
        if source == target:
            return side
        if source.root == "VARCHAR" and not side.is_literal:
            self.refuse(node, f"{source} beside {target}: write the CAST that is meant")
        if not can_cast(source, target, ansi=self.ansi):
            self.refuse(node, f"{source} beside {target}: write the CAST that is meant")
        failure = self.failure
        return Scalar(
            target,
            lambda batch: cast(side.values(batch), target, failure),
            side.is_literal,
            side.literal,
        )

    def decimal_result(
        self, sign: str, node: exp.Expr, first: DataType, second: DataType
    ) -> DataType:
        """The type of arithmetic on DECIMALs, where it takes no more than 38 digits."""
        wholes = [kind.precision - kind.scale for kind in (first, second)]
        scale = max(first.scale, second.scale)
        match sign:
            case "*":
                scale = first.scale + second.scale
                precision = first.precision + second.precision + 1
            case "/":
                scale = max(_LEAST_SCALE, first.scale + second.precision + 1)
                precision = wholes[0] + second.scale + scale
            case "%":
                precision = min(wholes) + scale
            case _:
                precision = max(wholes) + scale + 1
        if precision > MOST_DIGITS:
            self.refuse(node, f"{first} {sign} {second} takes more than 38 digits")
        return DataType("DECIMAL", precision=max(precision, scale, 1), scale=scale)


def shortened(text: str) -> str:
    """Text, cut where it is long."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def is_number(data_type: DataType) -> bool:
    """Whether it is an integer, FLOAT, DOUBLE or DECIMAL."""
    return data_type.root in INTEGERS or data_type.root in (*FLOAT_TYPES, "DECIMAL")


def _as_decimal(data_type: DataType) -> DataType:
    if data_type.root == "DECIMAL":
        return data_type
    return DataType("DECIMAL", precision=_DIGITS[data_type.root])


def decimal_of(side: Scalar) -> DataType:
    """The DECIMAL that a number is beside another; of an integer literal it has its digits."""
    if side.type is None:
        raise TypeError("a NULL is no number")
    if side.is_literal and isinstance(side.literal, int) and side.type.root in INTEGERS:
        return DataType("DECIMAL", precision=max(1, len(str(abs(side.literal)))))
    return _as_decimal(side.type)
