"""`alcid query`."""

from __future__ import annotations

from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import (
    Format,
    FormatName,
    Json,
    MostRows,
    OrderBy,
    OutputFile,
    Select,
    TableName,
    Where,
    names,
    require_place,
)
from alcid.cli.tables import ReadOpening, open_table

__all__ = ["query"]

_SHOWN = 20


@command(Section.ASK)
def query(
    table: TableName,
    how: ReadOpening,
    where: Where = None,
    select: Select = None,
    order_by: OrderBy = None,
    limit: MostRows = None,
    count: Annotated[bool, typer.Option("--count", help="Print only how many rows match.")] = False,
    form: FormatName = None,
    as_json: Json = False,
    output: OutputFile = None,
    no_indexes: Annotated[
        bool, typer.Option("--no-indexes", help="Read without indexes, to compare.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say on stderr what was read, and why.")
    ] = False,
) -> None:
    """Print the rows of a table that match.

    Only what indexes and statistics cannot rule out is read. A table shows 20 rows, unless --limit
    says otherwise; the other formats have all. JSON is one document; in JSON lines each row is one.

    \b
    Examples:
      alcid query events --where "user = 'u7' AND score > 0.9"
      alcid query events --select id,score --order-by "score DESC" --limit 3
      alcid query events --where "day >= DATE '2025-08-02'" --count
      alcid query events --where "user = 'u7'" --output found.parquet
    """  # noqa: D301
    from alcid.cli.printing import print_json, print_lines
    from alcid.cli.row_output import choose_format, write_rows
    from alcid.errors import OptionError
    from alcid.plan.sorting import parse_order

    form = choose_format(form, as_json=as_json, output=output)
    if count and (output is not None or form not in (Format.TABLE, Format.JSON)):
        raise OptionError(
            "--count: prints a number, alone or with --json; found a format or a file"
        )
    require_place("--output", output)
    if order_by is not None:
        parse_order(order_by, "--order-by")
    is_cut = form is Format.TABLE and limit is None and not count
    scan = open_table(table, how).scan(
        where,
        columns=None if select is None else names("--select", select),
        order_by=order_by,
        limit=_SHOWN + 1 if is_cut else limit or None,
        use_indexes=not no_indexes,
    )
    if count:
        found = scan.count()
        print_json({"count": found}) if form is Format.JSON else print_lines(str(found))
    else:
        rows = scan.to_arrow()
        shown = rows.slice(0, min(_SHOWN, len(rows))) if is_cut else rows
        write_rows(shown, form, output, more=len(rows) > len(shown))
    if explain:
        print_lines(str(scan.explain()), to_stderr=True)
