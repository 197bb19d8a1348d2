"""`alcid_demo.run`: all steps of the demo, one after the other."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from alcid.errors import OptionError
from alcid.inspect import save_html
from alcid.spark.session import session
from alcid_demo.changing import (
    delete_rows,
    distinct_values,
    query_sql,
    upsert_users,
    verify_all,
)
from alcid_demo.folder import EVENTS, REPORT, claim
from alcid_demo.making import iceberg_events, paimon_events, parquet_events
from alcid_demo.questions import (
    Asked,
    PlainSpark,
    ask,
    questions,
)
from alcid_demo.report import DemoReport
from alcid_demo.story import Story

__all__ = ["ROWS", "run"]

ROWS = 2_000_000
_LEAST_ROWS = 1000


def run(
    folder: str | os.PathLike[str] = "alcid-demo",
    *,
    rows: int = ROWS,
    report: str | os.PathLike[str] | None = None,
    spark: Any = None,
    tell: Callable[[str], None] | None = None,
) -> DemoReport:
    """Make tables, index and ask them, change them, and check every answer.

    It takes about a minute or two on two cores. The tables stay, to go on with.

    Args:
        folder: A new folder, or that of an earlier demo, which is then made anew.
        rows: How many events; with less than some 100,000 no index can pay.
        report: Where the page goes; by default `report.html` in the folder.
        spark: The session; by default `alcid.session()`.
        tell: Takes each line that says what is being done.

    Raises:
        OptionError: The folder holds something else, too few rows, or no folder for the page.
        UnsupportedError: There is no PySpark, or no Java.
    """
    if rows < _LEAST_ROWS:
        raise OptionError(f"rows: found {rows:,}, expected {_LEAST_ROWS:,} or more")
    began = time.perf_counter()
    spark = session() if spark is None else spark
    path = claim(folder)
    page = Path(path / REPORT if report is None else report)
    if not page.parent.is_dir():  # which is not to show after all is done
        raise OptionError(f"report: found {page}, expected a file in a folder that is there")
    story = Story((lambda _: None) if tell is None else tell)

    parquet = parquet_events(story, spark, path, rows)
    paimon = paimon_events(story, spark, path, rows)
    iceberg = iceberg_events(story, spark, path, rows)
    plain = spark.read.parquet(str(path / EVENTS))
    of_spark = PlainSpark(plain)
    asked = _ask(story, ("Parquet folder", "events"), parquet, of_spark, rows)
    asked += _ask(story, ("Paimon table", "paimon"), paimon, of_spark, rows)
    if iceberg is not None:
        of_spark = PlainSpark(spark.table(iceberg.name))
        asked += _ask(story, ("Iceberg table", "iceberg"), iceberg, of_spark, rows)
    query_sql(story, parquet, plain)
    delete_rows(story, paimon, plain)
    users = upsert_users(story, spark, path, rows // 10)
    distinct_values(story, parquet, plain)
    tables = {"events": parquet, "paimon": paimon, "users": users}
    verify_all(story, tables | ({} if iceberg is None else {"iceberg": iceberg}))

    seconds = time.perf_counter() - began
    machine = f"Spark {spark.version}, Python {platform.python_version()}, {os.cpu_count()} cores"
    found = DemoReport(
        str(path), str(page), rows, seconds, machine, tuple(story.steps), tuple(asked)
    )
    save_html(found, page)
    return found


def _ask(
    story: Story, names: tuple[str, str], table: Any, plain: PlainSpark, rows: int
) -> list[Asked]:
    """Ask a table all questions; its names are that for people, and that in Python."""
    name, variable = names
    story.step(f"Questions to the {name}: with indexes, without, and plain Spark")
    return [
        story.call(one.code(variable), partial(ask, one, name, table, plain))
        for one in questions(rows)
    ]
