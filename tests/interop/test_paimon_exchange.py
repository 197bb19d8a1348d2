"""Tables of 20,000 rows that others write, as we read them: equal rows, by indexes and vectors.

Plans are compared with the content of the data files: an index leaves exactly the files and rows
that match, whoever wrote it, and vectors remove exactly those that the table does not show.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import alcid
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.interop.exchange_rows import (
    COLUMNS,
    INDEXES,
    PARTS,
    QUESTIONS,
    SOME_QUESTIONS,
    part,
    rows_of,
)
from tests.interop.exchange_tables import Model, ask_every_index, check_ours, check_rows
from tests.interop.peers import PyPaimon
from tests.interop.rust_tables import RustWarehouse

EMBEDDED = {"file-index.in-manifest-threshold": "1 mb"}
BESIDE = {"file-index.in-manifest-threshold": "1 b"}
VECTORS = {"deletion-vectors.enabled": "true"}
WIDE_VECTORS = VECTORS | {"deletion-vectors.bitmap64": "true"}
BUCKETS = {"bucket": "3", "bucket-key": "id"}
WRITE_ONLY = {"write-only": "true"}
DELETED = next(question for question in QUESTIONS if question.sql.startswith("day ="))
SECOND_SEASON = np.arange(1000, 3000)


@dataclass(frozen=True)
class Kind:
    """What differs between tables."""

    options: dict[str, str]
    partition_keys: list[str] = field(default_factory=list)
    primary_keys: list[str] = field(default_factory=list)


KINDS = {
    "unaware": Kind(EMBEDDED),
    "bucketed": Kind(EMBEDDED | WIDE_VECTORS | BUCKETS),
    "partitioned": Kind(BESIDE | VECTORS, ["dt"]),
    "orc": Kind(EMBEDDED | VECTORS | {"file.format": "orc"}),
    "key vectors": Kind(EMBEDDED | VECTORS | {"bucket": "2"}, primary_keys=["id"]),
    "key merge": Kind(BESIDE | {"bucket": "2"}, primary_keys=["id"]),
}


@pytest.fixture(autouse=True)
def _indexes_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    ask_every_index(monkeypatch)


def write_by_java(java: JavaPaimon, path: Path, kind: Kind) -> Model:
    """Three commits, then deletes; in a table with a key also rows that are written again."""
    java.create(
        path,
        COLUMNS,
        partition_keys=kind.partition_keys,
        primary_keys=kind.primary_keys,
        options=INDEXES | kind.options,
    )
    model = Model()
    has_vectors = VECTORS.items() <= kind.options.items()
    options = {} if kind.primary_keys and has_vectors else WRITE_ONLY
    for number in range(PARTS):
        java.write(path, model.write(part(number)), options=options)
    if kind.primary_keys:
        java.write(path, model.write(SECOND_SEASON, season=1), options=options)
        java.write(path, model.rows(DELETED), "-D", options=options)
        model.delete(DELETED)
    elif has_vectors:
        java.delete(path, DELETED.java)
        model.delete(DELETED)
    return model


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        *(("1.4.2", kind) for kind in KINDS),
        *(("2.0.0", kind) for kind in ("bucketed", "partitioned", "key vectors")),
    ],
)
def test_we_read_what_java_writes(
    java_paimon: JavaPaimon, newest_paimon: JavaPaimon, tmp_path: Path, version: str, kind: str
) -> None:
    java = java_paimon if version == "1.4.2" else newest_paimon
    model = write_by_java(java, tmp_path / "t", KINDS[kind])
    check_ours(tmp_path / "t", model, QUESTIONS if version == "1.4.2" else SOME_QUESTIONS)


@pytest.mark.parametrize("kind", ["bucketed", "partitioned", "key merge"])
def test_we_read_what_rust_writes(tmp_path: Path, kind: str) -> None:
    """Also with its indexes; its vectors are only in tables with row ids, which we cannot read."""
    made, rust, model = KINDS[kind], RustWarehouse(tmp_path), Model()
    columns = [f"{name} {data_type}" for name, data_type in COLUMNS.items()]
    if made.primary_keys:
        columns.append(f"PRIMARY KEY ({', '.join(made.primary_keys)})")
    path = rust.create(
        ", ".join(columns), INDEXES | made.options, partition_keys=made.partition_keys
    )
    for number in range(PARTS):
        rust.write(model.write(part(number)).combine_chunks().to_batches()[0])
    if made.primary_keys:
        rust.write(model.write(SECOND_SEASON, season=1).combine_chunks().to_batches()[0])
    check_ours(path, model, SOME_QUESTIONS)


@pytest.mark.parametrize("kind", ["partitioned", "orc", "key merge"])
def test_we_read_and_index_what_pypaimon_writes(pypaimon: PyPaimon, kind: str) -> None:
    """It writes no indexes, so we build them; it reads the table with them as before."""
    made, model = KINDS[kind], Model()
    options = {key: value for key, value in made.options.items() if "deletion" not in key}
    if kind == "orc":  # Timestamps of ORC files get no index from us.
        options |= {"file-index.range-bitmap.columns": "score,price"}
    name = pypaimon.create(rows_of([]), made.primary_keys, INDEXES | options, made.partition_keys)
    for number in range(PARTS):
        pypaimon.write(name, model.write(part(number)))
    if made.primary_keys:
        pypaimon.write(name, model.write(SECOND_SEASON, season=1))
    path = pypaimon.location(name)
    table = alcid.paimon(path)
    check_rows(table.scan().to_arrow(), model.rows())
    report = table.build_indexes()
    assert (report.indexed, report.skipped) == (len(table.snapshot.placed), ())
    asked = [
        question
        for question in SOME_QUESTIONS
        if kind != "orc" or not question.sql.startswith("at")
    ]
    check_ours(path, model, asked)
    check_rows(pypaimon.read(name), model.rows())
