"""The figures as tables to read, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from benchmarks.iceberg.contest import CHANGES, COUNT, DELETES, Changed
from benchmarks.iceberg.ways import OURS, OWN, WAYS
from benchmarks.markdown import NONE, number, table
from benchmarks.queries.truth import QUESTIONS
from benchmarks.spark.aims import AIM_HEAD, Aim, aim_row, best_time
from benchmarks.spark.contest import Sample

__all__ = ["IcebergReport"]

_LOOK_UP, _FASTER = "Q1", 10.0
_CHANGES_FASTER = {COUNT: 2.0, **dict.fromkeys(DELETES, 1.0)}
_WHO = ("iceberg", "alcid")


@dataclass(frozen=True, slots=True)
class IcebergReport:
    """All that was measured in one run."""

    machine: Mapping[str, object]
    rows: int
    files: int
    repeats: int
    sizes: Mapping[str, int]
    """Bytes of the data files of the tables, and of the statistics file with the indexes."""
    samples: Sequence[Sample]
    changes: Sequence[Changed]

    def to_json(self) -> str:
        """All figures."""
        return json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"

    def to_text(self) -> str:
        """Tables in Markdown."""
        parts = [
            ", ".join(f"{key} {value}" for key, value in self.machine.items()),
            f"{self.rows:,} rows in {self.files} files; repetitions: {self.repeats}; "
            + ", ".join(f"{name} {size / 1e6:,.1f} MB" for name, size in self.sizes.items()),
        ]
        if self.samples:
            meanings = [(name, WAYS[name].meaning) for name in self._asked()]
            parts += ["### Iceberg: ways", table(("", ""), meanings)]
            parts += ["### Iceberg: questions", table(("", ""), QUESTIONS.items())]
            parts += ["### Iceberg: ms, best / median", self._cells(_times)]
            parts += ["### Iceberg: ms of CPU over all processes, best", self._cells(_cpu)]
            parts += ["### Iceberg: how many times as long", self._ratios()]
        if self.changes:
            parts += ["### Iceberg: changes", table(("", ""), CHANGES.items())]
            head = ("", *_WHO, "times as long")
            title = "### Iceberg: changes, seconds, best / median, and seconds of CPU, best"
            parts += [title, table(head, self._change_rows())]
        aims = list(self.aims())
        if aims:
            parts += ["### Iceberg: aims", table(AIM_HEAD, map(aim_row, aims))]
        return "\n\n".join(parts)

    def aims(self) -> Iterator[Aim]:
        """What shall be reached, as far as it was measured."""
        for own in OWN:
            for way in OURS:
                if ratio := self._times_as_long(_LOOK_UP, own, way):
                    what = f"{_LOOK_UP}, {own} / alcid"
                    yield Aim(what, way, ratio, _FASTER, at_least=True)
        for what, bound in _CHANGES_FASTER.items():
            if ratio := self._change_ratio(what):
                yield Aim(f"{what}, iceberg / alcid", "", ratio, bound, at_least=True)

    def _asked(self) -> list[str]:
        return [name for name in WAYS if any(each.way == name for each in self.samples)]

    def _cells(self, cell: Callable[[Sequence[Sample]], str]) -> str:
        rows = [
            (name, *(cell(self._of(question, name)) for question in QUESTIONS))
            for name in self._asked()
        ]
        return table(("", *QUESTIONS), rows)

    def _of(self, question: str, way: str) -> list[Sample]:
        key = (question, way)
        return [each for each in self.samples if (each.question, each.way) == key]

    def _ratios(self) -> str:
        asked = self._asked()
        rows = [
            (f"{own} / {way}", *(self._ratio(question, own, way) for question in QUESTIONS))
            for own in OWN
            for way in OURS
            if own in asked and way in asked
        ]
        return table(("", *QUESTIONS), rows)

    def _ratio(self, question: str, own: str, way: str) -> str:
        ratio = self._times_as_long(question, own, way)
        return NONE if ratio is None else number(ratio)

    def _times_as_long(self, question: str, own: str, way: str) -> float | None:
        long, short = (best_time(self.samples, question, each) for each in (own, way))
        return None if long is None or short is None else long / short

    def _change_rows(self) -> Iterator[tuple[str, ...]]:
        for what in CHANGES:
            ratio = self._change_ratio(what)
            cells = [_change(self._changed(what, who)) for who in _WHO]
            yield what, *cells, NONE if ratio is None else number(ratio)

    def _change_ratio(self, what: str) -> float | None:
        walls = [[each.cost.wall for each in self._changed(what, who)] for who in _WHO]
        return min(walls[0]) / min(walls[1]) if all(walls) else None

    def _changed(self, what: str, who: str) -> list[Changed]:
        return [each for each in self.changes if (each.what, each.who) == (what, who)]


def _times(samples: Sequence[Sample]) -> str:
    if not samples:
        return NONE
    taken = [each.seconds * 1e3 for each in samples]
    return f"{min(taken):,.0f} / {median(taken):,.0f}"


def _cpu(samples: Sequence[Sample]) -> str:
    return f"{min(each.cpu for each in samples) * 1e3:,.0f}" if samples else NONE


def _change(changes: Sequence[Changed]) -> str:
    if not changes:
        return NONE
    walls = [each.cost.wall for each in changes]
    cpu = min(each.cost.cpu for each in changes)
    return f"{min(walls):.2f} / {median(walls):.2f}, CPU {cpu:.2f}"
