"""The figures as tables to read, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.markdown import NONE, number, table
from benchmarks.upsert.contenders import KINDS, MEANINGS
from benchmarks.upsert.lives import STEPS, Taken

__all__ = ["UpsertReport"]

_OURS = ("alcid", "alcid-spark")
_TITLES = {"vectors": "deletion vectors", "level-0": "level 0 only, without deletion vectors"}
_GROWING = ("spread", "recent")


@dataclass(frozen=True, slots=True)
class UpsertReport:
    """All that was measured in one run."""

    machine: Mapping[str, object]
    repeats: int
    left_out: Mapping[str, str]
    """Who does not take part, and why."""
    contenders: Mapping[str, Mapping[str, Any]]
    taken: Sequence[Taken]

    def to_json(self) -> str:
        """All figures."""
        return json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"

    def to_text(self) -> str:
        """Tables in Markdown."""
        left_out = "; ".join(f"{name}: {why}" for name, why in self.left_out.items())
        parts = [
            ", ".join(f"{key} {value}" for key, value in self.machine.items()),
            f"repetitions: {self.repeats}; left out: {left_out or 'none'}",
            "### Primary keys: contenders",
            table(("", "", "version"), self._contender_rows()),
            "### Primary keys: steps",
            table(("", "", *KINDS), self._step_rows()),
        ]
        for kind in KINDS:
            if self._steps(kind):
                title = f"### Primary keys: {_TITLES[kind]}, {self._size(kind):,} rows"
                for what, cell in _FIGURES.items():
                    parts += [f"{title}: {what}", self._cells(kind, cell)]
        parts += ["### Primary keys: small upserts and the size of the table"]
        parts += [table(_GROWTH_HEAD, self._growth_rows())]
        beside = list(self._beside_java())
        if beside:
            parts += ["### Primary keys: how many times as long Paimon's Java takes"]
            parts += [table(("", "", *_OURS), beside)]
        return "\n\n".join(parts)

    def _size(self, kind: str) -> int:
        """The rows that the largest table of a kind was loaded with."""
        return max((each.size for each in self.taken if each.kind == kind), default=0)

    def _largest(self, kind: str, step: str, name: str) -> list[Taken]:
        return self._of(kind, self._size(kind), step, name)

    def _of(self, kind: str, size: int, step: str, name: str) -> list[Taken]:
        key = (kind, size, step, name)
        return [
            each for each in self.taken if (each.kind, each.size, each.step, each.contender) == key
        ]

    def _steps(self, kind: str) -> list[str]:
        largest = (kind, self._size(kind))
        done = {each.step for each in self.taken if (each.kind, each.size) == largest}
        return [step for step in STEPS if step in done]

    def _contender_rows(self) -> Iterator[tuple[str, ...]]:
        for name, facts in self.contenders.items():
            yield name, MEANINGS[name], f"{facts['package']} {facts['version']}"

    def _step_rows(self) -> Iterator[tuple[str, ...]]:
        for step, meaning in STEPS.items():
            yield step, meaning, *(self._rows_of(kind, step) for kind in KINDS)

    def _rows_of(self, kind: str, step: str) -> str:
        key = (kind, self._size(kind), step)
        done = (each.rows for each in self.taken if (each.kind, each.size, each.step) == key)
        rows = next(done, None)
        return NONE if rows is None else f"{rows:,}"

    def _cells(self, kind: str, cell: Callable[[Sequence[Taken]], str]) -> str:
        steps = self._steps(kind)
        rows = [
            (name, *(cell(self._largest(kind, step, name)) for step in steps))
            for name in self.contenders
            if name in KINDS[kind]
        ]
        return table(("", *steps), rows)

    def _growth_rows(self) -> Iterator[tuple[str, ...]]:
        sizes = sorted({each.size for each in self.taken if each.kind == "vectors"})
        for step in _GROWING:
            for name in self.contenders:
                for size in sizes:
                    found = self._of("vectors", size, step, name)
                    if found:
                        buckets = round(median(each.buckets for each in found))
                        figures = (_seconds(found), _bytes_a_row(found), _megabytes(found))
                        yield step, name, f"{size:,}", f"{buckets}", *figures

    def _beside_java(self) -> Iterator[tuple[str, ...]]:
        for kind in KINDS:
            for step in self._steps(kind):
                java = self._largest(kind, step, "paimon-java")
                ours = [self._largest(kind, step, name) for name in _OURS]
                if java and any(ours):
                    yield kind, step, *(_factor(java, found) for found in ours)


def _wall(found: Sequence[Taken]) -> float:
    return median(each.cost.wall for each in found)


def _factor(java: Sequence[Taken], ours: Sequence[Taken]) -> str:
    return number(_wall(java) / _wall(ours)) if ours else NONE


def _seconds(found: Sequence[Taken]) -> str:
    if not found:
        return NONE
    return f"{_wall(found):.2f} / {median(each.cost.cpu for each in found):.2f}"


def _rate(found: Sequence[Taken]) -> str:
    return f"{found[0].rows / _wall(found):,.0f}" if found else NONE


def _bytes_a_row(found: Sequence[Taken]) -> str:
    return f"{median(each.written / each.rows for each in found):,.1f}" if found else NONE


def _megabytes(found: Sequence[Taken]) -> str:
    return f"{median(each.peak for each in found) / 1e6:,.0f}" if found else NONE


_FIGURES: Mapping[str, Callable[[Sequence[Taken]], str]] = {
    "seconds / seconds of CPU over all processes, median": _seconds,
    "rows a second": _rate,
    "bytes written for each row": _bytes_a_row,
    "memory at most, MB": _megabytes,
}
_GROWTH_HEAD = ("", "", "rows of the table", "buckets", "s / s of CPU", "bytes a row", "memory, MB")
