"""Commands that maintain a table: `verify`, `repair`, `clean`, `expire`, `compact` and `stats`."""

from __future__ import annotations

from typing import Annotated, Any

import pyarrow as pa
import typer

from alcid.cli.app import Section, command
from alcid.cli.options import DryRun, Json, OlderThan, Quiet, TableName, names, pairs, parse_age
from alcid.cli.tables import Opening, open_table
from alcid.errors import LiteralError
from alcid.options import find_column


@command(Section.INDEX)
def verify(
    table: TableName,
    how: Opening,
    sample: Annotated[
        float, typer.Option(min=0, max=1, help="The fraction of files to check.")
    ] = 1.0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compare the indexes of a table with its data.

    Reads the data files and compares them with everything stored about them. The exit status is 1
    if an index would hide a row or return a wrong one, or if anything is damaged. A stale or
    missing index makes queries slower, but not wrong.

    \b
    Examples:
      alcid verify events
      alcid verify orders --sample 0.1 --json
    """  # noqa: D301
    from alcid.cli.printing import choose_progress, print_report

    report = open_table(table, how).verify(sample, progress=choose_progress(quiet=quiet))
    print_report(report, as_json=as_json)
    if not report.ok:
        raise typer.Exit(1)


@command(Section.CHANGE)
def repair(
    table: TableName,
    how: Opening,
    older_than: OlderThan = "1d",
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Repair what verify finds, and report what cannot be repaired.

    Repairs deletion vectors, keys that are live twice, indexes and statistics as far as no data is
    lost, then removes leftovers like clean. The exit status is 1 if anything is still wrong.

    \b
    Examples:
      alcid repair orders --dry-run
      alcid repair users --older-than 12h --json
    """  # noqa: D301
    from alcid.cli.printing import choose_progress, print_report

    age = parse_age(older_than)
    report = open_table(table, how).repair(
        age, dry_run=dry_run, progress=choose_progress(quiet=quiet)
    )
    print_report(report, as_json=as_json)
    if not report.ok:
        raise typer.Exit(1)


@command(Section.CHANGE)
def clean(
    table: TableName,
    how: Opening,
    older_than: OlderThan = "1d",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Remove files that interrupted jobs have left behind.

    Also merges small index bundles of a Parquet folder.

    \b
    Examples:
      alcid clean events --older-than 12h --dry-run
    """  # noqa: D301
    from alcid.cli.printing import print_report

    age = parse_age(older_than)
    print_report(open_table(table, how).clean(age, dry_run=dry_run), as_json=as_json)


@command(Section.CHANGE)
def expire(
    table: TableName,
    how: Opening,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Expire snapshots that have not been the latest for so long: 90s, 30m, 12h, 1d or"
            " 2w.",
            show_default="snapshot.time-retained, 1h",
        ),
    ] = None,
    retain_last: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Keep the latest N snapshots, however old.",
            show_default="snapshot.num-retained.min, 10",
        ),
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Let old snapshots of a Paimon table expire.

    Removes the files that only they named. Tags, branches and consumers keep what they need.

    \b
    Examples:
      alcid expire users --dry-run
      alcid expire users --older-than 7d --retain-last 10 --json
    """  # noqa: D301
    from alcid.cli.printing import print_report
    from alcid.cli.tables import require_paimon

    age = None if older_than is None else parse_age(older_than)
    opened = require_paimon(open_table(table, how), "expire")
    print_report(opened.expire_snapshots(age, retain_last, dry_run=dry_run), as_json=as_json)


@command(Section.CHANGE)
def compact(
    table: TableName,
    how: Opening,
    partition: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Compact only partitions with this value; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Merge the files of each bucket of a primary-key table.

    Works on Paimon tables, and also removes deleted rows from the files.

    \b
    Examples:
      alcid compact users --dry-run
    """  # noqa: D301
    from alcid.cli.printing import choose_progress, print_report
    from alcid.cli.tables import require_paimon

    opened = require_paimon(open_table(table, how), "compact")
    partition_values = pairs("--partition", partition)
    values = {name: _value(text, opened.schema, name) for name, text in partition_values.items()}
    report = opened.compact(values or None, dry_run=dry_run, progress=choose_progress(quiet=quiet))
    print_report(report, as_json=as_json)


def _value(text: str, schema: pa.Schema, name: str) -> Any:
    """Parse the value of a column."""
    kind = schema.field(find_column(name, schema.names)).type
    try:
        return pa.scalar(text).cast(kind).as_py()
    except pa.ArrowException:
        raise LiteralError(f"--partition {name}: found {text!r}, expected {kind}") from None


@command(Section.CHANGE)
def stats(
    table: TableName,
    how: Opening,
    column: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN,...",
            help="Count only these columns.",
            show_default="all supported columns",
        ),
    ] = [],  # noqa: B006 - typer copies it
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Count the distinct values of columns.

    Stores theta sketches in a Puffin file, which query engines use for planning. Empty strings are
    not counted, as everywhere with these sketches. The sketches replace those of all columns, so
    name every column that you need.

    \b
    Examples:
      alcid stats events
      alcid stats lake.shop.orders --column user,day
    """  # noqa: D301
    from alcid.cli.printing import choose_progress, print_report
    from alcid.cli.reports import CountedColumn, StatsReport
    from alcid.tables.distinct_values import countable

    columns = names("--column", column) if column else None
    opened = open_table(table, how)
    if dry_run:
        types = countable(opened.snapshot, columns)
        columns_ = [CountedColumn(name, str(kind)) for name, kind in types.items()]
        report = StatsReport(opened.count(), opened.files, tuple(columns_), dry_run=True)
    else:
        counted = opened.compute_stats(columns, progress=choose_progress(quiet=quiet))
        report = StatsReport.of(counted, opened.files)
    print_report(report, as_json=as_json)
