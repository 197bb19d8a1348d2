"""The expression tree of a predicate, and the two ways to one: SQL text and `alcid.col`.

Leaves say something of one column: `Comparison`, `Between`, `In`, `Like`, `IsNull`. `Constant` is
the same for every row, and `Unknown` is what no index can answer (functions, casts, two columns):
any row may match it. `And` and `Or` have two children or more, `Not` one.

Nodes are compared with `==` as values, and NaN equals NaN there. Trees are built with `alcid.col`
or from SQL text in Spark's dialect; the node classes are for code that walks a tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Literal, NoReturn, TypeAlias

import numpy as np

from alcid.errors import PredicateError
from alcid.expressions.render import quote_literal, quote_name, quote_text

Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">=", "<=>"]

_MOST_SHOWN = 80


class Predicate:
    """A condition on rows, made by `alcid.col` or from SQL text.

    `&`, `|` and `~` combine predicates; Python's `and`, `or` and `not` cannot, and raise. `str`
    gives SQL text that parses to the same predicate.

    >>> from alcid.expressions import col
    >>> predicate = (col("a") > 5) & ~col("b").isin(["x", "y"])
    >>> print(predicate)
    a > 5 AND NOT b IN ('x', 'y')
    >>> predicate.columns()
    ('a', 'b')
    """

    __slots__ = ()
    _tightness: ClassVar[int] = 4
    """How tightly the node's SQL binds: 1 OR, 2 AND, 3 NOT, 4 all else."""

    @property
    def children(self) -> tuple[Predicate, ...]:
        """The predicates directly below; none for a leaf."""
        return ()

    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are used, each once, in the order of the text."""
        return tuple(dict.fromkeys(name for node in self.walk() for name in node._names()))

    def walk(self) -> Iterator[Predicate]:
        """This node and every one below, in the order of the text."""
        stack: list[Predicate] = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def _names(self) -> tuple[str, ...]:
        return ()

    def __eq__(self, other: object) -> bool:
        # Not a dataclass's own: since Python 3.13 it compares field by field, where NaN differs.
        if type(other) is not type(self):
            return NotImplemented
        return _fields(self) == _fields(other)

    def __hash__(self) -> int:
        return hash((type(self), _fields(self)))

    def __and__(self, other: object) -> Predicate:
        return And.of((self, other)) if isinstance(other, Predicate) else NotImplemented

    def __or__(self, other: object) -> Predicate:
        return Or.of((self, other)) if isinstance(other, Predicate) else NotImplemented

    def __invert__(self) -> Predicate:
        return Not(self)

    def __bool__(self) -> NoReturn:
        text = str(self)
        shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
        raise PredicateError(
            f"a predicate is neither true nor false before it meets a row: {shown}; "
            "combine with & | ~ in place of and or not, and write a < b < c as between"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Predicate):
    """A column compared with a literal.

    A NULL literal (`None`) matches no row, except with `<=>`, where it matches the null rows.
    """

    column: str
    operator: Operator
    literal: object

    def _names(self) -> tuple[str, ...]:
        return (self.column,)

    def __str__(self) -> str:
        return f"{quote_name(self.column)} {self.operator} {quote_literal(self.literal)}"


@dataclass(frozen=True, slots=True, eq=False)
class Between(Predicate):
    """`low <= column AND column <= high`."""

    column: str
    low: object
    high: object

    def _names(self) -> tuple[str, ...]:
        return (self.column,)

    def __str__(self) -> str:
        low, high = quote_literal(self.low), quote_literal(self.high)
        return f"{quote_name(self.column)} BETWEEN {low} AND {high}"


@dataclass(frozen=True, slots=True, eq=False)
class In(Predicate):
    """A column equal to one of the literals; negated, to none of them."""

    column: str
    literals: tuple[object, ...]
    negated: bool = False

    def _names(self) -> tuple[str, ...]:
        return (self.column,)

    def __str__(self) -> str:
        if not self.literals:  # no SQL has this; Spark's rule for it does not look at the row
            return "TRUE" if self.negated else "FALSE"
        listed = ", ".join(map(quote_literal, self.literals))
        return f"{quote_name(self.column)} {'NOT ' if self.negated else ''}IN ({listed})"


@dataclass(frozen=True, slots=True, eq=False)
class Like(Predicate):
    """A text column that is `text`, or with `prefix` starts with it.

    Not a `Comparison`: of a column that is no text, LIKE asks the text that the value is cast to.
    """

    column: str
    text: str
    prefix: bool
    negated: bool = False

    def _names(self) -> tuple[str, ...]:
        return (self.column,)

    def __str__(self) -> str:
        pattern = "".join(f"\\{c}" if c in "\\%_" else c for c in self.text)
        pattern += "%" if self.prefix else ""
        word = "NOT LIKE" if self.negated else "LIKE"
        return f"{quote_name(self.column)} {word} {quote_text(pattern)}"


@dataclass(frozen=True, slots=True, eq=False)
class IsNull(Predicate):
    """A column that is null; negated, one that is not."""

    column: str
    negated: bool = False

    def _names(self) -> tuple[str, ...]:
        return (self.column,)

    def __str__(self) -> str:
        return f"{quote_name(self.column)} IS {'NOT ' if self.negated else ''}NULL"


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Predicate):
    """TRUE, FALSE or NULL for every row; only TRUE matches."""

    value: bool | None

    def __str__(self) -> str:
        return quote_literal(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Unknown(Predicate):
    """What no index can answer, as SQL text: any row may match it, or its negation."""

    text: str
    names: tuple[str, ...] = ()

    def _names(self) -> tuple[str, ...]:
        return self.names

    def __str__(self) -> str:
        return f"({self.text})"


@dataclass(frozen=True, slots=True, eq=False)
class Not(Predicate):
    """The rows for which the child is false; not those for which it is NULL."""

    child: Predicate
    _tightness: ClassVar[int] = 3

    @property
    def children(self) -> tuple[Predicate, ...]:
        """The one child."""
        return (self.child,)

    def __invert__(self) -> Predicate:
        return self.child

    def __str__(self) -> str:
        return f"NOT {_within(self.child, self._tightness)}"


@dataclass(frozen=True, slots=True, eq=False)
class And(Predicate):
    """Every child holds."""

    parts: tuple[Predicate, ...]
    _tightness: ClassVar[int] = 2

    @property
    def children(self) -> tuple[Predicate, ...]:
        """The children."""
        return self.parts

    @classmethod
    def of(cls, parts: Iterable[Predicate]) -> Predicate:
        """All of `parts`, with no And directly in another; one part stays itself, none is TRUE."""
        flat = _flatten(parts, cls)
        return cls(flat) if len(flat) > 1 else flat[0] if flat else Constant(True)

    def __str__(self) -> str:
        return " AND ".join(_within(part, self._tightness) for part in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Or(Predicate):
    """At least one child holds."""

    parts: tuple[Predicate, ...]
    _tightness: ClassVar[int] = 1

    @property
    def children(self) -> tuple[Predicate, ...]:
        """The children."""
        return self.parts

    @classmethod
    def of(cls, parts: Iterable[Predicate]) -> Predicate:
        """Any of `parts`, with no Or directly in another; one part stays itself, none is FALSE."""
        flat = _flatten(parts, cls)
        return cls(flat) if len(flat) > 1 else flat[0] if flat else Constant(False)

    def __str__(self) -> str:
        return " OR ".join(_within(part, self._tightness) for part in self.parts)


Leaf: TypeAlias = Comparison | Between | In | Like | IsNull


def _fields(node: object) -> tuple[object, ...]:
    """The fields of a node; every NaN in them is the same object, as a tuple compares them."""
    names: tuple[str, ...] = node.__match_args__  # type: ignore[attr-defined]
    return tuple(_comparable(getattr(node, name)) for name in names)


def _comparable(field: object) -> object:
    if isinstance(field, tuple):
        return tuple(map(_comparable, field))
    return math.nan if isinstance(field, float) and math.isnan(field) else field


def _flatten(parts: Iterable[Predicate], kind: type[Predicate]) -> tuple[Predicate, ...]:
    return tuple(
        leaf for part in parts for leaf in (part.children if isinstance(part, kind) else (part,))
    )


def _within(part: Predicate, tightness: int) -> str:
    return str(part) if part._tightness > tightness else f"({part})"


def parse(predicate: str | Predicate) -> Predicate:
    """A predicate from SQL text; a predicate is given back as it is.

    Args:
        predicate: What may stand behind WHERE in Spark's SQL.

    Returns:
        The expression tree.

    Raises:
        PredicateError: The text is not one boolean expression.

    >>> parse("a = 1 AND 5 < b")
    And(parts=(Comparison(column='a', operator='=', literal=1),
               Comparison(column='b', operator='>', literal=5)))
    >>> parse("upper(a) = 'X'")
    Unknown(text="upper(a) = 'X'", names=('a',))
    """
    if isinstance(predicate, Predicate):
        return predicate
    if not isinstance(predicate, str):
        raise PredicateError(f"a predicate is text or a Predicate, not {type(predicate).__name__}")
    # Here, not above: sqlglot takes as long to import as all the rest of Alcid.
    from alcid.expressions.sql_reader import read_sql

    return read_sql(predicate)


def col(name: str) -> Column:
    """The column called `name`, to build a predicate from; `m[key]` is a key of a map column.

    >>> print(col("score") >= 60)
    score >= 60
    >>> print(col("tags[colour]") == "red")
    tags['colour'] = 'red'
    """
    return Column(name)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column, as `alcid.col` gives it: compare it with a value to have a `Predicate`.

    >>> print((col("a") == 1) | (col("a") > 5) & col("b").is_not_null())
    a = 1 OR a > 5 AND b IS NOT NULL
    """

    name: str

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]
        return self._compare("=", other)

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]
        return self._compare("<>", other)

    def __lt__(self, other: object) -> Predicate:
        return self._compare("<", other)

    def __le__(self, other: object) -> Predicate:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Predicate:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Predicate:
        return self._compare(">=", other)

    def __hash__(self) -> int:
        return hash(self.name)

    def isin(self, values: Iterable[object]) -> Predicate:
        """Equal to one of `values`.

        >>> print(col("a").isin([1, 2]))
        a IN (1, 2)
        """
        if isinstance(values, str | bytes):
            raise PredicateError(f"isin takes a list of values, found one {type(values).__name__}")
        literals = tuple(map(plain, values))
        return In(self.name, literals) if literals else Constant(False)

    def between(self, low: object, high: object) -> Predicate:
        """From `low` to `high`, both included.

        >>> print(col("a").between(1, 9))
        a BETWEEN 1 AND 9
        """
        return Between(self.name, plain(low), plain(high))

    def is_null(self) -> Predicate:
        """Null.

        >>> print(col("a").is_null())
        a IS NULL
        """
        return IsNull(self.name)

    def is_not_null(self) -> Predicate:
        """Not null.

        >>> print(col("a").is_not_null())
        a IS NOT NULL
        """
        return IsNull(self.name, negated=True)

    def starts_with(self, prefix: str) -> Predicate:
        r"""Text that starts with `prefix`.

        >>> print(col("a").starts_with("50%"))
        a LIKE '50\\%%'
        """
        if not isinstance(prefix, str):
            raise PredicateError(f"starts_with takes text, found {type(prefix).__name__}")
        return Like(self.name, str(prefix), prefix=True)

    def _compare(self, operator: Operator, other: object) -> Predicate:
        if isinstance(other, Column):
            text = f"{quote_name(self.name)} {operator} {quote_name(other.name)}"
            return Unknown(text, (self.name, other.name))
        return Comparison(self.name, operator, plain(other))


def plain(literal: object) -> object:
    """A literal as a Python value: NumPy's scalars and byte buffers are unwrapped.

    >>> plain(5), plain(bytearray(b"a"))
    (5, b'a')
    """
    match literal:
        case np.datetime64() | np.timedelta64():
            return literal
        case np.floating():
            return plain(float(literal))
        case np.generic():
            return literal.item()
        case float() | Decimal() if math.isnan(literal):
            return math.nan  # one object, so that equal predicates are equal
        case Decimal() if literal.is_infinite():  # not one that is only beyond every double
            return float(literal)
        case bytearray() | memoryview():
            return bytes(literal)
    return literal
