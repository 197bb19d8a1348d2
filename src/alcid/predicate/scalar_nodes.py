"""Expressions bound to the columns of a table, and the values that they have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from alcid.predicate.row_lists import Mask
from alcid.predicate.row_table import RowTable
from alcid.predicate.scalar_casts import cast
from alcid.predicate.scalar_values import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    MOST_DIGITS,
    STRING,
    Failure,
    Values,
    decimal_data,
    from_arrow,
)
from alcid.types import DataType

__all__ = [
    "Batch",
    "Scalar",
    "both",
    "cast_scalar",
    "constant",
    "filled",
    "inverted",
    "known",
    "literal_type",
    "negated",
    "null",
    "typed_null",
]


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
        array = self.table.column(name).array
        return array if self.rows is None else array.take(pa.array(self.rows))

    def those(self, mask: Mask) -> Batch:
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


def known(truth: Mask) -> Values:
    """A condition that is never NULL."""
    return Values(BOOLEAN, truth, np.ones(len(truth), bool))


def inverted(values: Values) -> Values:
    """NOT."""
    return Values(BOOLEAN, ~values.data, values.valid)


def both(first: Values, second: Values) -> Values:
    """AND."""
    no = (~first.data & first.valid) | (~second.data & second.valid)
    return Values(BOOLEAN, ~no, no | first.valid & second.valid)


def filled(values: Values, missing: Mask, others: Values) -> Values:
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
