"""Indexes that are built on tables of the released Paimon."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

import alcid
from alcid import PaimonTable
from alcid.errors import AlcidWarning
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.write.build import build, drop
from alcid.types import indexes_for
from tests.golden.arrow_values import json_rows
from tests.golden.paimon_tables import expected, table_names, unpack_table
from tests.golden_files import tree
from tests.tables.paimon.index_contents import Payloads, ask_always, entries, kinds, payloads
from tests.tables.paimon.small_tables import commit, create, write_file

GOLDEN = [name for name in table_names() if name != "avro"]


# -- tables of Paimon --------------------------------------------------------------------------


@pytest.fixture
def _level_0_is_left_out() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not yet compacted", AlcidWarning)
        yield


def with_indexes() -> list[str]:
    return [
        name
        for name in GOLDEN
        if name not in ("history", "index_in_data_folder", "key_dynamic", "key_sequence", "types")
    ]


@pytest.mark.parametrize("name", with_indexes())
def test_what_paimon_built_comes_out_the_same(tmp_path: Path, name: str) -> None:
    table = alcid.paimon(unpack_table(name, tmp_path))
    asked = set(kinds_of_options(table))
    before = dict(zip([entry.file.name for entry in entries(table)], payloads(table), strict=True))
    report = build(table, rebuild=True)
    assert report.indexed + report.fresh == len(before)
    assert report.failed == 0
    assert {skip.reason for skip in report.skipped} <= {NO_VALUE}
    after = dict(zip([entry.file.name for entry in entries(table)], payloads(table), strict=True))
    for file, built in before.items():
        assert isinstance(built, dict)
        expected_payloads = {key: built[key] for key in built if key in asked}
        if report.skipped:  # for some files
            left = after[file]
            assert isinstance(left, dict)
            for key in expected_payloads.keys() - left.keys():
                assert key[1] == "range-bitmap"
                assert f"range-bitmap of {key[0]!r}" in {some.what for some in report.skipped}
                del expected_payloads[key]
        assert comparable(after[file]) == comparable(expected_payloads)
        assert expected_payloads


NO_VALUE = "there is no value, and Paimon would not find all nulls"


def comparable(contents: Payloads | str | None) -> dict[tuple[str, str], bytes | int]:
    """Payloads; for bitmaps only their length, as Java orders their values by hash."""
    assert isinstance(contents, dict)
    return {
        name: len(data or b"") if name[1] == "bitmap" else data or b""
        for name, data in contents.items()
    }


def kinds_of_options(table: PaimonTable) -> Iterator[tuple[str, str]]:
    for key, columns in table.options.items():
        if key.startswith("file-index.") and key.endswith(".columns"):
            for column in columns.split(","):
                yield column, key.split(".")[1]


@pytest.mark.usefixtures("_level_0_is_left_out")
@pytest.mark.parametrize("name", GOLDEN)
def test_with_every_index_that_can_be_the_answers_are_those_of_paimon(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, golden = alcid.paimon(unpack_table(name, tmp_path)), expected(name)
    live = len(entries(table))
    columns: dict[str, list[str]] = {}
    for column, data_type in table.snapshot.schema.types.items():
        for index_type in indexes_for(data_type):
            columns.setdefault(index_type, []).append(column)
    options = {f"file-index.{column}.columns": ",".join(columns[column]) for column in columns}
    report = build(table, options, rebuild=True)
    assert (report.files, report.failed) == (live, 0)
    assert report.indexed + report.fresh == live
    ask_always(monkeypatch)
    assert as_text(table.scan().to_arrow()) == sorted(map(str, golden["rows"]))
    for question in golden["predicates"]:
        where = tree(question["predicate"], table.snapshot.schema.types)
        answer = sorted(str(golden["rows"][row]) for row in question["rows"])
        assert as_text(table.scan(where).to_arrow()) == answer, str(where)


def as_text(rows: pa.Table) -> list[str]:
    return sorted(map(str, json_rows(rows)))


def test_files_of_level_0_get_indexes_too(tmp_path: Path) -> None:
    table = alcid.paimon(unpack_table("key_vectors", tmp_path))
    assert table.files < len(entries(table))
    drop(table)
    report = build(table)
    assert report.indexed == len(entries(table)) == 6
    assert 0 in {entry.file.level for entry in entries(table)}


def test_moments_and_padded_text_of_orc_files_get_no_index(tmp_path: Path) -> None:
    table = create(
        tmp_path / "t", {"id": "BIGINT", "at": "TIMESTAMP(3)", "code": "CHAR(3)", "time": "TIME(3)"}
    )
    rows = pa.table({"id": [1, 2], "at": pa.array([0, 1], pa.timestamp("ms")), "code": ["a", "b"]})
    rows = rows.append_column("time", pa.array([5, 7], pa.int32()))
    entry = write_file(table, rows.set_column(3, "time", rows.column("time").cast(pa.time32("ms"))))
    path = tmp_path / "t" / "bucket-0" / "data-0.orc"
    orc.write_table(rows, path)
    file = replace(entry.file, name=path.name, size=path.stat().st_size)
    commit(table, Change(kind="APPEND", added=[entry.with_file(file)]))
    report = build(table, {"file-index.bitmap.columns": "id,at,code,time"})
    assert report.indexed == 1
    assert [(skip.what, skip.reason) for skip in report.skipped] == [
        ("bitmap of 'at'", "column at: TIMESTAMP(3) of ORC files gets no index"),
        ("bitmap of 'code'", "column code: CHAR(3) of ORC files gets no index"),
    ]
    assert kinds(table) == [[("id", "bitmap"), ("time", "bitmap")]]
