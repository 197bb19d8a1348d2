"""`alcid query`.

`alcid explain`.

`alcid sql`.
"""

from __future__ import annotations

import re
from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import (
    Format,
    FormatName,
    HtmlFile,
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
from alcid.cli.tables import Opening, ReadOpening, open_table, start_spark

__all__ = ["explain", "query", "sql"]

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
    from alcid.scan.sorting import parse_order

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
    from alcid.scan.sorting import parse_order

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


_NAMED = re.compile(r"(\w+)=(.+)", re.DOTALL)


@command(Section.ASK)
def sql(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A query of Spark's SQL.", show_default=False)
    ],
    how: Opening,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]TABLE",
            help="A table of the query, and its name there, by default the last part of where it"
            " is; may be repeated.",
            show_default=False,
        ),
    ] = None,
    limit: MostRows = None,
    form: FormatName = None,
    as_json: Json = False,
    output: OutputFile = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Say what would be read of each table; nothing is run."),
    ] = False,
    html: HtmlFile = None,
) -> None:
    """Answer a query of Spark's SQL over tables.

    Only what the query needs is read of them. It starts a Spark on this machine; --conf
    spark.master=... takes another. Formats are those of alcid query.

    \b
    Examples:
      alcid sql "SELECT user, max(score) FROM events GROUP BY user ORDER BY user" --table events
      alcid sql "SELECT e.id FROM e JOIN o USING (id)" --table e=events --table o=orders --json
      alcid sql "SELECT * FROM events WHERE id = 7" --table events --explain
    """  # noqa: D301
    import alcid
    from alcid.cli.options import Format
    from alcid.cli.printing import print_picture
    from alcid.cli.row_output import choose_format, write_rows
    from alcid.errors import OptionError
    from alcid.spark.errors import spark_errors

    if html is not None and not explain:
        raise OptionError("--html: shows what is read, so that it goes with --explain")
    form = choose_format(form, as_json=as_json, output=output)
    require_place("--output", output)
    require_place("--html", html)
    given = _named(table or [])
    start_spark(how)
    tables = {name: open_table(one, how, needs_spark=True) for name, one in given.items()}
    with spark_errors(tables):
        if explain:
            print_picture(alcid.explain_sql(query, **tables), html, as_json=as_json)
            return
        frame = alcid.sql(query, **tables)
        is_cut = form is Format.TABLE and limit is None
        most = _SHOWN + 1 if is_cut else limit
        rows = (frame.limit(most) if most else frame).toArrow()
    shown = rows.slice(0, min(_SHOWN, len(rows))) if is_cut else rows
    write_rows(shown, form, output, more=len(rows) > len(shown))


def _named(texts: list[str]) -> dict[str, str]:
    """The tables by their names.

    >>> _named(["data/events/", "o=lake.shop.orders"])
    {'events': 'data/events/', 'o': 'lake.shop.orders'}
    """
    from alcid.errors import OptionError

    found: dict[str, str] = {}
    for text in texts:
        named = _NAMED.fullmatch(text)
        name = named[1] if named else re.split(r"[/.]", text.rstrip("/."))[-1]
        if not re.fullmatch(r"\w+", name):
            raise OptionError(f"--table {text}: give it a name for the query, as t={text}")
        if name in found:
            raise OptionError(f"--table: {name} is given twice; name one of them, as t={text}")
        found[name] = named[2] if named else text
    return found
