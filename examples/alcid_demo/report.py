"""The log and the report of a demo: text, JSON, and a page with the plan of each query."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from alcid._text import count_text, size_text
from alcid.inspect.display import Picture, picture
from alcid_demo.page import demo_parts
from alcid_demo.queries import QueryResult

__all__ = ["Call", "Check", "DemoLog", "DemoReport", "Step"]

_Result = TypeVar("_Result")
_HEAD = ("rows", "files read", "bytes read", "with, ms", "without", "Spark", "same")
_NUMBERS = range(1, 7)


@dataclass(frozen=True, slots=True)
class Call:
    """Python code that was run, and its result."""

    code: str
    result: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Check:
    """An expectation, and whether it is met."""

    text: str
    is_met: bool


@dataclass(slots=True)
class Step:
    """A part of the demo."""

    title: str
    calls: list[Call] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)


class DemoLog:
    """Runs the calls of a demo, prints them line by line, and records them for the report."""

    def __init__(self, write_line: Callable[[str], None]) -> None:
        """Log to a function that takes one line at a time."""
        self._write_line = write_line
        self.steps: list[Step] = []

    def step(self, title: str) -> None:
        """Begin a part."""
        self.steps.append(Step(title))
        self._write_line("")
        self._write_line(f"{len(self.steps)}. {title}")

    def call(
        self, code: str, work: Callable[[], _Result], show: Callable[[_Result], str] = str
    ) -> _Result:
        """Run `work` and record it with the code that a user would write for it."""
        for line in code.splitlines():
            self._write_line(f"   {line}")
        began = time.perf_counter()
        result = work()
        done = Call(code, show(result), time.perf_counter() - began)
        self.steps[-1].calls.append(done)
        for line in done.result.splitlines():
            self._write_line(f"     {line}")
        return result

    def check(self, text: str, is_met: bool) -> None:
        """Record whether an expectation is met."""
        self.steps[-1].checks.append(Check(text, is_met))
        self._write_line(f"     checked: {text}: {'yes' if is_met else 'NO'}")

    def note(self, text: str) -> None:
        """Record a remark."""
        self.steps[-1].notes.append(text)
        self._write_line(f"   {text}")


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The result of a demo; `str` is its text, `alcid.inspect.save_html` writes its page."""

    folder: str
    page: str
    """The path of the page."""
    rows: int
    seconds: float
    machine: str
    """The machine that it ran on."""
    steps: tuple[Step, ...]
    results: tuple[QueryResult, ...]

    @property
    def ok(self) -> bool:
        """Whether all answers are the same and all checks are met."""
        checks = (check.is_met for step in self.steps for check in step.checks)
        return all(result.is_same for result in self.results) and all(checks)

    @property
    def tables(self) -> dict[str, list[QueryResult]]:
        """The results by table."""
        by_table: dict[str, list[QueryResult]] = {}
        for result in self.results:
            by_table.setdefault(result.table, []).append(result)
        return by_table

    def to_dict(self) -> dict[str, Any]:
        """All but the plans as plain values, for JSON."""
        return {
            "ok": self.ok,
            "folder": self.folder,
            "page": self.page,
            "rows": self.rows,
            "seconds": self.seconds,
            "machine": self.machine,
            "steps": [step.to_dict() for step in self.steps],
            "queries": [result.to_dict() for result in self.results],
        }

    def __str__(self) -> str:
        lines: list[str] = []
        for table, results in self.tables.items():
            head = f"{table}: {count_text(results[0].files, 'file')}, {size_text(results[0].bytes)}"
            lines += ["", *_aligned([(head, *_HEAD), *map(_cells, results)])]
        checks = [check for step in self.steps for check in step.checks]
        unmet = [f"NOT met: {check.text}" for check in checks if not check.is_met]
        differing = [
            f"different rows: {result.query.text}" for result in self.results if not result.is_same
        ]
        summary = f"{len(self.results)} answers compared, {len(checks)} checks made"
        end = (
            f"{summary} in {self.seconds:.0f} s: {'all is well' if self.ok else 'NOT all is well'}"
        )
        return "\n".join([*lines, "", *unmet, *differing, end])


def _cells(result: QueryResult) -> tuple[str, ...]:
    return (
        result.query.text,
        f"{result.rows:,}",
        f"{result.files_read:,}",
        size_text(result.bytes_read),
        f"{result.seconds * 1000:,.0f}",
        f"{result.seconds_without * 1000:,.0f}",
        f"{result.seconds_spark * 1000:,.0f}",
        "yes" if result.is_same else "NO",
    )


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[position]) for row in rows) for position in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if position in _NUMBERS else cell.ljust(width)
            for position, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


@picture.register
def _demo_report(report: DemoReport) -> Picture:
    """The results of all queries with their plans, and all steps."""
    plans = [picture(result.explanation)[1] for result in report.results]
    return f"Alcid demo: {report.rows:,} events", demo_parts(report.to_dict(), plans)
