"""Questions to all ways in turns, builds and appends; whatever comes back is checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alcid._text import count_text
from benchmarks.measure import Cost
from benchmarks.peer import PeerProcess
from benchmarks.queries.data import Rows
from benchmarks.queries.question import Question
from benchmarks.queries.truth import QUESTIONS, Asked, Questions
from benchmarks.questions import WrongAnswerError
from benchmarks.spark.indexes import INDEX_SETS
from benchmarks.spark.ways import FULL_SCAN, WAYS, Folders

__all__ = [
    "ALL_QUESTIONS",
    "APPENDS",
    "Appended",
    "Built",
    "Dataset",
    "Sample",
    "append_all",
    "ask",
    "ask_all",
    "build_all",
    "full_scan",
    "start",
]

_SEED = 11
ALL_QUESTIONS = {**QUESTIONS, FULL_SCAN: "all columns of all rows, to Spark's sink noop"}
APPENDS = {
    "plain": "df.write.parquet",
    "append-bare": "table.append, without indexes",
    "append": "table.append, with indexes",
}


@dataclass(frozen=True, slots=True)
class Dataset:
    """A folder of rows, and what is right about it."""

    base: Path
    rows: int
    files: int
    id_sum: int

    @property
    def folders(self) -> Folders:
        """Where all is."""
        return Folders(self.base)


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer."""

    question: str
    way: str
    seconds: float
    cpu: float
    """Seconds of the processor, over Python, Java and Python workers."""
    rows: int


@dataclass(frozen=True, slots=True)
class Built:
    """One build."""

    indexes: str
    cores: int
    rows: int
    cost: Cost
    size: int


@dataclass(frozen=True, slots=True)
class Appended:
    """One append."""

    how: str
    rows: int
    cost: Cost
    files: int
    size: int
    index_size: int


def start(cores: int, base: Path) -> PeerProcess:
    """Start a Spark on so many cores."""
    serve = ("-m", "benchmarks.spark.serve", str(cores))
    return PeerProcess(f"Spark on {count_text(cores, 'core')}", Path(sys.executable), *serve, base)


def ask_all(
    process: PeerProcess, ways: Sequence[str], rows: Rows, repeats: int
) -> Iterator[Sample]:
    """Ask everything in turns.

    Raises:
        WrongAnswerError: An answer is wrong.
        PeerError: The process ended.
    """
    random, questions, scan = np.random.default_rng(_SEED), Questions(rows), full_scan(rows)
    for repetition in range(-1, repeats):  # the first is not counted: Java and page cache get warm
        _say(f"questions: {repetition + 1} of {repeats}")
        first = repetition % len(ways)
        for asked in (*questions.draw(random), scan):
            for name in (*ways[first:], *ways[:first]):
                sample = ask(process, name, asked)
                if repetition >= 0:
                    yield sample


def ask(process: PeerProcess, way: str, asked: Asked) -> Sample:
    """Ask one question.

    Raises:
        WrongAnswerError: The answer is wrong.
        PeerError: The process ended.
    """
    name, to = asked.question.name, {"way": way}
    question = {"do": "ask", "question": asdict(asked.question), "fresh": WAYS[way].fresh}
    answer = process.ask(question | to)
    # The sink keeps nothing: what it was given is looked at afterwards, without a clock.
    found = process.ask({"do": "summary"} | to) if name == FULL_SCAN else answer
    if not asked.right(found):
        raise WrongAnswerError(f"{name}: {way} gave a wrong answer: {found}")
    return Sample(name, way, answer["seconds"], answer["cpu"], asked.rows)


def full_scan(rows: Rows) -> Asked:
    """The question for everything."""
    right = {"rows": len(rows.ids), "columns": 6, "sum": [int(rows.ids.sum())]}
    return Asked(Question(FULL_SCAN, "rows"), lambda found: found == right, len(rows.ids), None)


def build_all(
    process: PeerProcess, cores: int, datasets: Sequence[Dataset], repeats: int
) -> Iterator[Built]:
    """Build all indexes in turns.

    Raises:
        WrongAnswerError: Something was not built.
        PeerError: The process ended.
    """
    for repetition in range(-1, repeats):
        _say(f"builds on {count_text(cores, 'core')}: {repetition + 1} of {repeats}")
        for data in datasets if repetition >= 0 else datasets[:1]:
            for indexes in INDEX_SETS:
                found = process.ask({"do": "build", "base": str(data.base), "indexes": indexes})
                _check(found, files=data.files, rows=data.rows, skipped=[])
                if repetition >= 0:
                    yield Built(indexes, cores, data.rows, Cost(**found["cost"]), found["size"])


def append_all(
    process: PeerProcess, datasets: Sequence[Dataset], repeats: int
) -> Iterator[Appended]:
    """Append in turns.

    Raises:
        WrongAnswerError: Rows were lost.
        PeerError: The process ended.
    """
    for repetition in range(-1, repeats):
        _say(f"appends: {repetition + 1} of {repeats}")
        for data in datasets if repetition >= 0 else datasets[:1]:
            for how in APPENDS:
                found = process.ask({"do": "append", "base": str(data.base), "how": how})
                _check(found, rows=data.rows, sum=data.id_sum)
                if repetition >= 0:
                    sizes = {key: found[key] for key in ("files", "size", "index_size")}
                    yield Appended(how, data.rows, Cost(**found["cost"]), **sizes)


def _check(found: Mapping[str, Any], **right: object) -> None:
    for key, expected in right.items():
        if found[key] != expected:
            raise WrongAnswerError(f"{key}: found {found[key]}, expected {expected}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
