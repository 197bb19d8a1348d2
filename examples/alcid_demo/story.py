"""What the demo tells while it runs: steps, the calls that a user would write, their results."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

__all__ = ["Call", "Check", "Step", "Story"]

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Call:
    """Python that was run, and what it gave."""

    code: str
    result: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Check:
    """Something that has to be so."""

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


class Story:
    """Runs calls, tells of them line by line, and keeps all for the report."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """Begin; `tell` takes one line at a time."""
        self._tell = tell
        self.steps: list[Step] = []

    def step(self, title: str) -> None:
        """Begin a part."""
        self.steps.append(Step(title))
        self._tell("")
        self._tell(f"{len(self.steps)}. {title}")

    def call(
        self, code: str, work: Callable[[], _Result], show: Callable[[_Result], str] = str
    ) -> _Result:
        """Run `work`, which `code` is the Python of."""
        for line in code.splitlines():
            self._tell(f"   {line}")
        began = time.perf_counter()
        result = work()
        done = Call(code, show(result), time.perf_counter() - began)
        self.steps[-1].calls.append(done)
        for line in done.result.splitlines():
            self._tell(f"     {line}")
        return result

    def check(self, text: str, is_met: bool) -> None:
        """Keep whether something is as it has to be."""
        self.steps[-1].checks.append(Check(text, is_met))
        self._tell(f"     checked: {text}: {'yes' if is_met else 'NO'}")

    def note(self, text: str) -> None:
        """Say something beside."""
        self.steps[-1].notes.append(text)
        self._tell(f"   {text}")
