"""A sink and Paimon's Java on one table: Java's commits drop its mark, and expiry removes it."""

from __future__ import annotations

from pathlib import Path

import pytest

import alcid
from alcid.errors import AlcidWarning
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.tables.paimon.keyed.sink_tables import keyed_table, names_of, rows_of

OLD = dict.fromkeys(range(10), "old")


def test_a_batch_is_known_whatever_java_commits_after_it(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    table = keyed_table(tmp_path)
    alcid.upsert_sink(table, "s")(rows_of({0: "a", 1: "a"}), 0)
    java_paimon.write(tmp_path, rows_of({1: "java", 20: "java"}))
    java_paimon.compact(tmp_path)
    latest = table.folder.snapshots.latest()
    assert latest is not None
    assert not latest.properties  # Java has dropped the mark
    sink = alcid.upsert_sink(table, "s")
    assert sink(rows_of({1: "again"}), 0) is None
    sink(rows_of({2: "b"}), 1)
    java_paimon.write(tmp_path, rows_of({2: "java"}))
    assert sink(rows_of({2: "again"}), 1) is None
    expected = OLD | {0: "a", 1: "java", 2: "java", 20: "java"}
    java_paimon.compact(tmp_path)
    assert names_of(table) == expected
    rows = java_paimon.read(tmp_path)
    assert dict(zip(*rows.select(["id", "name"]).to_pydict().values(), strict=True)) == expected


def test_a_batch_whose_snapshots_java_has_expired_is_written_again(
    java_paimon: JavaPaimon, tmp_path: Path
) -> None:
    table = keyed_table(tmp_path)
    alcid.upsert_sink(table, "s")(rows_of({0: "a"}), 3)
    java_paimon.write(tmp_path, rows_of({20: "java"}))
    assert java_paimon.expire(tmp_path) > 0
    sink = alcid.upsert_sink(table, "s")
    with pytest.warns(AlcidWarning, match="batch 3 may be written a second time"):
        assert sink(rows_of({0: "a"}), 3) is not None
    table.upsert(rows_of({1: "ours"}))
    java_paimon.expire(tmp_path)  # what is left has the mark of the sink
    assert alcid.upsert_sink(table, "s")(rows_of({0: "again"}), 3) is None
    java_paimon.compact(tmp_path)
    assert names_of(table) == OLD | {0: "a", 1: "ours", 20: "java"}
