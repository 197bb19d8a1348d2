"""`alcid append`."""

from __future__ import annotations

from dataclasses import replace

from alcid.cli.app import Section, command
from alcid.cli.given_rows import Files, WriteReport, arrow_rows, spark_rows
from alcid.cli.options import DryRun, Json, TableName
from alcid.cli.tables import Opening, open_table, start_spark

__all__ = ["append"]


@command(Section.CHANGE)
def append(
    table: TableName,
    files: Files,
    how: Opening,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Append the rows of files, with the indexes that the table has.

    Columns go by name; those that are not given are null. A Paimon table is written by this
    process, or with --spark by Spark; other tables by Spark, which is started for it.

    \b
    Examples:
      alcid append orders new.csv
      alcid append orders new.parquet new.jsonl --dry-run
    """  # noqa: D301
    from alcid import PaimonTable
    from alcid.cli.printing import print_report

    opened = open_table(table, how, may_be_empty=True)
    known = tuple(opened.schema.names)
    if isinstance(opened, PaimonTable) and (dry_run or not how.needs_spark):
        rows = arrow_rows(files, opened, how)
        report = opened.append(rows, dry_run=dry_run)
        if how.needs_spark:  # which would make files of its own
            report = replace(report, files=None, bytes_written=None, index_bytes=None)
        given = tuple(rows.schema.names)
    else:
        if not opened.engine.has_spark:
            opened = open_table(table, how, needs_spark=True, may_be_empty=True)
        frame = spark_rows(files, opened, how, start_spark(how))
        report = opened.append(frame, dry_run=dry_run)
        given = tuple(frame.columns)
    print_report(WriteReport(report, given, known), as_json=as_json)
