"""One thing to measure: ours and its peers, checked once, then in turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from benchmarks.measure import Cost, best, cost_of
from benchmarks.questions import WrongAnswerError

__all__ = [
    "OURS",
    "RATE",
    "TIME",
    "Case",
    "Figure",
    "Group",
    "Outcome",
    "Run",
    "Side",
    "here",
    "measure",
    "scaled",
]

OURS = "alcid"
RATE, TIME = "M/s/core", "us each"
"""What the figures of a group are: millions a second and core, or microseconds for each."""
_TURNS = 3
_SHORT = 0.03  # seconds; a run that takes less is repeated until it takes as long
_MOST_REPEATS = 10_000

Run: TypeAlias = Callable[[int], tuple[Cost, Any]]
"""Do it so many times: what all of them cost, and the last answer."""


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that share a table."""

    title: str
    counted: str
    """What is counted: rows, positions, sketches."""
    unit: str = RATE


@dataclass(frozen=True, slots=True)
class Side:
    """Ours, or a peer."""

    count: int
    """How many things one run does."""
    run: Run
    right: Callable[[Any], bool]
    """Whether an answer is right."""
    name: str = OURS


@dataclass(frozen=True, slots=True)
class Case:
    """What is done to which data."""

    group: Group
    operation: str
    data: str
    sides: Callable[[], Iterable[Side]]
    """Makes the data; ours comes first."""

    @property
    def label(self) -> str:
        """What `--only` looks into."""
        return f"{self.group.title}: {self.operation}, {self.data}"


@dataclass(frozen=True, slots=True)
class Figure:
    """The best of one side."""

    name: str
    count: int
    cost: Cost
    """Of one run."""

    @property
    def rate(self) -> float:
        """Millions a second and core."""
        return self.count / self.cost.cpu / 1e6


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of a case, ours first."""

    group: Group
    operation: str
    data: str
    figures: Sequence[Figure]


def scaled(count: int, scale: float) -> int:
    """A share of the count, but never of nothing."""
    return max(int(count * scale), 10)


def here(
    count: int, run: Callable[[], Any], right: Callable[[Any], bool], name: str = OURS
) -> Side:
    """A side that runs in this process."""

    def repeated(times: int) -> tuple[Cost, Any]:
        return cost_of(lambda: deque((run() for _ in range(times)), maxlen=1).pop())

    return Side(count, repeated, right, name)


def measure(case: Case, *, with_peers: bool) -> Outcome:
    """Run each side once and check what it answers; then all of them in turns.

    Raises:
        WrongAnswerError: A side answers wrongly.
    """
    sides = list(islice(case.sides(), None if with_peers else 1))
    repeats = []
    for side in sides:
        cost, answer = side.run(1)
        if not side.right(answer):
            raise WrongAnswerError(f"{case.label}: {side.name} gave a wrong answer")
        repeats.append(min(max(int(_SHORT / cost.wall), 1), _MOST_REPEATS))
    costs: list[list[Cost]] = [[] for _ in sides]
    for _ in range(_TURNS):
        for side, times, seen in zip(sides, repeats, costs, strict=True):
            cost, _ = side.run(times)
            seen.append(Cost(cost.cpu / times, cost.wall / times))
    figures = [
        Figure(side.name, side.count, best(seen)) for side, seen in zip(sides, costs, strict=True)
    ]
    return Outcome(case.group, case.operation, case.data, figures)
