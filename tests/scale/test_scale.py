"""Tables of many files: exactly the right files are left, in memory that does not grow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from alcid.scan import Explanation
from benchmarks.scale.metadata import METADATA_KINDS
from benchmarks.scale.questions import left_files, questions
from benchmarks.scale.tables import KINDS, expected_of, make_tables, open_table

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = 2_000
MOST_TASK_BYTES = 400
"""Of a file in the plan that a task gets."""
MOST_BYTES_PER_FILE = 3_000
"""Of a file in the driver, with what importing modules takes."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tables."""
    folder = tmp_path_factory.mktemp("scale") / f"{FILES}-files"
    make_tables(folder, FILES)
    return folder


def stages(explanation: Explanation) -> dict[str, tuple[int, int]]:
    """The files before and after each stage that left out some."""
    return {
        stage.name: (stage.before.files, stage.after.files)
        for stage in explanation.stages
        if stage.before.files != stage.after.files
    }


def test_the_benchmark_runs_and_prints_a_table(base: Path) -> None:
    output = base.parent / "out.json"
    command = [sys.executable, "-m", "benchmarks.scale", "--files", str(FILES)]
    command += ["--data", str(base.parent), "--output", str(output)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = ended.stdout.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == list(KINDS)
    assert lines[0].split("|")[3].strip() == "open ms"
    tables: list[dict[str, Any]] = json.loads(output.read_text())["tables"]
    for table in tables:
        assert table["left"] == expected_of(base)
        assert table["peak_bytes"] > table["growth_bytes"]


def test_metadata_of_many_files_is_measured_and_bounded(tmp_path: Path) -> None:
    """A day is a manifest of 5,000 files: Iceberg reads only that of the day it is asked for."""
    files, output = 12_000, tmp_path / "out.json"
    command = [sys.executable, "-m", "benchmarks.scale", "--metadata", "--files", str(files)]
    command += ["--data", str(tmp_path), "--output", str(output)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = ended.stdout.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == list(METADATA_KINDS)
    written = json.loads(output.with_stem("out-metadata").read_text())
    for one in written["tables"]:
        assert one["task_bytes"] < MOST_TASK_BYTES, one
        assert one["bytes_per_file"] < MOST_BYTES_PER_FILE, one
        assert one["day_files"] == (5_000 if one["kind"] == "iceberg" else files), one


def test_each_file_is_as_expected(base: Path) -> None:
    """The expected files were found by asking each file alone; these are their numbers."""
    expected_files = expected_of(base)
    point, category, between, top = (question.name for question in questions(FILES))
    assert FILES // 3 in expected_files[point]
    assert len(expected_files[point]) <= FILES * 0.02
    patterns = sorted({file % 100 for file in expected_files[category]})
    assert patterns
    assert expected_files[category] == [file for file in range(FILES) if file % 100 in patterns]
    assert expected_files[between] == list(range(1000, 1051))
    assert expected_files[top] == list(range(99, 2000, 100))


@pytest.mark.parametrize("kind", KINDS)
def test_one_stage_leaves_the_right_files(base: Path, kind: str) -> None:
    table, expected = open_table(base, kind), expected_of(base)
    stage_names = ("file index", "file index", "statistics", "cut-off")
    for question, stage in zip(questions(FILES), stage_names, strict=True):
        explanation = table.scan(**question.query).explain()
        assert left_files(explanation) == expected[question.name], question
        assert stages(explanation) == {stage: (FILES, len(expected[question.name]))}, question


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "paimon, beside files"])
def test_indexes_of_all_files_are_read_in_few_requests(base: Path, kind: str) -> None:
    table = open_table(base, kind)
    most = {"folder": 2, "iceberg": 2}.get(kind, 0)
    point, category, *_ = questions(FILES)
    looked = table.scan(**point.query).explain().stages[2]
    assert (looked.name, looked.requests) == ("file index", most)
    asked = table.scan(**category.query).explain().stages[2]
    survivors = len(expected_of(base)[category.name])
    assert asked.requests == (1 + survivors if most else 0)


def test_the_best_rows_of_a_paimon_table_need_few_index_files(base: Path) -> None:
    table = open_table(base, "paimon, beside files")
    *_, top = questions(FILES)
    before = table.snapshot.traffic
    explanation = table.scan(**top.query).explain()
    read = table.snapshot.traffic - before
    assert len(left_files(explanation)) == 20
    assert read.requests < 8 * 20  # for each a size, a head, a footer and what it points to
