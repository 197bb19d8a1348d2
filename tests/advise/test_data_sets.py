"""Advice compared with measured builds, on five generated data sets."""

from __future__ import annotations

from pathlib import Path

import pytest

import alcid
from alcid.advise import ColumnAdvice
from tests.advise.data_sets import FILES, SETS, DataSet
from tests.advise.truth import true_skip

SAMPLE = 12
MOST_OFF = 0.10  # for the share that is skipped
MOST_LARGER = 0.20  # for the bytes of indexes


@pytest.mark.parametrize("name", SETS)
def test_sizes_and_skips_come_out_as_predicted(name: str, tmp_path: Path) -> None:
    made = SETS[name]
    folder = made.write(tmp_path)
    advice = alcid.parquet(folder).advise(made.queries, sample=SAMPLE, progress=False)
    assert len(advice.sampled_files) <= SAMPLE + 8 < FILES
    assert {
        advised.column: advised.index for advised in advice.columns if advised.skip is not None
    } == made.index
    for column in advice.columns:
        check_column(column, made, folder)
    if advice.options:
        table = alcid.parquet(folder)
        table.build_indexes(advice.options, progress=False)
        assert advice.skip == pytest.approx(true_skip(table, made.queries), abs=MOST_OFF)


def check_column(advice: ColumnAdvice, made: DataSet, folder: Path) -> None:
    """Build every index that was estimated, also those that were not advised."""
    queries = [query for query in made.queries if advice.column in query]
    if advice.skip is None:
        assert (queries, advice.index, advice.candidates) == ([], "", ())
        return
    before = true_skip(alcid.parquet(folder), queries)
    assert advice.skip_before == pytest.approx(before, abs=MOST_OFF)
    for candidate in advice.candidates:
        table = alcid.parquet(folder)
        table.build_indexes(
            {f"file-index.{candidate.index}.columns": advice.column}, progress=False
        )
        (info,) = table.indexes()
        assert candidate.table_bytes == pytest.approx(info.bytes, rel=MOST_LARGER), candidate
        assert candidate.bytes_per_row * table.count() == pytest.approx(candidate.table_bytes)
        assert candidate.skip == pytest.approx(true_skip(table, queries), abs=MOST_OFF), candidate
        table.drop_indexes()
