"""`alcid clean`."""

from __future__ import annotations

from alcid.cli.ages import OlderThan, parse_age
from alcid.cli.app import Section, command
from alcid.cli.options import DryRun, Json, TableName
from alcid.cli.tables import Opening, open_table

__all__ = ["clean"]


@command(Section.CHANGE)
def clean(
    table: TableName,
    how: Opening,
    older_than: OlderThan = "1d",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Remove what killed work has left.

    Small bundles of indexes of a Parquet folder are merged, too.

    \b
    Examples:
      alcid clean events --older-than 12h --dry-run
    """  # noqa: D301
    from alcid.cli.printing import print_report

    age = parse_age(older_than)
    print_report(open_table(table, how).clean(age, dry_run=dry_run), as_json=as_json)
