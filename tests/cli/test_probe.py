from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from alcid import FileIndex
from alcid.formats.file_index.container import write_container
from tests.cli.samples import TYPES, Alcid, Json, patched


def answer(path: Path, predicate: str, **fields: Json) -> Json:
    asked: Json = {"file": str(path), "predicate": predicate, "order": None, "notes": []}
    return {**asked, "exact": True, "truncated": False, **fields}


@pytest.mark.parametrize(
    ("predicate", "expected_answer"),
    [
        ("score > 60", {"answer": "rows", "count": 3, "positions": [1, 2, 3]}),
        ("score > 60 AND tags['a'] = 2", {"answer": "rows", "count": 1, "positions": [1]}),
        ("day = '2023-12-31'", {"answer": "skip", "count": 0, "positions": []}),
        ("class_id < 0", {"answer": "rows", "count": 1, "positions": [4]}),
        ("name > 'a'", {"answer": "any", "exact": False, "count": None, "positions": []}),
        ("TRUE", {"answer": "any", "count": None, "positions": []}),
        ("name IS NULL OR score = 50", {"answer": "rows", "count": 3, "positions": [0, 1, 2]}),
    ],
)
def test_json_of_a_predicate(
    alcid: Alcid, sample: Path, predicate: str, expected_answer: Json
) -> None:
    run = alcid("probe", sample, predicate, *TYPES, "--json")
    assert (run.status, run.json) == (0, answer(sample, predicate, **expected_answer))


@pytest.mark.parametrize(
    ("predicate", "line"),
    [
        ("score > 60", "3 rows: 1, 2, 3"),
        ("class_id < 0", "1 row: 4"),
        ("day = '2023-12-31'", "skip: no row can match"),
        ("name > 'a'", "any row: the indexes cannot decide"),
        ("TRUE", "every row matches"),
    ],
)
def test_text_of_a_predicate(alcid: Alcid, sample: Path, predicate: str, line: str) -> None:
    run = alcid("probe", sample, predicate, *TYPES)
    assert (run.status, run.out, run.err) == (0, f"{line}\n", "")


def test_limit_bounds_positions_and_not_the_count(alcid: Alcid, sample: Path) -> None:
    run = alcid("probe", sample, "score > 60", *TYPES, "--limit", 2, "--json")
    expected_answer = {"answer": "rows", "count": 3, "positions": [1, 2], "truncated": True}
    assert run.json == answer(sample, "score > 60", **expected_answer)
    assert alcid("probe", sample, "score > 60", *TYPES, "--limit", 2).out == "3 rows: 1, 2, ...\n"


def test_limit_0_shows_all(alcid: Alcid, tmp_path: Path) -> None:
    path = tmp_path / "many.index"
    table = pa.table({"a": [1] * 30})
    path.write_bytes(FileIndex.build(table, {"file-index.bitmap.columns": "a"}).to_bytes())
    arguments = ("probe", path, "a = 1", "--type", "a=BIGINT", "--json")
    cut, whole = alcid(*arguments).json, alcid(*arguments, "--limit", 0).json
    assert (cut["positions"], cut["truncated"]) == (list(range(20)), True)
    assert (whole["positions"], whole["truncated"]) == (list(range(30)), False)


def test_rows_that_may_not_match_are_noted(alcid: Alcid, sample: Path) -> None:
    predicate = "score > 60 AND length(name) = 2"
    run = alcid("probe", sample, predicate, *TYPES)
    assert run.out.splitlines() == [
        "3 rows: 1, 2, 3",
        "note: no index can answer: (length(name) = 2)",
        "note: some of these rows may not match: apply the predicate to them",
    ]
    expected_answer = {"answer": "rows", "exact": False, "count": 3, "positions": [1, 2, 3]}
    notes = ["no index can answer: (length(name) = 2)"]
    run = alcid("probe", sample, predicate, *TYPES, "--json")
    assert run.json == answer(sample, predicate, **expected_answer, notes=notes)


def test_notes_say_what_no_index_answers(alcid: Alcid, sample: Path) -> None:
    predicate = "scores > 60 OR scores < 3 OR length(name) = 2"
    run = alcid("probe", sample, predicate)  # no type is needed if no index is asked
    assert run.out.splitlines() == [
        "any row: the indexes cannot decide",
        "note: no index of column scores",
        "note: no index can answer: (length(name) = 2)",
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
    rows = {"answer": "rows", "count": len(positions), "positions": positions}
    asked: Json = {"file": str(sample), "predicate": None, "order": order}
    exactness = {"exact": True, "truncated": False, "notes": []}
    assert (run.status, run.json) == (0, {**asked, **rows, **exactness})


@pytest.mark.parametrize(
    ("predicate", "line"),
    [
        ("class_id = 1", "1 row: 3"),  # NaN, above the 50 of row 0
        ("name IS NULL", "1 row: 1"),
        ("class_id = 1 AND score < 60", "1 row: 0"),
        ("class_id = 7", "skip: no row can match"),
    ],
)
def test_top_n_of_the_rows_that_match(
    alcid: Alcid, sample: Path, predicate: str, line: str
) -> None:
    run = alcid("probe", sample, predicate, "--top-n", 1, "--order-by", "score", *TYPES)
    assert (run.status, run.out, run.err) == (0, f"{line}\n", "")


def test_rows_that_no_index_orders_are_noted(alcid: Alcid, sample: Path) -> None:
    arguments = ("probe", sample, "score > 60", "--top-n", 1, "--order-by", "class_id", *TYPES)
    assert alcid(*arguments).out.splitlines() == [
        "3 rows: 1, 2, 3",
        "note: no range-bitmap index of column class_id",
        "note: these rows are not in order: sort them to get the first",
    ]
    document = alcid(*arguments, "--json").json
    assert (document["exact"], document["positions"]) == (False, [1, 2, 3])


def test_char_is_not_ordered(alcid: Alcid, tmp_path: Path) -> None:
    path = tmp_path / "char.index"
    options = {"file-index.range-bitmap.columns": "a"}
    path.write_bytes(FileIndex.build(pa.table({"a": ["x"]}), options).to_bytes())
    run = alcid("probe", path, "--top-n", 1, "--order-by", "a", "--type", "a=CHAR(4)")
    assert run.out.splitlines() == [
        "any row: the indexes cannot decide",
        "note: no index orders column a of type CHAR(4)",
    ]


def test_top_n_needs_a_range_bitmap(alcid: Alcid, sample: Path) -> None:
    run = alcid("probe", sample, "--top-n", 1, "--order-by", "class_id", *TYPES)
    assert run.out.splitlines() == [
        "any row: the indexes cannot decide",
        "note: no range-bitmap index of column class_id",
    ]


def test_damage_is_an_error(alcid: Alcid, sample: Path) -> None:
    patched(sample, 866, b"\x09")
    run = alcid("probe", sample, "tags['a'] = 1", *TYPES, "--json")
    problem = f"{sample}: unknown bitmap version at offset 866: found 9, expected 1 or 2"
    assert (run.status, run.out, run.err) == (1, "", f"alcid: {problem}\n")


def test_wrong_type_looks_like_damage_and_is_named(alcid: Alcid, sample: Path) -> None:
    run = alcid("probe", sample, "score > 60", "--type", "score=FLOAT")
    assert (run.status, run.out, run.err.count("\n")) == (1, "", 1)
    assert run.err.endswith("; or column score is not FLOAT\n")


def test_index_type_of_someone_else_is_an_error(alcid: Alcid, tmp_path: Path) -> None:
    path = tmp_path / "new.index"
    path.write_bytes(write_container({("a", "cuckoo"): b"123"}))
    run = alcid("probe", path, "a = 1", "--type", "a=INT")
    supported = "bloom-filter, bitmap, range-bitmap, bsi"
    message = f"column a: found index type 'cuckoo', expected {supported}"
    assert (run.status, run.out, run.err) == (1, "", f"alcid: {message}\n")
