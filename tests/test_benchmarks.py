"""The benchmark of the table indexes runs, at a tiny scale, and checks what it measures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
