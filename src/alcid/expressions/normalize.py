"""Predicates without NOT, and their part that Spark is not needed for.

`normalize` pushes NOT down to the leaves, under three-valued logic. `known_part` is what indexes
and Arrow can answer, where Spark evaluates the rest.
"""

from __future__ import annotations

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
)

__all__ = ["known_part", "normalize"]

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
            known = [one for one in map(known_part, parts) if one != Constant(True)]
            return And.of(known) if known else Constant(True)
        case Or(parts):
            legs = [known_part(part) for part in parts]
            return Constant(True) if Constant(True) in legs else Or.of(legs)
    return predicate
