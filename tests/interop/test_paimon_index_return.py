"""Paimon's Java builds an index again that was replaced here: no row is lost."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import alcid
from tests.golden.arrow_values import json_rows
from tests.golden.paimon_tables_jvm import JavaPaimon

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": pa.array([1, 2, 2], pa.int32())})
BITMAP = {"file-index.bitmap.columns": "v"}


@pytest.mark.parametrize("beside", [False, True], ids=["in the manifest", "beside the file"])
@pytest.mark.parametrize("release", ["java_paimon", "newest_paimon"])
def test_an_index_of_java_comes_back(
    request: pytest.FixtureRequest, tmp_path: Path, release: str, beside: bool
) -> None:
    java: JavaPaimon = request.getfixturevalue(release)
    table = java.create(tmp_path / "t", {"id": "INT", "v": "INT"}, options=BITMAP)
    java.write(table, ROWS)
    (first,) = alcid.paimon(table).snapshot.state.entries
    assert first.file.embedded_index is not None
    for _ in range(2):
        more = {**BITMAP, "file-index.bloom-filter.columns": "id"}
        threshold = {"file-index.in-manifest-threshold": "1 b" if beside else "1 mb"}
        assert alcid.paimon(table).build_indexes({**more, **threshold}).indexed == 1
        java.rewrite_file_index(table)
        (entry,) = alcid.paimon(table).snapshot.state.entries
        assert entry.file.embedded_index == first.file.embedded_index
        assert json_rows(java.read(table)) == json_rows(ROWS)
        assert json_rows(alcid.paimon(table).scan().to_arrow()) == json_rows(ROWS)
    assert java.expire(table) > 0
    java.compact(table)
    assert json_rows(java.read(table)) == json_rows(ROWS)
    assert json_rows(alcid.paimon(table).scan().to_arrow()) == json_rows(ROWS)


def test_the_indexes_that_java_keeps_of_keys_are_listed(
    newest_paimon: JavaPaimon, tmp_path: Path
) -> None:
    asked = {"pk-btree.index.columns": "name", "pk-bitmap.index.columns": "v"}
    options = {"bucket": "1", "deletion-vectors.enabled": "true", **asked}
    columns = {"id": "INT NOT NULL", "name": "STRING", "v": "INT"}
    table = newest_paimon.create(tmp_path / "t", columns, primary_keys=["id"], options=options)
    rows = ROWS.add_column(1, "name", [["a", "b", "c"]])
    newest_paimon.write(table, rows)
    newest_paimon.write(table, rows.slice(1))
    newest_paimon.compact(table)
    opened = alcid.paimon(table)
    sizes = {index.index_type: index.size for index in opened.snapshot.state.indexes}
    assert [str(index) for index in opened.key_indexes()] == [
        f"pk-btree of 'name': 1 file fresh, {sizes['btree']} B",
        f"pk-bitmap of 'v': 1 file fresh, {sizes['bitmap']} B",
    ]
    assert [index.rows for index in opened.key_indexes()] == [3, 3]
    assert opened.indexes() == []
    assert opened.clean(older_than=timedelta(0)).removed == ()
