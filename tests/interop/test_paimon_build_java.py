"""Indexes that we build on Paimon tables, used by released readers and writers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import alcid
from alcid import PaimonTable
from alcid.errors import AlcidWarning
from alcid.formats.file_index import BUILDERS
from alcid.formats.file_index.container import write_container
from alcid.formats.file_index.keys import read_column
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.write.build import build, drop, indexes
from alcid.types import DataType, indexes_for
from tests.golden.arrow_values import json_rows
from tests.golden.container_cases import leaf
from tests.golden.paimon_table_cases import BIRDS, INDEXES, QUESTIONS, VECTORS, WRITE_ONLY, birds
from tests.golden.paimon_tables import expected, table_names, unpack_table
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.interop.peers import PyPaimon
from tests.interop.rust_tables import RustWarehouse

KIND = {"file-index.bitmap.columns": "kind"}
EMBEDDED = {"file-index.in-manifest-threshold": "1 mb"}
BESIDE = {"file-index.in-manifest-threshold": "1 b"}
# For a column without values, Java's own range-bitmap answers IS NULL with two rows.
WRONG_IN_JAVA = ("evolution", "added", "range-bitmap")
WITHOUT = {"file-index.read.enabled": "false"}


@pytest.fixture(autouse=True)
def _level_0_is_left_out() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not yet compacted", AlcidWarning)
        yield


def rings(rows: pa.Table) -> list[int]:
    return sorted(rows.column("ring").to_pylist())


def answers_agree(java: JavaPaimon, path: Path) -> None:
    for question in QUESTIONS:
        matched = rings(java.read(path, question))
        assert matched == rings(java.read(path, question, options=WITHOUT)), question


def two_files(java: JavaPaimon, path: Path, options: dict[str, str]) -> PaimonTable:
    java.create(path, BIRDS, options=options)
    java.write(path, birds(0, 20), options=WRITE_ONLY)
    java.write(path, birds(20, 45), options=WRITE_ONLY)
    return alcid.paimon(path)


# -- Java reads --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in table_names() if name != "avro"])
def test_java_answers_as_before_with_every_index_that_can_be(
    java_paimon: JavaPaimon, tmp_path: Path, name: str
) -> None:
    path, golden = unpack_table(name, tmp_path), expected(name)
    table = alcid.paimon(path)
    columns: dict[str, list[str]] = {}
    for column, data_type in table.snapshot.schema.types.items():
        for index_type in indexes_for(data_type):
            if (name, column, index_type) != WRONG_IN_JAVA:
                columns.setdefault(index_type, []).append(column)
    options = {f"file-index.{column}.columns": ",".join(columns[column]) for column in columns}
    report = build(table, options, rebuild=True)
    assert (report.indexed, report.failed) == (len(table.snapshot.state.entries), 0)
    assert json_rows(java_paimon.read(path)) == golden["rows"]
    for question in golden["predicates"]:
        answer = [golden["rows"][row] for row in question["rows"]]
        assert json_rows(java_paimon.read(path, question["predicate"])) == answer, question


@pytest.mark.parametrize("layout", [EMBEDDED, BESIDE], ids=["embedded", "beside"])
def test_java_uses_the_index(
    java_paimon: JavaPaimon, tmp_path: Path, layout: dict[str, str]
) -> None:
    """A wrong index hides rows from it, so it does use a correct one."""
    path, where = tmp_path / "t", leaf("kind", "EQUAL", "murre")
    table = two_files(java_paimon, path, layout)
    build(table, KIND)
    right = rings(java_paimon.read(path, where))
    assert right == list(range(1, 45, 5))
    assert rings(java_paimon.read(path, where, exact=False)) == right
    lie(table)
    assert rings(java_paimon.read(path, where)) == []
    assert rings(java_paimon.read(path, where, options=WITHOUT)) == right
    build(alcid.paimon(path), KIND, rebuild=True)
    assert rings(java_paimon.read(path, where)) == right


def lie(table: PaimonTable) -> None:
    """Give all files an index in which every bird is a dodo."""
    entries = table.snapshot.state.entries
    wrong = []
    for entry in entries:
        dodos = read_column(pa.array(["dodo"] * entry.file.rows), DataType.parse("STRING"))
        data = write_container({("kind", "bitmap"): BUILDERS["bitmap"](dodos)})
        if entry.file.extra_files:
            (Path(table.location) / "bucket-0" / entry.file.extra_files[0]).write_bytes(data)
        else:
            wrong.append(entry.with_file(replace(entry.file, embedded_index=data)))
    if wrong:
        change = Change(kind="COMPACT", deleted=entries, added=wrong)
        table.committer().commit(lambda _: change)


# -- turns -------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [EMBEDDED, BESIDE], ids=["embedded", "beside"])
def test_none_and_some_in_turn_keeps_the_rows_for_everybody(
    java_paimon: JavaPaimon,
    newest_paimon: JavaPaimon,
    pypaimon: PyPaimon,
    tmp_path: Path,
    layout: dict[str, str],
) -> None:
    path, where = tmp_path / "t", leaf("kind", "EQUAL", "murre")
    table = two_files(java_paimon, path, layout)
    rust = RustWarehouse(tmp_path / "rust")
    rust.link(path)
    every, murres = list(range(45)), list(range(1, 45, 5))
    for _ in range(2):
        for step in (lambda: build(table, INDEXES), lambda: drop(table)):
            step()
            answers_agree(java_paimon, path)
            for java in (java_paimon, newest_paimon):
                assert rings(java.read(path)) == every
                assert rings(java.read(path, where)) == murres
            assert rings(rust.read()) == every
            assert rings(rust.read("kind = 'murre'")) == murres
            assert rings(pypaimon.read(path)) == every
            assert rings(pypaimon.read(path, where)) == murres
    assert indexes(table) == []


@pytest.mark.parametrize("layout", [EMBEDDED, BESIDE], ids=["embedded", "beside"])
def test_java_and_we_build_in_turn(
    java_paimon: JavaPaimon, tmp_path: Path, layout: dict[str, str]
) -> None:
    path = tmp_path / "t"
    table = two_files(java_paimon, path, layout | INDEXES)
    drop(table)
    java_paimon.alter(path, "setOption", "file-index.bitmap.columns", "kind,ring")
    java_paimon.rewrite_file_index(path)
    table.refresh()
    assert ("ring", "bitmap", 2) in {(i.column, i.index_type, i.fresh) for i in indexes(table)}
    assert build(table).snapshot_id is None
    java_paimon.alter(path, "setOption", "file-index.bitmap.columns", "ring")
    assert build(table).indexed == 2
    assert "kind" not in {index.column for index in indexes(table)}
    # Not "kind": the manifest would be as it was at first, and Java would lose the rows.
    java_paimon.alter(path, "setOption", "file-index.bitmap.columns", "kind,weight")
    java_paimon.rewrite_file_index(path)
    assert rings(java_paimon.read(path)) == list(range(45))
    answers_agree(java_paimon, path)
    table.refresh()
    assert table.count() == 45


# -- what Java does afterwards -----------------------------------------------------------------


@pytest.mark.parametrize("layout", [EMBEDDED, BESIDE], ids=["embedded", "beside"])
def test_expiry_and_compaction_leave_every_row(
    java_paimon: JavaPaimon, tmp_path: Path, layout: dict[str, str]
) -> None:
    path = tmp_path / "t"
    table = two_files(java_paimon, path, layout | {"compaction.min.file-num": "2"})
    for _ in range(2):
        build(table, INDEXES)
        drop(table, types=["bitmap"])
    assert java_paimon.expire(path) == 5
    assert rings(java_paimon.read(path)) == list(range(45))
    answers_agree(java_paimon, path)
    assert alcid.paimon(path).count("kind = 'auk'") == 9
    java_paimon.write(path, birds(45, 50), options=WRITE_ONLY)
    java_paimon.compact(path)
    java_paimon.expire(path)
    assert rings(java_paimon.read(path)) == list(range(50))
    table.refresh()
    assert table.count() == 50
    assert build(table, INDEXES).indexed == 1
    answers_agree(java_paimon, path)


@pytest.mark.parametrize("buckets", [-1, 2])
def test_deleted_rows_stay_deleted(java_paimon: JavaPaimon, tmp_path: Path, buckets: int) -> None:
    path = tmp_path / "t"
    bucketed = {"bucket": "2", "bucket-key": "ring"} if buckets > 0 else {}
    table = two_files(java_paimon, path, VECTORS | bucketed)
    java_paimon.delete(path, leaf("kind", "EQUAL", "puffin"))
    left = [number for number in range(45) if number * 3 % 5 != 1]
    assert build(table, INDEXES).failed == 0
    assert rings(java_paimon.read(path)) == left
    answers_agree(java_paimon, path)
    java_paimon.delete(path, leaf("ring", "BETWEEN", 10, 30))
    left = [number for number in left if not 10 <= number <= 30]
    drop(table)
    assert rings(java_paimon.read(path)) == left
    build(table, INDEXES)
    java_paimon.compact(path)
    java_paimon.expire(path)
    assert rings(java_paimon.read(path)) == left
    table.refresh()
    assert table.count() == len(left)


def test_upserts_go_on(java_paimon: JavaPaimon, tmp_path: Path) -> None:
    path = tmp_path / "t"
    columns = {**BIRDS, "ring": "INT NOT NULL"}
    java_paimon.create(path, columns, primary_keys=["ring"], options=VECTORS | {"bucket": "1"})
    java_paimon.write(path, birds(0, 30))
    java_paimon.write(path, birds(10, 20, season=1))
    java_paimon.write(path, birds(5, 8, season=2), options=WRITE_ONLY)
    table = alcid.paimon(path)
    assert build(table, INDEXES).indexed == len(table.snapshot.state.entries) == 3
    answers_agree(java_paimon, path)
    java_paimon.write(path, birds(25, 40, season=3))
    build(table, INDEXES)
    answers_agree(java_paimon, path)
    java_paimon.compact(path)
    java_paimon.expire(path)
    assert rings(java_paimon.read(path)) == list(range(40))
    build(table, INDEXES)
    answers_agree(java_paimon, path)
    rows = java_paimon.read(path, leaf("ring", "EQUAL", 6)).to_pylist()
    assert rows == birds(6, 7, season=2).to_pylist()
