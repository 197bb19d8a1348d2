"""Repaired tables: Paimon's Java reads them and continues to write."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid import DeletionVector, FormatError
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.tables.maintenance.forging import flip, one_file, put_vectors, state_of

LAYOUTS: dict[str, dict[str, Any]] = {
    "any bucket": {},
    "buckets": {"options": {"bucket": "1", "bucket-key": "id"}},
    "key": {"options": {"bucket": "1"}, "primary_keys": ["id"]},
    "64 bits": {"options": {"deletion-vectors.bitmap64": "true"}},
}
INDEXES = {"file-index.bitmap.columns": "name", "file-index.in-manifest-threshold": "0 b"}


@pytest.fixture(params=["java_paimon", "newest_paimon"])
def java(request: pytest.FixtureRequest) -> JavaPaimon:
    """Each of the releases."""
    paimon: JavaPaimon = request.getfixturevalue(request.param)
    return paimon


def rows_of(ids: Iterable[int]) -> pa.Table:
    keys = list(ids)
    return pa.table({"id": pa.array(keys, pa.int64()), "name": [f"n{key % 5}" for key in keys]})


def ids(rows: pa.Table) -> list[int]:
    numbers: list[int] = rows["id"].to_pylist()
    return sorted(numbers)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_java_reads_and_writes_a_table_that_was_repaired(
    java: JavaPaimon, tmp_path: Path, layout: str
) -> None:
    """Two vectors for a file, one for no file, an index file without vectors, a damaged index."""
    path, kind_of_table = tmp_path / "table", LAYOUTS[layout]
    options = {"deletion-vectors.enabled": "true", **INDEXES, **kind_of_table.get("options", {})}
    columns = {"id": "BIGINT NOT NULL", "name": "STRING"}
    java.create(path, columns, **{**kind_of_table, "options": options})
    is_keyed = "primary_keys" in kind_of_table
    how = {} if is_keyed else {"write-only": "true"}
    java.write(path, rows_of(range(20)), options=how)
    table = alcid.paimon(path)
    table.delete("id IN (1, 11)")
    table.refresh()
    (file,) = (placed for placed in table.snapshot.placed if placed.file.rows == 20)
    put_vectors(
        path, {file.file.name: DeletionVector([1, 3, 11]), "data-gone": DeletionVector([0])}
    )
    flip(one_file(path, f"**/{file.file.name}*.index"), 0)
    table.refresh()
    with pytest.raises(FormatError, match="two deletion vectors"):
        table.scan().to_arrow()
    report = table.repair()
    assert (report.ok, report.commits) == (True, 1), str(report)
    assert sorted(repair.done for repair in report.repaired) == [
        "built anew",
        "dropped",
        "merged to one, of 3 rows",
    ]
    left = [number for number in range(20) if number not in (1, 3, 11)]
    assert ids(table.scan().to_arrow()) == ids(java.read(path)) == left
    java.write(path, rows_of([30, 31]), options=how)
    table.delete("id = 5")
    left = [number for number in left if number != 5] + [30, 31]
    table.refresh()
    assert ids(table.scan().to_arrow()) == ids(java.read(path)) == left
    if not is_keyed:
        less = {"column": "id", "function": "LESS_THAN", "literals": [5]}
        java.delete(path, less)
        left = [number for number in left if number >= 5]
        table.refresh()
        assert ids(table.scan().to_arrow()) == ids(java.read(path)) == left
    assert table.verify().ok
    names = [
        vector_range.data_file
        for index in state_of(path).indexes
        for vector_range in index.ranges or ()
    ]
    assert len(names) == len(set(names))
