from __future__ import annotations

from pathlib import Path

import pytest

from alcid.formats.container import write_container
from tests.cli.samples import TYPES, Alcid, Json, patched


def answer(path: Path, predicate: str, **fields: Json) -> Json:
    return {"file": str(path), "predicate": predicate, "order": None, "notes": [], **fields}


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        ("score > 60", {"answer": "rows", "count": 3, "positions": [1, 2, 3]}),
        ("score > 60 AND tags['a'] = 2", {"answer": "rows", "count": 1, "positions": [1]}),
        ("day = '2023-12-31'", {"answer": "skip", "count": 0, "positions": []}),
        ("class_id < 0", {"answer": "rows", "count": 1, "positions": [4]}),
        ("name > 'a'", {"answer": "any", "count": None, "positions": []}),
        ("name IS NULL OR score = 50", {"answer": "rows", "count": 3, "positions": [0, 1, 2]}),
    ],
)
def test_json_of_a_predicate(alcid: Alcid, sample: Path, predicate: str, found: Json) -> None:
    run = alcid("probe", sample, predicate, *TYPES, "--json")
    assert (run.status, run.json) == (0, answer(sample, predicate, **found))


@pytest.mark.parametrize(
    ("predicate", "line"),
    [
        ("score > 60", "3 rows: 1, 2, 3"),
        ("class_id < 0", "1 row: 4"),
        ("day = '2023-12-31'", "skip: no row can match"),
        ("name > 'a'", "any row: the indexes cannot tell"),
    ],
)
def test_text_of_a_predicate(alcid: Alcid, sample: Path, predicate: str, line: str) -> None:
    run = alcid("probe", sample, predicate, *TYPES)
    assert (run.status, run.out, run.err) == (0, f"{line}\n", "")


def test_limit_bounds_positions_and_not_the_count(alcid: Alcid, sample: Path) -> None:
    run = alcid("probe", sample, "score > 60", *TYPES, "--limit", 2, "--json")
    assert (run.json["count"], run.json["positions"]) == (3, [1, 2])
    assert alcid("probe", sample, "score > 60", *TYPES, "--limit", 2).out == "3 rows: 1, 2, ...\n"


def test_notes_say_what_no_index_answers(alcid: Alcid, sample: Path) -> None:
    predicate = "scores > 60 OR scores < 3 OR length(name) = 2"
    run = alcid("probe", sample, predicate)  # no type is needed where no index is asked
    assert run.out.splitlines() == [
        "any row: the indexes cannot tell",
        "note: no index of column scores",
        "note: no index can tell: (length(name) = 2)",
    ]


@pytest.mark.parametrize(
    ("options", "positions"),
    [
        (["--top-n", 2], [1, 3]),
        (["--top-n", 1, "--ascending"], [0]),
        (["--top-n", 2, "--nulls", "first"], [3, 4]),
        (["--top-n", 9], [0, 1, 2, 3, 4]),
    ],
)
def test_top_n(alcid: Alcid, sample: Path, options: list[object], positions: list[int]) -> None:
    run = alcid("probe", sample, "--order-by", "score", *options, *TYPES, "--json")
    order = {
        "top_n": options[1],
        "order_by": "score",
        "descending": "--ascending" not in options,
        "nulls": "first" if "first" in options else "last",
    }
    found = {"answer": "rows", "count": len(positions), "positions": positions}
    asked = {"file": str(sample), "predicate": None, "order": order}
    assert (run.status, run.json) == (0, {**asked, **found, "notes": []})


def test_top_n_needs_a_range_bitmap(alcid: Alcid, sample: Path) -> None:
    run = alcid("probe", sample, "--top-n", 1, "--order-by", "class_id", *TYPES)
    assert run.out.splitlines() == [
        "any row: the indexes cannot tell",
        "note: no range-bitmap index of column class_id",
    ]


def test_damage_is_an_error(alcid: Alcid, sample: Path) -> None:
    patched(sample, 866, b"\x09")
    run = alcid("probe", sample, "tags['a'] = 1", *TYPES, "--json")
    problem = f"{sample}: unknown bitmap version at offset 866: found 9, expected 1 or 2"
    assert (run.status, run.out, run.err) == (1, "", f"alcid: {problem}\n")


def test_index_type_of_someone_else_is_an_error(alcid: Alcid, tmp_path: Path) -> None:
    path = tmp_path / "new.index"
    path.write_bytes(write_container({("a", "cuckoo"): b"123"}))
    run = alcid("probe", path, "a = 1", "--type", "a=INT")
    known = "bloom-filter, bitmap, range-bitmap, bsi"
    message = f"column a: found index type 'cuckoo', expected {known}"
    assert (run.status, run.out, run.err) == (1, "", f"alcid: {message}\n")
