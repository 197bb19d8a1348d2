"""Random combinations of all levels, one after the other."""

from __future__ import annotations

import os
import random
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pytest

from tests.cross.asking import AskedTable, with_costs
from tests.cross.factors import FACTORS, TABLE, WAYS, Case, draw
from tests.cross.questions import Question

__all__ = ["Outcome", "run"]

QUESTIONS = 40
"""For each table."""
_SEEDS = 1 << 32


@dataclass
class Outcome:
    """What was done, and the cases that failed."""

    cases: int = 0
    tables: int = 0
    failures: int = 0
    seconds: float = 0.0
    """Of this processor."""


def run(seed: str, seconds: float) -> Outcome:
    """Test tables one after the other until the time is over."""
    source, outcome = random.Random(seed), Outcome()
    end, began = time.monotonic() + seconds, time.process_time()
    with _one_thread():
        while time.monotonic() < end:
            _ask_table(source, outcome, end)
    outcome.seconds = time.process_time() - began
    return outcome


@contextmanager
def _one_thread() -> Iterator[None]:
    """Leave the other processors to the other workers; treat warnings as errors, as in tests."""
    pa.set_cpu_count(1)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(os, "cpu_count", lambda: 1)
        warnings.simplefilter("error")
        yield


def _ask_table(source: random.Random, outcome: Outcome, end: float) -> None:
    levels, table = draw(TABLE, source), source.randrange(_SEEDS)
    outcome.tables += 1
    with _told(Case(levels, table, 0), outcome), AskedTable(levels, table) as asked:
        for _ in range(QUESTIONS):
            if time.monotonic() >= end:
                break
            _ask_question(asked, Case(draw(FACTORS, source, **levels), table, 0), source, outcome)


def _ask_question(asked: AskedTable, case: Case, source: random.Random, outcome: Outcome) -> None:
    seed = source.randrange(_SEEDS)
    question = Question(asked.data, case["shape"], case["order"], seed)
    with with_costs(case["costs"]):
        for way in WAYS:
            outcome.cases += 1
            with _told(Case({**case.levels, "way": way}, case.table, seed), outcome):
                asked.ask(question, way)


@contextmanager
def _told(case: Case, outcome: Outcome) -> Iterator[None]:
    """Print a failed case and continue."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # any error is reported
        outcome.failures += 1
        problem = " ".join(str(error).split())[:200]
        print(f"--case '{case}'\n  {type(error).__name__}: {problem}", flush=True)
