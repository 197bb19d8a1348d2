"""Commands that create and change a table: `create`, `append`, `upsert` and `delete`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import DryRun, Json, Quiet, TableName, names, pairs
from alcid.cli.row_input import Files, arrow_rows, spark_rows
from alcid.cli.tables import Opening, open_table, start_spark
from alcid.errors import OptionError, UnsupportedError

if TYPE_CHECKING:
    from alcid.types import DataType


@command(Section.CHANGE)
def create(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="The folder of the new table.", show_default=False),
    ],
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns with types in Paimon's or Spark's spelling: id BIGINT NOT NULL, name"
            " STRING.",
            show_default=False,
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A Parquet, ORC or Arrow file to take the columns from.",
            show_default=False,
        ),
    ] = None,
    primary_key: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN,...", help="The columns of the primary key.", show_default=False
        ),
    ] = [],  # noqa: B006 - typer copies it
    partition_by: Annotated[
        list[str],
        typer.Option(metavar="COLUMN,...", help="The partition columns.", show_default=False),
    ] = [],  # noqa: B006
    option: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUE",
            help="A table option of Paimon, such as bucket=4; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    storage_option: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUE",
            help="An object store setting, such as an access key or endpoint; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Create an empty Paimon table.

    \b
    Examples:
      alcid create people --schema "id BIGINT, name STRING" --primary-key id
      alcid create shop/items --like new.parquet --option file-index.bloom-filter.columns=id
    """  # noqa: D301
    from alcid.cli.printing import print_report
    from alcid.cli.reports import CreateReport
    from alcid.storage import Storage
    from alcid.tables.paimon.metadata.table_folder import TableFolder
    from alcid.tables.paimon.write.append import new_schema

    storage_options = pairs("--storage-option", storage_option) or None
    table_schema = new_schema(
        _columns(schema, like, storage_options),
        names("--primary-key", primary_key) if primary_key else [],
        names("--partition-by", partition_by) if partition_by else [],
        pairs("--option", option),
    )
    storage = Storage.open(table, storage_options)
    TableFolder(storage.dry_run() if dry_run else storage).create(table_schema)
    print_report(CreateReport(storage.location, table_schema, dry_run), as_json=as_json)


def _columns(
    schema: str | None, like: str | None, storage_options: dict[str, str] | None
) -> list[tuple[str, DataType, bool]]:
    from alcid.cli.columns import parse_columns
    from alcid.cli.row_input import file_schema
    from alcid.types import DataType

    if (schema is None) == (like is None):
        raise OptionError("expected --schema or --like, and not both")
    if schema is not None:
        return parse_columns(schema)
    assert like is not None
    arrow_schema = file_schema(like, storage_options)
    return [(field.name, DataType.from_arrow(field.type), field.nullable) for field in arrow_schema]


@command(Section.CHANGE)
def append(
    table: TableName, files: Files, how: Opening, dry_run: DryRun = False, as_json: Json = False
) -> None:
    """Append the rows of files, and index them like the table.

    Columns are matched by name; missing ones become null. This process writes a Paimon table,
    unless --spark is given; other tables are written by Spark, which is started.

    \b
    Examples:
      alcid append orders new.csv
      alcid append orders new.parquet new.jsonl --dry-run
    """  # noqa: D301
    from alcid.cli.printing import print_report
    from alcid.cli.reports import WriteReport
    from alcid.tables.paimon_table import PaimonTable

    opened = open_table(table, how, may_be_empty=True)
    table_columns = tuple(opened.schema.names)
    if isinstance(opened, PaimonTable) and (dry_run or not how.needs_spark):
        rows = arrow_rows(files, opened, how)
        report = opened.append(rows, dry_run=dry_run)
        if how.needs_spark:  # Spark would write different files
            report = replace(report, files=None, bytes_written=None, index_bytes=None)
        row_columns = tuple(rows.schema.names)
    else:
        if not opened.engine.has_spark:
            opened = open_table(table, how, needs_spark=True, may_be_empty=True)
        frame = spark_rows(files, opened, how, start_spark(how))
        report = opened.append(frame, dry_run=dry_run)
        row_columns = tuple(frame.columns)
    print_report(WriteReport(report, row_columns, table_columns), as_json=as_json)


@command(Section.CHANGE)
def upsert(
    table: TableName,
    files: Files,
    how: Opening,
    row_kind: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column with the row kind: +I and +U upsert a row, -U and -D delete its key.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Insert the rows of files, or replace those with the same key.

    Works on Paimon tables with a primary key. Missing columns become null.

    \b
    Examples:
      alcid upsert users changes.parquet
      alcid upsert users changes.jsonl --row-kind op --dry-run
    """  # noqa: D301
    from alcid.cli.printing import print_report
    from alcid.cli.reports import WriteReport
    from alcid.cli.tables import require_paimon

    opened = require_paimon(open_table(table, how), "upsert")
    if dry_run or not how.needs_spark:
        rows = arrow_rows(files, opened, how)
        row_columns = tuple(rows.schema.names)
    else:
        rows = spark_rows(files, opened, how, start_spark(how))
        row_columns = tuple(rows.columns)
    report = opened.upsert(rows, row_kind=row_kind, dry_run=dry_run)
    print_report(WriteReport(report, row_columns, tuple(opened.schema.names)), as_json=as_json)


@command(Section.CHANGE)
def delete(
    table: TableName,
    how: Opening,
    where: Annotated[
        str,
        typer.Option(
            metavar="PREDICATE",
            help="The rows to delete, as after WHERE in Spark SQL; true for all.",
            show_default=False,
        ),
    ],
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Delete the matching rows of a Paimon or Iceberg table.

    Marks them in deletion vectors, in one commit, or two if the table has a primary key. The data
    files are not changed.

    \b
    Examples:
      alcid delete orders --where "item = 'book'"
      alcid delete lake.shop.orders --where "day < DATE '2020-01-01'" --dry-run
    """  # noqa: D301
    from alcid.cli.printing import choose_progress, print_report
    from alcid.tables.parquet_table import ParquetTable

    opened = open_table(table, how)
    if isinstance(opened, ParquetTable):
        raise UnsupportedError(
            f"{table}: rows of a Parquet folder cannot be deleted, since it has no commits; use a"
            " Paimon or Iceberg table"
        )
    progress = choose_progress(quiet=quiet)
    print_report(opened.delete(where, dry_run=dry_run, progress=progress), as_json=as_json)
