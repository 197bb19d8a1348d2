"""`alcid delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import DryRun, Json, Quiet, TableName
from alcid.cli.tables import Opening, open_table
from alcid.errors import UnsupportedError

__all__ = ["delete"]


@command(Section.CHANGE)
def delete(
    table: TableName,
    how: Opening,
    where: Annotated[
        str,
        typer.Option(
            metavar="PREDICATE",
            help="Which rows, as behind WHERE in Spark's SQL; true for all.",
            show_default=False,
        ),
    ],
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Delete the rows that match.

    They are marked in deletion vectors of the Paimon or Iceberg table, in one commit; if it has a
    primary key, in two. Its data files stay as they are.

    \b
    Examples:
      alcid delete orders --where "item = 'book'"
      alcid delete lake.shop.orders --where "day < DATE '2020-01-01'" --dry-run
    """  # noqa: D301
    from alcid import ParquetTable
    from alcid.cli.printing import print_report
    from alcid.cli.progress import choose_progress

    opened = open_table(table, how)
    if isinstance(opened, ParquetTable):
        raise UnsupportedError(
            f"{table}: a folder of Parquet files has no commit to delete rows with; Paimon and"
            " Iceberg tables do"
        )
    progress = choose_progress(quiet=quiet)
    print_report(opened.delete(where, dry_run=dry_run, progress=progress), as_json=as_json)
