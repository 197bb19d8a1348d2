"""The types that Spark brings numbers, text and times to before it compares or computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlglot import exp

from alcid.errors import SparkNeededError
from alcid.options import current_settings
from alcid.predicate.scalar_casts import can_cast, cast
from alcid.predicate.scalar_nodes import Scalar, typed_null
from alcid.predicate.scalar_values import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGERS,
    MOST_DIGITS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    Failure,
)
from alcid.predicate.sql_parser import write_sql
from alcid.predicate.strings import Strings
from alcid.types import DataType

__all__ = ["FLOATING", "TIMES", "TypeRules", "decimal_of", "is_number", "shortened"]

FLOATING = ("FLOAT", "DOUBLE")
TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
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
        if roots <= set(TIMES):
            return TIMESTAMP_LTZ if "TIMESTAMP_LTZ" in roots else TIMESTAMP
        if compared and "VARCHAR" in roots and roots & set(TIMES):  # a literal, or refused
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
    return data_type.root in INTEGERS or data_type.root in (*FLOATING, "DECIMAL")


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
