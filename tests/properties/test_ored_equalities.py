"""Equalities joined by OR, which become one IN: the rows are those of the single equalities."""

from __future__ import annotations

import functools
import operator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

import alcid
from alcid import DataType, Predicate, col
from alcid.errors import LiteralError
from alcid.expressions import Or, bind, matching, normalize
from alcid.testing import matching_rows
from alcid.testing.strategies import columns, literals
from tests.properties.kit import TYPES, run


@pytest.mark.fuzz
@pytest.mark.parametrize("data_type", TYPES, ids=str)
def test_ored_equalities_match_the_rows_of_each(data_type: DataType) -> None:
    merged = 0

    def check(data: st.DataObject) -> None:
        nonlocal merged
        column = data.draw(columns(data_type), label="column")
        table = pa.table({"c": column.to_arrow()})
        types = {"c": data_type}
        drawn = data.draw(st.lists(literals(column), min_size=2, max_size=8), label="literals")
        cut = data.draw(st.integers(0, len(drawn) // 2), label="in a list")
        parts = [col("c") == literal for literal in drawn[cut:]]
        if cut:
            parts.append(col("c").isin(drawn[:cut]))
        predicate = Or.of(parts)
        try:
            masks = [matching(part, table, types) for part in parts]
        except LiteralError:
            with pytest.raises(LiteralError):
                matching(predicate, table, types)
            return
        mask = matching(predicate, table, types)
        assert mask.tolist() == np.logical_or.reduce(masks).tolist()
        expected = matching_rows({"c": column.pattern}, types, predicate)
        assert set(np.flatnonzero(mask).tolist()) == set(column.rows_of(expected))
        bound = bind(normalize(predicate), types.get)
        merged += len(list(bound.leaves())) < len(parts)

    run(check, f"ored {data_type}", examples=40)
    assert merged


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ored")
    source = np.random.default_rng(7)
    for file in range(4):
        numbers = source.integers(0, 2_000, 3_000)
        rows = {
            "bloom": numbers * 3 + file,
            "bitmap": pa.array([f"n{number % 500}" for number in numbers]),
            "range": numbers + 1_000 * file,
            "plain": pa.array(numbers, pa.int32(), mask=numbers % 11 == 0),
        }
        pq.write_table(
            pa.table(rows), root / f"{file}.parquet", row_group_size=1_000, write_page_index=True
        )
    alcid.parquet(str(root)).build_indexes(
        {
            "file-index.bloom-filter.columns": "bloom",
            "file-index.bitmap.columns": "bitmap",
            "file-index.range-bitmap.columns": "range",
        }
    )
    return root


@pytest.mark.parametrize("name", ["bloom", "bitmap", "range", "plain"])
@pytest.mark.parametrize("count", [2, 40, 300])
def test_scans_of_ored_equalities_are_those_of_in(folder: Path, name: str, count: int) -> None:
    table = alcid.parquet(str(folder))
    values = pq.read_table(folder / "2.parquet", columns=[name])[name].to_pylist()[:count]
    values[1] = "nowhere" if isinstance(values[0], str) else -1
    equal = [col(name) == value for value in values if value is not None]
    predicate: Predicate = functools.reduce(operator.or_, equal)
    rows = table.scan(predicate).to_arrow()
    assert rows.num_rows
    assert rows == table.scan(col(name).isin(values)).to_arrow()
    assert rows == table.scan(predicate, use_indexes=False).to_arrow()
    assert table.count(predicate) == rows.num_rows
    other = predicate & (col("range") > 1_500)
    plain = table.scan(other, use_indexes=False).to_arrow()
    assert table.scan(other).to_arrow() == plain
