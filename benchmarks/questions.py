"""Questions to an index in a file, each answer checked against NumPy before its time counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from pyroaring import BitMap

from alcid import FileIndex, Predicate, Selection, col
from alcid._arrays import Int64Array
from alcid.formats.source import FileSource
from benchmarks.cases import FPP, Case
from benchmarks.columns import Column
from benchmarks.measure import fastest

__all__ = ["Speed", "WrongAnswerError", "ask_all"]

_LITERALS = 8
_ABSENT = 2000
_REPEATS = 5
_TOP = 10
_RANGE_SHARE = 1000


class WrongAnswerError(AssertionError):
    """An index left out a row that matches, or gave one that does not."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Microseconds of a kind of question: median over the literals of the best of five runs."""

    warm: float
    """From an index that has been asked before."""
    cold: float | None
    """Opening the file included; None where that was not measured."""
    rows: float
    """How many rows the answer has."""


@dataclass(frozen=True, slots=True)
class _Question:
    ask: Callable[[FileIndex], Selection]
    expected: Callable[[], Int64Array]
    """The rows, by NumPy."""


def ask_all(path: Path, column: Column, case: Case) -> dict[str, Speed]:
    """The speed of every kind of question that the index in `path` answers.

    Raises:
        WrongAnswerError: It answers wrongly.
    """
    only_yes_or_no = case.index_type == "bloom-filter"
    kinds = {"equal": _equal(column)}
    if not only_yes_or_no:
        kinds |= {"range": _range(column), "top 10": iter([_top(column)])}
    speeds = {}
    for kind, questions in kinds.items():
        asked = [_ask(path, column, question, only_yes_or_no) for question in questions]
        answered = [speed for speed in asked if speed is not None]
        if answered:
            speeds[kind] = Speed(
                median(speed.warm for speed in answered),
                median(speed.cold for speed in answered if speed.cold is not None),
                median(speed.rows for speed in answered),
            )
    speeds["absent"] = _absent(path, column, FPP if only_yes_or_no else 0)
    return speeds


def _ask(path: Path, column: Column, question: _Question, only_yes_or_no: bool) -> Speed | None:
    """None where the index cannot tell."""
    types = {"c": column.data_type}

    def ask_cold() -> Selection:
        with FileSource(path) as source:
            return question.ask(FileIndex.open(source, types, strict=True))

    cold, answer = fastest(ask_cold, _REPEATS)
    with FileSource(path) as source:
        index = FileIndex.open(source, types, strict=True)
        question.ask(index)
        warm, again = fastest(lambda: question.ask(index), _REPEATS)
    if answer != again:
        raise WrongAnswerError(f"{column.name}: found {again}, expected {answer} as before")
    if answer.rows is None:
        return Speed(warm, cold, column.rows) if only_yes_or_no else None
    expected = BitMap(question.expected())
    if answer.rows != expected:
        raise WrongAnswerError(
            f"{column.name}: found {len(answer.rows)} rows, expected {len(expected)}, "
            f"first difference at row {(answer.rows ^ expected).min()}"
        )
    return Speed(warm, cold, len(answer.rows))


def _equal(column: Column) -> Iterator[_Question]:
    for row in np.linspace(0, column.rows - 1, _LITERALS).astype(int):
        order = int(column.order[row])
        predicate = col("c") == column.literal(order)
        yield _Question(_evaluate(predicate), _where(column, order, order))


def _range(column: Column) -> Iterator[_Question]:
    """A thousandth of the rows, or a single value where it stands in more."""
    ordered = np.sort(column.order)
    width = column.rows // _RANGE_SHARE
    for start in np.linspace(0, column.rows - 1 - width, _LITERALS).astype(int):
        low, high = int(ordered[start]), int(ordered[start + width])
        predicate = col("c").between(column.literal(low), column.literal(high))
        yield _Question(_evaluate(predicate), _where(column, low, high))


def _top(column: Column) -> _Question:
    """The ten highest, with all that equal the tenth."""

    def expected() -> Int64Array:
        tenth = np.partition(column.order, -_TOP)[-_TOP]
        return np.flatnonzero(column.order >= tenth)

    return _Question(lambda index: index.top_n("c", _TOP), expected)


def _absent(path: Path, column: Column, fpp: float) -> Speed:
    """Values that the column lacks; the share `fpp` of them may pass."""
    draw = np.random.default_rng(0).integers(0, 16**12, 2 * _ABSENT)
    absent = draw[~np.isin(draw, column.order)][:_ABSENT]
    times, passed = [], 0
    with FileSource(path) as source:
        index = FileIndex.open(source, {"c": column.data_type}, strict=True)
        for order in absent:
            predicate = col("c") == column.literal(int(order))
            micros, answer = fastest(lambda: index.evaluate(predicate), 2)  # noqa: B023
            times.append(micros)
            passed += not answer.skip
    if passed > 2 * fpp * len(absent):
        raise WrongAnswerError(
            f"{column.name}: {passed} of {len(absent)} absent values passed, expected {fpp:.0%}"
        )
    return Speed(median(times), None, passed / len(absent) * column.rows)


def _evaluate(predicate: Predicate) -> Callable[[FileIndex], Selection]:
    return lambda index: index.evaluate(predicate)


def _where(column: Column, low: int, high: int) -> Callable[[], Int64Array]:
    return lambda: np.flatnonzero((column.order >= low) & (column.order <= high))
