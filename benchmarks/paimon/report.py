"""The figures as tables to read, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.markdown import NONE, number, table
from benchmarks.paimon.contenders import CONTENDERS, WRITES
from benchmarks.paimon.questions import QUESTIONS
from benchmarks.paimon.writing import Change
from benchmarks.queries.contest import Sample
from benchmarks.queries.report import PHASES

__all__ = ["Duel", "PaimonReport"]

_OUR_OWN, _ON_SPARK, _PLAIN_SPARK = "alcid", "alcid-spark", "spark"
_READERS = ("paimon-java", "pypaimon", "pypaimon-rust")
_PLAIN = ("pyarrow", "duckdb", _PLAIN_SPARK)
_TIE = 1.2
"""Times that differ by less are level: other work runs on the machine."""


@dataclass(frozen=True, slots=True)
class Duel:
    """Ours beside the quickest of the others: medians in seconds."""

    what: str
    phase: str
    ours: float
    reader: tuple[str, float] | None
    """Of those that know Paimon tables."""
    plain: tuple[str, float] | None
    """Of those that read or write Parquet files, and know nothing of snapshots and deletes."""

    @property
    def verdict(self) -> str:
        """`ahead` of everyone, `level` with the quickest, or `LOST`."""
        best = min(taken for _, taken in filter(None, (self.reader, self.plain)))
        if self.ours > best * _TIE:
            return "LOST"
        return "ahead" if self.ours * _TIE < best else "level"


@dataclass(frozen=True, slots=True)
class PaimonReport:
    """All that was measured in one run."""

    machine: Mapping[str, object]
    rows: int
    files: int
    repeats: int
    sizes: Mapping[str, int]
    """Bytes of the data files and of the index files."""
    left_out: Mapping[str, str]
    """Who does not take part, and why."""
    contenders: Mapping[str, Mapping[str, Any]]
    samples: Sequence[Sample]
    changes: Sequence[Change]

    def to_json(self) -> str:
        """All figures."""
        return json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"

    def to_text(self) -> str:
        """Tables in Markdown."""
        sizes = ", ".join(f"{size / 1e6:,.0f} MB of {name}" for name, size in self.sizes.items())
        left_out = "; ".join(f"{name}: {why}" for name, why in self.left_out.items())
        parts = [
            ", ".join(f"{key} {value}" for key, value in self.machine.items()),
            f"{self.rows:,} rows in {self.files} files: {sizes}",
            f"repetitions: {self.repeats}; left out: {left_out or 'none'}",
            "### Paimon: contenders",
            table(("", "", "version"), self._contender_rows()),
        ]
        if self.samples:
            parts += ["### Paimon: questions", table(("", "", "rows"), self._question_rows())]
            for phase, meaning in PHASES.items():
                parts += [f"### Paimon: {phase}, ms, median: {meaning}"]
                parts += [self._cells(phase, lambda each: each.seconds)]
            for phase in PHASES:
                parts += [f"### Paimon: {phase}, ms of CPU over all processes, median"]
                parts += [self._cells(phase, lambda each: each.cpu)]
        if self.changes:
            parts += ["### Paimon: changes", table(("", "", "rows"), self._change_kinds())]
            parts += ["### Paimon: changes, seconds / seconds of CPU, median", self._change_cells()]
        duels = list(self.duels())
        if duels:
            parts += ["### Paimon: alcid beside the quickest of the others"]
            parts += [table(_DUEL_HEAD, map(_duel_row, duels))]
        on_spark = list(self._on_spark())
        if on_spark:
            parts += ["### Paimon: on Spark", table(_SPARK_HEAD, on_spark)]
        return "\n\n".join(parts)

    def duels(self) -> Iterator[Duel]:
        """Every question in both phases, and every change: alcid without Spark beside others."""
        for what, phase, times in self._medians():
            reader, plain = (
                min(((name, times[name]) for name in names if name in times), key=_taken)
                if any(name in times for name in names)
                else None
                for names in (_READERS, _PLAIN)
            )
            if _OUR_OWN in times and (reader or plain):
                yield Duel(what, phase, times[_OUR_OWN], reader, plain)

    def _medians(self) -> Iterator[tuple[str, str, dict[str, float]]]:
        """What was done, in which phase, and the seconds of each contender."""
        for phase in PHASES:
            for question in QUESTIONS:
                asked = {name: self._asked(phase, question, name) for name in self.contenders}
                yield (
                    question,
                    phase,
                    {
                        name: median(each.seconds for each in found)
                        for name, found in asked.items()
                        if found
                    },
                )
        for what in WRITES:
            made = {name: self._made(what, name) for name in self.contenders}
            yield (
                what,
                "change",
                {
                    name: median(each.cost.wall for each in found)
                    for name, found in made.items()
                    if found
                },
            )

    def _on_spark(self) -> Iterator[tuple[str, ...]]:
        for what, phase, times in self._medians():
            if _PLAIN_SPARK in times and _ON_SPARK in times:
                ours, plain = times[_ON_SPARK], times[_PLAIN_SPARK]
                yield what, phase, *map(_with_unit, (ours, plain)), number(plain / ours)

    def _asked(self, phase: str, question: str, name: str) -> list[Sample]:
        key = (phase, question, name)
        return [each for each in self.samples if (each.phase, each.question, each.contender) == key]

    def _made(self, what: str, name: str) -> list[Change]:
        return [each for each in self.changes if (each.what, each.contender) == (what, name)]

    def _contender_rows(self) -> Iterator[tuple[str, ...]]:
        for name, facts in self.contenders.items():
            yield name, CONTENDERS[name].meaning, f"{facts['package']} {facts['version']}"

    def _question_rows(self) -> Iterator[tuple[str, ...]]:
        for question, meaning in QUESTIONS.items():
            counts = sorted({each.rows for each in self.samples if each.question == question})
            ends = dict.fromkeys((counts[0], counts[-1]))
            yield question, meaning, " to ".join(f"{count:,}" for count in ends)

    def _cells(self, phase: str, figure: Callable[[Sample], float]) -> str:
        rows = []
        for name in self.contenders:
            asked = [self._asked(phase, question, name) for question in QUESTIONS]
            cells = [
                _milliseconds(median(map(figure, found))) if found else NONE for found in asked
            ]
            rows.append((name, *cells))
        return table(("", *QUESTIONS), rows)

    def _change_kinds(self) -> Iterator[tuple[str, ...]]:
        for what, meaning in WRITES.items():
            rows = next((each.rows for each in self.changes if each.what == what), 0)
            yield what, meaning, f"{rows:,}"

    def _change_cells(self) -> str:
        rows = []
        for name in self.contenders:
            made = [self._made(what, name) for what in WRITES]
            if any(made):
                rows.append((name, *map(_seconds, made)))
        return table(("", *WRITES), rows)


_DUEL_HEAD = ("", "", "alcid", "other readers", "times", "plain files", "times", "")
_SPARK_HEAD = ("", "", "alcid-spark", "spark", "times")


def _taken(found: tuple[str, float]) -> float:
    return found[1]


def _duel_row(duel: Duel) -> tuple[str, ...]:
    cells: list[str] = []
    for other in (duel.reader, duel.plain):
        if other is None:
            cells += [NONE, NONE]
        else:
            cells += [f"{_with_unit(other[1])}, {other[0]}", number(other[1] / duel.ours)]
    return duel.what, duel.phase, _with_unit(duel.ours), *cells, duel.verdict


def _with_unit(seconds: float) -> str:
    return f"{_milliseconds(seconds)} ms"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f}" if seconds < 0.01 else f"{seconds * 1e3:,.0f}"


def _seconds(changes: Sequence[Change]) -> str:
    if not changes:
        return NONE
    wall, cpu = (median(getattr(each.cost, clock) for each in changes) for clock in ("wall", "cpu"))
    return f"{wall:.2f} / {cpu:.2f}"
