"""`alcid compact`."""

from __future__ import annotations

from typing import Annotated, Any

import pyarrow as pa
import typer

from alcid.cli.app import Section, command
from alcid.cli.options import DryRun, Json, Quiet, TableName, pairs
from alcid.cli.tables import Opening, open_table
from alcid.errors import LiteralError
from alcid.options import find_column

__all__ = ["compact"]


@command(Section.CHANGE)
def compact(
    table: TableName,
    how: Opening,
    partition: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Only partitions with this value; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Merge the files of each bucket, of a table with a primary key.

    It is for Paimon tables. Rows that were deleted are gone from the files then.

    \b
    Examples:
      alcid compact users --dry-run
    """  # noqa: D301
    from alcid.cli.paimon import require_paimon
    from alcid.cli.printing import print_report
    from alcid.cli.progress import choose_progress

    opened = require_paimon(open_table(table, how), "compact")
    given = pairs("--partition", partition)
    values = {name: _value(text, opened.schema, name) for name, text in given.items()}
    report = opened.compact(values or None, dry_run=dry_run, progress=choose_progress(quiet=quiet))
    print_report(report, as_json=as_json)


def _value(text: str, schema: pa.Schema, name: str) -> Any:
    """A value of a column, from its text."""
    kind = schema.field(find_column(name, schema.names)).type
    try:
        return pa.scalar(text).cast(kind).as_py()
    except pa.ArrowException:
        raise LiteralError(f"--partition {name}: found {text!r}, expected {kind}") from None
