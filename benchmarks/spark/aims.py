"""What shall be reached, and whether it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from alcid._text import count_text
from benchmarks.markdown import number
from benchmarks.spark.contest import Built, Sample
from benchmarks.spark.indexes import INDEX_SETS
from benchmarks.spark.ways import FULL_SCAN, WAYS

__all__ = ["AIM_HEAD", "OURS", "Aim", "aim_row", "all_aims", "best_build", "best_time"]

AIM_HEAD = ("aim", "", "found", "wanted", "")

OURS = tuple(name for name, way in WAYS.items() if way.indexes)
_FASTER, _TIMES = ("Q1", "Q7"), 20.0
_SCANS, _MOST = ("Q9", FULL_SCAN), 1.1


@dataclass(frozen=True, slots=True)
class Aim:
    """A figure, and its bound."""

    what: str
    who: str
    found: float
    bound: float
    at_least: bool
    """Whether the figure shall not be below the bound; else, not above."""

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.found >= self.bound if self.at_least else self.found <= self.bound


def aim_row(aim: Aim) -> tuple[str, ...]:
    """An aim as a row below `AIM_HEAD`."""
    wanted = f"{'>=' if aim.at_least else '<='} {aim.bound:g}"
    return aim.what, aim.who, number(aim.found), wanted, "met" if aim.met else "MISSED"


def all_aims(samples: Sequence[Sample], builds: Sequence[Built]) -> Iterator[Aim]:
    """Those that something was measured for."""
    for question in _FASTER:
        for way, ratio in _ratios(samples, question):
            yield Aim(f"{question}, plain / alcid", way, ratio, _TIMES, at_least=True)
    for question in _SCANS:
        for way, ratio in _ratios(samples, question):
            yield Aim(f"{question}, alcid / plain", way, 1 / ratio, _MOST, at_least=False)
    for key in dict.fromkeys((each.indexes, each.cores, each.rows) for each in builds):
        indexes, cores, rows = key
        rate = rows / best_build(builds, *key).cost.wall / cores / 1e6
        who = f"{rows:,} rows, {count_text(cores, 'core')}"
        yield Aim(
            f"build {indexes}, M rows/s/core", who, rate, INDEX_SETS[indexes].aim, at_least=True
        )


def best_time(samples: Sequence[Sample], question: str, way: str) -> float | None:
    """The shortest time; None if it was not asked."""
    key = (question, way)
    return min((each.seconds for each in samples if (each.question, each.way) == key), default=None)


def best_build(builds: Sequence[Built], indexes: str, cores: int, rows: int) -> Built:
    """The shortest build."""
    key = (indexes, cores, rows)
    found = [each for each in builds if (each.indexes, each.cores, each.rows) == key]
    return min(found, key=lambda each: each.cost.wall)


def _ratios(samples: Sequence[Sample], question: str) -> Iterator[tuple[str, float]]:
    """Of each way of ours, how often it fits into the time of plain Spark."""
    plain = best_time(samples, question, "plain")
    for way in OURS:
        ours = best_time(samples, question, way)
        if plain is not None and ours is not None:
            yield way, plain / ours
