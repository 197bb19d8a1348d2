"""The figures as tables to read, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from benchmarks.build import Build
from benchmarks.markdown import NONE, number, table
from benchmarks.peer import PEER
from benchmarks.questions import Speed
from benchmarks.scan import Scan

__all__ = ["Report", "Result"]


@dataclass(frozen=True, slots=True)
class Result:
    """One index on one column of one length."""

    column: str
    index: str
    rows: int
    build: Build
    speeds: dict[str, Speed]

    @property
    def rate(self) -> float:
        """Million rows a second and core to build."""
        return self.rows / self.build.cost.cpu / 1e6

    @property
    def peer_rate(self) -> float | None:
        """The same of the peer, or None where it did not stand out from noise."""
        peer = self.build.peer
        return self.rows / peer.cpu / 1e6 if peer is not None and peer.cpu > 0 else None


@dataclass(frozen=True, slots=True)
class Report:
    """All that was measured in one run."""

    machine: dict[str, object]
    without_peer: str
    """Why the peer is not in it; empty if it is."""
    sql_micros: float
    results: Sequence[Result]
    scans: Sequence[Scan]

    def to_json(self) -> str:
        """All figures."""
        return json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"

    def to_text(self) -> str:
        """Tables in Markdown, one a length for building, one for answers, and how cost grows."""
        peer = f"{PEER}: {self.without_peer or 'in turns with ours'}"
        parts = [", ".join(f"{key} {value}" for key, value in self.machine.items()), peer]
        for rows in dict.fromkeys(result.rows for result in self.results):
            results = [result for result in self.results if result.rows == rows]
            parts += [f"## {rows:,} rows: build", table(_BUILD_HEAD, map(_build_row, results))]
            parts += [f"## {rows:,} rows: answers", table(_ASK_HEAD, map(_ask_row, results))]
        scans = [
            (f"{scan.rows:,}", scan.column, f"{scan.micros:,.0f}", f"{scan.size / scan.rows:.3f}")
            for scan in self.scans
        ]
        parts += ["## Without an index: equality by a scan", table(_SCAN_HEAD, scans)]
        growth = list(self._growth())
        if growth:
            parts += ["## Growth", table(("index", "column", "rate, longest / shortest"), growth)]
        parts += [f"A predicate as SQL text takes {self.sql_micros:.0f} us more than a tree."]
        return "\n\n".join(parts)

    def _growth(self) -> Iterable[tuple[str, ...]]:
        """How the rate to build changes with the rows; n log n keeps 0.85 of it from 500k to 5M."""
        lengths = sorted({result.rows for result in self.results})
        if len(lengths) < 2:
            return
        rates = {(result.index, result.column, result.rows): result.rate for result in self.results}
        for index, column in dict.fromkeys(key[:2] for key in rates):
            ratio = rates[index, column, lengths[-1]] / rates[index, column, lengths[0]]
            yield index, column, f"{ratio:.2f}"


_BUILD_HEAD = (
    "index",
    "column",
    "M rows/s/core",
    "wall, s",
    "bytes/row",
    "peer M rows/s/core",
    "ours / peer",
    "peer bytes/row",
    "same bytes",
)
_ASK_HEAD = (
    "index",
    "column",
    "equal, us",
    "first",
    "absent, us",
    "passed",
    "range, us",
    "first",
    "top 10, us",
    "first",
)


_SCAN_HEAD = ("rows", "column", "read and compare, us", "Parquet bytes/row")


def _build_row(result: Result) -> tuple[str, ...]:
    build, peer = result.build, result.build.peer
    ours = (
        result.index,
        result.column,
        number(result.rate),
        f"{build.cost.wall:.3f}",
        f"{build.size / result.rows:.3f}",
    )
    if peer is None:
        return (*ours, *[NONE] * 4)
    rate = result.peer_rate
    about = "" if peer.sure else "~"
    return (
        *ours,
        about + number(rate) if rate else "lost in noise",
        about + number(result.rate / rate) if rate else NONE,
        f"{peer.size / result.rows:.3f}",
        "yes" if peer.same_bytes else "no",
    )


def _ask_row(result: Result) -> tuple[str, ...]:
    absent = result.speeds.get("absent")
    return (
        result.index,
        result.column,
        *_speed(result.speeds.get("equal")),
        f"{absent.warm:.0f}" if absent else NONE,
        f"{absent.rows / result.rows:.2%}" if absent else NONE,
        *_speed(result.speeds.get("range")),
        *_speed(result.speeds.get("top 10")),
    )


def _speed(speed: Speed | None) -> tuple[str, str]:
    if speed is None or speed.cold is None:
        return NONE, NONE
    return f"{speed.warm:,.0f}", f"{speed.cold:,.0f}"
