"""`alcid repair`."""

from __future__ import annotations

import typer

from alcid.cli.ages import OlderThan, parse_age
from alcid.cli.app import Section, command
from alcid.cli.options import DryRun, Json, Quiet, TableName
from alcid.cli.tables import Opening, open_table

__all__ = ["repair"]


@command(Section.CHANGE)
def repair(
    table: TableName,
    how: Opening,
    older_than: OlderThan = "1d",
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Mend what verify finds, and say what cannot be mended.

    Deletion vectors, keys that are live twice, indexes and statistics are put right, as far as
    nothing is lost by it; then leftovers are removed, as by clean. The status is 1 if something is
    still wrong.

    \b
    Examples:
      alcid repair orders --dry-run
      alcid repair users --older-than 12h --json
    """  # noqa: D301
    from alcid.cli.printing import print_report
    from alcid.cli.progress import choose_progress

    age = parse_age(older_than)
    report = open_table(table, how).repair(
        age, dry_run=dry_run, progress=choose_progress(quiet=quiet)
    )
    print_report(report, as_json=as_json)
    if not report.ok:
        raise typer.Exit(1)
