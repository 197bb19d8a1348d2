"""Samples and strategies: the values and literals that they promise."""

from __future__ import annotations

import math
import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from alcid import DataType, FileIndex
from alcid.testing import values_of
from alcid.testing.strategies import (
    SampleColumn,
    columns,
    edges,
    literals,
    literals_of,
    neighbours,
    trees,
)
from alcid.types import indexes_for

TYPES = [
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "CHAR(12)", "STRING"),
    *("BINARY(3)", "BYTES", "DATE", "TIME(3)", "TIME(6)", "TIMESTAMP(0)", "TIMESTAMP(3)"),
    *("TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(6)", "DECIMAL(9,3)", "DECIMAL(38,4)"),
]


@pytest.mark.parametrize("name", TYPES)
def test_edges_survive_arrow(name: str) -> None:
    data_type = DataType.parse(name)
    column = SampleColumn(data_type, (*edges(data_type), None), len(edges(data_type)) + 1)
    array = column.to_arrow()
    assert array.type == data_type.to_arrow()
    assert list(map(repr, values_of(array))) == list(map(repr, column.values))


@pytest.mark.parametrize("name", TYPES)
def test_every_index_holds_its_edges(name: str) -> None:
    data_type = DataType.parse(name)
    for index_type in indexes_for(data_type):
        column = SampleColumn(data_type, edges(data_type, index_type), 50)
        table = pa.table({"c": column.to_arrow()})
        index = FileIndex.build(table, {f"file-index.{index_type}.columns": "c"})
        assert [entry.index_type for entry in index.entries] == [index_type]


def test_edges_of_floats() -> None:
    values = edges(DataType("FLOAT"))
    assert {math.inf, -math.inf, 1.401298464324817e-45, 3.4028234663852886e38} <= set(values)
    assert sum(value == 0 for value in values) == 2
    assert sum(math.isnan(value) for value in values) == 1


def test_neighbours_of_a_float_of_four_bytes_lie_between_it_and_the_next() -> None:
    below, above, *floats = neighbours(1.0, DataType("FLOAT"))
    assert floats[0] < below < 1.0 < above < floats[1]


def test_a_value_that_no_literal_means_has_none() -> None:
    assert literals_of(1, DataType("TIME", precision=9)) == ()
    assert literals_of(-(2**63) * 1000, DataType("TIMESTAMP", precision=6)) == ()


@given(st.data())
def test_strategies_draw_for_every_type(data: st.DataObject) -> None:
    data_type = DataType.parse(data.draw(st.sampled_from(TYPES)))
    column = data.draw(columns(data_type))
    assert len(column.to_arrow()) == column.row_count
    data.draw(literals(column))
    assert set(data.draw(trees({"a": column})).columns()) <= {"a"}


def test_columns_of_every_size_are_drawn() -> None:
    drawn: list[SampleColumn] = []

    def keep(column: SampleColumn) -> None:
        drawn.append(column)

    once = settings(max_examples=400, phases=[Phase.generate], derandomize=True, database=None)
    once(given(columns(DataType("INT")))(keep))()
    assert {0, 1, 2**16 - 1, 2**16, 2**16 + 1} <= {column.row_count for column in drawn}
    distinct = {len(set(column.pattern) - {None}) for column in drawn if column.row_count}
    assert {0, 1, 2} <= distinct
    assert max(distinct) > 150
    shares = {column.pattern.count(None) / len(column.pattern) for column in drawn}
    assert {0.0, 1.0} < shares


def test_alcid_does_not_load_hypothesis() -> None:
    code = "import sys, alcid, alcid.testing; print('hypothesis' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout == "False\n"
