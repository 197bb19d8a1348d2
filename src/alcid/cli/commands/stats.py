"""`alcid stats`."""

from __future__ import annotations

from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import DryRun, Json, Quiet, TableName, names
from alcid.cli.tables import Opening, open_table

__all__ = ["stats"]


@command(Section.CHANGE)
def stats(
    table: TableName,
    how: Opening,
    column: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN,...",
            help="Only these columns; by default all that can be counted.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Count the distinct values of columns.

    They are kept as sketches, in a Puffin file, and engines that read the table plan by them. Empty
    texts are not counted, as everywhere with these sketches. What was kept of other columns is
    replaced, so give all that are to be known.

    \b
    Examples:
      alcid stats events
      alcid stats lake.shop.orders --column user,day
    """  # noqa: D301
    from alcid.cli.printing import print_report
    from alcid.cli.progress import choose_progress
    from alcid.cli.stats import CountedColumn, StatsReport
    from alcid.tables.statistics import countable

    columns = names("--column", column) if column else None
    opened = open_table(table, how)
    if dry_run:
        found = countable(opened.snapshot, columns)
        every = [CountedColumn(name, str(kind)) for name, kind in found.items()]
        report = StatsReport(opened.count(), opened.files, tuple(every), dry_run=True)
    else:
        counted = opened.compute_stats(columns, progress=choose_progress(quiet=quiet))
        report = StatsReport.of(counted, opened.files)
    print_report(report, as_json=as_json)
