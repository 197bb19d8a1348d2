"""The benchmarks run, at a tiny scale, and check what they measure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alcid.formats.source import FileSource
from alcid.parquet_file import Coalescing, ReadReport, read_rows
from benchmarks.peer import PeerProcess
from benchmarks.queries.contest import Sample, ask
from benchmarks.queries.data import load_rows, make_files
from benchmarks.queries.pages import least_bytes
from benchmarks.queries.question import Question
from benchmarks.queries.report import QueryReport
from benchmarks.queries.truth import QUESTIONS, Questions
from benchmarks.questions import WrongAnswerError
from benchmarks.table_run import Case, Group, here, measure

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
    """What it prints, and the outcomes in its file."""
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
        yield here(3, lambda: 42, lambda found: bool(found == 42))
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
    wanted = [
        (phase, question, contender)
        for phase in ("warm", "fresh")
        for question in QUESTIONS
        for contender in peers
    ]
    assert sorted(keys) == sorted(2 * wanted)
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
    """Always gives the same answer."""

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
