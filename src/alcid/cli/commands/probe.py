"""`alcid probe`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import File, Json, Limit, Types

__all__ = ["probe"]


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
    from alcid.cli.column_types import parse_types
    from alcid.cli.output import choose_output
    from alcid.cli.probe import choose_question, probe_file

    question = choose_question(
        predicate, top_n, order_by, descending=not ascending, nulls=nulls.value
    )
    report = probe_file(file, question, parse_types(types or ()), limit or None)
    choose_output(as_json=as_json).probe(report)
