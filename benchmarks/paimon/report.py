"""The figures as tables to read, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.markdown import NONE, number, table
from benchmarks.paimon.contenders import CONTENDERS, OURS, WRITES
from benchmarks.paimon.questions import QUESTIONS
from benchmarks.paimon.writing import Change
from benchmarks.queries.contest import Sample
from benchmarks.queries.report import PHASES

__all__ = ["Duel", "PaimonReport"]

_TIE = 1.2
"""Times that differ by less are level: other work runs on the machine."""


@dataclass(frozen=True, slots=True)
class Duel:
    """The quickest of ours beside the quickest of the others: medians in seconds."""

    what: str
    where: str
    ours: float
    other: str
    theirs: float

    @property
    def verdict(self) -> str:
        """`ahead`, `level` or `LOST`."""
        if self.ours > self.theirs * _TIE:
            return "LOST"
        return "ahead" if self.ours * _TIE < self.theirs else "level"


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
        return "\n\n".join(parts)

    def duels(self) -> Iterator[Duel]:
        """Every question in both phases, and every change."""
        for phase in PHASES:
            for question in QUESTIONS:
                times = {
                    name: median(each.seconds for each in found)
                    for name in self.contenders
                    if (found := self._asked(phase, question, name))
                }
                yield from _duel(question, phase, times)
        for what in WRITES:
            times = {
                name: median(each.cost.wall for each in made)
                for name in self.contenders
                if (made := self._made(what, name))
            }
            yield from _duel(what, "change", times)

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


_DUEL_HEAD = ("", "", "alcid", "quickest other", "", "other / alcid", "")


def _duel(what: str, where: str, times: Mapping[str, float]) -> Iterator[Duel]:
    ours = [taken for name, taken in times.items() if name in OURS]
    others = {name: taken for name, taken in times.items() if name not in OURS}
    if ours and others:
        other = min(others, key=lambda name: others[name])
        yield Duel(what, where, min(ours), other, others[other])


def _duel_row(duel: Duel) -> tuple[str, ...]:
    return (
        duel.what,
        duel.where,
        f"{_milliseconds(duel.ours)} ms",
        f"{_milliseconds(duel.theirs)} ms",
        duel.other,
        number(duel.theirs / duel.ours),
        duel.verdict,
    )


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f}" if seconds < 0.01 else f"{seconds * 1e3:,.0f}"


def _seconds(changes: Sequence[Change]) -> str:
    if not changes:
        return NONE
    wall, cpu = (median(getattr(each.cost, clock) for each in changes) for clock in ("wall", "cpu"))
    return f"{wall:.2f} / {cpu:.2f}"
