"""Columns of the table, as a data file is asked for them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from alcid.errors import FormatError, UnsupportedError
from alcid.iceberg_metadata.schema import Field
from alcid.tables.conversions import column_type
from alcid.types import DataType

__all__ = ["WantedField"]


@dataclass(frozen=True, slots=True)
class WantedField:
    """A column of the table that is read here."""

    id: int
    name: str
    data_type: DataType
    inner_ids: tuple[int, ...] = ()
    default: Any = None
    """What files have for it that were written before it was added: a scalar, or None for null."""

    @classmethod
    def of(cls, field: Field) -> WantedField:
        """One of a schema.

        Raises:
            UnsupportedError: It is not read here.
            FormatError: Its default is no value of its type.
        """
        if field.data_type is None:
            raise UnsupportedError(field.problem)
        return cls(field.id, field.name, field.data_type, field.inner_ids, _default(field))

    @property
    def arrow_type(self) -> Any:
        """The type in which it is read."""
        return column_type(self.data_type)

    def missing(self, count: int) -> pa.Array:
        """Its values in rows of a file that does not have it."""
        if self.default is None:
            return pa.nulls(count, self.arrow_type)
        return pa.repeat(self.default, count)


def _default(field: Field) -> Any:
    """The initial default, which is in Iceberg's JSON for single values.

    >>> given = Field(1, "d", "date", DataType("DATE"), initial_default="2024-02-29")
    >>> _default(given)
    <pyarrow.Date32Scalar: datetime.date(2024, 2, 29)>
    """
    value, data_type = field.initial_default, field.data_type
    if value is None or data_type is None:
        return None
    if data_type.children:
        raise UnsupportedError(f"column {field.name}: a default of {data_type} is not read")
    try:
        match data_type.root:
            case "DECIMAL":
                value = Decimal(value)
            case "DATE":
                value = date.fromisoformat(value)
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                value = datetime.fromisoformat(value)
            case "VARBINARY" | "BINARY":
                value = bytes.fromhex(value)
        return pa.scalar(value, column_type(data_type))
    except (ValueError, TypeError, ArithmeticError, pa.ArrowException):
        raise FormatError(
            f"column {field.name}: initial-default",
            file="the table's schema",
            found=value,
            expected=str(data_type),
        ) from None
