"""Asks a table a question in one of the ways, and compares the answer with the correct rows."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from tests.cross.data import ROW, Data
from tests.cross.factors import Case
from tests.cross.questions import Question
from tests.cross.tables import make_table
from tests.datafiles.parquet.kit import assert_same
from tests.scan.answers import check_explanation
from tests.scan.test_differential import SMALL

__all__ = ["AskedTable", "ask", "with_costs"]

_PLAIN, _INDEXES, _PAGES, _SEARCH = SMALL
_COSTS: Final[dict[str, dict[str, Any]]] = {
    "as they are": _PLAIN,
    "indexes": _INDEXES,
    "pages": _PAGES,
    "search": {**_SEARCH, "top_n._FIRST_WAVE": 1},  # a cut-off after each file
}


@contextmanager
def with_costs(level: str) -> Iterator[None]:
    """Plan as if reading had other costs."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _COSTS[level].items():
            patch.setattr(f"alcid.scan.{name}", value)
        yield


class AskedTable:
    """A table on disk while it is tested, and everything known about it."""

    def __init__(self, levels: Mapping[str, str], seed: int) -> None:
        source = random.Random(seed)
        self.data = Data(levels, source)
        self._folder = Path(tempfile.mkdtemp(prefix="alcid-cross-"))
        try:
            self.table = make_table(levels, self.data, self._folder, source)
            schema = self.table.schema
            self._rows = self.data.rows.select(schema.names).cast(schema)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> AskedTable:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        shutil.rmtree(self._folder)

    def ask(self, question: Question, way: str) -> None:
        """Ask a question and check the answer."""
        scan = self.table.scan(**question.arguments, use_indexes=not way.startswith("plain"))
        if way.endswith("count"):
            assert scan.count() == question.count
            return
        if way != "explain":
            self._check(scan.to_arrow(), question)
        if "explain" in way:
            check_explanation(scan.explain(), self.table.files)

    def _check(self, table: pa.Table, question: Question) -> None:
        names = self._rows.column_names if question.columns is None else question.columns
        assert table.column_names == list(names)
        assert table.num_rows == question.count
        row_numbers = table[ROW].to_numpy()
        assert len(np.unique(row_numbers)) == len(row_numbers), "a row twice"
        assert np.isin(row_numbers, question.positions).all(), "a row that does not match"
        expected = np.sort(question.ranks[question.positions])[: question.count]
        if question.order:
            assert np.array_equal(question.ranks[row_numbers], expected), "not in order"
        assert_same(table, self._rows.select(list(names)).take(pa.array(row_numbers)))


def ask(case: Case) -> None:
    """Make the table of a case and ask its question."""
    with AskedTable(case.levels, case.table) as asked, with_costs(case["costs"]):
        question = Question(asked.data, case["shape"], case["order"], case.question)
        asked.ask(question, case["way"])


def described(case: Case) -> dict[str, Any]:
    """The arguments of the scan of a case."""
    data = Data(case.levels, random.Random(case.table))
    return Question(data, case["shape"], case["order"], case.question).arguments
