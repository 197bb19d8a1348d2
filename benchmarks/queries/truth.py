"""The nine questions, with what NumPy answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from alcid._arrays import Int64Array
from benchmarks.queries.data import Rows
from benchmarks.queries.pages import least_bytes
from benchmarks.queries.question import LIMIT, Leaf, Question

__all__ = ["QUESTIONS", "Asked", "Questions"]


QUESTIONS = {
    "Q1": "id = X",
    "Q2": "id IN (10 values)",
    "Q3": "user_id = U",
    "Q4": "score above all but 0.01 %",
    "Q5": "class_id = 7 AND score among the lowest 0.1 %",
    "Q6": "Q5 OR Q4",
    "Q7": "the 10 highest scores",
    "Q8": "count of class_id = 7",
    "Q9": "sum of score",
}
_CLASS = 7


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, what is right, and the fewest bytes that the answer can be read from."""

    question: Question
    right: Callable[[dict[str, Any]], bool]
    rows: int
    least: int | None
    """None where an index can answer without any page."""


class Questions:
    """All questions to some rows; what does not change is worked out once."""

    def __init__(self, rows: Rows) -> None:
        """Answer those that have the same literals in every repetition."""
        scores, is_class = rows.scores, rows.classes == _CLASS
        low, high = (round(float(np.quantile(scores, share)), 6) for share in (0.001, 0.9999))
        lowest, above = is_class & (scores < low), scores > high
        q4: tuple[Leaf, ...] = (("score", ">", high),)
        q5: tuple[Leaf, ...] = (("class_id", "=", _CLASS), ("score", "<", low))
        self._rows = rows
        self._same = (
            _filtered(rows, "Q4", np.flatnonzero(above), q4),
            _filtered(rows, "Q5", np.flatnonzero(lowest), q5),
            _filtered(rows, "Q6", np.flatnonzero(lowest | above), q5, q4),
            _highest(rows),
            _count(int(is_class.sum())),
            _sum(rows),
        )

    def draw(self, random: np.random.Generator) -> Iterator[Asked]:
        """All of them in turn; the first three with new literals."""
        rows = self._rows
        first, *few = random.choice(len(rows.ids), 11, replace=False)
        places = np.sort(few)
        user = int(rows.users[random.integers(len(rows.users))])
        same_user = np.flatnonzero(rows.users == user)
        key = int(rows.ids[first])
        yield _filtered(rows, "Q1", np.array([first]), (("id", "=", key),))
        yield _filtered(rows, "Q2", places, (("id", "in", rows.ids[places].tolist()),))
        yield _filtered(rows, "Q3", same_user, (("user_id", "=", user),))
        yield from self._same


def _filtered(rows: Rows, name: str, places: Int64Array, *where: tuple[Leaf, ...]) -> Asked:
    expected, count = int(rows.ids[places].sum()), len(places)

    def right(found: dict[str, Any]) -> bool:
        return (found["rows"], found["columns"], found["sum"][0]) == (count, 6, expected)

    return Asked(Question(name, "rows", where), right, count, least_bytes(rows, places))


def _count(count: int) -> Asked:
    where = ((("class_id", "=", _CLASS),),)
    return Asked(Question("Q8", "count", where), lambda found: found["value"] == count, count, None)


def _sum(rows: Rows) -> Asked:
    total, every = float(rows.scores.sum()), np.arange(len(rows.ids))

    def right(found: dict[str, Any]) -> bool:
        return math.isclose(found["value"], total, rel_tol=1e-9)

    return Asked(Question("Q9", "sum"), right, len(every), least_bytes(rows, every, ["score"]))


def _highest(rows: Rows) -> Asked:
    places = np.argpartition(rows.scores, -LIMIT)[-LIMIT:]
    places = places[np.argsort(-rows.scores[places])]
    expected = int((rows.ids[places] * np.arange(1, LIMIT + 1)).sum())

    def right(found: dict[str, Any]) -> bool:
        return (found["rows"], found["columns"], found["sum"][1]) == (LIMIT, 6, expected)

    return Asked(Question("Q7", "top"), right, LIMIT, least_bytes(rows, np.sort(places)))
