"""ORDER BY as Spark understands it."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from alcid import DataType, PredicateError, UnsupportedError
from alcid.scan.sorting import (
    SortKey,
    parse_order,
    sort_indices,
    top_k_indices,
)

DOUBLE = DataType("DOUBLE")
NAN = math.nan


def test_order_by_is_read_as_in_sql() -> None:
    assert parse_order("a, b desc,`c, ``d` ASC nulls last") == (
        SortKey("a", descending=False, nulls_first=True),
        SortKey("b", descending=True, nulls_first=False),
        SortKey("c, `d", descending=False, nulls_first=False),
    )
    assert parse_order(["a DESC NULLS FIRST", "größe"]) == (
        SortKey("a", descending=True, nulls_first=True),
        SortKey("größe"),
    )


@pytest.mark.parametrize("text", ["", "a,", "a DOWN", "a NULLS", "a b c", ",a", "a DESC ASC"])
def test_not_an_order_is_refused(text: str) -> None:
    with pytest.raises(PredicateError, match="order_by"):
        parse_order(text)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (SortKey("c"), [3, 5, 2, 4, 1, 0]),
        (SortKey("c", nulls_first=False), [5, 2, 4, 1, 0, 3]),
        (SortKey("c", descending=True, nulls_first=False), [0, 1, 2, 4, 5, 3]),
        (SortKey("c", descending=True), [3, 0, 1, 2, 4, 5]),
    ],
    ids=str,
)
def test_nan_is_the_greatest_and_both_zeros_are_equal(key: SortKey, expected: list[int]) -> None:
    column = pa.chunked_array([[NAN, math.inf, 0.0], [None, -0.0, -1.0]])
    assert sort_indices([(column, DOUBLE)], [key]).tolist() == expected


def test_a_signalling_nan_is_sorted_as_any_other() -> None:
    numbers = np.array([0x7FF0000000000001, 0x3FF0000000000000], np.uint64).view(np.float64)
    column = pa.chunked_array([pa.array(numbers)])
    assert sort_indices([(column, DOUBLE)], [SortKey("c")]).tolist() == [1, 0]


def test_text_goes_by_its_bytes_and_char_as_if_padded() -> None:
    column = pa.chunked_array([["é", "z", "a", "a\t", "a "]])
    assert sort_indices([(column, DataType.parse("STRING"))], [SortKey("c")]).tolist() == [
        *(2, 3, 4, 1, 0)
    ]
    # Padded to four, "a" and "a " are equal, and above "a\t".
    assert sort_indices([(column, DataType.parse("CHAR(4)"))], [SortKey("c")]).tolist() == [
        *(3, 2, 4, 1, 0)
    ]


def test_a_type_without_order_is_refused() -> None:
    column = pa.chunked_array([[[1], [2]]])
    with pytest.raises(UnsupportedError, match="column c"):
        sort_indices([(column, DataType.parse("ARRAY<INT>"))], [SortKey("c")])


@pytest.mark.parametrize("kind", ["BIGINT", "DOUBLE", "STRING", "DECIMAL(9,2)", "DATE"])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("nulls_first", [True, False])
@pytest.mark.parametrize("k", [1, 7, 300])
def test_the_best_rows_are_the_first_of_all_sorted(
    kind: str, descending: bool, nulls_first: bool, k: int
) -> None:
    rng = np.random.default_rng(k)
    data_type = DataType.parse(kind)
    numbers = pa.array(rng.integers(0, 400, 5000), mask=rng.random(5000) < 0.05)
    text = numbers.cast(pa.string())
    column = {
        "BIGINT": numbers,
        "DOUBLE": numbers.cast(pa.float64()),
        "STRING": text,
        "DECIMAL(9,2)": numbers.cast(pa.decimal128(19, 0)).cast(pa.decimal128(9, 2)),
        "DATE": numbers.cast(pa.int32()).cast(pa.date32()),
    }[kind]
    other = pa.chunked_array([rng.integers(0, 3, 5000)])
    columns = [(pa.chunked_array([column]), data_type), (other, DataType("BIGINT"))]
    keys = [SortKey("a", descending, nulls_first), SortKey("b")]
    assert top_k_indices(columns, keys, k).tolist() == sort_indices(columns, keys).tolist()[:k]
