"""Checks of the answer to a question, and of its explanation."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tests.datafiles.parquet.kit import assert_same
from tests.scan.outcome_checks import check_outcomes
from tests.scan.question import Question
from tests.scan.random_table import ROW

Positions = NDArray[np.int64]


def check_rows(
    table: pa.Table, rows: pa.Table, question: Question, positions: Positions, ranks: Positions
) -> None:
    """Make sure that an answer has the right rows in the right order.

    Args:
        table: The answer.
        rows: All rows, in the order of a scan.
        question: What was asked.
        positions: The positions of all rows that match, in the order that was asked for.
        ranks: The place of each row among the distinct sort keys.
    """
    names = table.column_names if question.columns is None else question.columns
    assert table.column_names == list(names)
    assert question.columns is not None or sorted(names) == sorted(rows.column_names)
    limit = len(positions) if question.limit is None else question.limit
    expected = positions[:limit]
    assert table.num_rows == len(expected)
    if ROW in names:
        given_positions = _places_of(table, rows)
        assert len(set(given_positions)) == len(given_positions), "a row twice"
        assert set(given_positions) <= set(positions.tolist()), "a row that does not match"
        if question.order:
            _check_order(given_positions, expected, ranks)
        elif question.limit is not None:  # any matching rows, but in the order of the files
            assert given_positions == sorted(given_positions), (
                "rows without an order are not in that of the files"
            )
            expected = np.array(given_positions, np.int64)
    assert_same(table, rows.select(list(names)).take(pa.array(expected, pa.int64())))


def _places_of(table: pa.Table, rows: pa.Table) -> list[int]:
    place_of = {number: position for position, number in enumerate(rows[ROW].to_pylist())}
    return [place_of[number] for number in table[ROW].to_pylist()]


def _check_order(returned: Sequence[int], expected: Positions, ranks: Positions) -> None:
    keys, expected_keys = ranks[list(returned)].tolist(), ranks[expected].tolist()
    assert keys == expected_keys, "other sort keys"
    above = {position for position, key in zip(returned, keys, strict=True) if key < keys[-1]}
    assert above == {position for position in expected.tolist() if ranks[position] < keys[-1]}
    assert list(returned) == expected.tolist(), "ties are not in the order of the files"


def check_explanation(explanation: Any, file_count: int) -> None:
    """Check that the numbers of an explanation are consistent."""
    assert str(explanation)
    stages = json.loads(explanation.to_json())["stages"]
    assert stages[0]["before"]["files"] == file_count
    for stage, following in itertools.pairwise(stages):
        assert stage["after"]["files"] == following["before"]["files"], (stage, following)
    for stage in stages:
        before, after = stage["before"], stage["after"]
        assert sum(stage["dropped"].values()) == before["files"] - after["files"], stage
        assert min(stage["dropped"].values(), default=1) > 0, stage
        assert stage["requests"] >= 0
        assert stage["bytes_read"] >= 0
        for counter in ("files", "row_groups", "pages", "rows", "bytes"):
            if before[counter] is not None and after[counter] is not None:
                assert 0 <= after[counter] <= before[counter], (counter, stage)
    check_outcomes(explanation)
