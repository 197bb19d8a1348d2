"""The figures as tables to read, and as JSON; and the check that indexes never cost more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.markdown import NONE, number, table
from benchmarks.queries.contest import Sample
from benchmarks.queries.truth import QUESTIONS

__all__ = ["PHASES", "QueryReport", "Verdict"]

PHASES = {"warm": "the session is kept", "fresh": "a new session for every question"}
_WITHOUT = "alcid-scan"
_WITH = ("alcid", "alcid-light")
_MOST, _TOLERANCE = 1.2, 0.002  # times as slow, and seconds on top


@dataclass(frozen=True, slots=True)
class Verdict:
    """One question with indexes and without, the best of each."""

    phase: str
    question: str
    contender: str
    seconds: float
    without: float

    @property
    def fails(self) -> bool:
        """Whether indexes cost more than they may."""
        return self.seconds > _MOST * self.without + _TOLERANCE


@dataclass(frozen=True, slots=True)
class QueryReport:
    """All that was measured in one run."""

    machine: Mapping[str, object]
    rows: int
    files: int
    repeats: int
    size: int
    """Bytes of the Parquet files."""
    left_out: str
    """Why peers are not in it; empty if all are that were asked for."""
    contenders: Mapping[str, Mapping[str, Any]]
    steps: Mapping[str, Sequence[Mapping[str, Any]]]
    samples: Sequence[Sample]

    def to_json(self) -> str:
        """All figures."""
        return json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"

    def to_text(self) -> str:
        """Tables in Markdown."""
        parts = [
            ", ".join(f"{key} {value}" for key, value in self.machine.items()),
            f"{self.rows:,} rows in {self.files} files of {_megabytes(self.size)} MB together",
            f"repetitions: {self.repeats}; peers left out: {self.left_out or 'none'}",
            "### Questions",
            table(("question", "", "rows"), self._question_rows()),
        ]
        for phase, meaning in PHASES.items():
            parts += [f"### {phase.capitalize()}, ms, best / median: {meaning}"]
            parts += [self._cells(phase, _times)]
        for phase in PHASES:
            parts += [f"### {phase.capitalize()}, ms of CPU, best", self._cells(phase, _cpu)]
        for phase in PHASES:
            parts += [f"### {phase.capitalize()}, MB read, median", self._cells(phase, _read)]
        ours = list(self._our_rows())
        if ours:
            parts += ["### What alcid says that it read, median", table(_OUR_HEAD, ours)]
        steps = list(self._step_rows())
        if steps:
            parts += ["### Before the first question", table(_STEP_HEAD, steps)]
        parts += ["### Versions and memory", table(_PEAK_HEAD, self._peak_rows())]
        verdicts = list(self.verdicts())
        if verdicts:
            parts += ["### With indexes, never more than 1.2 times the time without, plus 2 ms"]
            parts += [table(_VERDICT_HEAD, map(_verdict_row, verdicts))]
        return "\n\n".join(parts)

    def verdicts(self) -> Iterator[Verdict]:
        """Ours with indexes against ours without."""
        for phase in PHASES:
            for question in QUESTIONS:
                without = self._of(phase, question, _WITHOUT)
                for name in _WITH:
                    samples = self._of(phase, question, name)
                    if samples and without:
                        yield Verdict(phase, question, name, _best(samples), _best(without))

    def _of(self, phase: str, question: str, contender: str) -> list[Sample]:
        key = (phase, question, contender)
        return [each for each in self.samples if (each.phase, each.question, each.contender) == key]

    def _question_rows(self) -> Iterator[tuple[str, ...]]:
        for question, meaning in QUESTIONS.items():
            counts = sorted({each.rows for each in self.samples if each.question == question})
            text = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
            yield question, meaning, text

    def _cells(self, phase: str, cell: Callable[[Sequence[Sample]], str]) -> str:
        rows = [
            (name, *(cell(self._of(phase, question, name)) for question in QUESTIONS))
            for name in self.contenders
        ]
        return table(("", *QUESTIONS), rows)

    def _our_rows(self) -> Iterator[tuple[str, ...]]:
        for name in (*_WITH, _WITHOUT):
            for question in QUESTIONS:
                samples = [each for each in self._of("warm", question, name) if each.said]
                if samples:
                    yield name, question, *_said(samples)

    def _step_rows(self) -> Iterator[tuple[str, ...]]:
        for name, steps in self.steps.items():
            for step in steps:
                cost, size = step["cost"], step["size"]
                yield (
                    name,
                    step["name"],
                    f"{cost['wall']:.1f}",
                    f"{cost['cpu']:.1f}",
                    _megabytes(size),
                    f"{size / self.size:.0%}",
                )

    def _peak_rows(self) -> Iterator[tuple[str, ...]]:
        for name, facts in self.contenders.items():
            yield name, f"{facts['package']} {facts['version']}", _megabytes(facts["peak"])


_OUR_HEAD = ("", "question", "data, kB", "index, kB", "pages of the answer, kB", "data / pages")
_STEP_HEAD = ("", "step", "wall, s", "CPU, s", "MB", "of the Parquet files")
_PEAK_HEAD = ("", "version", "peak memory, MB")
_VERDICT_HEAD = ("", "question", "", "with, ms", "without, ms", "with / without", "")


def _times(samples: Sequence[Sample]) -> str:
    middle = median(each.seconds for each in samples)
    return f"{_milliseconds(_best(samples))} / {_milliseconds(middle)}"


def _cpu(samples: Sequence[Sample]) -> str:
    return _milliseconds(min(each.cpu for each in samples))


def _read(samples: Sequence[Sample]) -> str:
    return _megabytes(median(each.read for each in samples))


def _said(samples: Sequence[Sample]) -> Iterator[str]:
    for key in ("data", "index"):
        yield _kilobytes(median(each.said[key] for each in samples))
    pages = [(each.said["data"], each.least) for each in samples if each.least]
    yield _kilobytes(median(least for _, least in pages)) if pages else NONE
    yield f"{median(data / least for data, least in pages):.2f}" if pages else NONE


def _best(samples: Sequence[Sample]) -> float:
    return min(each.seconds for each in samples)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f}" if seconds < 0.01 else f"{seconds * 1e3:,.0f}"


def _kilobytes(size: float) -> str:
    return f"{size / 1e3:,.0f}"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.2f}" if size < 1e7 else f"{size / 1e6:,.0f}"


def _verdict_row(verdict: Verdict) -> tuple[str, ...]:
    return (
        verdict.phase,
        verdict.question,
        verdict.contender,
        _milliseconds(verdict.seconds),
        _milliseconds(verdict.without),
        number(verdict.seconds / verdict.without),
        "TOO SLOW" if verdict.fails else "ok",
    )
