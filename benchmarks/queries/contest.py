"""The peers in turns: each in a process of its own, every answer checked."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.environment import peer_python
from benchmarks.peer import PeerProcess
from benchmarks.queries.truth import Asked
from benchmarks.questions import WrongAnswerError

__all__ = ["CONTENDERS", "Contender", "Drawn", "Sample", "Startable", "ask", "contest", "prepare"]

_SEED = 11


class Startable(Protocol):
    """Who takes part in a contest."""

    @property
    def name(self) -> str:
        """What tables call it."""

    def start(self, base: Path) -> PeerProcess:
        """Start its process, for what is in a folder."""


class Drawn(Protocol):
    """All questions of a contest."""

    def draw(self, random: np.random.Generator) -> Iterator[Asked]:
        """Each of them once, some with new literals."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A peer, or a way to use ours."""

    name: str
    ours: bool = False
    """Runs in this environment, and is prepared anew in every run."""
    shares: str = ""
    """Whose folder it uses; empty: its own."""

    @property
    def folder(self) -> str:
        """What its folder is called."""
        return self.shares or self.name

    def start(self, base: Path) -> PeerProcess:
        """Start its process."""
        python = Path(sys.executable) if self.ours else peer_python()
        serve = ("-m", "benchmarks.queries.serve", self.name)
        return PeerProcess(self.name, python, *serve, base / "parquet", base / self.folder)


CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender("alcid", ours=True),
        Contender("alcid-light", ours=True),
        Contender("alcid-scan", ours=True, shares="alcid"),
        Contender("pyarrow", ours=True),
        Contender("duckdb"),
        Contender("polars"),
        Contender("datafusion"),
        Contender("lance"),
        Contender("paimon-rust"),
    )
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer."""

    phase: str
    """`warm`: the session is kept; `fresh`: a new one for the question."""
    question: str
    contender: str
    seconds: float
    cpu: float
    """Seconds of the processor, over all threads: other work on the machine matters less."""
    read: int
    """Bytes through read calls, from the page cache too."""
    said: Mapping[str, int]
    """What the engine itself says that it read."""
    rows: int
    least: int | None


def prepare(
    contender: Contender, base: Path, rows: int, *, keep: bool = False
) -> list[dict[str, Any]]:
    """Let it load rows and build indexes, in a process of its own; the steps that this took.

    Args:
        contender: What peers made in an earlier run is used again.
        base: The folder of all.
        rows: The rows of a file.
        keep: Use also ours again.
    """
    if contender.shares:
        return []
    own, kept = base / contender.folder, base / f"{contender.folder}.json"
    if kept.exists() and (keep or not contender.ours):
        steps: list[dict[str, Any]] = json.loads(kept.read_text())
        return steps
    kept.unlink(missing_ok=True)  # first, so that it never stands for a folder half made
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir()
    with contender.start(base) as process:
        steps = process.ask({"do": "prepare", "rows": rows})["steps"]
    kept.write_text(json.dumps(steps))
    return steps


def contest(
    contenders: Sequence[Startable], base: Path, questions: Drawn, repeats: int
) -> tuple[list[Sample], dict[str, dict[str, Any]]]:
    """Ask everything; the samples, and of each contender its package, version and peak memory.

    Raises:
        WrongAnswerError: An answer is wrong.
        PeerError: A process ended.
    """
    random = np.random.default_rng(_SEED)
    samples: list[Sample] = []
    with ExitStack() as stack:
        running = {each.name: stack.enter_context(each.start(base)) for each in contenders}
        for phase, repetition in _repetitions(repeats):
            names = list(running)
            turned = names[repetition % len(names) :] + names[: repetition % len(names)]
            print(f"{phase} {repetition + 1} of {repeats}", file=sys.stderr, flush=True)
            for asked in questions.draw(random):
                for name in turned:
                    sample = ask(running[name], name, phase, asked)
                    if repetition >= 0:
                        samples.append(sample)
        facts = {
            name: process.ready | process.ask({"do": "peak"}) for name, process in running.items()
        }
    return samples, facts


def _repetitions(repeats: int) -> Iterator[tuple[str, int]]:
    yield "warm", -1  # not counted: imports, first use, page cache
    for phase in ("warm", "fresh"):
        for repetition in range(repeats):
            yield phase, repetition


def ask(process: PeerProcess, name: str, phase: str, asked: Asked) -> Sample:
    """Ask one question.

    Raises:
        WrongAnswerError: The answer is wrong.
        PeerError: The process ended.
    """
    question = asked.question
    found = process.ask({"do": "ask", "question": asdict(question), "fresh": phase == "fresh"})
    if not asked.right(found):
        raise WrongAnswerError(f"{question.name}: {name} gave a wrong answer: {found}")
    return Sample(
        phase,
        question.name,
        name,
        found["seconds"],
        found["cpu"],
        found["read"],
        found["said"],
        asked.rows,
        asked.least,
    )
