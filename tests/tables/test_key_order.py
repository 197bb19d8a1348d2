"""Ranks of rows, compared with Python's sort of the same values."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

from alcid.tables.key_order import rank_rows
from tests.tables.paimon.key_rows import VALUES, Rank, columns, rank


def ranks(rows: list[Rank], *, descending: bool = False) -> list[int]:
    """The rank of every row among the distinct ones."""
    keys = [rank(row, descending=descending) for row in rows]
    return [len({other for other in keys if other < key}) for key in keys]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", sorted(VALUES))
def test_values_and_null_are_ranked_in_the_order_of_paimon(name: str, descending: bool) -> None:
    kind, values = VALUES[name]
    rows = [(value,) for value in [*reversed(values), None, *values, None]]
    ranked = rank_rows(columns(rows, [kind]), len(rows), descending=descending)
    assert ranked.tolist() == ranks(rows, descending=descending)


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_slice_is_ranked_by_its_own_values(name: str) -> None:
    kind, values = VALUES[name]
    (column,) = columns([(value,) for value in [values[-1], *values]], [kind])
    rows = [(value,) for value in values]
    assert rank_rows([column.combine_chunks()[1:]], len(rows)).tolist() == ranks(rows)


@pytest.mark.parametrize("first", ["bigint", "wide decimal", "double", "string", "boolean"])
@pytest.mark.parametrize("second", ["bigint", "wide decimal", "tinyint", "binary"])
def test_the_first_column_counts_before_the_second(first: str, second: str) -> None:
    rows = list(product(VALUES[first][1], VALUES[second][1]))[::-1]
    ranked = rank_rows(columns(rows, [VALUES[first][0], VALUES[second][0]]), len(rows))
    assert ranked.tolist() == ranks(rows)


def test_columns_that_are_too_wide_together_are_ranked_one_by_one() -> None:
    rows: list[Rank] = list(product([0, 1 << 62], [0, 1, 1 << 62], [-(1 << 62), 5, 1 << 62]))
    ranked = rank_rows(columns(rows, [pa.int64()] * 3), len(rows))
    assert ranked.tolist() == list(range(18))


def test_rows_without_columns_are_all_the_same() -> None:
    assert rank_rows([], 3).tolist() == [0, 0, 0]
    assert rank_rows([pa.array([], pa.string())], 0).tolist() == []
