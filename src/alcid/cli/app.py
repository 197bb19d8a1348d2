"""The commands and their options. What does the work is imported when a command runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

__all__ = ["UsageError", "app"]

# Typer exports one kind of usage error, and not what all of them are.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    help="Look into the index files of lake tables, and ask them without their data.",
    epilog="Example: alcid inspect data-1.orc.index",
    add_completion=False,
    rich_markup_mode=None,  # plain help, which needs no import of rich
    pretty_exceptions_enable=False,
)

File = Annotated[str, typer.Argument(metavar="FILE", help="An index file.", show_default=False)]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="COLUMN=TYPE",
        help="The type of a column, as Paimon writes it; may be repeated. Files do not hold types.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Limit = Annotated[
    int, typer.Option("--limit", min=0, help="Show at most so many of a list; 0 for all of them.")
]


class Nulls(StrEnum):
    """Where nulls stand in an order."""

    FIRST = "first"
    LAST = "last"


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"alcid {version('alcid')}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Options of `alcid` itself."""


@app.command()
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
    as_json: Json = False,
) -> None:
    """Show what an index file holds: its head, and every index, vector or blob in it.

    It takes file indexes, deletion vectors and hash indexes of Paimon, Puffin files of Iceberg, and
    single deletion vectors and theta sketches. What is damaged is shown as such, and the status is
    then 1.

    \b
    Examples:
      alcid inspect data-1.orc.index --type score=DOUBLE --column score
      alcid inspect 8744736658442914487-1.stats
    """  # noqa: D301
    from alcid.cli.column_types import parse_types
    from alcid.cli.inspect import inspect_file
    from alcid.cli.output import choose_output

    report = inspect_file(file, parse_types(types or ()), column, limit or None)
    choose_output(as_json=as_json).file(report)
    if report.is_damaged:
        raise typer.Exit(1)


@app.command()
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
    from alcid.cli.column_types import parse_types
    from alcid.cli.output import choose_output
    from alcid.cli.probe import choose_question, probe_file

    question = choose_question(
        predicate, top_n, order_by, descending=not ascending, nulls=nulls.value
    )
    report = probe_file(file, question, parse_types(types or ()), limit or None)
    choose_output(as_json=as_json).probe(report)
