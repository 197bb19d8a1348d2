"""Advice on Paimon and Iceberg tables, compared with real builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid import PaimonTable
from alcid.advise import Advice, IndexEstimate
from alcid.errors import UnsupportedError
from alcid.tables.base import Table
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.paimon.metadata.commit import Change
from tests.advise.truth import true_skip
from tests.tables.iceberg.memory_catalog import MemoryCatalog
from tests.tables.paimon.small_tables import commit, create, write_file

FILES = 10
QUERIES: list[Any] = [
    "id = 700000",
    "id IN (1234567, 7654321)",
    {"where": "name = 'n4321'", "columns": ["id"]},
    {"where": "name >= 'n9990'", "count": True},
    {"where": "id > 9000000", "order_by": "name", "limit": 3},
    {"order_by": "id DESC", "limit": 3},
]


def rows_of(number: int) -> pa.Table:
    rng = np.random.default_rng(number)
    count = 20_000 + 3_000 * number
    names = [f"n{value:04d}" for value in rng.integers(0, 10_000, count).tolist()]
    return pa.table({"id": rng.integers(0, 10**7, count), "name": names})


@pytest.fixture
def paimon(tmp_path: Path) -> PaimonTable:
    table = create(tmp_path / "t")
    entries = [write_file(table, rows_of(number)) for number in range(FILES)]
    commit(table, Change(kind="APPEND", added=entries))
    return table


@pytest.fixture
def iceberg(tmp_path: Path) -> IcebergTable:
    catalog = MemoryCatalog(tmp_path / "t")
    catalog.add({f"{number}.parquet": rows_of(number).to_pydict() for number in range(FILES)})
    return IcebergTable(catalog)


def estimate(advice: Advice, column: str, index: str) -> IndexEstimate:
    advised = next(judged for judged in advice.columns if judged.column == column)
    return next(candidate for candidate in advised.candidates if candidate.index == index)


def check(table: Table[Any], advice: Advice) -> None:
    """Build the advised indexes and compare them with the estimates."""
    assert set(advice.options) >= {"file-index.bloom-filter.columns"}
    table.build_indexes(advice.options, progress=False)  # type: ignore[attr-defined]
    for info in table.indexes():
        said = estimate(advice, info.column, info.index_type)
        assert said.table_bytes == pytest.approx(info.bytes, rel=0.2)
    assert advice.skip == pytest.approx(true_skip(table, QUERIES), abs=0.1)


def test_a_paimon_table_is_judged_by_its_manifests_and_a_sample(paimon: PaimonTable) -> None:
    advice = paimon.advise(QUERIES, sample=5, progress=False)
    assert (len(advice.sampled_files), advice.files) == (5, FILES)
    check(paimon, advice)


def test_rows_that_a_paimon_table_has_deleted_are_no_trouble(paimon: PaimonTable) -> None:
    paimon.delete("id < 5000000")
    check(paimon, paimon.advise(QUERIES, sample=5, progress=False))


def test_an_iceberg_table_is_judged_by_pages_that_no_bundle_knows_yet(
    iceberg: IcebergTable,
) -> None:
    advice = iceberg.advise(QUERIES, sample=5, progress=False)
    assert (len(advice.sampled_files), advice.files) == (5, FILES)
    check(iceberg, advice)
    again = iceberg.advise(QUERIES, sample=5, progress=False)
    assert again.options == advice.options
    assert again.skip == pytest.approx(advice.skip, abs=0.05)


def test_files_that_are_not_read_here_get_no_advice(tmp_path: Path) -> None:
    catalog = MemoryCatalog(tmp_path / "t")
    catalog.add({"a.orc": {"id": [1], "name": ["a"]}}, file_format="ORC")
    with pytest.raises(UnsupportedError, match="data files in ORC"):
        IcebergTable(catalog).advise(["id = 1"], progress=False)
