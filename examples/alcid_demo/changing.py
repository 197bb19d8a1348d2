"""The later part of the demo: deletes, upserts, statistics, and a look at all that was written."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from alcid._text import count_text
from alcid.opening import create_table
from alcid.spark.sql import sql
from alcid.tables.paimon_table import PaimonTable
from alcid.tables.parquet_table import ParquetTable
from alcid_demo.data import expected_users, make_users
from alcid_demo.folder import WAREHOUSE
from alcid_demo.story import Story

__all__ = ["delete_rows", "distinct_values", "query_sql", "upsert_users", "verify_all"]

_GONE = "class_id = 7"
_COUNTED = ("user_id", "class_id", "url")
_EXACT_UP_TO, _NEAR = 4096, 0.05  # of theta sketches; three times their standard error


def query_sql(story: Story, events: ParquetTable, plain: Any) -> None:
    """A query of Spark's SQL whose filter goes to the indexes."""
    story.step("Spark's SQL, with indexes below")
    text = "SELECT class_id, count(*) AS n, max(score) AS best FROM {events}"
    text += " WHERE score > 99 GROUP BY class_id ORDER BY class_id"
    found = story.call(
        f'alcid.sql("{text.format(events="events")}", events=events)',
        lambda: sql(text.format(events="events"), events=events).collect(),
        lambda rows: count_text(len(rows), "row"),
    )
    story.check(
        "the rows of plain Spark", found == plain.sparkSession.sql(text, events=plain).collect()
    )


def delete_rows(story: Story, events: PaimonTable, plain: Any) -> None:
    """Rows of a class are marked in deletion vectors."""
    story.step("Deletes in the Paimon table, as deletion vectors")
    expected = plain.where(f"NOT ({_GONE})").select("id").toArrow()["id"]
    gone = plain.count() - len(expected)
    report = story.call(f'paimon.delete("{_GONE}")', lambda: events.delete(_GONE))
    left = story.call(f'paimon.count("{_GONE}")', lambda: events.count(_GONE))
    story.check(f"{gone:,} rows are gone", report.rows == gone and left == 0)
    rest = events.scan(columns=["id"]).to_arrow()["id"]
    is_same = _ascending(rest).equals(_ascending(expected))
    story.check(f"the other {len(expected):,} are there", is_same)


def upsert_users(story: Story, spark: Any, folder: Path, users: int) -> PaimonTable:
    """A table with a primary key and dynamic buckets takes changes."""
    story.step("Upserts into a Paimon table with a primary key and dynamic buckets")
    first, changes = make_users(spark, users)
    options = {
        "deletion-vectors.enabled": True,
        "dynamic-bucket.target-row-num": 50_000,
        "file-index.bloom-filter.columns": "name",
    }
    code = f'create_table(None, first.schema, spark, warehouse="{folder / WAREHOUSE}",'
    shown = json.dumps(options).replace("true", "True")
    table = story.call(
        f'users = alcid.{code}\n    table="demo.users", primary_key=["user_id"],'
        f"\n    options={shown})",
        lambda: create_table(
            None,
            first.schema,
            spark,
            warehouse=str(folder / WAREHOUSE),
            table="demo.users",
            primary_key=["user_id"],
            options=options,
        ),
        lambda made: f"made {made.location}",
    )
    story.call("users.upsert(first)", lambda: table.upsert(first))
    story.call('users.upsert(changes, row_kind="op")', lambda: table.upsert(changes, row_kind="op"))
    found = table.scan(order_by="user_id").to_arrow()
    expected = expected_users(spark, users).toArrow().cast(found.schema)
    story.check(
        f"the {len(expected):,} users that there should be",
        bool(found.equals(expected.sort_by("user_id"))),
    )
    return table


def distinct_values(story: Story, events: ParquetTable, plain: Any) -> None:
    """Theta sketches beside exact counts."""
    story.step("Statistics: distinct values by theta sketches")
    found = story.call(
        f"events.compute_stats({list(_COUNTED)})",
        lambda: events.compute_stats(_COUNTED, progress=False),
        lambda told: "\n".join(
            f"{row['column']}: {row['ndv']:,} distinct values, {row['nulls']:,} nulls"
            for row in told.to_pylist()
        ),
    )
    counts = plain.selectExpr(*(f"count(DISTINCT {name}) AS {name}" for name in _COUNTED)).first()
    for row in found.to_pylist():
        exact = counts[row["column"]]
        off = abs(row["ndv"] - exact)
        story.check(
            f"{row['column']}: {exact:,} are counted exactly, {off / max(exact, 1):.1%} off",
            off <= (0 if exact <= _EXACT_UP_TO else _NEAR * exact),
        )


def verify_all(story: Story, tables: dict[str, Any]) -> None:
    """Every index is built again and compared."""
    story.step("Verify: read all again and compare")
    for name, table in tables.items():
        report = story.call(
            f"{name}.verify()",
            partial(table.verify, progress=False),
            lambda report: str(report).splitlines()[0],
        )
        story.check(f"{name} is sound", report.ok)


def _ascending(values: Any) -> Any:
    return pc.take(values, pc.sort_indices(values)).combine_chunks()
