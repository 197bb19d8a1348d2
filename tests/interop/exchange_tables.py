"""A table that several systems write: its expected rows, and the expected plans of ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import alcid
from alcid import PaimonTable
from alcid._arrays import BoolArray, Int64Array
from alcid.scan import Explanation, planner
from tests.interop.exchange_rows import (
    QUESTIONS,
    ROWS,
    SCHEMA,
    SEASONS,
    Question,
    rows_of,
)

_ABSENT = -1


@cache
def _everything() -> pa.Table:
    return pa.concat_tables([rows_of(range(ROWS), season) for season in range(SEASONS)])


class Model:
    """The rows of a table: for each number the season in which it was last written."""

    def __init__(self) -> None:
        self.seasons = np.full(ROWS, _ABSENT, np.int64)

    def write(self, numbers: Int64Array, season: int = 0) -> pa.Table:
        """Add rows to the model; returns them as they are to be written."""
        self.seasons[numbers] = season
        return _everything().take(season * ROWS + numbers)

    def delete(self, question: Question) -> int:
        """Delete the matching rows from the model; returns how many they were."""
        gone = self._matching(question)
        self.seasons[gone] = _ABSENT
        return len(gone)

    def rows(self, question: Question | None = None) -> pa.Table:
        """The matching rows, sorted by id."""
        numbers = self._matching(question)
        return _everything().take(self.seasons[numbers] * ROWS + numbers)

    def _matching(self, question: Question | None) -> Int64Array:
        numbers = np.flatnonzero(self.seasons != _ABSENT)
        if question is None:
            return numbers
        return numbers[question.matches[self.seasons[numbers], numbers]]

    def is_live(self, numbers: Int64Array, seasons: Int64Array) -> BoolArray:
        """Whether a table shows these rows of files."""
        shown: BoolArray = self.seasons[numbers] == seasons
        return shown


def check_rows(rows: pa.Table, expected: pa.Table) -> None:
    """Check equal rows in any order, floats to the bit."""
    assert rows.column_names == SCHEMA.names
    assert len(rows) == len(expected)
    left, other = _comparable(rows), _comparable(expected)
    for name in SCHEMA.names:
        assert left[name].equals(other[name]), name


def _comparable(rows: pa.Table) -> pa.Table:
    rows = rows.cast(pa.schema([(field.name, field.type) for field in SCHEMA])).sort_by("id")
    bits = rows["score"].combine_chunks().view(pa.int64())
    return rows.set_column(rows.schema.get_field_index("score"), "score", bits)


# -- plans -------------------------------------------------------------------------------------


class Physical:
    """The content of the data files of a table, read without our code."""

    def __init__(self, table: PaimonTable, model: Model) -> None:
        self._files: list[tuple[Int64Array, Int64Array]] = []
        self._model = model
        for placed in table.snapshot.placed:
            path = Path(table.location) / placed.path
            read = orc.read_table if placed.format == "orc" else pq.read_table
            rows: Any = read(path, columns=["id", "season"])
            ids, seasons = (column.to_numpy().astype(np.int64) for column in rows.columns)
            self._files.append((ids // 3, seasons))
        assert sum(map(len, (file for file, _ in self._files))) >= len(model.rows())

    def left_by_indexes(self, question: Question) -> tuple[int, int]:
        """Files and rows left by indexes; a bloom filter leaves all rows of a file."""
        return _count(self._matches(question), whole_files=question.index_gives == "files")

    def left_by_vectors(self, question: Question) -> tuple[int, int]:
        """Files and rows left by indexes that are neither deleted nor rewritten since."""
        pairs = zip(self._matches(question), self._live, strict=True)
        if question.index_gives == "files":
            return _count(live for matching, live in pairs if matching.any())
        return _count(matching & live for matching, live in pairs)

    def _matches(self, question: Question) -> list[BoolArray]:
        return [question.matches[seasons, numbers] for numbers, seasons in self._files]

    @property
    def _live(self) -> list[BoolArray]:
        return [self._model.is_live(*file) for file in self._files]


def _count(files: Iterable[BoolArray], *, whole_files: bool = False) -> tuple[int, int]:
    hits = [file for file in files if file.any()]
    return len(hits), sum(len(file) if whole_files else int(file.sum()) for file in hits)


def check_plan(explanation: Explanation, question: Question, physical: Physical) -> None:
    """Check that indexes and vectors leave exactly the files and rows that they can."""
    stages = {stage.name: stage for stage in explanation.stages}
    before, after = stages["file index"].before, stages["file index"].after
    assert sum(stages["file index"].dropped.values()) == before.files - after.files
    assert (after.files, after.rows) == physical.left_by_indexes(question), question.sql
    if "deletion vectors" in stages:
        after = stages["deletion vectors"].after
    assert (after.files, after.rows) == physical.left_by_vectors(question), question.sql
    for use in explanation.indexes:
        answers = ("answered", "ruled out", "may contain it")
        assert use.outcome in answers, (question.sql, use)


def ask_every_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan as if files were so large that every index pays off."""
    monkeypatch.setattr(
        planner, "full_scan_bytes", lambda table, _: np.full(len(table.sizes), 1 << 40)
    )


def check_ours(path: Path, model: Model, questions: Sequence[Question] = QUESTIONS) -> None:
    """Check that we read the rows of the table, with plans that use its indexes and vectors."""
    table = alcid.paimon(path, strict=True)
    check_rows(table.scan().to_arrow(), model.rows())
    physical = Physical(table, model)
    for question in questions:
        scan = table.scan(question.sql)
        check_rows(scan.to_arrow(), model.rows(question))
        assert table.count(question.sql) == len(model.rows(question))
        if question.index_gives != "nothing":
            check_plan(scan.explain(), question, physical)
