"""`alcid upsert`."""

from __future__ import annotations

from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.given_rows import Files, WriteReport, arrow_rows, spark_rows
from alcid.cli.options import DryRun, Json, TableName
from alcid.cli.tables import Opening, open_table, start_spark

__all__ = ["upsert"]


@command(Section.CHANGE)
def upsert(
    table: TableName,
    files: Files,
    how: Opening,
    row_kind: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A column of the files that says what a row does: +I and +U put it, -U and -D"
            " delete its key.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Put the rows of files in place of those of their key.

    It is for Paimon tables with a primary key. Columns that are not given are null.

    \b
    Examples:
      alcid upsert users changes.parquet
      alcid upsert users changes.jsonl --row-kind op --dry-run
    """  # noqa: D301
    from alcid.cli.paimon import require_paimon
    from alcid.cli.printing import print_report

    opened = require_paimon(open_table(table, how), "upsert")
    if dry_run or not how.needs_spark:
        rows = arrow_rows(files, opened, how)
        given = tuple(rows.schema.names)
    else:
        rows = spark_rows(files, opened, how, start_spark(how))
        given = tuple(rows.columns)
    report = opened.upsert(rows, row_kind=row_kind, dry_run=dry_run)
    print_report(WriteReport(report, given, tuple(opened.schema.names)), as_json=as_json)
