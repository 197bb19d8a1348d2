"""The demo, end to end on a few rows: its answers, its report, and the command."""

from __future__ import annotations

import html
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import alcid_demo as demo
from alcid.cli import main
from alcid.errors import OptionError
from alcid.opening import paimon, parquet
from alcid.spark import jvm
from alcid.spark.jvm.iceberg import RUNTIME_CLASS
from alcid_demo import queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 20_000
QUERIES = 13


@pytest.fixture(scope="module")
def progress() -> list[str]:
    return []


@pytest.fixture(scope="module")
def report(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, progress: list[str]
) -> demo.DemoReport:
    folder = tmp_path_factory.mktemp("demos") / "new"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "_TIMES", 1)
        return demo.run(folder, rows=ROWS, spark=spark, report_progress=progress.append)


def test_every_answer_is_the_same_and_every_check_met(
    spark: SparkSession, report: demo.DemoReport
) -> None:
    tables = ["Parquet folder", "Paimon table"]
    if jvm.has_class(spark, RUNTIME_CLASS):
        tables.append("Iceberg table")
    assert {name: len(results) for name, results in report.tables.items()} == dict.fromkeys(
        tables, QUERIES
    )
    assert [result.query.text for result in report.results if not result.is_same] == []
    assert [check.text for step in report.steps for check in step.checks if not check.is_met] == []
    assert report.ok


def test_queries_return_the_rows_that_the_data_promise(report: demo.DemoReport) -> None:
    for results in report.tables.values():
        rows = {result.query.text: result.rows for result in results}
        assert rows["dt = '20250801' AND score = 100"] == 1
        assert rows["count of class_id = 7"] == 100
        assert rows["dt = '20250801' ORDER BY score DESC LIMIT 10"] == 10
        assert rows[f"id = {10_000 * 2654435761 % (1 << 40)}"] == 1


def test_tables_stay_as_the_demo_left_them(report: demo.DemoReport) -> None:
    folder = Path(report.folder)
    assert parquet(folder / "events").count() == ROWS
    assert paimon(warehouse=folder / "warehouse", table="demo.events").count() == ROWS - 100
    assert paimon(warehouse=folder / "warehouse", table="demo.users").count() == 2080


def test_calls_are_printed_before_their_results(
    report: demo.DemoReport, progress: list[str]
) -> None:
    code = '   paimon.delete("class_id = 7")'
    assert progress[progress.index(code) + 1].startswith("     deleted 100 rows of ")
    titles = [f"{number}. {step.title}" for number, step in enumerate(report.steps, 1)]
    assert [line for line in progress if line in titles] == titles


def test_one_answer_that_differs_makes_the_whole_demo_fail(
    report: demo.DemoReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = report.results
    wrong = replace(report, results=(replace(first, is_same=False), *others))
    assert not wrong.ok
    assert f"different rows: {first.query.text}" in str(wrong)
    assert "NOT all is well" in str(wrong)
    monkeypatch.setattr(demo, "run", lambda *_, **__: wrong)
    assert main(["demo", "--folder", f"{report.folder}-wrong", "--json"]) == 1


def test_command_prints_one_document(
    report: demo.DemoReport, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "run", lambda *_, **__: report)
    assert main(["demo", "--folder", f"{report.folder}-of-the-command", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(json.dumps(report.to_dict()))
    assert (document["ok"], document["rows"]) == (True, ROWS)


def test_commands_to_go_on_with_run_as_the_page_shows_them(
    report: demo.DemoReport,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = Path(report.page).read_text("utf-8")
    (shown,) = re.findall(r"What to try next</h2>.*?<pre><code>(.*?)</code></pre>", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    for line in html.unescape(shown).splitlines():
        program, *arguments = shlex.split(line)
        assert (program, main(arguments)) == ("alcid", 0), line
        assert capsys.readouterr().out, line
    assert [path.name for path in tmp_path.iterdir()] == ["plan.html"]


def test_folder_of_somebody_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "mine").touch()
    assert main(["demo", "--folder", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"alcid: {tmp_path}: found a folder that no demo has created, expected a new one\n"
    )
    assert [path.name for path in tmp_path.rglob("*")] == ["events", "mine"]


def test_page_without_a_folder_is_an_error_at_once(spark: SparkSession, tmp_path: Path) -> None:
    page = tmp_path / "none" / "page.html"
    with pytest.raises(OptionError) as raised:
        demo.run(tmp_path / "new", report=page, spark=spark)
    assert str(raised.value) == f"report: found {page}, expected a file in an existing folder"
    assert [path.name for path in (tmp_path / "new").iterdir()] == [".alcid-demo"]
