"""Commands on single index files: `inspect`, `diff` and `probe`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import File, Json, Limit, Types


@command(Section.FILES)
def inspect(
    file: File,
    types: Types = None,
    column: Annotated[
        str | None,
        typer.Option(
            help="Only this column of a file index, with its values and their positions; needs"
            " its type.",
            show_default=False,
        ),
    ] = None,
    limit: Limit = 20,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="OUT",
            help="Write an HTML page to this file, with a byte map and the distribution of values.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the contents of an index file.

    Prints the header and every index, vector or blob. Supports Paimon's file indexes, deletion
    vectors and hash indexes, Iceberg's Puffin files, and single deletion vectors and theta
    sketches. If anything is damaged, the output says so and the exit status is 1.

    \b
    Examples:
      alcid inspect data-1.orc.index --type score=DOUBLE --column score
      alcid inspect 8744736658442914487-1.stats
      alcid inspect data-1.orc.index --type score=DOUBLE --html index.html
    """  # noqa: D301
    from alcid.cli.columns import parse_types
    from alcid.cli.files import inspect_file
    from alcid.cli.printing import choose_output, print_lines

    column_types = parse_types(types or ())
    report = inspect_file(file, column_types, column, limit or None)
    if html is not None:
        from alcid.cli.files.page import inspect_page

        Path(html).write_text(inspect_page(file, column_types, report), encoding="utf-8")
    choose_output(as_json=as_json).file(report)
    if html is not None and not as_json:
        print_lines(f"\nwritten to {html}")
    if report.is_damaged:
        raise typer.Exit(1)


@command(Section.FILES)
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="An index file.", show_default=False)],
    b: Annotated[
        str,
        typer.Argument(
            metavar="B", help="Another index file of the same kind.", show_default=False
        ),
    ],
    types: Types = None,
    as_json: Json = False,
) -> None:
    """Compare the contents of two index files.

    Lists what only one file contains, and the first difference in what both contain. The exit
    status is 0 if the contents are equal, even if the bytes differ, and 1 otherwise. Values of
    bitmap and range-bitmap indexes need the type of their column; without it, different bytes
    count as different content.

    \b
    Examples:
      alcid diff data-1.orc.index data-2.orc.index --type score=DOUBLE
      alcid diff a.puffin b.puffin --json
    """  # noqa: D301
    from alcid.cli.columns import parse_types
    from alcid.cli.files.diff import diff_files
    from alcid.cli.printing import print_report

    report = diff_files(a, b, parse_types(types or ()))
    print_report(report, as_json=as_json)
    if not report.is_same:
        raise typer.Exit(1)


class Nulls(StrEnum):
    """Where nulls are sorted."""

    FIRST = "first"
    LAST = "last"


@command(Section.FILES)
def probe(
    file: File,
    predicate: Annotated[
        str | None,
        typer.Argument(
            metavar="PREDICATE", help="A condition as after WHERE in Spark SQL.", show_default=False
        ),
    ] = None,
    types: Types = None,
    top_n: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Return the first rows in the order of a column, with all ties. A PREDICATE must"
            " be one that the indexes answer exactly.",
        ),
    ] = None,
    order_by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column to sort by.")
    ] = None,
    ascending: Annotated[
        bool, typer.Option("--ascending", help="Return the lowest values first, not the highest.")
    ] = False,
    nulls: Annotated[Nulls, typer.Option(help="Where nulls are sorted.")] = Nulls.LAST,
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """Find the rows of a data file that may match, from its index file.

    The answer is that no row can match, that any row may, or a list of row positions. It contains
    every matching row and, unless it is exact, possibly others. A damaged index is an error.

    \b
    Examples:
      alcid probe data-1.orc.index "score > 60" --type score=DOUBLE
      alcid probe data-1.orc.index --top-n 10 --order-by score --type score=DOUBLE
    """  # noqa: D301
    from alcid.cli.columns import parse_types
    from alcid.cli.files.probe import choose_probe, probe_file
    from alcid.cli.printing import choose_output

    probe_ = choose_probe(predicate, top_n, order_by, descending=not ascending, nulls=nulls.value)
    report = probe_file(file, probe_, parse_types(types or ()), limit or None)
    choose_output(as_json=as_json).probe(report)
