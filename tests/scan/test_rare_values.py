"""An index is asked for values that are expected to be rare: narrow ranges, single texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import alcid
from alcid.expressions.probes import Interval, intersect

ROWS = 200_000
OPTIONS = {"file-index.range-bitmap.columns": "score"}


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scores")
    random = np.random.default_rng(7)
    rows = pa.table({"id": np.arange(ROWS), "score": random.permutation(ROWS) / 2})
    pq.write_table(rows, folder / "a.parquet", write_page_index=True, data_page_size=8192)
    alcid.parquet(folder).build_indexes(OPTIONS)
    return folder


@pytest.mark.parametrize(
    "where",
    [
        "score > 49999.5 AND score < 50001",
        "score BETWEEN 50000 AND 50000.5",
        "score >= 50000 AND id >= 0 AND score <= 50000.5",
    ],
)
def test_both_ends_of_a_narrow_range_are_asked(scores: Path, where: str) -> None:
    scan = alcid.parquet(scores).scan(where, columns=["score"], order_by="score")
    assert scan.to_arrow()["score"].to_pylist() == [50000.0, 50000.5]
    outcomes = {use.outcome for use in scan.explain().indexes if use.index == "range-bitmap"}
    assert outcomes == {"answered"}


def test_a_wide_range_is_read_without_its_index(scores: Path) -> None:
    scan = alcid.parquet(scores).scan("score > 10 AND score < 99990")
    assert scan.to_arrow().num_rows == 2 * (99990 - 10) - 1
    outcomes = {use.outcome for use in scan.explain().indexes if use.index == "range-bitmap"}
    assert outcomes == {"not worth it"}


def _intervals(cuts: list[int], is_open: bool) -> tuple[Interval, ...]:
    """The intervals between every other pair of cuts; one more cut takes everything beyond it."""
    bounds: list[int | None] = [None, *cuts] if is_open else [*cuts]
    if len(bounds) % 2:
        bounds.append(None)
    return tuple(zip(bounds[::2], bounds[1::2], strict=True))


CUTS = st.lists(st.integers(-20, 20), unique=True, min_size=1, max_size=8).map(sorted)
INTERVALS = st.builds(_intervals, CUTS, st.booleans())


def _holds(intervals: tuple[Interval, ...], key: int) -> bool:
    return any(
        (begin is None or key >= begin) and (end is None or key < end)  # type: ignore[operator]
        for begin, end in intervals
    )


@given(INTERVALS, INTERVALS)
def test_keys_of_two_lists_of_intervals_are_those_in_both(
    some: tuple[Interval, ...], others: tuple[Interval, ...]
) -> None:
    both = intersect(some, others)
    for key in range(-22, 23):
        assert _holds(both, key) == (_holds(some, key) and _holds(others, key))


def test_a_bitmap_is_asked_for_a_text_though_nothing_is_known_of_it(tmp_path: Path) -> None:
    numbers = np.random.default_rng(3).permutation(60_000)
    rows = pa.table({"name": [f"n{number % 5000:04}" for number in numbers], "id": numbers})
    pq.write_table(rows, tmp_path / "a.parquet", write_page_index=True, data_page_size=8192)
    alcid.parquet(tmp_path).build_indexes({"file-index.bitmap.columns": "name"})
    scan = alcid.parquet(tmp_path).scan("name = 'n4711'", columns=["id"], order_by="id")
    assert scan.to_arrow()["id"].to_pylist() == list(range(4711, 60_000, 5000))
    assert {use.outcome for use in scan.explain().indexes} == {"answered"}
