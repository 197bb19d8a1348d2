"""Every pair of levels of all factors is tested once; see `factors`."""

from __future__ import annotations

import itertools
import random
from functools import cache

import pytest

from alcid.scan import planner
from tests.cross.asking import ask
from tests.cross.factors import FACTORS, TABLE, Case, draw, is_allowed
from tests.cross.pairwise import pairs, pairwise

SEED = 2026
SHARES = 8
BOUND = ("kind", "index", "type", "deletions", "partition", "shape")
"""The factors with levels that cannot all be combined."""


@cache
def cases() -> tuple[Case, ...]:
    combinations = pairwise(FACTORS, is_allowed, random.Random(SEED))
    return tuple(Case(levels, number, number) for number, levels in enumerate(combinations))


@pytest.mark.parametrize("share", range(SHARES))
def test_every_pair_of_levels_gives_the_right_rows(share: int) -> None:
    for case in cases()[share::SHARES]:
        try:
            ask(case)
        except Exception as error:
            error.add_note(f"python -m tests.cross --case '{case}'")
            raise


def test_every_pair_that_can_be_is_in_a_case() -> None:
    bound = [FACTORS[name] for name in BOUND]
    possible = set()
    for levels in itertools.product(*bound):
        combination = dict(zip(BOUND, levels, strict=True))
        if is_allowed(combination):
            possible |= pairs(combination)
    free = [name for name in FACTORS if name not in BOUND]
    for name, other in itertools.product(free, FACTORS):
        if name != other:
            possible |= {
                frozenset(two)
                for two in itertools.product(
                    [(name, level) for level in FACTORS[name]],
                    [(other, level) for level in FACTORS[other]],
                )
            }
    covered = set().union(*(pairs(case.levels) for case in cases()))
    assert covered == possible
    assert all(is_allowed(case.levels) for case in cases())


@pytest.mark.parametrize("kind", TABLE["kind"])
@pytest.mark.parametrize("way", ["indexes", "plain", "count"])
def test_deleted_rows_that_come_back_are_seen(
    kind: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed = {"kind": kind, "deletions": "64", "shape": "none", "order": "none", "way": way}
    case = Case(draw(FACTORS, random.Random(1), **fixed), 1, 1)
    ask(case)
    monkeypatch.setattr(planner, "_live", lambda _table, _file, deleted: deleted)
    with pytest.raises(AssertionError):
        ask(case)
