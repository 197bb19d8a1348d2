"""The benchmark of Iceberg tables runs, at a tiny scale, and checks what it measures."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from benchmarks.iceberg.__main__ import PARTS, measure
from benchmarks.iceberg.contest import BUILD, COUNT, DELETES, Changed, ask, change_all
from benchmarks.iceberg.lake import PLAIN, Lake
from benchmarks.iceberg.report import IcebergReport
from benchmarks.iceberg.ways import WAYS
from benchmarks.measure import Cost
from benchmarks.queries.data import load_rows, make_files
from benchmarks.queries.serve import Server
from benchmarks.queries.truth import QUESTIONS, Questions
from benchmarks.questions import WrongAnswerError
from benchmarks.spark.contest import Sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.soak
def test_all_of_it_is_measured_and_checked(lake: SparkSession, tmp_path: Path) -> None:
    make_files(tmp_path / "parquet", 6_000, 2)
    tables = Lake(lake, tmp_path)
    ways = ["iceberg-bloom", "scan"]
    try:
        report = measure(tables, tmp_path / "parquet", PARTS, ways, 1)
        assert tables.totals(PLAIN)[0] == 6_000  # all are live again
        rows = load_rows(tmp_path / "parquet")
        rows.scores[rows.scores.argmin()] = 50.0  # as if the lowest score were no longer the lowest
        with pytest.raises(WrongAnswerError, match=r"^delete-share: \w+ left rows and sum \(5939,"):
            list(change_all(tables, rows, 0))
    finally:
        tables.drop()
    figures = json.loads(report.to_json())
    asked = sorted((each["question"], each["way"]) for each in figures["samples"])
    assert asked == sorted(product(QUESTIONS, ways))
    changed = sorted((each["what"], each["who"]) for each in figures["changes"])
    both = product([COUNT, *DELETES], ("alcid", "iceberg"))
    assert changed == sorted([*both, (BUILD, "alcid")])
    assert figures["sizes"].keys() == {"rows", "bloom", "indexes"}
    titles = [line for line in report.to_text().splitlines() if line.startswith("### ")]
    assert titles == [
        "### Iceberg: ways",
        "### Iceberg: questions",
        "### Iceberg: ms, best / median",
        "### Iceberg: ms of CPU over all processes, best",
        "### Iceberg: how many times as long",
        "### Iceberg: changes",
        "### Iceberg: changes, seconds, best / median, and seconds of CPU, best",
        "### Iceberg: aims",
    ]


class Wrong(Server):
    """Returns one row less than there is."""

    def __init__(self) -> None:
        """An engine that is not installed."""

    def ask(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"rows": 0, "columns": 6, "sum": [0, 0], "seconds": 1.0}


def test_a_wrong_answer_ends_the_run(tmp_path: Path) -> None:
    make_files(tmp_path / "parquet", 2_000, 1)
    first, *_ = Questions(load_rows(tmp_path / "parquet")).draw(np.random.default_rng(1))
    with pytest.raises(WrongAnswerError, match=r"^Q1: scan gave a wrong answer: {'rows': 0, "):
        ask(Wrong(), "scan", first)


def test_the_report_says_who_is_faster_and_what_is_missed() -> None:
    times = {"iceberg": (0.5, 0.4), "scan": (0.1, 0.05)}
    samples = [Sample("Q1", way, taken, 0.2, 1) for way, each in times.items() for taken in each]
    changes = [
        Changed(what, who, Cost(2.0, wall))
        for what, who, wall in (
            (COUNT, "iceberg", 3.0),
            (COUNT, "alcid", 2.0),
            ("delete-ids", "iceberg", 3.0),
            ("delete-ids", "alcid", 2.0),
            (BUILD, "alcid", 1.0),
        )
    ]
    report = IcebergReport({"cores": 2}, 10, 1, 2, {"rows": 1_000_000}, samples, changes)
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in report.to_text().splitlines()
        if line.startswith("|")
    ]
    for row in (
        ["iceberg", "400 / 450", *["-"] * 8],
        ["scan", "50 / 75", *["-"] * 8],
        ["iceberg / scan", "8.00", *["-"] * 8],
        [COUNT, "3.00 / 3.00, CPU 2.00", "2.00 / 2.00, CPU 2.00", "1.50"],
        [BUILD, "-", "1.00 / 1.00, CPU 2.00", "-"],
        ["Q1, iceberg / alcid", "scan", "8.00", ">= 10", "MISSED"],
        [f"{COUNT}, iceberg / alcid", "", "1.50", ">= 2", "MISSED"],
        ["delete-ids, iceberg / alcid", "", "1.50", ">= 1", "met"],
    ):
        assert row in rows
    assert report.to_text().splitlines()[:3] == [
        "cores 2",
        "",
        "10 rows in 1 files; repetitions: 2; rows 1.0 MB",
    ]
    assert WAYS.keys() >= times.keys()
