"""The figures as tables to read, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from alcid._text import count_text
from benchmarks.markdown import NONE, number, table
from benchmarks.measure import Cost, best
from benchmarks.spark.aims import AIM_HEAD, OURS, Aim, aim_row, all_aims, best_build, best_time
from benchmarks.spark.contest import ALL_QUESTIONS, APPENDS, Appended, Built, Sample
from benchmarks.spark.indexes import INDEX_SETS
from benchmarks.spark.ways import WAYS

__all__ = ["SparkReport"]

_PAIRS = (*(("plain", way) for way in OURS), ("bloom", "read"), ("sorted", "read"))


@dataclass(frozen=True, slots=True)
class SparkReport:
    """All that was measured in one run."""

    machine: Mapping[str, object]
    rows: int
    files: int
    repeats: int
    sizes: Mapping[str, int]
    """Bytes of the folders that questions were asked of."""
    samples: Sequence[Sample]
    builds: Sequence[Built]
    appends: Sequence[Appended]

    def to_json(self) -> str:
        """All figures."""
        return json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"

    def to_text(self) -> str:
        """Tables in Markdown."""
        parts = [
            ", ".join(f"{key} {value}" for key, value in self.machine.items()),
            f"{self.rows:,} rows in {self.files} files; repetitions: {self.repeats}",
        ]
        if self.samples:
            parts += ["### Spark: ways", table(("", "", "files, MB", "indexes, MB"), self._ways())]
            parts += ["### Spark: ms, best / median", self._cells(_times)]
            parts += ["### Spark: ms of CPU over all processes, best", self._cells(_cpu)]
            parts += ["### Spark: how many times as long", self._ratios()]
        if self.builds:
            sets = [(each.name, each.meaning) for each in INDEX_SETS.values()]
            parts += ["### Spark: sets of indexes", table(("", ""), sets)]
            parts += ["### Spark: building indexes", table(_BUILD_HEAD, self._build_rows())]
            parts += ["### Spark: scaling of builds", table(_SCALING_HEAD, self._scaling_rows())]
        if self.appends:
            parts += ["### Spark: appending", table(_APPEND_HEAD, self._append_rows())]
        aims = self.aims()
        if aims:
            parts += ["### Spark: aims", table(AIM_HEAD, map(aim_row, aims))]
        return "\n\n".join(parts)

    def aims(self) -> list[Aim]:
        """What shall be reached."""
        return list(all_aims(self.samples, self.builds))

    def _asked_ways(self) -> list[str]:
        return [name for name in WAYS if any(each.way == name for each in self.samples)]

    def _ways(self) -> Iterator[tuple[str, ...]]:
        for name in self._asked_ways():
            way = WAYS[name]
            indexes = _megabytes(self.sizes[way.indexes]) if way.indexes else NONE
            yield name, way.meaning, _megabytes(self.sizes[way.files]), indexes

    def _cells(self, cell: Callable[[Sequence[Sample]], str]) -> str:
        rows = [
            (name, *(cell(self._of(question, name)) for question in ALL_QUESTIONS))
            for name in self._asked_ways()
        ]
        return table(("", *ALL_QUESTIONS), rows)

    def _of(self, question: str, way: str) -> list[Sample]:
        key = (question, way)
        return [each for each in self.samples if (each.question, each.way) == key]

    def _ratios(self) -> str:
        asked = self._asked_ways()
        rows = [
            (f"{above} / {below}", *(self._ratio(name, above, below) for name in ALL_QUESTIONS))
            for above, below in _PAIRS
            if above in asked and below in asked
        ]
        return table(("", *ALL_QUESTIONS), rows)

    def _ratio(self, question: str, above: str, below: str) -> str:
        long, short = (best_time(self.samples, question, way) for way in (above, below))
        return NONE if long is None or short is None else number(long / short)

    def _build_keys(self) -> list[tuple[str, int, int]]:
        return sorted({(each.indexes, each.cores, each.rows) for each in self.builds})

    def _build_rows(self) -> Iterator[tuple[str, ...]]:
        for key in self._build_keys():
            indexes, cores, rows = key
            found = best_build(self.builds, *key)
            costs = [
                each.cost for each in self.builds if (each.indexes, each.cores, each.rows) == key
            ]
            yield (
                indexes,
                f"{rows:,}",
                str(cores),
                f"{found.cost.wall:.2f}",
                number(rows / found.cost.wall / cores / 1e6),
                _rate(rows, best(costs).cpu),
                _megabytes(found.size),
            )

    def _scaling_rows(self) -> Iterator[tuple[str, ...]]:
        """Builds beside the same on one core, and beside those of the fewest rows."""
        keys = self._build_keys()
        least = min(rows for _, _, rows in keys)
        for indexes, cores, rows in keys:
            rate = _speed(best_build(self.builds, indexes, cores, rows))
            if cores > 1 and (indexes, 1, rows) in keys:
                one = _speed(best_build(self.builds, indexes, 1, rows))
                yield indexes, f"{rows:,} rows, 1 to {cores} cores", number(rate / one)
            if rows > least and (indexes, cores, least) in keys:
                few = _speed(best_build(self.builds, indexes, cores, least))
                what = f"{count_text(cores, 'core')}, {least:,} to {rows:,} rows"
                yield indexes, what, number(rate / few)

    def _append_rows(self) -> Iterator[tuple[str, ...]]:
        for rows in sorted({each.rows for each in self.appends}):
            found = {how: self._appended(how, rows) for how in APPENDS}
            for how, (one, cost) in found.items():
                yield (
                    f"{rows:,}",
                    APPENDS[how],
                    f"{cost.wall:.2f}",
                    f"{cost.cpu:.2f}",
                    number(rows / cost.wall / 1e6),
                    number(cost.wall / found["plain"][1].wall),
                    str(one.files),
                    _megabytes(one.size),
                    _megabytes(one.index_size) if one.index_size else NONE,
                )

    def _appended(self, how: str, rows: int) -> tuple[Appended, Cost]:
        found = [each for each in self.appends if (each.how, each.rows) == (how, rows)]
        return found[0], best(each.cost for each in found)


_RATES = ("M rows/s/core", "M rows / s of CPU")
_BUILD_HEAD = ("indexes", "rows", "cores", "wall, s", *_RATES, "MB")
_SCALING_HEAD = ("indexes", "", "rows/s, times")
_APPEND_HEAD = (
    "rows",
    "",
    "wall, s",
    "CPU, s",
    "M rows/s",
    "time / plain",
    "files",
    "data, MB",
    "indexes, MB",
)


def _times(samples: Sequence[Sample]) -> str:
    if not samples:
        return NONE
    seconds = [each.seconds for each in samples]
    return f"{_milliseconds(min(seconds))} / {_milliseconds(median(seconds))}"


def _cpu(samples: Sequence[Sample]) -> str:
    return _milliseconds(min(each.cpu for each in samples)) if samples else NONE


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.0f}"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.2f}" if size < 1e7 else f"{size / 1e6:,.0f}"


def _rate(rows: int, seconds: float) -> str:
    """Million rows a second; where there is no clock, none."""
    return number(rows / seconds / 1e6) if seconds else NONE


def _speed(built: Built) -> float:
    return built.rows / built.cost.wall
