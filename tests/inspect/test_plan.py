"""The parts of a page about a plan, and its picture for documents."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from alcid.inspect import to_html
from alcid.inspect.plan import PlanFiles, plan_parts, plan_sentence
from alcid.scan import Explanation
from tests.browser.plans import day_paths, made_plan
from tests.golden.values import Json
from tests.inspect.make_plan_svg import TARGET, make_table, picture, plan_svg


def plan_data(explanation: Explanation) -> dict[str, Json]:
    assert explanation.outcomes is not None
    return {
        **explanation.to_dict(),
        "question": "where TRUE",
        "outcomes": explanation.outcomes.columns(),
    }


def test_files_are_summed_by_stage_and_reason() -> None:
    files = PlanFiles(made_plan(day_paths(400, 4), read=3).outcomes.columns())  # type: ignore[union-attr]
    assert [(stage.stage, stage.files) for stage in files.stages] == [
        ("partitions", 100),
        ("statistics", 200),
        ("file index", 97),
        ("read", 3),
    ]
    reasons = [(stage.stage, why, stage.files) for stage, why in files.reasons]
    assert reasons == [
        ("partitions", "other partitions", 100),
        ("statistics", "ruled out by min/max or null counts", 200),
        ("file index", "bloom filter", 48),
        ("file index", "no row in the index", 49),
        ("read", "by pages", 3),
    ]
    assert len({stage.colour for stage in files.stages}) == 4


def test_names_share_their_ends() -> None:
    files = PlanFiles(made_plan(["a/x-1.p", "a/x-2.p", "b/x-2.p"], read=1).outcomes.columns())  # type: ignore[union-attr]
    data = files.to_data()
    assert data["folders"] == [("a", 2), ("b", 1)]
    assert data["names"] == ["00x-1.p", "222", "50"]  # two alike, two alike, and what is between


def test_a_cell_of_several_files_shows_which_got_furthest() -> None:
    files = PlanFiles(made_plan(day_paths(20_000, 10), read=2).outcomes.columns())  # type: ignore[union-attr]
    drawn, note = files.drawing("so")
    read = [path for path in ElementTree.fromstring(drawn) if path.get("class") == "c8"]
    assert [path.get("d", "").count("M") for path in read] == [2]
    assert "A cell represents 10 files" in note


@pytest.mark.parametrize(
    ("explanation", "sentence"),
    [
        (Explanation("TRUE", (), ()), "No file was planned."),
        (made_plan([], read=0), "The table has no files."),
    ],
)
def test_what_has_no_files_says_so(explanation: Explanation, sentence: str) -> None:
    outcomes = None if explanation.outcomes is None else explanation.outcomes.columns()
    plan = {**explanation.to_dict(), "question": "where TRUE", "outcomes": outcomes}
    assert plan_sentence(plan, None if outcomes is None else PlanFiles(outcomes)) == sentence
    assert not any("<svg" in part for part in plan_parts(plan))
    assert sentence in to_html(explanation)


def test_the_picture_for_documents_is_svg() -> None:
    drawn = plan_svg(plan_data(made_plan(day_paths(400, 4), read=20)))
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "8 of the 20 files that are read" in drawn


def test_the_picture_of_the_documents_can_be_made_again(tmp_path: Path) -> None:
    events = make_table(tmp_path, days=12, hours=2, rows=40)
    drawn = picture(events)
    title = ElementTree.parse(TARGET).getroot()[0].text
    again = ElementTree.fromstring(drawn)[0].text
    assert title is not None
    assert again is not None
    assert title.partition(": Read")[0] == again.partition(": Read")[0]
    assert "of 24 files" in again
