"""Conditions on expressions, evaluated on Arrow rows: what no index answers, without Spark.

Fields of structs, two columns compared, `+ - * / %`, CAST and the functions of `_FUNCTIONS`, typed
by Spark's rules when they are bound to the columns, so that whether a condition can be evaluated
depends on no row. What would not have Spark's result to the last digit is refused by name.

No index and no statistics are asked for such a condition: it is `Unknown` to them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from alcid._arrays import BoolArray
from alcid.errors import SparkNeededError, UnsupportedError
from alcid.expressions.columns import RowSchema, RowTable
from alcid.expressions.expression import Operator
from alcid.expressions.like import Pattern
from alcid.expressions.row_values import to_mask
from alcid.expressions.scalar_casts import (
    FIELDS,
    UNITS,
    can_cast,
    cast,
    clock_field,
    date_field,
    truncated,
    walls_of,
)
from alcid.expressions.scalar_types import (
    Batch,
    Scalar,
    TypeRules,
    both,
    cast_scalar,
    constant,
    decimal_of,
    filled,
    inverted,
    is_number,
    known,
    literal_type,
    negated,
    null,
    shortened,
    typed_null,
)
from alcid.expressions.scalar_values import (
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
    compare,
    compute,
    from_arrow,
)
from alcid.expressions.scalar_values import FUNCTIONS as TEXT_FUNCTIONS
from alcid.expressions.sql_parser import Strings, parse_sql
from alcid.expressions.sql_reader import NotALiteralError, column_name, read_like, read_literal
from alcid.options import did_you_mean, match_column
from alcid.types import DATETIME_TYPES, FLOAT_TYPES, DataType

_COMPARISONS: dict[type[exp.Expr], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_CAST_TYPES = {
    "BOOLEAN": BOOLEAN,
    **{root: DataType(root) for root in INTEGERS},
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "DATE": DATE,
    "TIMESTAMPNTZ": TIMESTAMP,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ"), TIMESTAMP_LTZ),
}
_NOTHING = pa.scalar("", pa.large_string())


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition bound to the columns of a table."""

    text: str
    scalar: Scalar

    def true_rows(self, table: RowTable, rows: BoolArray) -> BoolArray:
        """Which of `rows` the condition is true for; no other row is looked at.

        Raises:
            EvaluationError: A row for which Spark with ANSI rules would fail.
        """
        mask = np.zeros(len(rows), bool)
        batch = Batch(table) if rows.all() else Batch(table).those(rows)
        values = self.scalar.values(batch)
        truth = values.data & values.valid
        mask[np.flatnonzero(rows)] = truth
        return mask


def bind_scalar(text: str, schema: RowSchema) -> Scalar:
    """An expression from SQL text, bound to columns.

    Raises:
        SparkNeededError: It has a part that only Spark can evaluate, which is named.
        ColumnError: No such column, or a name that fits more than one.
    """
    node, strings = parse_sql(text)
    return _Binder(strings, schema).bind(node)


def bind_condition(text: str, schema: RowSchema) -> Condition:
    """A condition from SQL text, bound to columns.

    Args:
        text: That of an `Unknown`.
        schema: The columns.

    Raises:
        SparkNeededError: It has a part that only Spark can evaluate, which is named.
        ColumnError: No such column, or a name that fits more than one.
    """
    scalar = bind_scalar(text, schema)
    if scalar.type is None:
        scalar = Scalar(BOOLEAN, scalar.values)
    if scalar.type != BOOLEAN:
        raise SparkNeededError(f"{shortened(text)} is of type {scalar.type}, expected BOOLEAN")
    return Condition(text, scalar)


class _Binder(TypeRules):
    """Turns the nodes of sqlglot into typed expressions."""

    def __init__(self, strings: Strings, schema: RowSchema) -> None:
        super().__init__(strings)
        self.schema = schema
        self.binders: dict[Any, Callable[[Any], Scalar]] = {
            (exp.Column, exp.Dot): self.field,
            (exp.Literal, exp.Boolean, exp.Null): self.literal,
            exp.Neg: self.negative,
            (exp.And, exp.Or): self.connector,
            exp.Not: self.negated,
            exp.Is: self.is_,
            exp.In: self.in_,
            exp.Between: self.between,
            (exp.Like, exp.Escape): self.like,
            exp.NullSafeNEQ: self.distinct,
            exp.Cast: self.cast,
            (exp.DPipe, exp.Func): self.function,
        }

    def bind(self, node: exp.Expr) -> Scalar:
        node = node.unnest()
        name = column_name(node, self.strings)
        if name is not None:
            return self.column(node, name)
        kind = type(node)
        if kind in _COMPARISONS:
            return self.compared(_COMPARISONS[kind], node, node.this, node.expression)
        if kind in _ARITHMETIC:
            return self.arithmetic(_ARITHMETIC[kind], node)
        for kinds, bind in self.binders.items():
            if isinstance(node, kinds):
                return bind(node)
        return self.refuse(node)

    # -- columns and literals ------------------------------------------------------------------

    def column(self, node: exp.Expr, name: str) -> Scalar:
        field = self.schema.field(name)
        if field.is_null:
            return null()
        data_type = self.usable(node, field.data_type)
        return Scalar(data_type, lambda batch: from_arrow(batch.array(name), data_type))

    def usable(self, node: exp.Expr, data_type: DataType) -> DataType:
        """The type as it is held here."""
        match data_type.root:
            case "VARCHAR":
                return STRING
            case "TIMESTAMP" | "TIMESTAMP_LTZ" if data_type.precision <= 6:
                return DataType(data_type.root, precision=6)
            case "BOOLEAN" | "FLOAT" | "DOUBLE" | "DECIMAL" | "DATE":
                return data_type
            case root if root in INTEGERS:
                return data_type
        return self.refuse(node, f"expressions do not take {data_type}")

    def field(self, node: exp.Expr) -> Scalar:
        """A field of a struct: `a.b`, `a.b.c`."""
        parts = _parts(node)
        if parts is None:
            self.refuse(node)
        top, *path = parts
        array_type, names = self.schema.field(top).arrow_type, list[str]()
        for part in path:
            if isinstance(array_type, pa.BaseExtensionType):
                array_type = array_type.storage_type
            if not pa.types.is_struct(array_type):
                self.refuse(node, f"{top} has no field {part}: it is {array_type}")
            known = [array_type.field(place).name for place in range(array_type.num_fields)]
            name = match_column(part, known)
            if name is None:
                self.refuse(node, f"{top} has no field {part}{did_you_mean(part, known)}")
            names.append(name)
            array_type = array_type.field(name).type
        if pa.types.is_null(array_type):
            return null()
        try:
            data_type = self.usable(node, DataType.from_arrow(array_type))
        except UnsupportedError as error:
            self.refuse(node, str(error))

        def values(batch: Batch) -> Values:
            array = batch.array(top).combine_chunks()
            for name in names:
                storage = array.storage if isinstance(array, pa.ExtensionArray) else array
                array = pc.struct_field(storage, name)
            return from_arrow(array, data_type)

        return Scalar(data_type, values)

    def literal(self, node: exp.Expr) -> Scalar:
        try:
            value = read_literal(node, self.strings)
        except NotALiteralError:
            self.refuse(node)
        if value is None:
            return null()
        data_type = literal_type(value)
        if data_type is None:
            self.refuse(node)
        return constant(value, data_type)

    def negative(self, node: exp.Neg) -> Scalar:
        inner = node.this.unnest()
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return self.literal(node)
        child = self.bind(inner)
        if child.type is None or not is_number(child.type):
            self.refuse(node)
        zero = constant(0, INT)
        to, failure = child.type, self.failure
        if to.root in FLOAT_TYPES:
            return Scalar(to, lambda batch: negated(child.values(batch)))
        if to.root == "DECIMAL":  # which always fits
            return Scalar(to, lambda batch: negated(child.values(batch)))
        return Scalar(
            to,
            lambda batch: compute("-", zero.values(batch), child.values(batch), to, failure),
        )

    # -- conditions ----------------------------------------------------------------------------

    def boolean(self, node: exp.Expr) -> Scalar:
        scalar = self.bind(node)
        if scalar.type is not None and scalar.type != BOOLEAN:
            self.refuse(node, f"it is {scalar.type}, expected BOOLEAN")
        return scalar

    def connector(self, node: exp.Connector) -> Scalar:
        left, right, any_of = (
            self.boolean(node.left),
            self.boolean(node.right),
            isinstance(node, exp.Or),
        )

        def values(batch: Batch) -> Values:
            first, second = left.values(batch), right.values(batch)
            decides = [(side.data == any_of) & side.valid for side in (first, second)]
            decided = decides[0] | decides[1]
            data = np.where(decided, any_of, not any_of)
            return Values(BOOLEAN, data, decided | first.valid & second.valid)

        return Scalar(BOOLEAN, values)

    def negated(self, node: exp.Not) -> Scalar:
        child = self.boolean(node.this)
        return Scalar(BOOLEAN, lambda batch: inverted(child.values(batch)))

    def distinct(self, node: exp.NullSafeNEQ) -> Scalar:
        equal = self.compared("<=>", node, node.this, node.expression)
        return Scalar(BOOLEAN, lambda batch: inverted(equal.values(batch)))

    def is_(self, node: exp.Is) -> Scalar:
        child, wanted = self.bind(node.this), node.expression
        if isinstance(wanted, exp.Null):
            return Scalar(BOOLEAN, lambda batch: known(~child.values(batch).valid))
        if isinstance(wanted, exp.Boolean) and child.type in (None, BOOLEAN):
            truth = bool(wanted.this)

            def values(batch: Batch) -> Values:
                booleans = child.values(batch)
                return known((booleans.data == truth) & booleans.valid)

            return Scalar(BOOLEAN, values)
        return self.refuse(node)

    def compared(self, sign: Operator, node: exp.Expr, first: exp.Expr, second: exp.Expr) -> Scalar:
        return self.comparison(sign, node, self.bind(first), self.bind(second))

    def comparison(self, sign: Operator, node: exp.Expr, first: Scalar, second: Scalar) -> Scalar:
        self.check_wide_literal(node, first, second)
        left, right = self.alike(node, [first, second], compared=True)
        return Scalar(BOOLEAN, lambda batch: compare(sign, left.values(batch), right.values(batch)))

    def check_wide_literal(self, node: exp.Expr, *sides: Scalar) -> None:
        """Spark answers `bigint < 9223372036854775808` for null rows, too: rare, and left to it."""
        kinds = [side.type.root for side in sides if side.type is not None]
        wide = any(
            isinstance(side.literal, int | Decimal) and not -LONG <= side.literal < LONG
            for side in sides
        )
        if wide and any(kind in INTEGERS for kind in kinds):
            self.refuse(node, "a literal beyond BIGINT")

    def between(self, node: exp.Between) -> Scalar:
        if node.args.get("symmetric"):
            self.refuse(node)
        value, low, high = (self.bind(node.args[key]) for key in ("this", "low", "high"))
        above, below = (
            self.comparison(">=", node, value, low),
            self.comparison("<=", node, value, high),
        )
        return Scalar(BOOLEAN, lambda batch: both(above.values(batch), below.values(batch)))

    def in_(self, node: exp.In) -> Scalar:
        if not node.expressions:
            self.refuse(node)
        sides = [self.bind(node.this), *map(self.bind, node.expressions)]
        self.check_wide_literal(node, *sides)
        value, *listed = self.alike(node, sides, compared=True)

        def values(batch: Batch) -> Values:
            own = value.values(batch)
            equal = [compare("=", own, item.values(batch)) for item in listed]
            is_in = functools.reduce(np.logical_or, (item.data & item.valid for item in equal))
            is_known = functools.reduce(np.logical_and, (item.valid for item in equal))
            return Values(BOOLEAN, is_in, is_in | is_known)

        return Scalar(BOOLEAN, values)

    def like(self, node: exp.Expr) -> Scalar:
        like = read_like(node, self.strings)
        if like is None:
            self.refuse(node)
        operand, pattern = self.bind(like.operand), Pattern("", like.parts, like.negated)
        if operand.type != STRING:
            self.refuse(node)

        def values(batch: Batch) -> Values:
            texts = operand.values(batch)
            matches = to_mask(pattern.match(texts.data))
            return Values(BOOLEAN, ~matches if pattern.negated else matches, texts.valid)

        return Scalar(BOOLEAN, values)

    def arithmetic(self, sign: str, node: exp.Expr) -> Scalar:
        left, right = self.bind(node.this), self.bind(node.expression)
        first, second = left.type, right.type
        if first is None or second is None or not (is_number(first) and is_number(second)):
            self.refuse(node, "it takes numbers")
        roots = {first.root, second.root}
        if roots & set(FLOAT_TYPES) or (sign == "/" and "DECIMAL" not in roots):
            common = DOUBLE if sign == "/" else self.common_number(node, first, second)
            to = common
        elif "DECIMAL" in roots:
            for side in (left, right):  # 1L is written as a CAST is, but has fewer digits
                if side.is_literal and side.literal is None:
                    self.refuse(node, "a DECIMAL beside 1L or the CAST of a literal")
            kinds = [decimal_of(side) for side in (left, right)]
            to = self.decimal_result(sign, node, *kinds)
            failure = self.failure
            ours, theirs = (
                cast_scalar(side, kind, failure)
                for side, kind in zip((left, right), kinds, strict=True)
            )
            return Scalar(
                to,
                lambda batch: compute(sign, ours.values(batch), theirs.values(batch), to, failure),
            )
        else:
            common = to = self.common_number(node, first, second)
        failure = self.failure
        ours, theirs = (cast_scalar(side, common, failure) for side in (left, right))
        return Scalar(
            to, lambda batch: compute(sign, ours.values(batch), theirs.values(batch), to, failure)
        )

    def cast(self, node: exp.Cast) -> Scalar:
        target = self.cast_type(node)
        inner = node.this.unnest()
        if not isinstance(node, exp.TryCast) and isinstance(inner, exp.Literal):
            return self.typed_literal(node, target)
        if target.root in DATETIME_TYPES and isinstance(inner, exp.Literal) and inner.is_string:
            # DATE 'today' comes as a CAST, which Spark refuses where it takes the literal.
            return self.typed_literal(node, target)
        child = self.bind(inner)
        if child.type is None:
            return typed_null(child, target)
        if not can_cast(child.type, target, ansi=self.ansi):
            self.refuse(node, f"{child.type} as {target}")
        failure = Failure.NULL if node.args.get("safe") else self.failure
        return cast_scalar(child, target, failure)

    def typed_literal(self, node: exp.Cast, target: DataType) -> Scalar:
        """DATE '...' or TIMESTAMP '...'."""
        try:
            read_literal(node, self.strings)  # raises for text that is none
        except NotALiteralError:
            self.refuse(node)
        text = self.literal(node.this)
        constant = cast_scalar(text, target, Failure.ERROR)
        return Scalar(target, constant.values, is_literal=True)

    def cast_type(self, node: exp.Cast) -> DataType:
        kind, parameters = node.to.this.name, node.to.expressions
        if kind == "DECIMAL":
            numbers = [int(number.name) for number in parameters if number.name.isdecimal()]
            if len(numbers) == len(parameters) and len(numbers) <= 2:
                precision, scale = [*numbers, *[10, 0][len(numbers) :]]
                if 0 <= scale <= precision <= MOST_DIGITS and precision:
                    return DataType("DECIMAL", precision=precision, scale=scale)
        elif kind in _CAST_TYPES and not parameters:
            return _CAST_TYPES[kind]
        return self.refuse(node)

    # -- functions -----------------------------------------------------------------------------

    def function(self, node: exp.Expr) -> Scalar:
        name, arguments = _call(node)
        if name == "coalesce" and arguments:
            return self.coalesce(node, arguments)
        if name in ("concat", "||") and arguments:
            return self.concat(node, arguments)
        if name in FIELDS and len(arguments) == 1:
            return self.time_field(node, FIELDS[name], self.bind(arguments[0]))
        if name == "date_trunc" and len(arguments) == 2:
            return self.date_trunc(node, arguments)
        function = TEXT_FUNCTIONS.get(name)
        if function is None or not function.least <= len(arguments) <= function.most:
            self.refuse(node)
        text, *rest = [self.bind(argument) for argument in arguments]
        numbers = [self.integer(node, argument) for argument in rest]
        if text.type != STRING:
            self.refuse(node, f"it takes STRING, found {text.type}")
        return Scalar(function.type, lambda batch: function.apply(text.values(batch), *numbers))

    def integer(self, node: exp.Expr, argument: Scalar) -> int:
        if argument.is_literal and isinstance(argument.literal, int) and argument.type == INT:
            return argument.literal
        return self.refuse(node, "positions and lengths are literals")

    def coalesce(self, node: exp.Expr, arguments: Sequence[exp.Expr]) -> Scalar:
        sides = self.alike(node, [self.bind(argument) for argument in arguments])
        common = sides[0].type
        if common is None:
            return sides[0]
        if any(side.type != common for side in sides):  # pragma: no cover - alike saw to it
            self.refuse(node)

        def values(batch: Batch) -> Values:
            filled_in = sides[0].values(batch)
            for side in sides[1:]:
                missing = ~filled_in.valid
                if not missing.any():
                    break
                filled_in = filled(filled_in, missing, side.values(batch.those(missing)))
            return filled_in

        return Scalar(common, values)

    def concat(self, node: exp.Expr, arguments: Sequence[exp.Expr]) -> Scalar:
        sides = [self.bind(argument) for argument in arguments]
        for side in sides:
            if side.type is not None and side.type != STRING and side.type.root not in INTEGERS:
                self.refuse(node, f"it takes STRING, found {side.type}")
        if all(side.type is not None and side.type.root in INTEGERS for side in sides):
            self.refuse(node, "it takes STRING")
        texts = [
            typed_null(side, STRING)
            if side.type is None
            else cast_scalar(side, STRING, self.failure)
            for side in sides
        ]

        def values(batch: Batch) -> Values:
            parts = [text.values(batch) for text in texts]
            valid = functools.reduce(np.logical_and, (part.valid for part in parts))
            joined = pc.binary_join_element_wise(*(part.data for part in parts), _NOTHING)
            return Values(STRING, joined, valid)

        return Scalar(STRING, values)

    def time_field(self, node: exp.Expr, part: str, child: Scalar) -> Scalar:
        kind, is_clock = child.type, part in ("hour", "minute", "second")
        if kind is None or kind.root not in DATETIME_TYPES or (is_clock and kind == DATE):
            self.refuse(node, f"it takes a date or a timestamp, found {kind}")
        failure = self.failure

        def values(batch: Batch) -> Values:
            times = child.values(batch)
            if not is_clock:
                return date_field(part, cast(times, DATE, failure))
            walls = walls_of(times.data) if kind == TIMESTAMP_LTZ else times.data
            return clock_field(part, walls, times)

        return Scalar(INT, values)

    def date_trunc(self, node: exp.Expr, arguments: Sequence[exp.Expr]) -> Scalar:
        unit, child = self.bind(arguments[0]), self.bind(arguments[1])
        known = UNITS.get(str(unit.literal).lower()) if unit.is_literal else None
        if known is None or child.type is None or child.type.root not in DATETIME_TYPES:
            self.refuse(node)
        instants = cast_scalar(child, TIMESTAMP_LTZ, self.failure)
        return Scalar(TIMESTAMP_LTZ, lambda batch: truncated(known, instants.values(batch)))


def _parts(node: exp.Expr) -> list[str] | None:
    """The names of `a.b.c`."""
    if isinstance(node, exp.Column):
        parts = node.parts
        return [part.name for part in parts] if all(_is_name(part) for part in parts) else None
    if isinstance(node, exp.Dot) and _is_name(node.expression):
        outer = _parts(node.this)
        return None if outer is None else [*outer, node.expression.name]
    return None


def _is_name(node: exp.Expr) -> bool:
    return isinstance(node, exp.Identifier)


def _call(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """A function's name in lower case, and its arguments."""
    match node:
        case exp.Anonymous():
            return node.name.lower(), list(node.expressions)
        case exp.Substring():
            arguments = [node.this, node.args.get("start"), node.args.get("length")]
            return "substr", [argument for argument in arguments if argument is not None]
        case exp.Trim() if not node.args.get("expression") and not node.args.get("collation"):
            position = str(node.args.get("position") or "").upper()
            return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim"), [node.this]
        case exp.DPipe():
            return "||", [node.this, node.expression]
        case exp.Extract() if isinstance(node.this, exp.Var):
            return node.this.name.lower(), [node.expression]
    return "", []
