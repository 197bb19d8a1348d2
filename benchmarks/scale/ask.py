"""Ask one table, in a process of its own: what it takes, and what memory.

python -m benchmarks.scale.ask <folder of the tables> <kind> <files>
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.measure import best, cost_of, memory_in_use
from benchmarks.questions import WrongAnswerError
from benchmarks.scale.questions import left_files, questions
from benchmarks.scale.tables import expected_of, open_table

__all__ = ["Asked", "ask"]

_FIRST, _AGAIN = 5, 10  # rounds until all caches are filled, and those that are measured
_MOST_GROWTH = 16 << 20
"""Bytes; half a megabyte that each of the 40 plans left behind would be more."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one table took; milliseconds, with those of the processor behind them."""

    kind: str
    files: int
    open: tuple[float, float]
    plans: dict[str, tuple[float, float]]
    """Of the first plan of a table that was just opened."""
    left: dict[str, list[int]]
    """The files that each question left."""
    peak_bytes: int
    growth_bytes: int
    """Over plans that were made again and again."""


def ask(base: Path, kind: str, count: int) -> Asked:
    """Open a table anew for each question, and plan it; then plan all of them again and again.

    Raises:
        WrongAnswerError: Other files are left than must be, or memory grows.
    """
    opened, plans, left = [], {}, {}
    for question in questions(count):
        cost, table = cost_of(lambda: open_table(base, kind))
        opened.append(cost)
        cost, explanation = cost_of(table.scan(**question.query).explain)
        plans[question.name] = (1000 * cost.wall, 1000 * cost.cpu)
        left[question.name] = left_files(explanation)
    if left != expected_of(base):
        raise WrongAnswerError(f"{kind}: other files are left than should be")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    held, table = [], open_table(base, kind)
    for _ in range(_FIRST + _AGAIN):
        for question in questions(count):
            table.scan(**question.query).explain()
        held.append(memory_in_use())
    growth = held[-1] - max(held[:_FIRST])
    if growth > _MOST_GROWTH:
        raise WrongAnswerError(f"{kind}: {growth >> 20} MB more after {_AGAIN} plans: {held}")
    fastest = best(opened)
    return Asked(kind, count, (1000 * fastest.wall, 1000 * fastest.cpu), plans, left, peak, growth)


def main(arguments: Sequence[str]) -> None:
    """Print what was measured as JSON."""
    base, kind, count = arguments
    print(json.dumps(asdict(ask(Path(base), kind, int(count)))))


if __name__ == "__main__":
    main(sys.argv[1:])
