"""Paimon's Java builds an index again that was replaced here: no row is lost."""

from __future__ import annotations

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
