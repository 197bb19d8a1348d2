"""What came of a demo: text for the end, JSON, and a page with a picture of each plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcid._text import count_text, size_text
from alcid.inspect.display import Picture, picture
from alcid_demo.page import demo_parts
from alcid_demo.questions import Asked
from alcid_demo.story import Step

__all__ = ["DemoReport"]

_HEAD = ("rows", "files read", "bytes read", "with, ms", "without", "Spark", "same")
_NUMBERS = range(1, 7)


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The result of a demo; `str` is a text to read, `alcid.inspect.save_html` writes the page."""

    folder: str
    page: str
    """Where the page is."""
    rows: int
    seconds: float
    machine: str
    """What it ran on."""
    steps: tuple[Step, ...]
    asked: tuple[Asked, ...]

    @property
    def ok(self) -> bool:
        """Whether every answer was the same, and every check met."""
        checks = (check.is_met for step in self.steps for check in step.checks)
        return all(one.is_same for one in self.asked) and all(checks)

    @property
    def tables(self) -> dict[str, list[Asked]]:
        """The questions by the table that was asked."""
        found: dict[str, list[Asked]] = {}
        for one in self.asked:
            found.setdefault(one.table, []).append(one)
        return found

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
            "questions": [one.to_dict() for one in self.asked],
        }

    def __str__(self) -> str:
        lines: list[str] = []
        for table, asked in self.tables.items():
            head = f"{table}: {count_text(asked[0].files, 'file')}, {size_text(asked[0].bytes)}"
            lines += ["", *_aligned([(head, *_HEAD), *map(_cells, asked)])]
        checks = [check for step in self.steps for check in step.checks]
        wrong = [f"NOT so: {check.text}" for check in checks if not check.is_met]
        differ = [f"other rows: {one.question.text}" for one in self.asked if not one.is_same]
        told = f"{len(self.asked)} answers compared, {len(checks)} checks made"
        end = f"{told} in {self.seconds:.0f} s: {'all is well' if self.ok else 'NOT all is well'}"
        return "\n".join([*lines, "", *wrong, *differ, end])


def _cells(asked: Asked) -> tuple[str, ...]:
    return (
        asked.question.text,
        f"{asked.rows:,}",
        f"{asked.files_read:,}",
        size_text(asked.bytes_read),
        f"{asked.seconds * 1000:,.0f}",
        f"{asked.seconds_without * 1000:,.0f}",
        f"{asked.seconds_spark * 1000:,.0f}",
        "yes" if asked.is_same else "NO",
    )


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if place in _NUMBERS else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


@picture.register
def _demo_report(report: DemoReport) -> Picture:
    """What was asked, with the plan of each question, and all that was done."""
    plans = [picture(one.explanation)[1] for one in report.asked]
    return f"Alcid demo: {report.rows:,} events", demo_parts(report.to_dict(), plans)
