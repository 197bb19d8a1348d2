"""Tables that the released Paimon wrote are read as Paimon reads them, with or without indexes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import alcid
from alcid.errors import AlcidWarning
from alcid.scan import planner
from tests.golden.arrow_values import json_rows
from tests.golden.paimon_tables import expected, table_names, unpack_table
from tests.golden_files import tree

VERSIONS = ["1.4.2", "2.0.0"]
NAMES = [(version, name) for version in VERSIONS for name in table_names(version)]
every_table = pytest.mark.parametrize(
    ("version", "name"), NAMES, ids=[f"{name}-{version}" for version, name in NAMES]
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    for version in VERSIONS:
        for name in table_names(version):
            unpack_table(name, folder / version, version)
    return folder


@pytest.fixture(autouse=True)
def _level_0_is_left_out() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not yet compacted", AlcidWarning)
        yield


def rows(table: pa.Table) -> list[str]:
    return as_text(json_rows(table))


def as_text(listed: list[Any]) -> list[str]:
    return sorted(map(json.dumps, listed))


@every_table
def test_all_rows(tables: Path, version: str, name: str) -> None:
    table, expectation = alcid.paimon(tables / version / name), expected(name, version)
    rows_read = table.scan().to_arrow()
    assert rows_read.column_names == expectation["columns"]
    assert rows(rows_read) == as_text(expectation["rows"])
    assert table.count() == len(expectation["rows"])


@every_table
def test_every_snapshot_and_tag(tables: Path, version: str, name: str) -> None:
    golden = expected(name, version)
    past = [({"snapshot_id": snapshot["id"]}, snapshot) for snapshot in golden["snapshots"]]
    past += [({"tag": tag["tag"]}, tag) for tag in golden["tags"]]
    for when, golden_snapshot in past:
        result = alcid.paimon(tables / version / name, **when).scan().to_arrow()
        assert result.column_names == golden_snapshot["columns"]
        assert rows(result) == as_text(golden_snapshot["rows"]), when


@pytest.mark.parametrize("how", ["with indexes", "as it is worth", "without indexes"])
@every_table
def test_every_predicate(
    tables: Path, version: str, name: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "with indexes":  # as if files were large
        monkeypatch.setattr(
            planner, "full_scan_bytes", lambda table, _: np.full(len(table.sizes), 1 << 40)
        )
    table, golden = alcid.paimon(tables / version / name), expected(name, version)
    for question in golden["predicates"]:
        where = tree(question["predicate"], table.snapshot.schema.types)
        scan = table.scan(where, use_indexes=how != "without indexes")
        answer = [golden["rows"][row] for row in question["rows"]]
        assert rows(scan.to_arrow()) == as_text(answer), str(where)
        assert table.count(where) == len(answer)
