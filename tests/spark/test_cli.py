"""The command on Spark: `alcid sql`, and `--spark`; the session is that of the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.examples import EVENTS, examples_of, make_folder
from tests.cli.samples import Alcid, runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def alcid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Alcid:
    """Runs in a folder with the files that the examples name."""
    make_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


def test_examples_of_sql_run(alcid: Alcid, capsys: pytest.CaptureFixture[str]) -> None:
    grouped, joined, explained = (alcid(*example) for example in examples_of("sql", capsys))
    best = EVENTS.group_by("user").aggregate([("score", "max")]).sort_by("user")
    rows = zip(best["user"].to_pylist(), best["score_max"].to_pylist(), strict=True)
    assert (grouped.status, grouped.err) == (0, "")
    assert [line.split() for line in grouped.out.splitlines()[1:-1]] == [
        [user, str(score)] for user, score in rows
    ]
    result = joined.json
    assert (sorted(row["id"] for row in result["rows"]), result["count"]) == ([1, 2, 3, 4, 5], 5)
    assert (explained.status, explained.err) == (0, "")
    assert "  where id = 7" in explained.out.splitlines()


def test_formats_of_sql(alcid: Alcid) -> None:
    query = ("sql", "SELECT id FROM events ORDER BY id", "--table", "events")
    run = alcid(*query)
    assert run.out.splitlines()[-2:] == ["19", "(20 rows, and there are more: --limit 0 for all)"]
    assert alcid(*query, "--limit", "2", "--format", "csv").out == '"id"\n0\n1\n'
    assert alcid(*query, "--explain", "--json").json["tables"][0]["columns"] == ["id"]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT 1 FROM evnts", "no such table: evnts; did you mean events?"),
        ("SELECT 1 FROM other", "no such table: other; --table gave events"),
        (
            "SELECT usr FROM events",
            (
                "Spark: A column, variable, or function parameter with name `usr` cannot be"
                " resolved. Did you mean one of the following? [`user`, `id`, `day`, `score`];"
                " line 1 pos 7"
            ),
        ),
        ("SELEC 1", "Spark: Syntax error at or near 'SELEC' (line 1, pos 0)"),
    ],
)
def test_errors_of_sql_are_one_line(alcid: Alcid, query: str, problem: str) -> None:
    run = alcid("sql", query, "--table", "events")
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert run.err.startswith(f"alcid: {problem}")


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        (
            ["events", "./events/"],
            "--table: events is given twice; rename one, as t=./events/",
        ),
        (["a b"], "--table a b: give it a name for the query, as t=a b"),
    ],
)
def test_names_of_tables(alcid: Alcid, tables: list[str], problem: str) -> None:
    arguments = [word for table in tables for word in ("--table", table)]
    run = alcid("sql", "SELECT 1", *arguments)
    assert (run.status, run.out, run.err) == (2, "", f"alcid: {problem}\n")


def test_query_with_spark_evaluates_what_only_spark_can(alcid: Alcid) -> None:
    where = ("--where", "initcap(user) = 'U3'", "--count")
    assert alcid("query", "events", *where).status == 2
    run = alcid("query", "events", *where, "--spark")
    assert (run.status, run.out, run.err) == (0, "100\n", "")


@pytest.mark.parametrize(
    ("where", "status", "problem"),
    [
        ("nofunc(id) = 1", 2, "Spark: Cannot resolve routine `nofunc` on search path"),
        ("raise_error(user) = 1", 1, "Spark: u"),
    ],
)
@pytest.mark.parametrize("how", [(), ("--count",)], ids=["rows", "count"])
def test_errors_of_spark_are_one_line(
    alcid: Alcid, where: str, status: int, problem: str, how: tuple[str, ...]
) -> None:
    run = alcid("query", "events", "--where", where, "--spark", *how)
    assert (run.status, run.out, run.err.count("\n")) == (status, "", 1)
    assert run.err.startswith(f"alcid: {problem}")


def test_settings_of_spark_count(alcid: Alcid, spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.caseSensitive")
    try:
        run = alcid("query", "events", "--select", "ID", "--conf", "spark.sql.caseSensitive=true")
        problem = "alcid: column ID: not in the table; did you mean id?\n"
        assert (run.status, run.out, run.err) == (2, "", problem)
    finally:
        spark.conf.set("spark.sql.caseSensitive", before)
    run = alcid("query", "events", "--conf", "sql.x=1")
    problem = "alcid: --conf: found sql.x, expected a setting that starts with spark.\n"
    assert (run.status, run.out, run.err) == (2, "", problem)


def test_plan_of_sql_as_a_page(alcid: Alcid) -> None:
    query = (
        "sql",
        "SELECT id FROM events WHERE id = 7",
        "--table",
        "events",
        "--html",
        "plan.html",
    )
    assert alcid(*query, "--explain").out == "written to plan.html\n"
    assert Path("plan.html").read_text().startswith("<!doctype html>")
    assert alcid(*query).err == (
        "alcid: --html: needs --explain, since the page shows what is read\n"
    )


def test_spark_that_the_command_starts_prints_nothing_of_its_own() -> None:
    program = "import sys; from alcid.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "sql", "SELECT 7 AS n", "--format", "jsonl"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, '{"n": 7}\n', "")
