"""The benchmarks run, at a tiny scale, and check what they measure."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alcid.datafiles.parquet import Coalescing, ReadReport, read_rows
from alcid.errors import UnsupportedError
from alcid.formats.source import FileSource
from alcid.spark.session import ensure_java
from benchmarks import parquet_metadata
from benchmarks.measure import Cost
from benchmarks.paimon.contenders import CONTENDERS, WRITES, present
from benchmarks.paimon.questions import QUESTIONS as TABLE_QUESTIONS
from benchmarks.paimon.questions import TableQuestions
from benchmarks.paimon.report import Duel
from benchmarks.paimon.tables import make_tables
from benchmarks.paimon.writing import Changes, Expected, check
from benchmarks.peer import PeerProcess
from benchmarks.queries.contest import Sample, ask
from benchmarks.queries.data import load_rows, make_files
from benchmarks.queries.engine_alcid import AlcidScan
from benchmarks.queries.pages import least_bytes
from benchmarks.queries.question import Question
from benchmarks.queries.report import QueryReport
from benchmarks.queries.serve import Server
from benchmarks.queries.truth import QUESTIONS, Questions
from benchmarks.questions import WrongAnswerError
from benchmarks.spark import __main__ as spark_main
from benchmarks.spark import contest as spark_contest
from benchmarks.spark.aims import all_aims
from benchmarks.spark.process_tree import tree_cost_of
from benchmarks.spark.report import SparkReport
from benchmarks.spark.ways import FULL_SCAN, WAYS
from benchmarks.table_run import Case, Group, here, measure
from benchmarks.upsert.contenders import KINDS
from benchmarks.upsert.contenders import start as start_keyed
from benchmarks.upsert.data import BATCHES, Held, Truth, make_source
from benchmarks.upsert.lives import STEPS, Life, Taken, held_by
from benchmarks.upsert.report import UpsertReport
from tests.interop.peers import unavailable

ROOT = Path(__file__).resolve().parent.parent
GROUPS = {
    "Hashes of keys": 5,
    "Hashes of few keys": 4,
    "Bucket assignment": 4,
    "Bucket assignment, one key a call": 2,
    "Hash index": 4,
    "Deletion vectors: positions": 9,
    "Deletion vectors: union and bytes": 12,
    "Deletion vectors, small calls": 3,
    "Puffin: 10 deletion vectors in one file": 5,
    "Theta sketches: update": 5,
    "Theta sketches: union and bytes": 3,
    "Theta sketches, small updates": 4,
}


def run_benchmark(output: Path, *chosen: str) -> tuple[str, list[dict[str, Any]]]:
    """Its output, and the results in its file."""
    options = ["--scale", "0.001", "--no-peer", *chosen, "--output", str(output)]
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.table_index", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    outcomes: list[dict[str, Any]] = json.loads(output.read_text("utf-8"))["outcomes"]
    return ended.stdout, outcomes


def test_it_measures_every_case(tmp_path: Path) -> None:
    printed, outcomes = run_benchmark(tmp_path / "figures.json")
    titles = [outcome["group"]["title"] for outcome in outcomes]
    assert {title: titles.count(title) for title in titles} == GROUPS
    assert [f"### {title}" in printed.splitlines() for title in GROUPS] == [True] * len(GROUPS)
    assert all(
        [figure["name"] for figure in outcome["figures"]] == ["alcid"] for outcome in outcomes
    )


def test_metadata_is_measured_by_both_decoders() -> None:
    measured = parquet_metadata.measurements(columns=5, row_groups=2)
    assert len(measured) == 9
    assert min(measured.values()) >= 0


def test_it_measures_only_what_was_asked_for(tmp_path: Path) -> None:
    printed, outcomes = run_benchmark(tmp_path / "figures.json", "--only", "Hash index: from_bytes")
    assert [outcome["operation"] for outcome in outcomes] == ["from_bytes"] * 2
    assert printed.count("| from_bytes | ") == 2


@pytest.mark.parametrize("right", [{"peer"}, {"alcid"}], ids=["ours", "the_peers"])
def test_a_wrong_answer_ends_the_run(right: set[str]) -> None:
    (wrong,) = {"alcid", "peer"} - right
    sides = [here(1, lambda: 42, lambda _: "alcid" in right)]
    sides += [here(1, lambda: 42, lambda _: "peer" in right, "peer")]
    case = Case(Group("Answers", "answers"), "ask", "everything", lambda: sides)
    with pytest.raises(WrongAnswerError, match=f"^Answers: ask, everything: {wrong} gave a wrong"):
        measure(case, with_peers=True)


def test_peers_can_be_left_out() -> None:
    def sides() -> Any:
        yield here(3, lambda: 42, lambda answer: bool(answer == 42))
        pytest.fail("the peer's data was made")

    (figure,) = measure(
        Case(Group("Answers", "answers"), "ask", "everything", sides), with_peers=False
    ).figures
    assert (figure.name, figure.count) == ("alcid", 3)
    assert figure.rate == 3 / figure.cost.cpu / 1e6


def test_whole_queries_are_measured_and_checked(tmp_path: Path) -> None:
    output = tmp_path / "queries.json"
    options = ["--rows", "6000", "--files", "2", "--repeats", "2", "--peers", "alcid", "pyarrow"]
    options += ["--data", str(tmp_path / "data"), "--output", str(output)]
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.queries", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert output.with_suffix(".md").read_text("utf-8") == ended.stdout
    samples = json.loads(output.read_text("utf-8"))["samples"]
    keys = [(each["phase"], each["question"], each["contender"]) for each in samples]
    peers = ["alcid", "pyarrow"]
    expected_keys = [
        (phase, question, contender)
        for phase in ("warm", "fresh")
        for question in QUESTIONS
        for contender in peers
    ]
    assert sorted(keys) == sorted(2 * expected_keys)
    said = [each["said"].keys() for each in samples if each["contender"] == "alcid"]
    assert said == [{"data", "index"}] * (len(samples) // 2)


def test_the_fewest_bytes_of_an_answer_are_those_of_its_pages(tmp_path: Path) -> None:
    make_files(tmp_path / "rows", 150_000, 2)
    rows = load_rows(tmp_path / "rows")
    answer = np.array([0, 1, 2_047, 2_048, 70_000, 74_999, 75_000, 149_999])
    report = ReadReport()
    for layout, start, end in zip(rows.layouts, rows.starts, rows.starts[1:], strict=False):
        positions = answer[(answer >= start) & (answer < end)] - start
        with FileSource(layout.file) as source:
            read_rows(source, positions, coalescing=Coalescing(gap=0), layout=layout, report=report)
    assert least_bytes(rows, answer) == report.bytes_read
    scores = sum(int(layout.column("score").leaves[0].pieces[1].sum()) for layout in rows.layouts)
    assert least_bytes(rows, np.arange(150_000), ["score"]) == scores


def test_questions_reach_the_peers_whole(tmp_path: Path) -> None:
    make_files(tmp_path / "rows", 2_000, 1)
    asked = list(Questions(load_rows(tmp_path / "rows")).draw(np.random.default_rng(1)))
    assert [each.question.name for each in asked] == list(QUESTIONS)
    sent = Question("Q6", "rows", ((("a", "=", 7), ("b", "<", 0.5)), (("c", "in", [1, 2]),)))
    read = json.loads(json.dumps({"name": "Q6", "ask": "rows", "where": sent.where}))
    assert Question.from_json(read) == sent
    assert sent.select("t") == "SELECT * FROM t WHERE a = 7 AND b < 0.5 OR c IN (1, 2)"
    assert Question("Q7", "top").select("t") == "SELECT * FROM t ORDER BY score DESC LIMIT 10"


@pytest.mark.parametrize(
    ("seconds", "fails"), [(0.1219, False), (0.1221, True)], ids=["level", "slower"]
)
def test_indexes_that_cost_more_than_they_bring_are_found(seconds: float, fails: bool) -> None:
    samples = [
        Sample("warm", "Q1", name, taken, 0.0, 0, {}, 1, None)
        for name, taken in (("alcid", seconds), ("alcid", 9.0), ("alcid-scan", 0.1))
    ]
    report = QueryReport({}, 1, 1, 1, 1, "", {}, {}, samples)
    (verdict,) = report.verdicts()
    assert (verdict.question, verdict.contender, verdict.fails) == ("Q1", "alcid", fails)


class Parrot(PeerProcess):
    """Always returns the same answer."""

    def __init__(self, **answer: Any) -> None:
        self.answer = answer

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert not request["fresh"]
        return {"seconds": 0.5, "cpu": 0.25, "read": 7, "said": {}} | self.answer


def test_a_wrong_answer_of_a_peer_ends_the_queries(tmp_path: Path) -> None:
    make_files(tmp_path / "rows", 2_000, 1)
    rows = load_rows(tmp_path / "rows")
    by_name = {each.question.name: each for each in Questions(rows).draw(np.random.default_rng(1))}
    best = rows.ids[np.argsort(-rows.scores)[:10]]
    sums = [int(best.sum()), int((best * np.arange(1, 11)).sum())]
    right = Parrot(rows=10, columns=6, sum=sums)
    assert ask(right, "peer", "warm", by_name["Q7"]).seconds == 0.5
    backwards = Parrot(rows=10, columns=6, sum=[sums[0], sums[1] - 1])
    with pytest.raises(WrongAnswerError, match=r"^Q7: peer gave a wrong answer"):
        ask(backwards, "peer", "warm", by_name["Q7"])
    key = by_name["Q1"].question.where[0][0][2]
    assert ask(Parrot(rows=1, columns=6, sum=[key, key]), "peer", "warm", by_name["Q1"]).rows == 1
    for wrong in ({"sum": [key + 4, key]}, {"rows": 2}, {"columns": 5}):
        with pytest.raises(WrongAnswerError, match=r"^Q1: peer gave a wrong answer"):
            ask(
                Parrot(**({"rows": 1, "columns": 6, "sum": [key, key]} | wrong)),
                "peer",
                "warm",
                by_name["Q1"],
            )


@pytest.mark.soak
def test_spark_is_measured_and_checked(tmp_path: Path) -> None:
    try:
        ensure_java()
    except UnsupportedError as error:
        unavailable(str(error))
    data = spark_main.make_dataset(tmp_path, 6_000, 2)
    rows = load_rows(data.folders.rows)
    questions = [*Questions(rows).draw(np.random.default_rng(1)), spark_contest.full_scan(rows)]
    chosen = [each for each in questions if each.question.name in ("Q1", "Q7", "Q8", FULL_SCAN)]
    ways = ["sorted", "read", "sql-fresh"]
    with spark_contest.start(2, data.base) as process:
        prepared = process.ask({"do": "prepare", "ways": ways, "files": 2, "rows": 3_000})
        assert list(prepared["sizes"]) == ["indexes", "rows", "sorted"]
        for way, asked in product(ways, chosen):
            sample = spark_contest.ask(process, way, asked)
            assert (sample.question, sample.way) == (asked.question.name, way)
        built = list(spark_contest.build_all(process, 2, [data], 0))
        appended = [
            process.ask({"do": "append", "base": str(data.base), "how": how})
            for how in spark_contest.APPENDS
        ]
    assert built == []
    assert [(each["rows"], each["sum"]) for each in appended] == [(6_000, data.id_sum)] * 3
    assert [bool(each["index_size"]) for each in appended] == [False, True, True]
    left = sorted(path.name for path in data.folders.own.iterdir())
    assert left == ["indexes", "sorted"]


class NoSpark(PeerProcess):
    """Answers like a process with a Spark, from what alcid reads without one."""

    def __init__(self, cores: int, base: Path) -> None:
        self.ready, self.base = {"version": "none"}, base
        (base / "indexes").mkdir(exist_ok=True)
        self.server = Server(AlcidScan(base / "parquet", base / "indexes"))
        self.cost = {"cpu": 4.0, "wall": 4.0 / cores}

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        rows = load_rows(Path(request.get("base", self.base)) / "parquet")
        count, total = len(rows.ids), int(rows.ids.sum())
        folders = ("rows", "bloom", "sorted", "indexes", "more_indexes")
        if request["do"] == "ask":
            return self.server.ask(request)
        answers: Mapping[str, dict[str, Any]] = {
            "prepare": {"sizes": dict.fromkeys(folders, 1_000_000)},
            "summary": {"rows": count, "columns": 6, "sum": [total]},
            "build": {
                "cost": self.cost,
                "rows": count,
                "files": len(rows.layouts),
                "skipped": [],
                "size": 1_000,
            },
            "append": {
                "cost": self.cost,
                "rows": count,
                "sum": total,
                "files": 1,
                "size": 1_000,
                "index_size": 10,
            },
        }
        return answers[request["do"]]

    def __exit__(self, *_: object) -> None:
        """There is no process to end."""


def test_all_parts_of_spark_are_in_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "figures" / "spark.json"
    options = ["--rows", "6000", "--files", "2", "--repeats", "2", "--data", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["spark", *options, "--json", str(output)])
    monkeypatch.setattr(spark_main, "start", NoSpark)
    spark_main.main()
    printed = capsys.readouterr().out
    assert output.with_suffix(".md").read_text("utf-8") == printed
    figures = json.loads(output.read_text("utf-8"))
    asked = [(each["question"], each["way"]) for each in figures["samples"]]
    assert sorted(asked) == sorted(2 * list(product([*QUESTIONS, FULL_SCAN], WAYS)))
    builds = [(each["indexes"], each["cores"], each["rows"]) for each in figures["builds"]]
    assert sorted(builds) == sorted(2 * list(product(("wide", "narrow"), (1, 2), (600, 6_000))))
    appends = [(each["how"], each["rows"]) for each in figures["appends"]]
    assert sorted(appends) == sorted(2 * list(product(spark_contest.APPENDS, (600, 6_000))))
    titles = [line for line in printed.splitlines() if line.startswith("### ")]
    assert titles == [
        "### Spark: ways",
        "### Spark: ms, best / median",
        "### Spark: ms of CPU over all processes, best",
        "### Spark: how many times as long",
        "### Spark: sets of indexes",
        "### Spark: building indexes",
        "### Spark: scaling of builds",
        "### Spark: appending",
        "### Spark: aims",
    ]


def test_rates_and_scaling_of_builds_on_spark_are_those_of_the_best() -> None:
    builds = [
        spark_contest.Built("wide", cores, rows, Cost(cpu, wall), 5_000_000)
        for cores, rows, cpu, wall in (
            (1, 2_000_000, 1.0, 2.0),
            (1, 20_000_000, 8.0, 10.0),
            (1, 20_000_000, 9.0, 9.5),
            (2, 20_000_000, 8.0, 5.0),
        )
    ]
    report = SparkReport({}, 20_000_000, 40, 2, {}, [], builds, [])
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in report.to_text().splitlines()
        if line.startswith("| wide ")
    ]
    assert cells[1:] == [
        ["wide", "2,000,000", "1", "2.00", "1.00", "2.00", "5.00"],
        ["wide", "20,000,000", "1", "9.50", "2.11", "2.50", "5.00"],
        ["wide", "20,000,000", "2", "5.00", "2.00", "2.50", "5.00"],
        ["wide", "1 core, 2,000,000 to 20,000,000 rows", "2.11"],
        ["wide", "20,000,000 rows, 1 to 2 cores", "1.90"],
    ]


@pytest.mark.parametrize(
    ("question", "plain", "met"),
    [
        *((question, *case) for question in ("Q1", "Q7") for case in ((2.0, True), (1.99, False))),
        *((each, *case) for each in ("Q9", FULL_SCAN) for case in ((0.1, True), (0.09, False))),
    ],
)
def test_aims_of_questions_on_spark(question: str, plain: float, met: bool) -> None:
    times = (("plain", 9.0), ("plain", plain), ("sql", 0.1), ("sql", 5.0), ("bloom", 0.01))
    samples = [spark_contest.Sample(question, way, taken, 0.0, 1) for way, taken in times]
    (aim,) = all_aims(samples, [])
    assert (aim.who, aim.met) == ("sql", met)


@pytest.mark.parametrize(
    ("indexes", "wall", "met"),
    [("wide", 2.0, True), ("wide", 2.01, False), ("narrow", 1.0, True), ("narrow", 1.01, False)],
)
def test_aims_of_builds_on_spark_are_of_a_core(indexes: str, wall: float, met: bool) -> None:
    built = spark_contest.Built(indexes, 2, 6_000_000, Cost(0.0, wall), 1)
    (aim,) = all_aims([], [built])
    assert (aim.who, aim.met) == ("6,000,000 rows, 2 cores", met)


class Careless(NoSpark):
    """Loses a row, or does not build an index."""

    def __init__(self, base: Path, **wrong: Any) -> None:
        super().__init__(2, base)
        self.wrong = wrong

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        return super().ask(request) | self.wrong


def test_wrong_answers_on_spark_end_the_run(tmp_path: Path) -> None:
    data = spark_main.make_dataset(tmp_path, 2_000, 1)
    rows = load_rows(data.folders.rows)
    with pytest.raises(WrongAnswerError, match=r"^rows: found 1999, expected 2000$"):
        list(spark_contest.build_all(Careless(data.base, rows=1_999), 2, [data], 1))
    skipped = ["skipped bitmap of 'id' in 1 file: it is too long"]
    with pytest.raises(WrongAnswerError, match=r"^skipped: found "):
        list(spark_contest.build_all(Careless(data.base, skipped=skipped), 2, [data], 1))
    with pytest.raises(WrongAnswerError, match=r"^sum: found 5, expected "):
        list(spark_contest.append_all(Careless(data.base, sum=5), [data], 1))
    for wrong in ({"rows": 1_999}, {"columns": 5}, {"sum": [5]}):
        with pytest.raises(WrongAnswerError, match=f"^{FULL_SCAN}: plain gave a wrong answer"):
            spark_contest.ask(Careless(data.base, **wrong), "plain", spark_contest.full_scan(rows))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux only")
def test_the_cost_of_a_run_is_that_of_all_processes_that_are_left() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True); input()"
    command = [sys.executable, "-c", burn]
    nested = [sys.executable, "-c", f"import subprocess; subprocess.run({command!r}, check=True)"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(nested, **pipes) as idle:  # type: ignore[call-overload]
        idle.stdout.readline()
        waited, _ = tree_cost_of(lambda: time.sleep(0.1))
        ended, _ = tree_cost_of(lambda: idle.communicate(b"\n"))
    with subprocess.Popen(nested, **pipes) as busy:  # type: ignore[call-overload]
        worked, _ = tree_cost_of(busy.stdout.readline)
        busy.communicate(b"\n")
    assert 0 <= waited.cpu < 0.1 <= waited.wall
    assert 0 <= ended.cpu < 0.2
    assert worked.cpu >= 0.28


def test_paimon_tables_are_measured_and_checked(tmp_path: Path) -> None:
    output = tmp_path / "paimon.json"
    options = ["--rows", "6000", "--files", "2", "--repeats", "1", "--peers", "alcid", "pyarrow"]
    options += ["--data", str(tmp_path / "data"), "--output", str(output)]
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.paimon", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert output.with_suffix(".md").read_text("utf-8") == ended.stdout
    figures = json.loads(output.read_text("utf-8"))
    asked = [(each["phase"], each["question"], each["contender"]) for each in figures["samples"]]
    assert sorted(asked) == sorted(
        product(("warm", "fresh"), TABLE_QUESTIONS, ("alcid", "pyarrow"))
    )
    changed = [(each["what"], each["contender"], each["rows"]) for each in figures["changes"]]
    rows = {"delete": 60, "build": 6_000, "append": 6_000, "append-bare": 6_000}
    assert changed == [(what, "alcid", rows[what]) for what in WRITES]
    titles = [line for line in ended.stdout.splitlines() if line.startswith("### ")]
    assert titles == [
        "### Paimon: contenders",
        "### Paimon: questions",
        "### Paimon: warm, ms, median: the session is kept",
        "### Paimon: fresh, ms, median: a new session for every question",
        "### Paimon: warm, ms of CPU over all processes, median",
        "### Paimon: fresh, ms of CPU over all processes, median",
        "### Paimon: changes",
        "### Paimon: changes, seconds / seconds of CPU, median",
        "### Paimon: alcid beside the quickest of the others",
    ]


@pytest.mark.soak
def test_paimon_s_java_does_all_that_is_measured(tmp_path: Path) -> None:
    _, left_out = present(["paimon-java"])
    if left_out:
        unavailable(left_out["paimon-java"])
    tables = make_tables(tmp_path, 6_000, 2)
    rows = load_rows(tables.rows)
    changes = Changes(tables, rows)
    with CONTENDERS["paimon-java"].start(tables.base) as process:
        for asked in TableQuestions(rows).draw(np.random.default_rng(1)):
            assert ask(process, "paimon-java", "warm", asked).rows == asked.rows
        for what in WRITES:
            assert changes.make(process, "paimon-java", what).what == what


def test_a_wrong_paimon_table_ends_the_run(tmp_path: Path) -> None:
    tables = make_tables(tmp_path, 2_000, 2)
    ids = load_rows(tables.rows).ids
    count, total = len(ids), int(ids.sum())
    check("right", tables.indexed, Expected(count, total, has_indexes=True))
    for wrong in (Expected(count - 1, total, True), Expected(count, total + 1, True)):
        with pytest.raises(WrongAnswerError, match=r"^wrong: found rows and sum "):
            check("wrong", tables.indexed, wrong)
    with pytest.raises(WrongAnswerError, match=r"^wrong: found the indexes \[\]$"):
        check("wrong", tables.unindexed, Expected(count, total, has_indexes=True))
    with pytest.raises(WrongAnswerError, match=r"^wrong: found the indexes \[\('class_id', "):
        check("wrong", tables.indexed, Expected(count, total, has_indexes=False))


@pytest.mark.parametrize(
    ("ours", "verdict"), [(0.83, "ahead"), (0.84, "level"), (1.2, "level"), (1.21, "LOST")]
)
def test_a_paimon_table_is_ahead_of_the_quickest_only(ours: float, verdict: str) -> None:
    assert Duel("range", "warm", ours, ("pypaimon", 9.0), ("duckdb", 1.0)).verdict == verdict
    assert Duel("range", "warm", ours, ("pypaimon", 1.0), None).verdict == verdict


def test_upserts_are_measured_and_checked(tmp_path: Path) -> None:
    output = tmp_path / "upsert.json"
    options = ["--rows", "8000", "--repeats", "2", "--peers", "alcid"]
    options += ["--data", str(tmp_path / "data"), "--output", str(output)]
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.upsert", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert output.with_suffix(".md").read_text("utf-8") == ended.stdout
    taken = json.loads(output.read_text("utf-8"))["taken"]
    small = [("spread", 8), ("recent", 8)]
    whole = [("large", 800), *small, ("look-up", 100), ("compact", 8_404)]
    assert [
        (each["kind"], each["size"], each["step"], each["rows"], each["contender"])
        for each in taken
    ] == [
        (kind, size, step, rows, "alcid")
        for kind, size, steps in (
            ("vectors", 800, small),
            ("vectors", 4_000, small),
            ("vectors", 8_000, whole),
            ("level-0", 800, [("large", 80), ("spread", 8)]),
        )
        for step, rows in [("load", size), *steps, *steps]
    ]
    assert all(bool(each["written"]) == (each["step"] != "look-up") for each in taken)
    titles = [line for line in ended.stdout.splitlines() if line.startswith("### ")]
    tables = ("deletion vectors, 8,000 rows", "level 0 only, without deletion vectors, 800 rows")
    figures = (
        "seconds / seconds of CPU over all processes, median",
        "rows a second",
        "bytes written for each row",
        "memory at most, MB",
    )
    assert titles == [
        "### Primary keys: contenders",
        "### Primary keys: steps",
        *(f"### Primary keys: {table}: {figure}" for table, figure in product(tables, figures)),
        "### Primary keys: small upserts and the size of the table",
    ]
    left = sorted(path.name for path in (tmp_path / "data" / "8000-rows-20-files").iterdir())
    assert left == ["parquet", "upserts"]


@pytest.mark.soak
def test_paimon_s_java_upserts_all_that_is_measured(tmp_path: Path) -> None:
    _, left_out = present(["paimon-java"])
    if left_out:
        unavailable(left_out["paimon-java"])
    source = make_source(tmp_path, 8_000, 4)
    lives = {
        "vectors": Life(source, "vectors", 8_000, ("large", "look-up", "compact"), keys=3),
        "level-0": Life(source, "level-0", 4_000, ("recent",)),
    }
    assert lives.keys() == KINDS.keys()
    with start_keyed("paimon-java", tmp_path / "own") as process:
        for life in lives.values():
            steps = [life.load("paimon-java", process), *life.change("paimon-java", process)]
            assert all(each.buckets == 2 for each in steps if each.step != "look-up")
            life.end()


def test_upserted_keys_are_new_and_old_as_they_are_meant(tmp_path: Path) -> None:
    source = make_source(tmp_path, 20_000, 4)
    loaded = source.load(10_000)
    truth = Truth(20_000)
    truth.upsert(loaded)
    ids_seen = set(loaded.ids.tolist())
    assert (len(ids_seen), source.small) == (10_000, 20)
    batches = {name: source.batch(10_000, name) for name in BATCHES}
    for name, (count, new) in {
        "large": (1_000, 500),
        "spread": (20, 10),
        "recent": (20, 0),
    }.items():
        ids = set(batches[name].ids.tolist())
        assert (len(batches[name].ids), len(ids), len(ids - ids_seen)) == (count, count, new)
        ids_seen |= ids
        truth.upsert(batches[name])
    assert set(batches["recent"].ids.tolist()) <= set(loaded.ids[-200:].tolist())
    last: dict[int, int] = {}
    for batch in (loaded, *batches.values()):
        last |= dict(zip(batch.ids.tolist(), batch.users.tolist(), strict=True))
    mixed = sum(key % 1009 * user for key, user in last.items())
    assert truth.held() == Held(10_510, sum(last), mixed)
    again = make_source(tmp_path, 20_000, 4).batch(10_000, "spread")
    assert again.ids.tolist() == batches["spread"].ids.tolist()


class Idler(PeerProcess):
    """Reports that it did everything, and found what it was told to find."""

    def __init__(self, **answer: Any) -> None:
        self.answer = answer

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert request["do"] in ("upsert", "look-up")
        return {"cpu": 0.5, "wall": 0.25, "peak": 7, **self.answer}


def test_a_wrong_table_with_a_key_ends_the_run(tmp_path: Path) -> None:
    source = make_source(tmp_path, 2_000, 2)
    life = Life(source, "vectors", 2_000, ("look-up",))
    right = r"expected Held\(rows=2000, id_sum=\d+, mixed=\d+\)$"
    with pytest.raises(
        WrongAnswerError, match=r"^vectors, 2,000 rows, load: idler: found .*" + right
    ):
        life.load("idler", Idler())
    (table,) = (tmp_path / "upsert-work" / "bench.db").iterdir()
    assert held_by(table) == Held(0, 0, 0)
    with pytest.raises(WrongAnswerError, match=r"look-up: idler: found {'rows': 99, 'sum': 5}, "):
        list(life.change("idler", Idler(rows=99, sum=5)))


def test_memory_of_a_process_that_is_started_counts() -> None:
    # In a separate process: next to the gigabytes of a Spark it would not be noticeable.
    script = """
import subprocess, sys
from benchmarks.upsert.memory import watch_memory
hold = "held = bytearray(b'x') * 50_000_000; print(flush=True); input()"
with watch_memory() as peak:
    before = peak.bytes
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", hold], **pipes) as child:
        child.stdout.readline()
        peak.look()
        child.communicate(b"\\n")
print(before, peak.bytes - before)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    before, more = map(int, ended.stdout.split())
    if not before:
        pytest.skip("the system does not say")
    assert 50_000_000 < more < 100_000_000


def test_the_report_of_upserts_has_medians_of_the_largest_table() -> None:
    def taken(size: int, step: str, name: str, *walls: float) -> Sequence[Taken]:
        cost = [Cost(2 * wall, wall) for wall in walls]
        return [Taken("vectors", size, step, name, each, 5_000_000, 100, 700, 3) for each in cost]

    every = [
        *taken(1_000, "spread", "alcid", 9.0),
        *taken(5_000, "spread", "alcid", 0.5, 9.0, 0.25),
        *taken(5_000, "spread", "paimon-java", 1.0, 2.0, 9.0),
        *taken(5_000, "compact", "paimon-java", 1.0),
    ]
    facts = {"package": "p", "version": "1"}
    text = UpsertReport({}, 3, {}, {"alcid": facts, "paimon-java": facts}, every).to_text()
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if line.startswith(("| alcid ", "| spread ", "| vectors "))
    ]
    assert rows == [
        ["alcid", "table.upsert of an Arrow table, in this process", "p 1"],
        ["spread", STEPS["spread"], "100", "-"],
        ["alcid", "0.50 / 1.00", "-"],
        ["alcid", "200", "-"],
        ["alcid", "7.0", "-"],
        ["alcid", "5", "-"],
        ["spread", "alcid", "1,000", "3", "9.00 / 18.00", "7.0", "5"],
        ["spread", "alcid", "5,000", "3", "0.50 / 1.00", "7.0", "5"],
        ["spread", "paimon-java", "5,000", "3", "2.00 / 4.00", "7.0", "5"],
        ["vectors", "spread", "4.00", "-"],
    ]
