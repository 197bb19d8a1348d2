"""ORC files that Java wrote: values that Arrow reads otherwise."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import alcid
from tests.golden.paimon_tables_jvm import JavaPaimon


def test_char_is_read_without_its_padding(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    columns = {"id": "INT", "c": "CHAR(4)", "v": "VARCHAR(4)"}
    table = java_paimon.create(tmp_path / "t", columns, options={"file.format": "orc"})
    texts = ["ab", "abcd", "", None, "a b"]
    rows = {"id": pa.array(range(5), pa.int32()), "c": texts, "v": texts}
    java_paimon.write(table, pa.table(rows))
    found = alcid.paimon(table).scan().to_arrow().sort_by("id")
    assert found.column("c").to_pylist() == texts
    assert found.equals(java_paimon.read(table).sort_by("id").cast(found.schema))
    assert alcid.paimon(table).count("c = 'ab'") == 1
