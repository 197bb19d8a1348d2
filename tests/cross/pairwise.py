"""All pairs of levels of factors, in few combinations."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["Combination", "Pair", "pairs", "pairwise"]

Combination = dict[str, str]
"""The level of each factor."""
Pair = frozenset[tuple[str, str]]
"""Two factors, each with a level."""


def pairs(chosen: Mapping[str, str]) -> set[Pair]:
    """All pairs in a combination, or in a part of one."""
    return set(map(frozenset, itertools.combinations(chosen.items(), 2)))


def pairwise(
    factors: Mapping[str, Sequence[str]],
    allowed: Callable[[Mapping[str, str]], bool],
    source: random.Random,
) -> Iterator[Combination]:
    """Combinations in which every pair of levels is found that any combination may have.

    Args:
        factors: The levels of each; those that bound the others come first.
        allowed: Whether a part of a combination may be; what is allowed has only allowed parts.
        source: Of randomness; the same one makes the same combinations.
    """
    left = [
        dict(levels)
        for first, other in itertools.combinations(factors, 2)
        for levels in itertools.product(_levels(first, factors), _levels(other, factors))
    ]
    source.shuffle(left)
    missing = {frozenset(pair.items()) for pair in left}
    for pair in left:
        if frozenset(pair.items()) in missing:
            made = _complete(pair, factors, allowed, missing, source)
            if made is not None:
                missing -= pairs(made)
                yield made


def _levels(factor: str, factors: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [(factor, level) for level in factors[factor]]


def _complete(
    chosen: Combination,
    factors: Mapping[str, Sequence[str]],
    allowed: Callable[[Mapping[str, str]], bool],
    missing: set[Pair],
    source: random.Random,
) -> Combination | None:
    """Complete a combination: for each factor the level that covers most pairs, or None."""
    if not allowed(chosen):
        return None
    factor = next((factor for factor in factors if factor not in chosen), None)
    if factor is None:
        return chosen
    gains = {
        level: (
            sum(frozenset(((factor, level), pair)) in missing for pair in chosen.items()),
            source.random(),
        )
        for level in factors[factor]
    }
    for level in sorted(gains, key=gains.__getitem__, reverse=True):
        made = _complete({**chosen, factor: level}, factors, allowed, missing, source)
        if made is not None:
            return made
    return None
