"""Top-n of range-bitmap compared with a sort."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import strategies as st
from pyroaring import BitMap

from alcid import DataType, Selection
from alcid.testing import top_rows
from alcid.testing.strategies import columns
from tests.properties.kit import RANGE_BITMAP, build, is_truncated, run

TYPES = RANGE_BITMAP.types
ASKED = 40  # of each column
NULLS: tuple[Literal["first", "last"], ...] = ("first", "last")


@pytest.mark.fuzz
@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_top_n_holds_the_best_rows_and_their_ties(data_type: DataType) -> None:
    asked = 0

    def check(data: st.DataObject) -> None:
        nonlocal asked
        column = data.draw(columns(data_type, "range-bitmap", large=False), label="column")
        index = build(column, RANGE_BITMAP.draw_options(data, "c"))
        values, count = column.values, column.row_count
        for _ in range(ASKED):
            k = data.draw(st.sampled_from((0, 1, 2, 3, count // 2, count, count + 1)))
            order: dict[str, Any] = {
                "descending": data.draw(st.booleans()),
                "nulls": data.draw(st.sampled_from(NULLS)),
            }
            among = None
            if data.draw(st.booleans()):
                among = data.draw(st.sets(st.integers(0, max(count - 1, 0)), max_size=12))
                among &= set(range(count))
            allowed = among if data.draw(st.booleans()) else _selection(among)
            answer = index.top_n("c", k, among=allowed, **order).rows
            expected = BitMap(top_rows(values, data_type, k, among=among, **order))
            candidates = count if among is None else len(among)
            if data_type.root == "CHAR":  # its keys lack the padding that Spark sorts by
                assert answer is None or answer >= expected
            elif is_truncated(data_type):
                assert answer is not None
                assert answer >= expected
            else:
                assert answer == expected
                exactly = index.top_n("c", k, among=allowed, ties=False, **order).rows
                assert exactly is not None
                assert len(exactly) == min(k, candidates)
                assert exactly <= expected
                assert exactly >= _without_ties(values, data_type, k, expected, among, order)
            asked += 1

    run(check, str(data_type), examples=15)
    assert asked >= 15 * ASKED


def _selection(among: set[int] | None) -> Selection:
    return Selection(None if among is None else BitMap(among), exact=True)


def _without_ties(
    values: list[Any],
    data_type: DataType,
    k: int,
    best: BitMap,
    among: set[int] | None,
    order: dict[str, Any],
) -> BitMap:
    """The rows that belong to the first `k` for every choice among equal ones."""
    if len(best) <= k:
        return best
    # Fewer than k rows are better than the last one: they are the top k - 1, k - 2, ...
    smaller = (BitMap(top_rows(values, data_type, n, among=among, **order)) for n in range(k)[::-1])
    return next((rows for rows in smaller if len(rows) <= k), BitMap())
