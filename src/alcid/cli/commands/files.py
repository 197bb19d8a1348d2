"""`alcid inspect`.

`alcid diff`.

`alcid probe`.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import (
    File,
    Json,
    Limit,
    Types,
)

__all__ = ["diff", "inspect", "probe"]


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
    from alcid.cli.columns import parse_types
    from alcid.cli.inspect import inspect_file
    from alcid.cli.printing import choose_output, print_lines

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
    from alcid.cli.columns import parse_types
    from alcid.cli.diff import diff_files
    from alcid.cli.printing import print_report

    report = diff_files(a, b, parse_types(types or ()))
    print_report(report, as_json=as_json)
    if not report.is_same:
        raise typer.Exit(1)


class Nulls(StrEnum):
    """Where nulls stand in an order."""

    FIRST = "first"
    LAST = "last"


@command(Section.FILES)
def probe(
    file: File,
    predicate: Annotated[
        str | None,
        typer.Argument(
            metavar="PREDICATE",
            help="What may stand behind WHERE in Spark's SQL.",
            show_default=False,
        ),
    ] = None,
    types: Types = None,
    top_n: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The first rows in the order of a column, with all ties; of those that match"
            " PREDICATE, if it is given and the indexes answer it exactly.",
        ),
    ] = None,
    order_by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that orders them.")
    ] = None,
    ascending: Annotated[
        bool, typer.Option("--ascending", help="The lowest values first, not the highest.")
    ] = False,
    nulls: Annotated[Nulls, typer.Option(help="Where nulls stand in the order.")] = Nulls.LAST,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """Ask an index file which rows of its data file may match.

    The answer is that no row can match, that any row may, or positions of rows. It holds every row
    that matches, and unless it is exact maybe more. A damaged index is an error.

    \b
    Examples:
      alcid probe data-1.orc.index "score > 60" --type score=DOUBLE
      alcid probe data-1.orc.index --top-n 10 --order-by score --type score=DOUBLE
    """  # noqa: D301
    from alcid.cli.columns import parse_types
    from alcid.cli.printing import choose_output
    from alcid.cli.probe import choose_question, probe_file

    question = choose_question(
        predicate, top_n, order_by, descending=not ascending, nulls=nulls.value
    )
    report = probe_file(file, question, parse_types(types or ()), limit or None)
    choose_output(as_json=as_json).probe(report)
