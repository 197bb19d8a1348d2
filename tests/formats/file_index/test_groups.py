from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.errors import LimitError
from alcid.formats.file_index import BUILDERS, distinct
from alcid.formats.file_index.distinct import group, rank, rank_bytes
from alcid.formats.file_index.keys import KeyColumn, read_column
from alcid.types import DataType

INT64 = st.integers(-(2**63), 2**63 - 1)
EDGES = st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 2**62, 2**63 - 1])
TEXT = st.builds(
    lambda prefix, units: prefix + b"".join(units),
    st.sampled_from([b"", b"shared-", b"x" * 20]),
    st.lists(st.sampled_from([b"\0", b"a", b"b", b"\xff", b"seven77"]), max_size=12),
)


def column_of(values: list[int | None] | list[bytes | None], arrow_type: pa.DataType) -> KeyColumn:
    array = pa.array(values, arrow_type)
    return read_column(array, DataType.from_arrow(array.type))


def check(values: list[int | None] | list[bytes | None], column: KeyColumn) -> None:
    expected: dict[object, list[int]] = {}
    for row, value in enumerate(values):
        if value is not None:
            expected.setdefault(value, []).append(row)
    distinct = sorted(expected)  # type: ignore[type-var]
    groups, ranked = group(column), rank(column)
    assert groups.keys.tolist() == ranked.keys.tolist() == distinct
    rows = [part.tolist() for part in np.split(groups.rows, groups.starts[1:-1])]
    assert rows[: len(distinct)] == [expected[key] for key in distinct]
    order = {key: index for index, key in enumerate(distinct)}
    assert ranked.ranks.tolist() == [order[value] for value in values if value is not None]


@given(st.lists(st.none() | st.integers(-5, 5)))
def test_keys_of_a_narrow_span_are_grouped_in_one_word(values: list[int | None]) -> None:
    check(values, column_of(values, pa.int64()))


@given(st.lists(st.none() | INT64 | EDGES))
def test_keys_of_a_span_beyond_a_word_are_grouped_the_same(values: list[int | None]) -> None:
    check(values, column_of(values, pa.int64()))


@given(st.lists(st.none() | TEXT))
def test_text_is_grouped_by_its_bytes(values: list[bytes | None]) -> None:
    check(values, column_of(values, pa.binary()))


@given(st.lists(TEXT, max_size=60))
def test_ranking_directly_equals_ranking_a_dictionary(values: list[bytes]) -> None:
    array = pa.array(values, pa.large_binary())
    with pytest.MonkeyPatch.context() as patch:
        direct = rank_bytes(pa.array(values, pa.large_binary()))
        patch.setattr(distinct, "_SAMPLE", 0)  # an empty sample looks like repetitions
        by_dictionary = rank_bytes(array)
    assert direct[0].to_pylist() == by_dictionary[0].to_pylist() == sorted(set(values))
    assert direct[1].tolist() == by_dictionary[1].tolist()


def test_a_slice_of_an_array_is_ranked_by_its_own_values() -> None:
    array = pa.array([b"z", b"b", b"a", b"b"], pa.large_binary())[1:]
    keys, ranks = rank_bytes(array)
    assert keys.to_pylist() == [b"a", b"b"]
    assert ranks.tolist() == [1, 0, 1]


def test_long_values_that_begin_alike_are_compared_to_their_ends() -> None:
    """Values equal in the first 16 words, in two groups that begin with different letters."""
    suffixes = [b"c", b"", b"a", b"ab", b"c", b"\0", b"a", b"z" * 300, b"z" * 299 + b"y"]
    values = [begin * 130 + suffix for suffix in suffixes for begin in (b"y", b"x")]
    values += [b"w", b"x" * 112, b"x" * 113, b"y" * 7]
    keys, ranks = rank_bytes(pa.array(values, pa.large_binary()))
    assert keys.to_pylist() == sorted(set(values))
    assert ranks.tolist() == [sorted(set(values)).index(value) for value in values]


def _built(kind: str, values: list[bytes]) -> bytes:
    return BUILDERS[kind](read_column(pa.array(values), DataType.parse("STRING")))


@pytest.mark.parametrize("kind", ["bitmap", "range-bitmap"])
def test_an_index_does_not_hold_more_text_than_the_bound(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory is bounded by the limit, not by the column, which is far larger here."""
    assert distinct.MOST_KEY_BYTES == 128 << 20
    bound = 1 << 20
    few = [b"%07d" % (row % 1000) * 128 for row in range(6000)]
    at_most = [b"%016d" % row * 64 for row in range(1024)] * 2
    direct = {len(keys): _built(kind, keys) for keys in (few, at_most)}
    monkeypatch.setattr(distinct, "MOST_KEY_BYTES", bound)
    for values in (few, at_most):  # longer than the limit, but within it if each counts once
        assert _built(kind, values) == direct[len(values)]
    with pytest.raises(
        LimitError, match=f"found {bound + 1} bytes of distinct values, expected at"
    ):
        _built(kind, [*at_most, b"x"])
    column = read_column(
        pa.array([b"%016d" % row * 256 for row in range(16 << 10)]), DataType.parse("STRING")
    )
    assert column.keys.nbytes > 64 * bound
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        with pytest.raises(LimitError):
            BUILDERS[kind](column)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)
    assert peak + (pool.max_memory() or 0) < 2 * bound
