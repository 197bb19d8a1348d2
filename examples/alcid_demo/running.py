"""Run all steps of the demo in a folder of its own."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from alcid.errors import OptionError
from alcid.inspect import save_html
from alcid.spark.session import session
from alcid_demo.queries import PlainSpark, QueryResult, queries, run_query
from alcid_demo.report import DemoLog, DemoReport
from alcid_demo.steps import (
    EVENTS,
    LAKE,
    WAREHOUSE,
    delete_rows,
    distinct_values,
    iceberg_events,
    paimon_events,
    parquet_events,
    query_sql,
    upsert_users,
    verify_all,
)

__all__ = ["ROWS", "claim_folder", "run"]

ROWS = 2_000_000
_MIN_ROWS = 1000
_REPORT = "report.html"
_MARKER = ".alcid-demo"  # the contents of the folder may be replaced


def run(
    folder: str | os.PathLike[str] = "alcid-demo",
    *,
    rows: int = ROWS,
    report: str | os.PathLike[str] | None = None,
    spark: Any = None,
    report_progress: Callable[[str], None] | None = None,
) -> DemoReport:
    """Create and index tables, query and change them, and check every answer.

    It takes a minute or two on two cores. The tables remain.

    Args:
        folder: A new folder, or that of an earlier demo, which is replaced.
        rows: The number of events; no index pays below some 100,000.
        report: The path of the page; by default `report.html` in the folder.
        spark: The session; by default `alcid.session()`.
        report_progress: Called with each line of progress.

    Raises:
        OptionError: The folder contains other files, there are too few rows, or the folder of the
            page does not exist.
        UnsupportedError: There is no PySpark, or no Java.
    """
    if rows < _MIN_ROWS:
        raise OptionError(f"rows: found {rows:,}, expected {_MIN_ROWS:,} or more")
    began = time.perf_counter()
    spark = session() if spark is None else spark
    path = claim_folder(folder)
    page = Path(path / _REPORT if report is None else report)
    if not page.parent.is_dir():  # better now than after all steps
        raise OptionError(f"report: found {page}, expected a file in an existing folder")
    log = DemoLog((lambda _: None) if report_progress is None else report_progress)

    parquet = parquet_events(log, spark, path, rows)
    paimon = paimon_events(log, spark, path, rows)
    iceberg = iceberg_events(log, spark, path, rows)
    plain = spark.read.parquet(str(path / EVENTS))
    plain_spark = PlainSpark(plain)
    results = _run_queries(log, ("Parquet folder", "events"), parquet, plain_spark, rows)
    results += _run_queries(log, ("Paimon table", "paimon"), paimon, plain_spark, rows)
    if iceberg is not None:
        plain_spark = PlainSpark(spark.table(iceberg.name))
        results += _run_queries(log, ("Iceberg table", "iceberg"), iceberg, plain_spark, rows)
    query_sql(log, parquet, plain)
    delete_rows(log, paimon, plain)
    users = upsert_users(log, spark, path, rows // 10)
    distinct_values(log, parquet, plain)
    tables = {"events": parquet, "paimon": paimon, "users": users}
    verify_all(log, tables | ({} if iceberg is None else {"iceberg": iceberg}))

    seconds = time.perf_counter() - began
    machine = f"Spark {spark.version}, Python {platform.python_version()}, {os.cpu_count()} cores"
    result = DemoReport(
        str(path), str(page), rows, seconds, machine, tuple(log.steps), tuple(results)
    )
    save_html(result, page)
    return result


def _run_queries(
    log: DemoLog, names: tuple[str, str], table: Any, plain: PlainSpark, rows: int
) -> list[QueryResult]:
    """Run all queries on a table, which has a title and the name of its variable."""
    title, variable = names
    log.step(f"Queries on the {title}: with indexes, without, and plain Spark")
    return [
        log.call(query.code(variable), partial(run_query, query, title, table, plain))
        for query in queries(rows)
    ]


def claim_folder(folder: str | os.PathLike[str]) -> Path:
    """Create the folder, or remove the tables and report of an earlier demo from it.

    Raises:
        OptionError: It contains files, but no demo created it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     made = claim_folder(f"{root}/demo")
    ...     (made / "report.html").touch()
    ...     claim_folder(made) == made, (made / "report.html").exists()
    ...     claim_folder(root)
    Traceback (most recent call last):
    alcid.errors.OptionError: ...: found a folder that no demo has created, expected a new one
    """
    path = Path(folder)
    marker = path / _MARKER
    if path.exists() and not path.is_dir():
        raise OptionError(f"{path}: found a file, expected the name of a new folder")
    if path.exists() and any(path.iterdir()) and not marker.exists():
        raise OptionError(f"{path}: found a folder that no demo has created, expected a new one")
    path.mkdir(parents=True, exist_ok=True)
    marker.touch()
    for name in (EVENTS, WAREHOUSE, LAKE):
        shutil.rmtree(path / name, ignore_errors=True)
    (path / _REPORT).unlink(missing_ok=True)
    return path
