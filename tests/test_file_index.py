from __future__ import annotations

import logging
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from alcid import (
    AlcidError,
    AlcidWarning,
    ColumnError,
    DamagedIndexWarning,
    DeletionVector,
    FileIndex,
    FormatError,
    LiteralError,
    OptionError,
    PredicateError,
    Selection,
    UnsupportedError,
    col,
    config,
)
from alcid.formats.file_index.container import write_container

ALL_TYPES = {
    "file-index.bloom-filter.columns": "id",
    "file-index.bitmap.columns": "id,kind",
    "file-index.range-bitmap.columns": "score",
    "file-index.bsi.columns": "id",
}
TABLE = pa.table(
    {
        "id": pa.array([5, 3, None, 9, 3], pa.int32()),
        "kind": ["a", "b", "a", None, "c"],
        "score": [1.5, None, 9.0, -2.0, 9.0],
        "plain": [1, 2, 3, 4, 5],
    }
)


@pytest.fixture(scope="module")
def index() -> FileIndex:
    return FileIndex.build(TABLE, ALL_TYPES)


def rows(selection: Selection) -> list[int] | None:
    return None if selection.rows is None else list(selection.rows)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("id = 3", [1, 4]),
        ("id = 4", []),
        ("id <> 3", [0, 3]),
        ("id IN (3, 9, 77)", [1, 3, 4]),
        ("id NOT IN (3, 9)", [0]),
        ("id IS NULL", [2]),
        ("id IS NOT NULL", [0, 1, 3, 4]),
        ("id < 5", [1, 4]),
        ("id BETWEEN 3 AND 5", [0, 1, 4]),
        ("id NOT BETWEEN 3 AND 5", [3]),
        ("id > 5.5", [3]),
        ("id = 5.5", []),
        ("id < 3000000000", [0, 1, 3, 4]),
        ("id = NULL", []),
        ("id IN (3, NULL)", [1, 4]),
        ("id NOT IN (3, NULL)", []),
        ("id <=> NULL", [2]),
        ("NOT id <=> 3", [0, 2, 3]),
        ("kind = 'a'", [0, 2]),
        ("kind > 'a'", None),
        ("score > 1", [0, 2, 4]),
        ("id = 3 AND score > 1", [4]),
        ("id = 3 OR score > 1", [0, 1, 2, 4]),
        ("id = 3 AND plain = 1", [1, 4]),
        ("id = 3 OR plain = 1", None),
        ("NOT (id = 3 OR score > 1)", [3]),
        ("(id = 3 OR plain = 1) AND score > 1", [0, 2, 4]),
        ("upper(kind) = 'A' AND id = 3", [1, 4]),
        ("1 = 1", None),
        ("FALSE", []),
    ],
)
def test_a_predicate_gives_exactly_these_rows(
    index: FileIndex, predicate: str, expected: list[int] | None
) -> None:
    again = FileIndex.from_bytes(index.to_bytes(), TABLE.schema, strict=True)
    for asked in (index, again):
        answer = asked.evaluate(predicate)
        assert rows(answer) == expected
        assert answer.skip == (expected == [])


def test_sql_and_python_ask_the_same(index: FileIndex) -> None:
    python = (col("id") == 3) & ~(col("score") <= 1) | col("kind").is_null()
    assert rows(index.evaluate(python)) == [3, 4]
    assert index.evaluate(python) == index.evaluate("id = 3 AND NOT score <= 1 OR kind IS NULL")


@pytest.mark.parametrize(
    ("k", "descending", "nulls", "among", "ties", "expected"),
    [
        (1, True, "last", None, True, [2, 4]),
        (1, True, "last", None, False, [4]),
        (2, False, "last", None, True, [0, 3]),
        (2, False, "first", None, True, [1, 3]),
        (1, True, "first", None, True, [1]),
        (2, True, "last", [0, 1, 3], True, [0, 3]),
        (3, True, "last", [0, 1, 3], True, [0, 1, 3]),
        (9, True, "last", None, True, [0, 1, 2, 3, 4]),
        (0, True, "last", None, True, []),
        (1, True, "last", [], True, []),
    ],
)
def test_top_n_gives_exactly_these_rows(
    index: FileIndex,
    k: int,
    descending: bool,
    nulls: str,
    among: list[int] | None,
    ties: bool,
    expected: list[int],
) -> None:
    answer = index.top_n("score", k, descending, nulls, among, ties=ties)  # type: ignore[arg-type]
    assert rows(answer) == expected


def test_top_n_combines_with_a_predicate(index: FileIndex) -> None:
    matching = index.evaluate("id = 3 OR id = 5")
    assert rows(index.top_n("score", 1, among=matching)) == [4]
    assert rows(index.top_n("score", 1, descending=False, among=matching)) == [0]


def test_top_n_of_a_column_without_range_bitmap_is_what_it_was_given(index: FileIndex) -> None:
    assert index.top_n("id", 1) == Selection(None, exact=False)
    assert index.top_n("plain", 1, among=np.array([1, 3])) == Selection(BitMap([1, 3]), exact=False)


def test_top_n_among_rows_that_need_not_match_gives_them_back(index: FileIndex) -> None:
    loose = index.evaluate("(id = 3 OR id = 5) AND plain = 1")
    assert loose == Selection(BitMap([0, 1, 4]), exact=False)
    assert index.top_n("score", 1, among=loose) == loose


def test_an_answer_says_whether_it_is_exact(index: FileIndex) -> None:
    assert index.evaluate("id = 3 AND score > 1").exact
    assert index.evaluate("id = 3 OR score IS NULL").exact
    assert index.evaluate("TRUE AND id = 3").exact
    assert index.evaluate("id = 77 AND plain = 1").exact
    assert not index.evaluate("id = 3 AND plain = 1").exact
    assert not index.evaluate("upper(kind) = 'A'").exact
    assert index.top_n("score", 1).exact


def test_a_selection_has_no_truth_of_its_own(index: FileIndex) -> None:
    with pytest.raises(PredicateError, match="ask its skip or its rows"):
        bool(index.evaluate("id = 3"))


def test_a_file_is_opened_by_its_path_and_closed(index: FileIndex, tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    path.write_bytes(index.to_bytes())
    with FileIndex.open(path, TABLE.schema) as opened:
        assert rows(opened.evaluate("id = 3")) == [1, 4]
        assert repr(opened).startswith(f"<FileIndex {path}: id bitmap, id bloom-filter")
    with pytest.raises(AlcidError, match=r"x\.index: the file is closed$"):
        opened.evaluate("score > 1")


@pytest.mark.parametrize("kind", [bytearray, memoryview, pa.py_buffer])
def test_any_bytes_in_memory_are_opened(index: FileIndex, kind: Callable[[bytes], Any]) -> None:
    opened = FileIndex.from_bytes(kind(index.to_bytes()), TABLE.schema)
    assert rows(opened.evaluate("id = 3")) == [1, 4]


def test_a_column_that_the_schema_does_not_have_is_an_error(index: FileIndex) -> None:
    for asked in (index, FileIndex.from_bytes(index.to_bytes(), TABLE.schema)):
        with pytest.raises(ColumnError, match="column idd: not in the table; did you mean id"):
            asked.evaluate("idd = 3")
        with pytest.raises(ColumnError, match="column scores: not in the table"):
            asked.top_n("scores", 3)
    some = FileIndex.from_bytes(index.to_bytes(), {"id": "INT"})
    assert rows(some.evaluate("idd = 3")) is None


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"id": "BIGNT"}, "column id: type 'BIGNT' at position 0"),
        ({"id": None}, "column id: found the type None"),
        ([("id", "INT")], "types of columns: found list, expected a mapping or a schema"),
    ],
    ids=["text", "none", "list"],
)
def test_unknown_types_are_refused_if_given(index: FileIndex, types: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        FileIndex.from_bytes(index.to_bytes(), types)


def test_the_log_says_which_index_answered_what(
    index: FileIndex, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "alcid"):
        index.evaluate("id = 3 AND kind > 'a'")
    assert [record.message for record in caplog.records] == [
        "bloom-filter of 'id': id = 3: rows any",
        "bitmap of 'id': id = 3: rows 2",
        "bitmap of 'kind': kind > 'a': rows any",
    ]


def test_build_takes_a_table() -> None:
    with pytest.raises(UnsupportedError, match="build: found str, expected a pyarrow Table"):
        FileIndex.build("x.parquet", ALL_TYPES)


def test_top_n_refuses_what_has_no_meaning(index: FileIndex) -> None:
    with pytest.raises(PredicateError, match="found k=-1"):
        index.top_n("score", -1)
    with pytest.raises(PredicateError, match="nulls='middle'"):
        index.top_n("score", 1, nulls="middle")  # type: ignore[arg-type]


def test_names_are_found_in_any_case_unless_set(
    index: FileIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rows(index.evaluate("ID = 3")) == [1, 4]
    monkeypatch.setattr(config, "case_sensitive", True)
    with pytest.raises(ColumnError, match="column ID: not in the table; did you mean id"):
        index.evaluate("ID = 3")


def test_a_name_that_fits_two_columns_is_an_error() -> None:
    table = pa.table({"a": [1], "A": [2]})
    with pytest.raises(ColumnError, match="fits more than one"):
        FileIndex.build(table, {"file-index.bitmap.columns": "a"})
    data = write_container({("a", "bitmap"): b"", ("A", "bitmap"): b""})
    with pytest.raises(ColumnError, match="fits more than one"):
        FileIndex.from_bytes(data, {"a": "INT", "A": "INT"}).evaluate("a = 1")


def test_map_keys_are_columns_of_their_own() -> None:
    maps = pa.array(
        [[("x", 1)], None, [("y", 2)], [("x", 3), ("y", 1)]], pa.map_("string", "int64")
    )
    built = FileIndex.build(
        pa.table({"m": maps}),
        {"file-index.bitmap.columns": "m[x],m[y]", "file-index.range-bitmap.columns": "m[x]"},
    )
    index = FileIndex.from_bytes(built.to_bytes(), {"m": "MAP<STRING, BIGINT>"}, strict=True)
    assert rows(index.evaluate("m['x'] = 1")) == [0]
    assert rows(index.evaluate("m['x'] > 1")) == [3]
    assert rows(index.evaluate(col("m[y]").is_null())) == [0, 1]
    assert rows(index.evaluate("m['z'] = 1")) is None


def test_a_map_key_of_a_file_without_rows_is_an_empty_entry() -> None:
    table = pa.table({"m": pa.array([], pa.map_("string", "int64"))})
    index = FileIndex.build(table, {"file-index.bitmap.columns": "m[x]"})
    (entry,) = index.entries
    assert entry.is_empty
    for predicate in ("m['x'] = 1", "m['x'] IS NULL", "m['x'] <> 1", "m['x'] IS NOT NULL"):
        assert index.evaluate(predicate).skip


def test_a_table_without_rows_is_indexed_all_the_same() -> None:
    index = FileIndex.build(TABLE.slice(0, 0), ALL_TYPES)
    for predicate in ("id = 1", "id IS NULL", "kind = 'a'", "score > 0", "score IS NOT NULL"):
        assert rows(index.evaluate(predicate)) == []
    assert rows(index.top_n("score", 3)) == []


def test_a_column_that_needs_its_type_says_so(index: FileIndex) -> None:
    opened = FileIndex.from_bytes(index.to_bytes(), {"score": "DOUBLE"})
    assert rows(opened.evaluate("score > 1")) == [0, 2, 4]
    with pytest.raises(ColumnError, match="column id: its type is needed"):
        opened.evaluate("id = 1")


def test_a_literal_without_meaning_names_column_and_types(index: FileIndex) -> None:
    with pytest.raises(LiteralError, match=r"id.*INT"):
        index.evaluate("id = 'x'")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"file-index.bitmap.version": "1"}, OptionError, "file-index.bitmap.<column>.version"),
        ({"file-index.bitmap.columns": "nope"}, ColumnError, "column nope: not in the table"),
        ({"file-index.bsi.columns": "kind"}, UnsupportedError, "bsi does not take STRING"),
        ({"file-index.bitmap.columns": "id.x"}, UnsupportedError, "field within a column"),
    ],
)
def test_what_cannot_be_built_is_refused(
    options: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        FileIndex.build(TABLE, options)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([-(2**63), 7], pa.int64()),
        pa.array([Decimal(10) ** 25, Decimal(7)], pa.decimal128(30, 0)),
    ],
    ids=["Long.MIN_VALUE", "DECIMAL beyond 64 bits"],
)
def test_a_value_that_bsi_cannot_hold_leaves_the_index_out(column: pa.Array) -> None:
    table = pa.table({"a": column, "b": [1, 2]})
    with pytest.warns(AlcidWarning, match="bsi of 'a' left out"):
        index = FileIndex.build(table, {"file-index.bsi.columns": "a,b"})
    assert [entry.column for entry in index.entries] == ["b"]
    assert rows(index.evaluate("a = 7")) is None


def test_a_damaged_index_keeps_the_file_and_warns(index: FileIndex) -> None:
    entry = next(e for e in index.entries if e.index_type == "range-bitmap")
    data = bytearray(index.to_bytes())
    data[entry.start + 4] = 9
    damaged = bytes(data)
    with pytest.warns(DamagedIndexWarning, match=r"x\.index: unknown range-bitmap version"):
        answer = FileIndex.from_bytes(damaged, TABLE.schema, name="x.index").evaluate("score > 1")
    assert rows(answer) is None
    with pytest.raises(FormatError, match="found 9, expected 1"):
        FileIndex.from_bytes(damaged, TABLE.schema, strict=True).evaluate("score > 1")


def test_a_damaged_index_lets_another_one_of_the_column_answer(index: FileIndex) -> None:
    entry = next(e for e in index.entries if (e.column, e.index_type) == ("id", "bitmap"))
    data = bytearray(index.to_bytes())
    data[entry.start] = 9
    with pytest.warns(DamagedIndexWarning, match="unknown bitmap version"):
        answer = FileIndex.from_bytes(bytes(data), TABLE.schema).evaluate("id = 3")
    assert rows(answer) == [1, 4]


def test_an_index_of_an_unknown_type_keeps_the_file_and_warns() -> None:
    data = write_container({("a", "magic-index"): b"?"})
    with pytest.warns(DamagedIndexWarning, match="magic-index"):
        assert rows(FileIndex.from_bytes(data, {"a": "INT"}).evaluate("a = 1")) is None


def test_an_answer_can_be_changed_without_changing_the_next_one(index: FileIndex) -> None:
    for predicate in (
        "id IS NULL",
        "id IS NOT NULL",
        "score IS NULL",
        "score IS NOT NULL",
        "FALSE",
    ):
        first = index.evaluate(predicate).rows
        assert first is not None
        expected = BitMap(first)
        first.add(77)
        assert index.evaluate(predicate).rows == expected


def test_deleted_rows_are_not_chosen_from_by_mistake(index: FileIndex) -> None:
    deleted = DeletionVector([0])
    with pytest.raises(UnsupportedError, match="among: found the deleted rows"):
        index.top_n("score", 1, among=deleted)
    live = deleted.live_rows(TABLE.num_rows)
    everything = index.top_n("score", TABLE.num_rows, among=live).rows
    assert everything is not None
    assert 0 not in everything
