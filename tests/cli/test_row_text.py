"""Values of any Arrow type as texts and as JSON."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from alcid.cli.row_output import json_values, texts

_MAP_OF_TEXT = pa.map_(pa.string(), pa.int64())
_MAP = pa.map_(pa.int32(), pa.timestamp("ns"))


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.list_(pa.timestamp("ns")), [[1], None, []], [["1970-01-01 00:00:00.000000001"]]),
        (pa.list_(pa.date32()), [[3_000_000], None, []], [["10183-09-21"]]),
        (pa.large_list(pa.float32()), [[0.1], None, []], [[0.1]]),
        (pa.list_(pa.time32("s"), 1), [[61], None, [5]], [["00:01:01"]]),
        (_MAP, [[(7, 0)], None, []], [{"7": "1970-01-01 00:00:00"}]),
        (pa.map_(pa.string(), pa.int8()), [[("a", 1), ("a", 2)]], [{"a": 2}]),
        (
            pa.struct([("at", pa.timestamp("us")), ("tags", _MAP)]),
            [{"at": 1_500_000, "tags": [(1, None)]}, None],
            [{"at": "1970-01-01 00:00:01.5", "tags": {"1": None}}, None],
        ),
        (pa.duration("ns"), [1_500_000_001, None], [1.500000001, None]),
        (pa.float32(), [float("nan"), float("-inf"), 0.1], ["NaN", "-Infinity", 0.1]),
    ],
    ids=str,
)
def test_a_value_of_any_type_becomes_json(
    kind: Any, values: list[Any], expected: list[Any]
) -> None:
    column = pa.chunked_array([pa.array(values, kind)])
    assert json_values(column)[: len(expected)] == expected


def test_a_part_of_a_nested_column_has_its_own_values() -> None:
    lists = pa.chunked_array([pa.array([[1, 2], [3], None, [4, 5]])])
    maps = pa.chunked_array([pa.array([[("a", 1)], [("b", 2)], None], _MAP_OF_TEXT)])
    structs = pa.chunked_array([pa.array([{"x": 1}, None, {"x": 3}])])
    assert json_values(lists.slice(1)) == [[3], None, [4, 5]]
    assert json_values(maps.slice(1)) == [{"b": 2}, None]
    assert texts(structs.slice(1)) == [None, '{"x": 3}']
