"""What notebooks show for tables and reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid import DeletionVector, ParquetTable
from alcid.inspect import save_html, to_html
from alcid.inspect.display import fragment_of
from alcid.spark.sql import SqlExplanation, TableUse
from tests.tables.paimon.small_tables import append, create


@pytest.fixture
def table(tmp_path: Path) -> ParquetTable:
    for day in range(2):
        (tmp_path / f"day={day}").mkdir()
        rows = pa.table({"id": [1, 2, 3], "a<b": ["x", "y", "z"]})
        pq.write_table(rows, tmp_path / f"day={day}" / "0.parquet")
    return alcid.parquet(tmp_path)


def test_a_table_shows_its_columns_and_their_indexes(table: ParquetTable) -> None:
    table.build_indexes({"file-index.bitmap.columns": "id"})
    shown = fragment_of(table)
    size = sum(path.stat().st_size for path in Path(table.location).glob("day=*/*"))
    assert f"2 files, 6 rows, {size / 1000:.1f} kB" in shown
    assert "<td><code>id</code></td><td>BIGINT</td><td>bitmap: 2 files fresh, " in shown
    assert "<td><code>a&lt;b</code></td><td>STRING</td><td></td>" in shown
    assert "<td><code>day</code></td><td>INT</td><td>partition</td>" in shown


def test_reports_show_their_text(table: ParquetTable) -> None:
    report = table.build_indexes({"file-index.bitmap.columns": "id"})
    assert f"<h3>BuildReport</h3><pre>{report}</pre>" in fragment_of(report)


def test_a_verification_shows_what_was_checked(table: ParquetTable) -> None:
    table.build_indexes({"file-index.bitmap.columns": "id"})
    report = table.verify()
    shown = fragment_of(report)
    assert f'<p class="good">{str(report).splitlines()[0]}</p>' in shown
    assert "<td>bitmap</td><td>id</td>" + '<td class="number">2</td>' * 2 in shown


def test_a_query_shows_the_plan_of_each_table(table: ParquetTable) -> None:
    plan = table.explain("id = 2")
    use = TableUse("t", "/t", 1, ("(id = 2)",), "id = 2", True, ("id",), "", None, "", plan)
    unused = replace(use, name="u", explanation=None)
    explanation = SqlExplanation("SELECT id FROM t WHERE id = 2", (use, unused))
    shown = to_html(explanation)
    assert "<h2>t</h2>" in shown
    assert "Spark&#x27;s filter: (id = 2)" in shown
    assert "no row: it does not occur in Spark&#x27;s optimised plan" in shown
    assert shown.count('class="plan"') == 1
    assert [shown_table["explanation"] for shown_table in explanation.to_dict()["tables"]] == [
        plan.to_dict(),
        None,
    ]


def test_an_explanation_is_written_to_a_file(table: ParquetTable, tmp_path: Path) -> None:
    explanation = table.explain("id = 2")
    save_html(explanation, tmp_path / "plan.html")
    assert (tmp_path / "plan.html").read_text(encoding="utf-8") == to_html(explanation)
    assert "<h1>where id = 2</h1>" in to_html(explanation)
    assert "<h3>where id = 2</h3>" in fragment_of(explanation)


def test_the_rows_of_a_table_are_those_that_are_left(table: ParquetTable, tmp_path: Path) -> None:
    deleted = table.with_deletions({"day=0/0.parquet": DeletionVector([0, 2])})
    assert "2 files, 4 rows, " in fragment_of(deleted)
    made = create(tmp_path / "p")
    append(made, range(10))
    assert "1 file, 10 rows, " in fragment_of(made)
    made.delete("id < 4")
    assert "1 file, 10 rows with those that are deleted, " in fragment_of(made)
