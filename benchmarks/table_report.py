"""The figures of the table indexes as tables to read, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from benchmarks.markdown import NONE, number, table
from benchmarks.table_run import RATE, Figure, Group, Outcome

__all__ = ["TableReport"]


@dataclass(frozen=True, slots=True)
class TableReport:
    """All that was measured in one run."""

    machine: dict[str, object]
    scale: float
    without_peer: str
    """Why a peer is not in it; empty if all are."""
    outcomes: Sequence[Outcome]

    def to_json(self) -> str:
        """All figures."""
        return json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"

    def to_text(self) -> str:
        """A table in Markdown for each group, with a line for each peer."""
        peers = self.without_peer or "in turns with ours"
        parts = [", ".join(f"{key} {value}" for key, value in self.machine.items())]
        parts += [f"scale {self.scale:g}; peers: {peers}"]
        for group in dict.fromkeys(outcome.group for outcome in self.outcomes):
            mine = [outcome for outcome in self.outcomes if outcome.group == group]
            rows = [row for outcome in mine for row in _rows(outcome)]
            parts += [f"### {group.title}", table(_head(group), rows)]
        return "\n\n".join(parts)


def _head(group: Group) -> tuple[str, ...]:
    peer = ("peer", f"its {group.counted}", f"its {group.unit}", "speed, ours / peer")
    return ("operation", "data", group.counted, group.unit, *peer)


def _rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    ours, *peers = outcome.figures
    first = (outcome.operation, outcome.data, *_figure(outcome.group, ours))
    for peer in peers:
        ratio = number(ours.rate / peer.rate)
        yield (*first, peer.name, *_figure(outcome.group, peer), ratio)
    if not peers:
        yield (*first, *[NONE] * 4)


def _figure(group: Group, figure: Figure) -> tuple[str, str]:
    speed = figure.rate if group.unit == RATE else 1 / figure.rate
    return f"{figure.count:,}", number(speed)
