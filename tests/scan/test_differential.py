"""Scans of random tables, with and without indexes, return the rows that DuckDB returns."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings

import alcid
from alcid.expressions import matching
from alcid.scan import TableFiles
from alcid.types import INDEX_TYPES
from tests.scan.answers import Positions, check_explanation, check_rows
from tests.scan.duck import Oracle
from tests.scan.question import Question, Questions
from tests.scan.random_table import RandomTable, deleted_rows, present_values, seeded
from tests.scan.states import State, States

IS_FUZZ = settings.get_current_profile_name() == "fuzz"
TABLES = 400 if IS_FUZZ else 4
QUESTIONS, QUESTIONS_AFTERWARDS = (400, 200) if IS_FUZZ else (40, 20)
STATES_OF_A_QUESTION = 3
"""The states take turns, with and without deleted rows."""
DEFAULT_SEED = "2025"


def _endless(table: TableFiles, _needed: Sequence[str]) -> Positions:
    """A size of files at which no index is too large."""
    return np.full(len(table.sizes), 1 << 40)


USED = {"planner.full_scan_bytes": _endless}
SMALL: list[dict[str, Any]] = [
    {},
    USED,
    USED | {"access._DENSE": 2.0, "sorting._FEW": 0},
    USED | {"reading._FEW": 2, "sorting._FEW": 0},
]
"""What is set for tables in turn. They are so small that neither indexes nor single pages would be
worth it, nor a search for the best rows in place of a sort; with these they are read all the same.
"""


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> str:
    """ALCID_SEED; otherwise fixed for the profile `ci`, and new for others."""
    fixed = DEFAULT_SEED if settings().derandomize else request.config.option.hypothesis_seed
    return os.environ.get("ALCID_SEED", str(fixed))


@pytest.mark.fuzz
@pytest.mark.parametrize("number", range(TABLES))
def test_scans_give_the_rows_of_duckdb(
    number: int, seed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SMALL[number % len(SMALL)].items():
        monkeypatch.setattr(f"alcid.scan.{name}", value)
    with _noted(f"ALCID_SEED={seed}, table {number}"):
        table = RandomTable(seeded(seed, number), tmp_path / "data")
        states = States(seeded(seed, number, "states"), table, tmp_path / "indexes")
        partial = states.build("partial", INDEX_TYPES, share=0.6)
        for _ in range(number // len(SMALL) % 4):
            table.add_file()
        partial.refresh()
        kept = [*states.build_each(), State("some files indexed", partial)]
        _Round(seed, number, table, states, kept).ask(QUESTIONS)
        table.change()
        after = [State("files changed", kept[-2].table), State("few files indexed", partial)]
        for state in after:
            state.table.refresh()
        after.append(State("built again", states.build(None, INDEX_TYPES)))
        _Round(seed, f"{number} changed", table, states, after).ask(QUESTIONS_AFTERWARDS)


@pytest.mark.parametrize("index_type", INDEX_TYPES)
def test_small_tables_do_use_their_indexes(
    index_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without this, the test above could pass without asking any index."""
    for name, value in USED.items():
        monkeypatch.setattr(f"alcid.scan.{name}", value)
    pq.write_table(pa.table({"x": range(0, 100, 2)}), tmp_path / "a.parquet")
    table = alcid.parquet(tmp_path)
    table.build_indexes({f"file-index.{index_type}.columns": "x"})
    scan = table.scan("x = 8")
    assert scan.to_arrow().to_pydict() == {"x": [8]}
    (use,) = scan.explain().indexes
    outcome = "may contain it" if index_type == "bloom-filter" else "answered"
    assert (use.index, use.outcome, use.files) == (index_type, outcome, 1)


class _Round:
    """Questions about one table with its current files."""

    def __init__(
        self, seed: str, number: object, table: RandomTable, states: States, kept: Sequence[State]
    ) -> None:
        source = seeded(seed, number, "deletions")
        self._file_count = len(table.paths)
        self._rows = table.rows()
        self._types = {name: kind.data_type for name, kind in table.kinds.items()}
        self._oracle = Oracle(self._rows, table.kinds)
        present = {
            name: present_values(self._rows[name], kind) for name, kind in table.kinds.items()
        }
        questions = seeded(seed, number, "questions")
        self._questions = Questions(questions, table.kinds, present, self._rows.num_rows)
        counts = {path: table.row_count_of(path) for path in table.paths}
        deleted = {path: deleted_rows(source, count) for path, count in counts.items()}
        starts = np.cumsum([0, *counts.values()])[:-1].tolist()
        self._deleted = [
            start + row
            for start, rows in zip(starts, deleted.values(), strict=True)
            for row in rows
        ]
        self._states = itertools.cycle(kept)
        hidden = [
            states.delete(state, deleted, bits)
            for state, bits in zip(kept, itertools.cycle((32, 64)))
        ]
        self._states_with_deletions = itertools.cycle(hidden)

    def ask(self, count: int) -> None:
        for _ in range(count):
            question = self._questions.draw()
            with _noted(f"rows in memory: {question}"):
                positions = self._oracle.positions(question.where, question.order)
                ranks = self._oracle.ranks(question.order) if question.order else positions
                self._check_in_memory(question, positions)
            for state in itertools.islice(self._states, STATES_OF_A_QUESTION):
                self._check(question, state, positions, ranks)
            live = positions[~np.isin(positions, self._deleted)]
            self._check(question, next(self._states_with_deletions), live, ranks)
        self._oracle.close()

    def _check_in_memory(self, question: Question, positions: Positions) -> None:
        where = question.arguments()["where"]
        if where is not None:
            matched = np.flatnonzero(matching(where, self._rows, self._types))
            assert matched.tolist() == sorted(positions.tolist())

    def _check(
        self, question: Question, state: State, positions: Positions, ranks: Positions
    ) -> None:
        with _noted(f"{state.name}: scan({question})"):
            arguments: dict[str, Any] = question.arguments() | {"use_indexes": state.use_indexes}
            scan = state.table.scan(**arguments)
            rows = scan.to_arrow()
            check_rows(rows, self._rows, question, positions, ranks)
            assert question.columns is not None or rows.schema == state.table.schema
            check_explanation(scan.explain(), self._file_count)
            counting = state.table.scan(**arguments)
            limit = len(positions) if question.limit is None else question.limit
            assert counting.count() == min(len(positions), limit)
            check_explanation(counting.explain(), self._file_count)


@contextmanager
def _noted(text: str) -> Iterator[None]:
    """Add to an error what is needed to reproduce it."""
    try:
        yield
    except Exception as error:
        error.add_note(text)
        raise
