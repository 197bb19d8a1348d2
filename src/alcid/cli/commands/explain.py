"""`alcid explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import (
    HtmlFile,
    Json,
    OrderBy,
    Select,
    TableName,
    Where,
    names,
    require_place,
)
from alcid.cli.tables import ReadOpening, open_table

__all__ = ["explain"]


@command(Section.ASK)
def explain(
    table: TableName,
    how: ReadOpening,
    where: Where = None,
    select: Select = None,
    order_by: OrderBy = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="How many rows at most.", show_default="all")
    ] = None,
    run: Annotated[
        bool,
        typer.Option("--run", help="Read the rows, so that it says what was read, not what is to."),
    ] = False,
    files: Annotated[
        bool, typer.Option("--files", help="With --json: also what becomes of each file.")
    ] = False,
    html: HtmlFile = None,
    as_json: Json = False,
) -> None:
    """Say what a query reads of a table, stage by stage, and why.

    \b
    Examples:
      alcid explain events --where "user = 'u7'"
      alcid explain events --where "score > 0.99" --select id --run
      alcid explain events --where "id = 77" --html plan.html
    """  # noqa: D301
    from alcid.cli.printing import print_json, print_picture
    from alcid.errors import OptionError
    from alcid.plan.sorting import parse_order

    require_place("--html", html)
    if order_by is not None:
        parse_order(order_by, "--order-by")
    scan = open_table(table, how).scan(
        where,
        columns=None if select is None else names("--select", select),
        order_by=order_by,
        limit=limit,
    )
    if run:
        scan.to_arrow()
    found = scan.explain()
    if not files:
        print_picture(found, html, as_json=as_json)
        return
    if not as_json or html is not None:
        raise OptionError("--files: goes with --json alone; --html has them in any case")
    print_json(found.to_dict(files=True))
