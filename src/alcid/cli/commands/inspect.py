"""`alcid inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import File, Json, Limit, Types

__all__ = ["inspect"]


@command(Section.FILES)
def inspect(
    file: File,
    types: Types = None,
    column: Annotated[
        str | None,
        typer.Option(
            help="Of a file index only this column, and its values with their positions;"
            " needs its type.",
            show_default=False,
        ),
    ] = None,
    limit: Limit = 20,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="OUT",
            help="Write a page to this file: the bytes drawn, and how the values are spread.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what an index file holds.

    That is its head, and every index, vector or blob in it. It takes file indexes, deletion vectors
    and hash indexes of Paimon, Puffin files of Iceberg, and single deletion vectors and theta
    sketches. What is damaged is shown as such, and the status is then 1.

    \b
    Examples:
      alcid inspect data-1.orc.index --type score=DOUBLE --column score
      alcid inspect 8744736658442914487-1.stats
      alcid inspect data-1.orc.index --type score=DOUBLE --html index.html
    """  # noqa: D301
    from alcid.cli.column_types import parse_types
    from alcid.cli.inspect import inspect_file
    from alcid.cli.output import choose_output
    from alcid.cli.printing import print_lines

    known = parse_types(types or ())
    report = inspect_file(file, known, column, limit or None)
    if html is not None:
        from alcid.cli.inspect.page import inspect_page

        Path(html).write_text(inspect_page(file, known, report), encoding="utf-8")
    choose_output(as_json=as_json).file(report)
    if html is not None and not as_json:
        print_lines(f"\nwritten to {html}")
    if report.is_damaged:
        raise typer.Exit(1)
