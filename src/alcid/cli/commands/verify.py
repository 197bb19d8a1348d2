"""`alcid verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import Json, Quiet, TableName
from alcid.cli.tables import Opening, open_table

__all__ = ["verify"]


@command(Section.INDEX)
def verify(
    table: TableName,
    how: Opening,
    sample: Annotated[
        float, typer.Option(min=0, max=1, help="The share of files to look at.")
    ] = 1.0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compare the indexes of a table with its data.

    Its files are read, and compared with all that is kept of them. The status is 1 if an index
    hides a row or gives a wrong one, or if something is damaged. One that is stale or missing makes
    queries slower, and not wrong.

    \b
    Examples:
      alcid verify events
      alcid verify orders --sample 0.1 --json
    """  # noqa: D301
    from alcid.cli.printing import print_report
    from alcid.cli.progress import choose_progress

    report = open_table(table, how).verify(sample, progress=choose_progress(quiet=quiet))
    print_report(report, as_json=as_json)
    if not report.ok:
        raise typer.Exit(1)
