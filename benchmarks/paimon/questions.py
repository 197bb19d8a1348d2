"""The questions to the table, with what NumPy answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from alcid._arrays import BoolArray
from benchmarks.queries.data import CLASSES, Rows
from benchmarks.queries.question import LIMIT, Leaf, Question
from benchmarks.queries.truth import Asked

__all__ = ["QUESTIONS", "TableQuestions", "to_delete"]


QUESTIONS = {
    "look-up": "id = X, which one row has",
    "absent": "id = X, which no row has, although every file has lower and higher ones",
    "range": "score within bounds, 0.1 % of the rows",
    "narrow": "score within bounds, 0.01 %",
    "and": "class_id = C AND score among the lowest 0.1 %",
    "or": "the rows of `and`, OR user_id = U",
    "top-10": "the 10 highest scores",
    "count": "count of class_id = C",
    "count-all": "count of all rows",
}
_SHARE, _NARROW = 0.001, 0.0001
_DELETED = 0.01


class TableQuestions:
    """All questions to some rows; most have new literals in every repetition."""

    def __init__(self, rows: Rows) -> None:
        """Sort the scores once."""
        self._rows, self._order = rows, np.argsort(rows.scores)

    def draw(self, random: np.random.Generator) -> Iterator[Asked]:
        """All of them in turn."""
        rows, count = self._rows, len(self._rows.ids)
        key = int(random.choice(rows.ids))
        yield self._filtered("look-up", rows.ids == key, (("id", "=", key),))
        absent = int(random.choice(rows.ids)) ^ 1  # of four following numbers, one is an id
        yield self._filtered("absent", np.zeros(count, bool), (("id", "=", absent),))
        yield self._range("range", _SHARE, random)
        yield self._range("narrow", _NARROW, random)
        low = self._score(round(count * _SHARE))
        chosen = int(random.integers(CLASSES))
        both: tuple[Leaf, ...] = (("class_id", "=", chosen), ("score", "<", low))
        is_class = rows.classes == chosen
        is_both = is_class & (rows.scores < low)
        yield self._filtered("and", is_both, both)
        user = int(random.choice(rows.users))
        yield self._filtered("or", is_both | (rows.users == user), both, (("user_id", "=", user),))
        yield self._highest()
        yield _count("count", int(is_class.sum()), ((("class_id", "=", chosen),),))
        yield _count("count-all", count, ())

    def _range(self, name: str, share: float, random: np.random.Generator) -> Asked:
        scores, wanted = self._rows.scores, round(len(self._order) * share)
        first = int(random.integers(len(scores) - wanted))
        low, high = self._score(first), self._score(first + wanted)
        where: tuple[Leaf, ...] = (("score", ">", low), ("score", "<", high))
        return self._filtered(name, (scores > low) & (scores < high), where)

    def _score(self, rank: int) -> float:
        """Near the score of that rank, from the lowest; short as text."""
        return round(float(self._rows.scores[self._order[rank]]), 6)

    def _filtered(self, name: str, mask: BoolArray, *where: tuple[Leaf, ...]) -> Asked:
        count, total = int(mask.sum()), int(self._rows.ids[mask].sum())

        def right(found: dict[str, Any]) -> bool:
            return (found["rows"], found["columns"], found["sum"][0]) == (count, 6, total)

        return Asked(Question(name, "rows", where), right, count, None)

    def _highest(self) -> Asked:
        ids = self._rows.ids[self._order[: -LIMIT - 1 : -1]]
        placed = int((ids * np.arange(1, LIMIT + 1)).sum())

        def right(found: dict[str, Any]) -> bool:
            return (found["rows"], found["columns"], found["sum"][1]) == (LIMIT, 6, placed)

        return Asked(Question("top-10", "top"), right, LIMIT, None)


def _count(name: str, count: int, where: tuple[tuple[Leaf, ...], ...]) -> Asked:
    return Asked(Question(name, "count", where), lambda found: found["value"] == count, count, None)


def to_delete(rows: Rows) -> tuple[Question, BoolArray]:
    """A predicate for the lowest scores, one in a hundred, and which rows it is true for."""
    high = round(float(np.quantile(rows.scores, _DELETED)), 6)
    return Question("delete", "rows", ((("score", "<", high),),)), rows.scores < high
