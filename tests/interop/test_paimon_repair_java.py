"""Repaired tables, read and written on by Paimon's Java."""

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
    found: JavaPaimon = request.getfixturevalue(request.param)
    return found


def rows_of(ids: Iterable[int]) -> pa.Table:
    keys = list(ids)
    return pa.table({"id": pa.array(keys, pa.int64()), "name": [f"n{one % 5}" for one in keys]})


def ids(rows: pa.Table) -> list[int]:
    found: list[int] = rows["id"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_java_reads_and_writes_a_table_that_was_repaired(
    java: JavaPaimon, tmp_path: Path, layout: str
) -> None:
    """Two vectors of a file, one of no file, an index file of no vectors, a damaged index."""
    path, given = tmp_path / "table", LAYOUTS[layout]
    options = {"deletion-vectors.enabled": "true", **INDEXES, **given.get("options", {})}
    columns = {"id": "BIGINT NOT NULL", "name": "STRING"}
    java.create(path, columns, **{**given, "options": options})
    is_keyed = "primary_keys" in given
    how = {} if is_keyed else {"write-only": "true"}
    java.write(path, rows_of(range(20)), options=how)
    table = alcid.paimon(path)
    table.delete("id IN (1, 11)")
    table.refresh()
    (file,) = (one for one in table.snapshot.placed if one.file.rows == 20)
    put_vectors(
        path, {file.file.name: DeletionVector([1, 3, 11]), "data-gone": DeletionVector([0])}
    )
    flip(one_file(path, f"**/{file.file.name}*.index"), 0)
    table.refresh()
    with pytest.raises(FormatError, match="two deletion vectors"):
        table.scan().to_arrow()
    report = table.repair()
    assert (report.ok, report.commits) == (True, 1), str(report)
    assert sorted(one.done for one in report.repaired) == [
        "built anew",
        "dropped",
        "merged to one, of 3 rows",
    ]
    left = [one for one in range(20) if one not in (1, 3, 11)]
    assert ids(table.scan().to_arrow()) == ids(java.read(path)) == left
    java.write(path, rows_of([30, 31]), options=how)
    table.delete("id = 5")
    left = [one for one in left if one != 5] + [30, 31]
    table.refresh()
    assert ids(table.scan().to_arrow()) == ids(java.read(path)) == left
    if not is_keyed:
        less = {"column": "id", "function": "LESS_THAN", "literals": [5]}
        java.delete(path, less)
        left = [one for one in left if one >= 5]
        table.refresh()
        assert ids(table.scan().to_arrow()) == ids(java.read(path)) == left
    assert table.verify().ok
    names = [place.data_file for one in state_of(path).indexes for place in one.ranges or ()]
    assert len(names) == len(set(names))
