"""What `advise` reads, chooses, says and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.advise import Advice, ColumnAdvice
from alcid.advise.queries import parse_query
from alcid.errors import ColumnError, OptionError, PredicateError
from alcid.inspect import to_html
from alcid.inspect.display import fragment_of
from alcid.scan import Query
from tests.advise.data_sets import SETS
from tests.advise.truth import true_skip

ROWS = 20_000
FILES = 6


def rows_of(number: int) -> pa.Table:
    """One column of each kind."""
    rng = np.random.default_rng(number)
    keys = rng.integers(0, 1000, ROWS)
    return pa.table(
        {
            "id": rng.integers(0, 10**9, ROWS),
            "a": rng.integers(0, 300_000, ROWS),
            "b": rng.integers(0, 300_000, ROWS),
            "score": rng.random(ROWS),
            "state": pa.array(rng.integers(0, 4, ROWS), pa.int8()),
            "empty": pa.nulls(ROWS, pa.int32()),
            "same": pa.repeat(7, ROWS),
            "items": pa.array([[1]] * ROWS),
            "tags": pa.array(
                [[("key", f"v{value}"), ("other", "x")] for value in keys.tolist()],
                pa.map_(pa.string(), pa.string()),
            ),
        }
    )


def write(folder: Path) -> Path:
    for number in range(FILES):
        part = folder / f"day=2025-08-0{number // 3 + 1}"
        part.mkdir(parents=True, exist_ok=True)
        path = part / f"{number}.parquet"
        pq.write_table(rows_of(number), path, max_rows_per_page=1_000, write_page_index=True)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("table"))


@pytest.fixture(scope="module")
def typical(folder: Path) -> Advice:
    return alcid.parquet(folder).advise(progress=False)


def column(advice: Advice, name: str) -> ColumnAdvice:
    return next(judged for judged in advice.columns if judged.column == name)


def indexes(advice: Advice) -> dict[str, str]:
    return {judged.column: judged.index for judged in advice.columns if judged.index}


def some_id(number: int = 0) -> int:
    value: int = rows_of(number).column("id")[5].as_py()
    return value


def test_no_file_but_those_of_the_sample_is_read(tmp_path: Path) -> None:
    made = SETS["unique ids"]
    folder = made.write(tmp_path)
    table = alcid.parquet(folder)
    advice = table.advise(made.queries, sample=6, progress=False)
    assert len(advice.sampled_files) == 7  # one more for id = 7, which is below most bounds
    table = alcid.parquet(folder)
    read = table.snapshot.traffic.bytes_read
    for path in folder.glob("*.parquet"):
        if path.name not in advice.sampled_files:
            path.unlink()
    again = table.advise(made.queries, sample=6, progress=False)
    assert (again.columns, again.sampled_files) == (advice.columns, advice.sampled_files)
    sizes = sum((folder / name).stat().st_size for name in advice.sampled_files)
    assert table.snapshot.traffic.bytes_read - read <= sizes


def test_nothing_is_written(folder: Path, typical: Advice) -> None:
    assert typical.files == FILES
    assert all(path.suffix == ".parquet" for path in folder.rglob("*") if path.is_file())


def test_a_sample_has_two_files_at_least_and_one_for_each_query(folder: Path) -> None:
    table = alcid.parquet(folder)
    assert len(table.advise(["a = 150000"], sample=1, progress=False).sampled_files) == 2
    one_day = table.advise(["day = '2025-08-02' AND a = 5"], sample=2, progress=False)
    assert any("08-02" in path for path in one_day.sampled_files)


def test_without_queries_columns_are_judged_by_typical_ones(typical: Advice) -> None:
    assert typical.queries == ()
    assert typical.skip is None
    advised = column(typical, "id")
    assert advised.index == "bloom-filter"
    assert advised.reason == "for = and IN: files without the value are left out"
    assert advised.skip is not None
    assert advised.skip > 0.7
    assert advised.distinct == pytest.approx(FILES * ROWS, rel=0.05)


def test_reasons_against_an_index(folder: Path, typical: Advice) -> None:
    reasons = {judged.column: judged.reason for judged in typical.columns if not judged.index}
    assert reasons["empty"] == "every value is null"
    assert reasons["same"] == "all rows have the same value"
    assert reasons["items"] == "no index takes ARRAY<BIGINT>"
    assert reasons["tags"] == "no index takes a map; one of its keys can have one: tags[key]"
    assert reasons["day"] == "a partition column: paths and manifests have its values"
    spread = "its 4 values are spread over nearly all pages: none would be skipped"
    assert reasons["state"] == spread
    asked = alcid.parquet(folder).advise([f"id = {some_id()}"], progress=False)
    assert column(asked, "score").reason == "no query compares it"
    assert column(asked, "score").skip is None


def wide_texts(rng: np.random.Generator, rows: int) -> pa.Array:
    """The indexes are small compared with the files because of this column."""
    return pa.array(rng.integers(2**62, 2**63 - 1, rows)).cast(pa.string())


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["none", "half", "all"])
def test_files_without_a_page_index_are_named(tmp_path: Path, share: float) -> None:
    """The share of pages that a scan reads if it knows where they are."""
    rng = np.random.default_rng(3)
    files, rows, page = 4, 60_000, 2_048
    values = [rng.permutation(np.arange(rows) // 10).astype(np.int32) for _ in range(files)]
    for number, value in enumerate(values):
        pq.write_table(
            pa.table({"value": value, "half": value % 2, "wide": wide_texts(rng, rows)}),
            tmp_path / f"{number}.parquet",
            max_rows_per_page=page,
            write_page_index=number >= share * files,
        )
    table = alcid.parquet(tmp_path)
    query = "value = 7"
    advice = table.advise([query, "half = 1"], progress=False)
    spread = "its 2 values are spread over nearly all pages: none would be skipped"
    assert column(advice, "half").reason == spread
    advised = column(advice, "value")
    if share < 1:  # because of the other files
        assert advised.index == "bsi"
        return
    hit = sum(len(np.unique(np.flatnonzero(v == 7) // page)) for v in values)
    read = f"{100 * hit / (files * -(-rows // page)):.0f} %"
    missing = (
        "files have no page index (pyarrow: write_page_index=True): with pages of 2,048 rows,"
        f" {read} would be read; to count rows, bitmap pays"
    )
    assert advised.reason == missing
    counted = table.advise([{"where": query, "count": True}], progress=False)
    assert indexes(counted) == {"value": "bitmap"}


def test_the_best_rows_of_files_without_a_page_index(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for number in range(4):
        rows = {"score": rng.random(50_000), "wide": wide_texts(rng, 50_000)}
        pq.write_table(pa.table(rows), tmp_path / f"{number}.parquet")
    advice = alcid.parquet(tmp_path).advise(["ORDER BY score DESC LIMIT 100"], progress=False)
    missing = "files have no page index (pyarrow: write_page_index=True): no pages to choose from"
    assert column(advice, "score").reason == missing


def test_a_key_of_a_map_is_judged_only_if_it_is_asked_for(folder: Path, typical: Advice) -> None:
    assert "tags[key]" not in {judged.column for judged in typical.columns}
    table = alcid.parquet(folder)
    advice = table.advise([{"where": "tags['key'] = 'v5'", "columns": ["a"]}], progress=False)
    advised = column(advice, "tags[key]")
    assert advised.data_type == "STRING"
    assert advised.distinct == 1000
    assert {candidate.index for candidate in advised.candidates} == {
        "bloom-filter",
        "bitmap",
        "range-bitmap",
    }


def test_both_legs_of_an_or_are_indexed_as_one_alone_skips_nothing(folder: Path) -> None:
    query = {"where": "a = 150000 OR b = 123456", "columns": ["score"]}
    table = alcid.parquet(folder)
    advice = table.advise([query], progress=False)
    assert indexes(advice) == {"a": "bloom-filter", "b": "bloom-filter"}
    a = column(advice, "a")
    alone = next(candidate.skip for candidate in a.candidates if candidate.index == "bloom-filter")
    assert alone == a.skip_before == 0.0
    assert a.skip is not None
    assert a.skip > 0.5


def test_of_two_that_serve_the_same_queries_one_is_advised(folder: Path) -> None:
    row = rows_of(0).slice(5, 1).to_pylist()[0]
    query = f"id = {row['id']} AND a = {row['a']}"
    advice = alcid.parquet(folder).advise([query], progress=False)
    (kept,) = indexes(advice)
    (given_up,) = {"id", "a"} - {kept}
    assert column(advice, given_up).reason == f"the index of {kept} serves these queries as well"


def test_counts_and_the_best_rows_are_queries_too(tmp_path: Path) -> None:
    folder = write(tmp_path)
    counted = alcid.parquet(folder).advise(
        [{"where": "score > 0.3", "count": True}], progress=False
    )
    assert column(counted, "score").index == "range-bitmap"
    assert column(counted, "score").reason == "for ranges: rows are counted from the index alone"
    assert counted.skip == 1.0
    query = {"order_by": "score DESC", "limit": 3, "columns": ["id"]}
    best = alcid.parquet(folder).advise([query], progress=False)
    candidate = next(
        estimate
        for estimate in column(best, "score").candidates
        if estimate.index == "range-bitmap"
    )
    table = alcid.parquet(folder)
    table.build_indexes({"file-index.range-bitmap.columns": "score"}, progress=False)
    assert candidate.skip == pytest.approx(true_skip(table, [query]))


def test_a_query_may_be_text_a_predicate_a_query_or_a_dict(folder: Path) -> None:
    forms: list[Any] = [
        "a = 150000",
        alcid.col("a") == 150000,
        Query("a = 150000"),
        {"where": "A = 150000"},
        "a = 150000 limit 5",
    ]
    table = alcid.parquet(folder)
    advised = [table.advise([form], columns=["a"], progress=False).columns for form in forms]
    assert all(columns == advised[0] for columns in advised)


@pytest.mark.parametrize(
    ("text", "where", "order", "limit"),
    [
        ("a = 1", "a = 1", None, None),
        ("a = 1 order  by b desc, `c d`\nlimit 5 ", "a = 1", "b desc, `c d`", 5),
        ("ORDER BY `limit 3`", None, "`limit 3`", None),
        ("LIMIT 7", None, None, 7),
        ("a = ' ORDER BY b LIMIT 3'", "a = ' ORDER BY b LIMIT 3'", None, None),
        ("a = 'ORDER BY b' LIMIT 3", "a = 'ORDER BY b'", None, 3),
        ("`x ORDER BY y` = 1", "`x ORDER BY y` = 1", None, None),
        ("`x LIMIT 1` = 1 OR b = 2", "`x LIMIT 1` = 1 OR b = 2", None, None),
        ("a > (select 1 ORDER BY b)", "a > (select 1 ORDER BY b)", None, None),
        ("border by = 1", "border by = 1", None, None),
        ("a = 1 LIMIT b", "a = 1 LIMIT b", None, None),
        ("", "", None, None),
    ],
    ids=str,
)
def test_the_parts_of_a_query_as_text(
    text: str, where: str | None, order: str | None, limit: int | None
) -> None:
    assert parse_query(text) == Query(where, order_by=order, limit=limit)


def test_columns_limits_what_is_judged(folder: Path) -> None:
    advice = alcid.parquet(folder).advise(["a = 150000 AND b = 6"], columns=["a"], progress=False)
    assert set(indexes(advice)) == {"a"}
    assert column(advice, "b").candidates == ()
    assert column(advice, "b").reason == "not among the columns that advice is asked for"


def test_deleted_rows_are_not_read_and_yet_indexed(folder: Path) -> None:
    table = alcid.parquet(folder)
    path = table.snapshot.paths[0].as_py()
    seen = table.with_deletions({path: alcid.DeletionVector(range(ROWS))})
    query = f"id = {some_id(0)}"
    before, after = (opened.advise([query], progress=False) for opened in (table, seen))
    assert column(before, "id").table_bytes == column(after, "id").table_bytes
    assert (after.skip_before or 0) >= (before.skip_before or 0)


def test_text_json_options_and_html(folder: Path) -> None:
    advice = alcid.parquet(folder).advise([f"id = {some_id()}"], progress=False)
    assert advice.options == {"file-index.bloom-filter.columns": "id"}
    lines = str(advice).splitlines()
    assert lines[0].startswith(f"advice for 1 query, from {FILES} of {FILES} files, in ")
    assert lines[1].split() == ["column", "type", "index", "bytes/row", "skips", "without", "why"]
    assert lines[2].split()[:4] == ["id", "BIGINT", "bloom-filter", "1.23"]
    assert lines[-1] == "build_indexes({'file-index.bloom-filter.columns': 'id'})"
    as_json = json.loads(json.dumps(advice.to_dict()))
    assert as_json["options"] == advice.options
    assert as_json["columns"][0]["candidates"][0]["index"] == "bloom-filter"
    assert "files without the value are left out" in fragment_of(advice)
    assert to_html(advice).startswith("<!doctype html>")


def test_a_table_without_rows_gets_no_advice(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "a.parquet")
    advice = alcid.parquet(tmp_path).advise(["id = 5"], progress=False)
    assert (advice.options, advice.sampled_files, advice.rows) == ({}, (), 0)
    assert str(advice).endswith("no index pays")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"queries": "id = 5"}, OptionError, "queries: found str, expected a list of queries"),
        ({"queries": [5]}, OptionError, "queries: found int, expected SQL text"),
        ({"queries": [{"filter": "id = 5"}]}, OptionError, "found 'filter' in a query"),
        ({"queries": ["idd = 5"]}, ColumnError, "did you mean id"),
        ({"queries": ["id ="]}, PredicateError, "expected a value"),
        ({"queries": [""]}, PredicateError, "no text"),
        ({"queries": ["id = 5 ORDER BY score UP"]}, PredicateError, "found 'score UP'"),
        ({"queries": [], "sample": 0}, OptionError, "sample: found 0"),
        ({"queries": [], "columns": "id"}, OptionError, "columns: found text"),
        ({"queries": [], "columns": ["idd"]}, ColumnError, "did you mean id"),
    ],
    ids=[
        "text",
        "number",
        "key",
        "column",
        "syntax",
        "empty",
        "order",
        "sample",
        "columns",
        "unknown column",
    ],
)
def test_impossible_arguments_are_refused(
    folder: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        alcid.parquet(folder).advise(**options, progress=False)


def test_progress_is_reported(folder: Path) -> None:
    states: list[tuple[int, int, int]] = []
    alcid.parquet(folder).advise(
        ["a = 150000"], sample=2, progress=lambda *state: states.append(state)
    )
    assert states == [(1, 2, ROWS), (2, 2, 2 * ROWS)]


def test_what_bounds_do_is_not_said_of_the_index_that_brings_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(8):
        delays = np.round(rng.exponential(20, ROWS))
        if number == 3:
            delays[17] = 900.0
        pq.write_table(pa.table({"delay": delays}), tmp_path / f"{number}.parquet")
    (advised,) = alcid.parquet(tmp_path).advise(["delay > 600"]).columns
    assert (advised.index, advised.skip_before) == ("bloom-filter", 0.0)  # a footer has no NaN
    why = "min/max leave files out, which any index of it makes reliable"
    assert advised.reason == f"for ranges: {why}"
