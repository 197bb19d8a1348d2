"""Tables that we write: others read them and continue to write, before and after maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import alcid
from alcid import PaimonTable
from alcid.tables.paimon.metadata.commit import Change
from tests.golden.container_cases import leaf
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.interop.exchange_rows import (
    INDEXES,
    PARTS,
    QUESTIONS,
    ROWS,
    SCHEMA,
    SOME_QUESTIONS,
    Question,
    part,
)
from tests.interop.exchange_tables import Model, ask_every_index, check_ours, check_rows
from tests.interop.peers import PyPaimon
from tests.interop.rust_tables import RustWarehouse

EMBEDDED = {"file-index.in-manifest-threshold": "1 mb"}
BESIDE = {"file-index.in-manifest-threshold": "1 b"}
VECTORS = {"deletion-vectors.enabled": "true"}
WIDE_VECTORS = VECTORS | {"deletion-vectors.bitmap64": "true"}
WITHOUT = {"file-index.read.enabled": "false"}
KINDS: dict[str, tuple[dict[str, str], list[str]]] = {
    "unaware": (EMBEDDED | WIDE_VECTORS | {"compaction.min.file-num": "2"}, []),
    "bucketed": (BESIDE | VECTORS | {"bucket": "3", "bucket-key": "id"}, []),
    "partitioned": (EMBEDDED | VECTORS | {"compaction.min.file-num": "2"}, ["dt"]),
}
BY_SQL = {question.sql: question for question in QUESTIONS}
DELETED = BY_SQL["kind = ''"]
ONLY = BY_SQL["kind = 'only 0'"]
# pypaimon compares with plain literals, which those of other types are not in JSON.
PLAIN = [
    question for question in QUESTIONS if question.sql.startswith(("id", "kind", "weight", "dt"))
]


def write_ours(path: Path, kind: str) -> tuple[PaimonTable, Model]:
    """Files with indexes from the beginning, and one that gets them later; then deletes."""
    options, partition_by = KINDS[kind]
    table = alcid.create_table(path, SCHEMA, options=INDEXES | options, partition_by=partition_by)
    model = Model()
    for number in range(PARTS - 1):
        table.append(model.write(part(number)))
    table.append(model.write(part(PARTS - 1)), options={})
    assert table.build_indexes().failed == 0
    assert table.delete(DELETED.sql).rows == model.delete(DELETED)
    return table, model


def check_java(
    java: JavaPaimon, path: Path, model: Model, questions: Sequence[Question] = QUESTIONS
) -> None:
    """Equal rows; if our indexes give the matching rows, no other rows are even looked at."""
    check_rows(java.read(path), model.rows())
    assert java.planned_files(path, leaf("id", "GREATER_THAN", ROWS * 3)) == []
    for question in questions:
        # Its answer from a bitmap to <> includes the nulls.
        gives_rows = question.index_gives == "rows" and "<>" not in question.sql
        rows = java.read(path, question.java, exact=not gives_rows)
        check_rows(rows, model.rows(question))


def check_rust(rust: RustWarehouse, model: Model, questions: Sequence[Question]) -> None:
    check_rows(rust.read(), model.rows())
    for question in questions:
        expected = model.rows(question)
        if len(expected):
            check_rows(rust.read(question.sql), expected)
        else:  # whose columns it does not list
            assert rust.read(question.sql, "COUNT(*)").column(0).to_pylist() == [0]


def check_pypaimon(pypaimon: PyPaimon, path: Path, model: Model) -> None:
    check_rows(pypaimon.read(path), model.rows())
    for question in PLAIN:
        check_rows(pypaimon.read(path, question.java), model.rows(question))


@pytest.mark.parametrize("kind", KINDS)
def test_others_read_what_we_write_and_we_what_they_make_of_it(
    java_paimon: JavaPaimon,
    newest_paimon: JavaPaimon,
    pypaimon: PyPaimon,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    path = tmp_path / "t"
    _, model = write_ours(path, kind)
    check_java(java_paimon, path, model)
    check_java(newest_paimon, path, model, SOME_QUESTIONS)
    rust = RustWarehouse(tmp_path / "rust")
    rust.link(path)
    check_rust(rust, model, QUESTIONS)
    has_narrow_vectors = kind != "unaware"
    if has_narrow_vectors:
        check_pypaimon(pypaimon, path, model)
    java_paimon.compact(path)
    java_paimon.expire(path)
    check_rows(java_paimon.read(path), model.rows())
    check_rust(rust, model, QUESTIONS[:4])
    ask_every_index(monkeypatch)
    check_ours(path, model, SOME_QUESTIONS)


def test_a_wrong_index_hides_rows_from_java_and_rust(
    java_paimon: JavaPaimon, newest_paimon: JavaPaimon, tmp_path: Path
) -> None:
    """So it does use a correct one."""
    path = tmp_path / "t"
    table = alcid.create_table(path, SCHEMA, options=INDEXES | EMBEDDED)
    model = Model()
    for number in range(2):
        table.append(model.write(part(number)))
    rust = RustWarehouse(tmp_path / "rust")
    rust.link(path)
    right = model.rows(ONLY)
    for rows in (java_paimon.read(path, ONLY.java), rust.read(ONLY.sql)):
        check_rows(rows, right)
    first, other = table.snapshot.state.entries
    swapped = [
        first.with_file(replace(first.file, embedded_index=other.file.embedded_index)),
        other.with_file(replace(other.file, embedded_index=first.file.embedded_index)),
    ]
    change = Change(kind="COMPACT", deleted=[first, other], added=swapped)
    table.committer().commit(lambda _: change)
    assert rust.read(ONLY.sql, "COUNT(*)").column(0).to_pylist() == [0]
    for java in (java_paimon, newest_paimon):
        assert len(java.read(path, ONLY.java)) == 0
        check_rows(java.read(path, ONLY.java, options=WITHOUT), right)
