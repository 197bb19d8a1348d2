from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from alcid import FileIndex
from alcid.formats.file_index.container import write_container
from tests.cli.samples import TYPES, Alcid, Json, patched


def index(column: str, index_type: str, offset: int, size: int, **facts: Json) -> Json:
    entry = {"column": column, "index_type": index_type, "data_type": None}
    return {**entry, "offset": offset, "size": size, "state": "ok", "problem": None, **facts}


UNTYPED = [
    index(
        "class_id",
        "bsi",
        192,
        163,
        rows=5,
        nulls=1,
        positive_slices=2,
        negative_slices=2,
        at_least=-3,
        at_most=2,
    ),
    index("day", "range-bitmap", 355, 198, rows=5, distinct=5, nulls=0, slices=3),
    index("name", "bitmap", 553, 111, version=2, rows=5, distinct=3, nulls=None, null_offset=0),
    index(
        "name",
        "bloom-filter",
        664,
        10,
        functions=3,
        bits=48,
        bits_set=9,
        false_positive_rate=(9 / 48) ** 3,
    ),
    index("score", "range-bitmap", 674, 192, rows=5, distinct=4, nulls=1, slices=2),
    index("tags[a]", "bitmap", 866, 70, version=1, rows=5, distinct=2, nulls=None, null_offset=0),
]
TYPED_FACTS: list[Json] = [
    {"data_type": "INT"},
    {"data_type": "DATE", "min": "2024-01-01", "max": "2024-01-05"},
    {"data_type": "STRING", "nulls": 2},
    {"data_type": "STRING"},
    {"data_type": "DOUBLE", "min": 50.0, "max": "NaN"},
    {"data_type": "INT", "nulls": 2},
]


def document(path: Path, indexes: list[Json]) -> Json:
    head = {"version": 1, "head_length": 192, "redundant_bytes": 0, "columns": 5}
    file = {"file": str(path), "kind": "Paimon file index", "size": 936}
    return {**file, **head, "indexes": indexes}


def test_without_types_json_holds_what_needs_none(alcid: Alcid, sample: Path) -> None:
    run = alcid("inspect", sample, "--json")
    assert (run.status, run.json) == (0, document(sample, UNTYPED))


def test_types_add_values_and_counts_of_nulls(alcid: Alcid, sample: Path) -> None:
    run = alcid("inspect", sample, "--json", *TYPES)
    typed = [{**plain, **facts} for plain, facts in zip(UNTYPED, TYPED_FACTS, strict=True)]
    assert (run.status, run.json) == (0, document(sample, typed))


def test_text_is_one_line_for_each_index(alcid: Alcid, sample: Path) -> None:
    run = alcid("inspect", sample, *TYPES)
    assert (run.status, run.err) == (0, "")
    head, facts = run.out.splitlines()[:4], run.out.splitlines()[4:]
    assert head == [
        f"{sample}: Paimon file index, 936 bytes",
        "version 1, head of 192 bytes, 0 redundant bytes, 5 columns",
        "",
        "COLUMN    TYPE    INDEX         OFFSET  BYTES  FACTS",
    ]
    assert [line[:47] for line in facts] == [
        "class_id  INT     bsi              192    163  ",
        "day       DATE    range-bitmap     355    198  ",
        "name      STRING  bitmap           553    111  ",
        "name      STRING  bloom-filter     664     10  ",
        "score     DOUBLE  range-bitmap     674    192  ",
        "tags[a]   INT     bitmap           866     70  ",
    ]
    assert [line[47:] for line in facts] == [
        "rows 5, nulls 1, positive slices 2, negative slices 2, at least -3, at most 2",
        "rows 5, distinct 5, nulls 0, slices 3, min '2024-01-01', max '2024-01-05'",
        "version 2, rows 5, distinct 3, nulls 2, null offset 0",
        "functions 3, bits 48, bits set 9, false positive rate 0.00659",
        "rows 5, distinct 4, nulls 1, slices 2, min 50.0, max NaN",
        "version 1, rows 5, distinct 2, nulls 2, null offset 0",
    ]


def test_column_lists_values_with_positions(alcid: Alcid, sample: Path) -> None:
    run = alcid("inspect", sample, "--json", "--type", "score=DOUBLE", "--column", "SCORE")
    values = [
        {"value": None, "count": 1, "positions": [4], "truncated": False},
        {"value": 50.0, "count": 1, "positions": [0], "truncated": False},
        {"value": 70.0, "count": 1, "positions": [2], "truncated": False},
        {"value": 90.0, "count": 1, "positions": [1], "truncated": False},
        {"value": "NaN", "count": 1, "positions": [3], "truncated": False},
    ]
    described = {**UNTYPED[4], **TYPED_FACTS[4], "values": values, "truncated": False}
    assert (run.status, run.json) == (0, document(sample, [described]))


def test_limit_bounds_values_and_positions(alcid: Alcid, sample: Path) -> None:
    arguments = ("inspect", sample, "--type", "tags[a]=INT", "--column", "tags[a]", "--limit", 1)
    run = alcid(*arguments, "--json")
    (described,) = run.json["indexes"]
    null = {"value": None, "count": 2, "positions": [2], "truncated": True}
    assert (described["values"], described["truncated"]) == ([null], True)
    assert alcid(*arguments).out.splitlines()[-3:] == [
        "tags[a], bitmap: 1 of 3 values",
        "VALUE  COUNT  POSITIONS",
        "NULL       2  2, ...",
    ]


def test_limit_of_values_alone(alcid: Alcid, sample: Path) -> None:
    arguments = ("inspect", sample, "--type", "tags=MAP<STRING, INT>", "--column", "tags[a]")
    (described,) = alcid(*arguments, "--limit", 2, "--json").json["indexes"]
    assert [listed["truncated"] for listed in described["values"]] == [False, False]
    assert described["truncated"] is True


def test_limit_0_shows_all(alcid: Alcid, tmp_path: Path) -> None:
    path = tmp_path / "many.index"
    table = pa.table({"a": [*range(30), *[-1] * 30]})
    path.write_bytes(FileIndex.build(table, {"file-index.bitmap.columns": "a"}).to_bytes())
    arguments = ("inspect", path, "--type", "a=BIGINT", "--column", "a", "--json")
    (cut,) = alcid(*arguments).json["indexes"]
    assert (len(cut["values"]), len(cut["values"][0]["positions"]), cut["truncated"]) == (
        20,
        20,
        True,
    )
    (whole,) = alcid(*arguments, "--limit", 0).json["indexes"]
    assert [listed["value"] for listed in whole["values"]] == list(range(-1, 30))
    assert whole["values"][0]["positions"] == list(range(30, 60))
    assert whole["truncated"] is False


def test_values_in_text_are_escaped(alcid: Alcid, sample: Path) -> None:
    run = alcid("inspect", sample, "--type", "name=STRING", "--column", "name")
    assert run.out.splitlines()[-8:] == [
        "name, bitmap: 4 of 4 values",
        "VALUE       COUNT  POSITIONS",
        "NULL            2  1, 2",
        r"'\x1b[31m'      1  4",
        "'ann'           1  0",
        "'it''s'         1  3",
        "",
        "name, bloom-filter: has no list of values",
    ]


def test_bsi_keeps_no_list_of_values(alcid: Alcid, sample: Path) -> None:
    arguments = ("inspect", sample, "--type", "class_id=INT", "--column", "class_id")
    assert alcid(*arguments, "--json").json["indexes"][0]["values"] is None
    assert alcid(*arguments).out.endswith("\nclass_id, bsi: has no list of values\n")


def test_damaged_index_is_shown_with_the_others(alcid: Alcid, sample: Path) -> None:
    patched(sample, 866, b"\x09")
    problem = "unknown bitmap version at offset 866: found 9, expected 1 or 2"
    run = alcid("inspect", sample, "--json")
    damaged = index("tags[a]", "bitmap", 866, 70) | {"state": "damaged", "problem": problem}
    assert (run.status, run.json) == (1, document(sample, [*UNTYPED[:5], damaged]))
    for types, shown in (((), "-     "), (("--type", "tags[a]=INT"), "INT   ")):
        text = alcid("inspect", sample, *types)
        assert (text.status, text.err) == (1, "")
        assert text.out.splitlines()[-1] == (
            f"tags[a]   {shown}bitmap           866     70  damaged: {problem}"
        )


def test_damage_that_only_the_type_shows(alcid: Alcid, sample: Path) -> None:
    patched(sample, 355 + 13, b"\x7f")  # the minimum of day, now above the maximum
    assert alcid("inspect", sample).status == 0
    run = alcid("inspect", sample, "--type", "day=DATE", "--column", "day")
    problem = "damaged: minimum and maximum not in order at offset 368; or the column is not DATE"
    assert (run.status, run.err) == (1, "")
    assert run.out.splitlines()[-3].endswith(f"  {problem}")
    assert run.out.splitlines()[-1] == "day, range-bitmap: damaged, no values"


def test_wrong_type_looks_like_damage_and_is_named(alcid: Alcid, sample: Path) -> None:
    run = alcid("inspect", sample, "--type", "name=BIGINT", "--json")
    bitmap = run.json["indexes"][2]
    assert (run.status, bitmap["column"], bitmap["state"]) == (1, "name", "damaged")
    assert bitmap["problem"].endswith("; or the column is not BIGINT")


def test_other_columns_are_not_read_for_one(alcid: Alcid, sample: Path) -> None:
    patched(sample, 866, b"\x09")
    run = alcid("inspect", sample, "--json", "--type", "day=DATE", "--column", "day")
    assert (run.status, [described["column"] for described in run.json["indexes"]]) == (0, ["day"])


def test_map_key_of_a_file_without_rows_is_empty(alcid: Alcid, tmp_path: Path) -> None:
    table = pa.table({"m": pa.array([], pa.map_(pa.string(), pa.int32()))})
    path = tmp_path / "empty.index"
    path.write_bytes(FileIndex.build(table, {"file-index.bitmap.columns": "m[a]"}).to_bytes())
    entry = {"column": "m[a]", "index_type": "bitmap", "data_type": "INT"}
    state = {"offset": None, "size": 0, "state": "empty", "problem": None}
    run = alcid("inspect", path, "--json", "--type", "m[a]=INT")
    assert (run.status, run.json["indexes"]) == (0, [{**entry, **state}])
    text = alcid("inspect", path, "--type", "m[a]=INT", "--column", "m[a]")
    assert text.out.splitlines()[-3:] == [
        "m[a]    INT   bitmap       -      0  empty",
        "",
        "m[a], bitmap: empty, no values",
    ]


def test_index_type_of_someone_else_is_no_damage(alcid: Alcid, tmp_path: Path) -> None:
    path = tmp_path / "new.index"
    path.write_bytes(write_container({("a", "cuckoo"): b"123"}))
    run = alcid("inspect", path, "--json", "--type", "a=INT")
    entry = {"column": "a", "index_type": "cuckoo", "data_type": "INT", "offset": 47, "size": 3}
    assert (run.status, run.json["indexes"]) == (
        0,
        [{**entry, "state": "unknown", "problem": None}],
    )
    assert alcid("inspect", path).out.endswith("  unknown\n")


def test_redundant_bytes_of_the_head_are_counted(alcid: Alcid, tmp_path: Path) -> None:
    path = tmp_path / "later.index"
    path.write_bytes(write_container({}))
    patched(path, 12, b"\0\0\0\x1b")
    patched(path, 20, b"\0\0\0\x03abc")
    run = alcid("inspect", path)
    assert run.out.splitlines() == [
        f"{path}: Paimon file index, 27 bytes",
        "version 1, head of 27 bytes, 3 redundant bytes, 0 columns",
    ]


def test_range_bitmap_without_values(alcid: Alcid, tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([None, None], pa.int32())})
    path = tmp_path / "nulls.index"
    options = {"file-index.range-bitmap.columns": "a", "file-index.bsi.columns": "a"}
    path.write_bytes(FileIndex.build(table, options).to_bytes())
    run = alcid("inspect", path, "--json", "--type", "a=INT", "--column", "a")
    bsi, range_bitmap = run.json["indexes"]
    assert (bsi["at_least"], bsi["at_most"], bsi["nulls"], bsi["values"]) == (None, None, 2, None)
    facts = {name: range_bitmap[name] for name in ("rows", "distinct", "nulls", "min", "max")}
    assert facts == {"rows": 2, "distinct": 0, "nulls": 2, "min": None, "max": None}
    null = {"value": None, "count": 2, "positions": [0, 1], "truncated": False}
    assert (range_bitmap["values"], range_bitmap["truncated"]) == ([null], False)
    assert bsi["truncated"] is False


@pytest.mark.parametrize("name", ["m[red]", ":smile:", "größe", "a\nb"])
def test_names_are_shown_as_they_are(alcid: Alcid, tmp_path: Path, name: str) -> None:
    path = tmp_path / "names.index"
    path.write_bytes(write_container({(name, "bitmap"): None}))
    shown = name.replace("\n", r"\n")
    assert alcid("inspect", path).out.splitlines()[-1].split() == [
        *(shown, "-", "bitmap", "-", "0", "empty")
    ]
    assert alcid("inspect", path, "--json").json["indexes"][0]["column"] == name


def test_terminal_gets_bold_titles_and_folded_lines(
    alcid: Alcid, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", "60")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    run = alcid("inspect", sample, "--type", "score=DOUBLE", "--column", "score")
    lines = run.out.splitlines()
    assert lines[3].startswith("\x1b[1mCOLUMN\x1b[0m")
    assert lines[4:6] == [
        "score   DOUBLE  range-bitmap     674    192  rows 5,",
        "                                             distinct 4,",
    ]
