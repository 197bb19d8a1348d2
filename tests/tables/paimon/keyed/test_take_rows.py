"""Rows by position, from many chunks."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.tables.paimon.keyed import key_files as taking
from alcid.tables.paimon.keyed.key_files import take_rows

COUNT = 60


def chunked(cuts: list[int]) -> pa.Table:
    """Rows 0 to 59 in chunks, some of them empty."""
    ends = sorted({0, COUNT, *cuts})
    numbers = pa.chunked_array(
        [
            pa.array(range(start, stop), pa.int64())
            for start, stop in zip(ends, [*ends[1:], COUNT], strict=True)
        ]
    )
    texts = pa.array([None if number % 5 == 0 else "x" * number for number in range(COUNT)])
    lists = pa.array([[number, None] * (number % 3) for number in range(COUNT)])
    return pa.table({"number": numbers, "text": texts, "list": lists})


@given(
    st.lists(st.integers(0, COUNT), max_size=5),
    st.lists(st.integers(0, COUNT - 1), max_size=100),
    st.sampled_from([1, 300, 1 << 28]),
)
def test_rows_are_those_of_take(cuts: list[int], positions: list[int], step_bytes: int) -> None:
    rows = chunked(cuts)
    with patch.object(taking, "_STEP_BYTES", step_bytes):
        taken = take_rows(rows, np.array(positions, np.int64))
    assert taken.schema == rows.schema
    assert taken.equals(rows.combine_chunks().take(pa.array(positions, pa.int64())))


def test_a_position_that_does_not_exist_is_an_error() -> None:
    for position in (COUNT, -1):
        with pytest.raises(IndexError):
            take_rows(chunked([7]), np.array([position]))
