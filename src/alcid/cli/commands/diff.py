"""`alcid diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import Json, Types

__all__ = ["diff"]


@command(Section.FILES)
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="An index file.", show_default=False)],
    b: Annotated[
        str, typer.Argument(metavar="B", help="Another of the same kind.", show_default=False)
    ],
    types: Types = None,
    as_json: Json = False,
) -> None:
    """Compare what two index files hold.

    It says what only one has, and the first difference of what both have. Contents are compared. If
    they are the same the status is 0, and a line says whether the bytes are, and if not where they
    differ first; else the status is 1. Values of bitmap and range-bitmap need the type of their
    column: without it, other bytes count as other content.

    \b
    Examples:
      alcid diff data-1.orc.index data-2.orc.index --type score=DOUBLE
      alcid diff a.puffin b.puffin --json
    """  # noqa: D301
    from alcid.cli.column_types import parse_types
    from alcid.cli.diff import diff_files
    from alcid.cli.printing import print_report

    report = diff_files(a, b, parse_types(types or ()))
    print_report(report, as_json=as_json)
    if not report.is_same:
        raise typer.Exit(1)
