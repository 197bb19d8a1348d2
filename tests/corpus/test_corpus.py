"""The runner over other people's files: it asks, counts refusals and notices a wrong answer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.errors import UnsupportedError
from alcid.scan import Scan
from tests.corpus.__main__ import main
from tests.corpus.asking import check
from tests.corpus.subjects import Subject, find_subjects

ROWS = pa.table(
    {"id": [3, 1, None, 2], "score": [0.5, float("nan"), -0.0, None], "tags": [[1]] * 4}
)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A Parquet file, a Paimon table, a vector that cannot be read."""
    (tmp_path / "files").mkdir()
    pq.write_table(ROWS, tmp_path / "files" / "a.parquet")
    table = alcid.create_table(tmp_path / "lake.db" / "t", ROWS.select(["id", "score"]).schema)
    table.append(ROWS.select(["id", "score"]))
    (tmp_path / "vectors.bin").write_bytes(b"no vector")
    return tmp_path


def test_a_table_is_one_subject(corpus: Path) -> None:
    assert [(subject.kind, subject.path.name) for subject in find_subjects(corpus)] == [
        ("index", "vectors.bin"),
        ("parquet", "a.parquet"),
        ("paimon", "t"),
    ]


def test_every_subject_is_asked_and_counted(
    corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tests.corpus.__main__.outcomes",
        lambda subjects, questions: (check(subject, questions) for subject in subjects),
    )
    assert main([str(corpus), "--questions", "20"]) == 0
    lines = capsys.readouterr().out.splitlines()
    name = corpus.name
    assert lines[:3] == [
        f"{name}: 1 parquet: 1 equal, 0 refused, 0 failed; 72 questions, 7 indexes",
        f"{name}: 1 paimon: 1 equal, 0 refused, 0 failed; 72 questions, 7 indexes",
        f"{name}: 1 index: 0 equal, 1 refused, 0 failed; 0 questions, 0 indexes",
    ]
    assert lines[3].startswith("    refused 1 times: alcid: subject/vectors.bin: not an index file")


def test_a_wrong_answer_is_a_failure(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Scan.to_arrow

    def without_the_last(scan: Scan) -> pa.Table:
        rows = right(scan)
        return rows.slice(0, rows.num_rows - 1) if scan.query.where is not None else rows

    monkeypatch.setattr(Scan, "to_arrow", without_the_last)
    outcome = check(Subject("parquet", corpus / "files" / "a.parquet"), 20)
    assert len(outcome.failures) == 5
    assert all("AssertionError" in failure for failure in outcome.failures)


def test_what_alcid_refuses_is_no_failure(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(scan: Scan) -> pa.Table:
        raise UnsupportedError(f"{scan}: not today")

    monkeypatch.setattr(Scan, "to_arrow", refuse)
    outcome = check(Subject("parquet", corpus / "files" / "a.parquet"), 20)
    assert (outcome.failures, outcome.questions, len(outcome.refusals)) == ([], 0, 1)
