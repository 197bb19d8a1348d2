"""How answers of indexes are combined: any row, no row, these rows; exact or not."""

from __future__ import annotations

from itertools import product

import pytest
from pyroaring import BitMap

from alcid import PredicateError
from alcid.formats.file_index.reader import (
    ANY,
    EVERY,
    Selection,
    no_row,
)

ROWS = frozenset(range(4))
SOME = [None, BitMap(), BitMap([1]), BitMap([1, 2]), BitMap([0, 3])]
ANSWERS = [Selection(rows, exact) for rows in SOME for exact in (False, True)]


def holds(answer: Selection, matching: frozenset[int]) -> bool:
    """Whether an answer is correct if these rows of a file of four match."""
    rows = ROWS if answer.rows is None else frozenset(answer.rows)
    return matching == rows if answer.exact else matching <= rows


MATCHING = [frozenset(row for row in ROWS if chosen >> row & 1) for chosen in range(16)]


@pytest.mark.parametrize("first", ANSWERS)
def test_conjunctions_and_disjunctions_of_answers_are_correct(first: Selection) -> None:
    for other, mine, theirs in product(ANSWERS, MATCHING, MATCHING):
        if holds(first, mine) and holds(other, theirs):
            assert holds(first & other, mine & theirs)
            assert holds(first | other, mine | theirs)


def test_the_rows_of_both_and_of_either() -> None:
    first, other = Selection(BitMap([1, 2]), exact=True), Selection(BitMap([2, 3]), exact=True)
    assert (first & other) == Selection(BitMap([2]), exact=True)
    assert (first | other) == Selection(BitMap([1, 2, 3]), exact=True)
    about = Selection(BitMap([2, 3]))
    assert (first & about) == (about & first) == Selection(BitMap([2]))
    assert (first | about) == (about | first) == Selection(BitMap([1, 2, 3]))
    assert (first & Selection(BitMap([3]))) == Selection(BitMap(), exact=True)
    assert (ANY & about) == (about & ANY) == about
    assert (EVERY & first) == (first & EVERY) == first
    assert (ANY & first) == (first & ANY) == Selection(BitMap([1, 2]))
    assert (ANY & ANY) == ANY
    assert (EVERY & EVERY) == EVERY
    assert (EVERY & ANY) == (ANY & EVERY) == ANY
    assert (ANY | first) == (first | ANY) == ANY
    assert (EVERY | about) == (about | EVERY) == (EVERY | ANY) == (ANY | EVERY) == EVERY


def test_only_no_row_is_skipped() -> None:
    assert [answer.skip for answer in (ANY, EVERY, Selection(BitMap([0])))] == [False] * 3
    assert Selection(BitMap()).skip
    assert (no_row().skip, no_row().exact) == (True, True)
    assert no_row().rows is not no_row().rows


def test_an_answer_is_neither_true_nor_false() -> None:
    with pytest.raises(PredicateError) as raised:
        bool(ANY)
    assert str(raised.value) == "a selection is neither true nor false: ask its skip or its rows"
