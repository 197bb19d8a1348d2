"""From a parsed predicate to the tree that every stage of a scan walks: normalized, then bound.

`normalize` pushes NOT down to the leaves, under three-valued logic. `known_part` is what indexes
and Arrow can answer of a predicate, where Spark evaluates the rest.

`bind` turns a normalized predicate into an immutable tree of `BoundAnd`, `BoundOr`,
`BoundConstant`, `BoundUnknown` and `BoundLeaf`. A leaf prepares its probe once for each type that
its column has in files. Leaves and unknown parts are numbered in the order of the text, and a stage
that has to remember something about one of them does so under that number.

Pruning, index probes and the evaluation of rows are each a `BoundVisitor`.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Generic, TypeVar

from alcid.errors import PredicateError
from alcid.expressions.casts_from_text import SessionTimestamp
from alcid.expressions.expression import (
    And,
    Between,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
    Unknown,
    plain,
)
from alcid.expressions.like import Pattern, read_pattern
from alcid.expressions.literals import share_digits
from alcid.expressions.probes import Probe, literal_kind, probe_for
from alcid.types import CHARACTER_TYPES, INTEGER_TYPES, DataType

TypeOf = Callable[[str], DataType | None]
"""The type of the column that a predicate names; None where it is unknown or not comparable."""

Context = TypeVar("Context")
Result = TypeVar("Result")

_EXACT = (*INTEGER_TYPES, "DECIMAL")
_CALENDAR = ("DATE", "TIMESTAMP")


_OPPOSITE: dict[Operator, Operator] = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}


def normalize(predicate: Predicate) -> Predicate:
    """An equal predicate without `Not`, `<=>` and NULL literals: it matches the same rows.

    Where the predicate is NULL for a row, the result may be FALSE for it, or the other way round:
    neither matches, and with no `Not` above nothing turns one into a match.

    >>> from alcid.expressions import parse
    >>> print(normalize(parse("NOT (a < 1 OR b <=> 2)")))
    a >= 1 AND (b <> 2 OR b IS NULL)
    """
    return _negate(predicate.child) if isinstance(predicate, Not) else _keep(predicate)


def _keep(predicate: Predicate) -> Predicate:
    match predicate:
        case And(parts):
            return And.of(map(normalize, parts))
        case Or(parts):
            return Or.of(map(normalize, parts))
        case Comparison(column, "<=>", None):
            return IsNull(column)
        case Comparison(literal=None):
            return Constant(None)
        case Comparison(column, "<=>", literal):
            return Comparison(column, "=", literal)
        case Between(_, low, high) if low is None or high is None:
            return Constant(None)
        case In():
            return _keep_in(predicate)
    return predicate


def _keep_in(predicate: In) -> Predicate:
    literals = tuple(literal for literal in predicate.literals if literal is not None)
    if not predicate.literals:
        return Constant(predicate.negated)
    # One NULL makes NOT IN false or unknown for every row, and IN unknown in place of false.
    if not literals or (predicate.negated and len(literals) < len(predicate.literals)):
        return Constant(None)
    return In(predicate.column, literals, predicate.negated)


def _negate(predicate: Predicate) -> Predicate:
    match predicate:
        case Not(child):
            return normalize(child)
        case And(parts):
            return Or.of(map(_negate, parts))
        case Or(parts):
            return And.of(map(_negate, parts))
        case Comparison(column, "<=>", None):
            return IsNull(column, negated=True)
        case Comparison(column, "<=>", literal):
            return Or((Comparison(column, "<>", literal), IsNull(column)))
        case Comparison(column, operator, literal):
            return _keep(Comparison(column, _OPPOSITE[operator], literal))
        case Between(column, low, high):
            return Or((_keep(Comparison(column, "<", low)), _keep(Comparison(column, ">", high))))
        case In(column, literals, negated):
            return _keep_in(In(column, literals, not negated))
        case Like(column, text, prefix, negated):
            return Like(column, text, prefix, not negated)
        case IsNull(column, negated):
            return IsNull(column, not negated)
        case Constant(value):
            return Constant(None if value is None else not value)
        case Unknown(text, names):
            return Unknown(f"NOT ({text})", names)
    return predicate


def known_part(predicate: Predicate) -> Predicate:
    """A predicate without unknown parts that every row matches which matches the given one.

    Args:
        predicate: A normalized one: below a `Not`, the rows that are left out would be others.

    >>> from alcid.expressions import normalize, parse
    >>> print(known_part(normalize(parse("a = 1 AND upper(b) = 'X'"))))
    a = 1
    >>> print(known_part(normalize(parse("a = 1 OR upper(b) = 'X'"))))
    TRUE
    """
    match predicate:
        case Unknown():
            return Constant(True)
        case And(parts):
            known = [part for part in map(known_part, parts) if part != Constant(True)]
            return And.of(known) if known else Constant(True)
        case Or(parts):
            legs = [known_part(part) for part in parts]
            return Constant(True) if Constant(True) in legs else Or.of(legs)
    return predicate


class BoundPredicate(ABC):
    """A node of a bound tree."""

    predicate: Predicate
    """The normalized predicate that it stands for."""

    @property
    @abstractmethod
    def is_plain(self) -> bool:
        """Whether rows are only compared with literals: that is fast, and fails for no row."""

    @abstractmethod
    def accept(self, visitor: BoundVisitor[Context, Result], context: Context) -> Result:
        """Call the visitor's method for this kind of node."""

    def ends(self) -> Iterator[BoundLeaf | BoundUnknown]:
        """The leaves and unknown parts, in the order of their numbers."""
        yield from ()

    def leaves(self) -> Iterator[BoundLeaf]:
        """The leaves, in the order of their numbers."""
        return (node for node in self.ends() if isinstance(node, BoundLeaf))

    def __str__(self) -> str:
        return str(self.predicate)


@dataclass(frozen=True, eq=False)
class _Junction(BoundPredicate):
    """Two or more predicates, joined by AND or OR."""

    predicate: Predicate
    parts: tuple[BoundPredicate, ...]

    @cached_property
    def is_plain(self) -> bool:
        """Whether rows are only compared with literals."""
        return all(part.is_plain for part in self.parts)

    @cached_property
    def plain_first(self) -> tuple[BoundPredicate, ...]:
        """The parts in the order in which rows are evaluated.

        An expression may fail, and is slow: it only sees the rows that depend on it.
        """
        return tuple(sorted(self.parts, key=lambda part: not part.is_plain))

    def ends(self) -> Iterator[BoundLeaf | BoundUnknown]:
        """The leaves and unknown parts."""
        for part in self.parts:
            yield from part.ends()


class BoundAnd(_Junction):
    """Every part holds."""

    def accept(self, visitor: BoundVisitor[Context, Result], context: Context) -> Result:
        """Call the visitor."""
        return visitor.visit_and(self, context)


class BoundOr(_Junction):
    """At least one part holds."""

    def accept(self, visitor: BoundVisitor[Context, Result], context: Context) -> Result:
        """Call the visitor."""
        return visitor.visit_or(self, context)


@dataclass(frozen=True, eq=False)
class BoundConstant(BoundPredicate):
    """TRUE for every row, or for none."""

    predicate: Constant

    @property
    def value(self) -> bool:
        """Whether rows match: NULL is no match."""
        return bool(self.predicate.value)

    @property
    def is_plain(self) -> bool:
        """Whether rows are only compared with literals."""
        return True

    def accept(self, visitor: BoundVisitor[Context, Result], context: Context) -> Result:
        """Call the visitor."""
        return visitor.visit_constant(self, context)


@dataclass(frozen=True, eq=False)
class BoundUnknown(BoundPredicate):
    """A condition that no index answers; rows may be compared with it."""

    predicate: Unknown
    number: int
    type_of: TypeOf = field(repr=False)

    @cached_property
    def pattern(self) -> Pattern | None:
        """The LIKE pattern, if the condition is one on a column; it is parsed once."""
        return read_pattern(self.predicate.text)

    @cached_property
    def is_plain(self) -> bool:
        """Whether rows are only compared with literals."""
        if self.pattern is None:
            return False
        data_type = self.type_of(self.pattern.column)
        return data_type is None or data_type.root in CHARACTER_TYPES

    def ends(self) -> Iterator[BoundLeaf | BoundUnknown]:
        """The leaves and unknown parts."""
        yield self

    def accept(self, visitor: BoundVisitor[Context, Result], context: Context) -> Result:
        """Call the visitor."""
        return visitor.visit_unknown(self, context)


@dataclass(frozen=True, eq=False)
class BoundLeaf(BoundPredicate):
    """A comparison of one column with literals, or with NULL."""

    predicate: Predicate
    number: int
    column: str
    """As the predicate spells it."""
    data_type: DataType | None
    """The type of the column in the table, if it is known."""
    _probes: dict[DataType, Probe] = field(default_factory=dict, repr=False)

    @cached_property
    def text(self) -> str:
        """The SQL text, as explanations show it."""
        return str(self.predicate)

    @property
    def is_plain(self) -> bool:
        """Whether rows are only compared with literals."""
        # LIKE on a column that is no text compares the text that its values are cast to.
        data_type = self.data_type
        return (
            not isinstance(self.predicate, Like)
            or data_type is None
            or data_type.root in CHARACTER_TYPES
        )

    def probe(self, data_type: DataType) -> Probe:
        """The probe for indexes and statistics of the column, where it has a type in a file.

        Raises:
            LiteralError: A literal has no meaning for the type.
        """
        probe = self._probes.get(data_type)
        if probe is None:
            probe = self._probes[data_type] = probe_for(self.predicate, self.column, data_type)
        return probe

    def ends(self) -> Iterator[BoundLeaf | BoundUnknown]:
        """The leaves and unknown parts."""
        yield self

    def accept(self, visitor: BoundVisitor[Context, Result], context: Context) -> Result:
        """Call the visitor."""
        return visitor.visit_leaf(self, context)


class BoundVisitor(ABC, Generic[Context, Result]):
    """One step of a scan, for each kind of node; `node.accept(visitor, context)` starts it.

    A visitor goes on to the parts of a node itself, so that it can pass over those that cannot
    change its result.
    """

    @abstractmethod
    def visit_and(self, node: BoundAnd, context: Context, /) -> Result:
        """Every part holds."""

    @abstractmethod
    def visit_or(self, node: BoundOr, context: Context, /) -> Result:
        """At least one part holds."""

    @abstractmethod
    def visit_constant(self, node: BoundConstant, context: Context, /) -> Result:
        """Every row matches, or none."""

    @abstractmethod
    def visit_unknown(self, node: BoundUnknown, context: Context, /) -> Result:
        """Any row may match."""

    @abstractmethod
    def visit_leaf(self, node: BoundLeaf, context: Context, /) -> Result:
        """A comparison of one column."""


def bind(predicate: Predicate, type_of: TypeOf) -> BoundPredicate:
    """Bind a normalized predicate to the types of its columns.

    Equalities that are joined by OR become one IN, where that means the same in Spark.

    Args:
        predicate: As `normalize` returns it.
        type_of: The types of its columns.

    Raises:
        PredicateError: It is nested too deeply.

    >>> from alcid.expressions import parse
    >>> from alcid.types import DataType
    >>> print(bind(parse("a = 1 OR b = 5 OR a = 2"), lambda name: DataType("INT")))
    a IN (1, 2) OR b = 5
    """
    return _bind(predicate, type_of, count(), sys.getrecursionlimit() // 4)


def _bind(
    predicate: Predicate, type_of: TypeOf, numbers: Iterator[int], depth: int
) -> BoundPredicate:
    if not depth:
        raise PredicateError("a predicate that is nested too deeply")
    match predicate:
        case And(parts):
            bound = tuple(_bind(part, type_of, numbers, depth - 1) for part in parts)
            return BoundAnd(And(tuple(part.predicate for part in bound)), bound)
        case Or(parts):
            merged = _merge_equalities(parts, type_of)
            bound = tuple(_bind(part, type_of, numbers, depth - 1) for part in merged)
            if len(bound) == 1:
                return bound[0]
            return BoundOr(Or(tuple(part.predicate for part in bound)), bound)
        case Constant():
            return BoundConstant(predicate)
        case Unknown():
            return BoundUnknown(predicate, next(numbers), type_of)
    (column,) = predicate.columns()
    return BoundLeaf(predicate, next(numbers), column, type_of(column))


def _merge_equalities(parts: Sequence[Predicate], type_of: TypeOf) -> list[Predicate]:
    """Replace the equalities of a column by one IN, which takes the place of the first."""
    literals: dict[tuple[str, object], list[object]] = {}
    keys = [_equality_key(part) for part in parts]
    for part, key in zip(parts, keys, strict=True):
        if key is not None:
            literals.setdefault(key, []).extend(_literals(part))
    merged: list[Predicate] = []
    done: dict[tuple[str, object], bool] = {}
    for part, key in zip(parts, keys, strict=True):
        if key is None or len(literals[key]) == len(_literals(part)):
            merged.append(part)
        elif key not in done:
            column = key[0]
            done[key] = _is_mergeable(literals[key], type_of(column))
            merged.append(In(column, tuple(literals[key])) if done[key] else part)
        elif not done[key]:
            merged.append(part)
    return merged


def _equality_key(part: Predicate) -> tuple[str, object] | None:
    """The column and the kind of literals of an equality, or of an IN; None for all else."""
    if not isinstance(part, Comparison | In):
        return None
    kinds = {literal_kind(literal) for literal in _literals(part)}
    return (part.column, *kinds) if len(kinds) == 1 else None  # type: ignore[return-value]


def _literals(part: Predicate) -> list[object]:
    match part:
        case Comparison(_, "=", literal):
            return [plain(literal)]
        case In(_, literals, False):
            return [plain(literal) for literal in literals]
    return []


def _is_mergeable(literals: Sequence[object], data_type: DataType | None) -> bool:
    """Whether `c IN (a, b)` is `c = a OR c = b` for literals of one kind.

    Spark brings a list and its column to one type, but each literal of an OR on its own. That
    differs where numbers need more than 38 digits together, and for instants beside days or wall
    clocks.
    """
    if data_type is None:
        return False
    if data_type.root in _EXACT:
        return share_digits(literals, data_type)
    if data_type.root in _CALENDAR:
        return literal_kind(literals[0]) is not SessionTimestamp
    return True
