"""The part of a predicate that indexes and Arrow can answer, where Spark evaluates the rest."""

from __future__ import annotations

from alcid.predicate.expression import And, Constant, Or, Predicate, Unknown

__all__ = ["known_part"]


def known_part(predicate: Predicate) -> Predicate:
    """A predicate without unknown parts that every row matches which matches the given one.

    Args:
        predicate: A normalized one: below a `Not`, the rows that are left out would be others.

    >>> from alcid.predicate import normalize, parse
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
