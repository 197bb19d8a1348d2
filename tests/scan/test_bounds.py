"""Minimum and maximum rule out no file with a match, and are certain only for whole files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from alcid import DataType
from alcid.expressions import (
    InIntervals,
    NotInIntervals,
    NullRows,
    matching,
    normalize,
    parse,
    probe_for,
)
from alcid.index.bundle import ColumnStatistics, Statistics
from alcid.index.bundle.statistics import statistics_array
from alcid.scan.bounds import Bounds
from alcid.testing.strategies import columns, comparisons, literals
from tests.properties.kit import TYPES, run

BIGINT, DOUBLE = DataType("BIGINT"), DataType("DOUBLE")


def bounds_of(arrays: list[pa.Array], data_type: DataType) -> Bounds:
    statistics = [ColumnStatistics.of(array, data_type) for array in arrays]
    values = statistics_array("c", data_type, statistics)
    rows = np.array([len(array) for array in arrays])
    return Bounds(Statistics("c", data_type, values), rows)


@pytest.mark.fuzz
@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_no_match_is_ruled_out_and_what_is_certain_matches(data_type: DataType) -> None:
    ruled_out = all_match = 0

    def check(data: st.DataObject) -> None:
        nonlocal ruled_out, all_match
        column = data.draw(columns(data_type, large=False), label="column")
        array = column.to_arrow()
        cut = data.draw(st.integers(0, len(array)), label="cut")
        arrays = [array[:cut], array[cut:], array, array[:1]]
        bounds = bounds_of(arrays, data_type)
        leaves_of = data.draw(st.lists(literals(column), min_size=3, max_size=5), label="literals")
        for leaf in comparisons("c", leaves_of):
            result = bounds.evaluate(probe_for(normalize(leaf), "c", data_type))
            for number, part in enumerate(arrays):
                mask = matching(leaf, pa.table({"c": part}), {"c": data_type})
                assert result.may_match[number] or not mask.any(), (leaf, part)
                assert not result.all_match[number] or mask.all(), (leaf, part)
                ruled_out += not result.may_match[number]
                all_match += bool(result.all_match[number])
            selectivity = bounds.selectivity(probe_for(normalize(leaf), "c", data_type))
            assert ((selectivity >= 0) & (selectivity <= 1)).all()

    run(check, f"bounds {data_type}", examples=15)
    assert ruled_out > 50
    assert all_match > 0


def test_nothing_is_concluded_where_nothing_is_known() -> None:
    values = statistics_array("c", BIGINT, [None, ColumnStatistics(BIGINT)])
    bounds = Bounds(Statistics("c", BIGINT, values), np.array([5, -1]))
    for text in ("c = 1", "c IS NULL", "c IS NOT NULL", "c <> 1", "c NOT IN (1, 2)"):
        result = bounds.evaluate(probe_for(normalize(parse(text)), "c", BIGINT))
        assert result.may_match.tolist() == [True, True], text
        assert result.all_match.tolist() == [False, False], text


@pytest.mark.parametrize(
    ("has_nan", "text", "may_match", "all_match"),
    [
        (True, "c > 5", True, False),
        (None, "c > 5", True, False),
        (False, "c > 5", False, False),
        (True, "c <= 2", True, False),
        (False, "c <= 2", True, True),
        (True, "c = CAST('NaN' AS DOUBLE)", True, False),
        (False, "c = CAST('NaN' AS DOUBLE)", False, False),
        (True, "c >= 1", True, True),
    ],
    ids=str,
)
def test_a_nan_is_above_the_greatest_value(
    has_nan: bool | None, text: str, may_match: bool, all_match: bool
) -> None:
    statistics = ColumnStatistics(DOUBLE, 1.0, 2.0, 0, has_nan)
    bounds = Bounds(
        Statistics("c", DOUBLE, statistics_array("c", DOUBLE, [statistics])), np.array([10])
    )
    result = bounds.evaluate(probe_for(normalize(parse(text)), "c", DOUBLE))
    assert (result.may_match.tolist(), result.all_match.tolist()) == ([may_match], [all_match])


def test_the_share_of_rows_is_that_of_evenly_spread_values() -> None:
    bounds = bounds_of([pa.array([*range(90), *[None] * 10])], BIGINT)
    assert bounds.selectivity(InIntervals(((0, 45),))).tolist() == [pytest.approx(0.45)]
    assert bounds.selectivity(NotInIntervals(((0, 45),))).tolist() == [pytest.approx(0.45)]
    assert bounds.selectivity(NullRows()).tolist() == [pytest.approx(0.1)]
