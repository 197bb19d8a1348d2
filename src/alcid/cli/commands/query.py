"""Commands that read rows: `query`, `explain` and `sql`."""

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
    OrderBy,
    OutputFile,
    RowLimit,
    Select,
    TableName,
    Where,
    names,
    require_writable,
)
from alcid.cli.tables import Opening, ReadOpening, open_table, start_spark

_SHOWN = 20


@command(Section.QUERY)
def query(
    table: TableName,
    how: ReadOpening,
    where: Where = None,
    select: Select = None,
    order_by: OrderBy = None,
    limit: RowLimit = None,
    count: Annotated[
        bool, typer.Option("--count", help="Print only the number of matching rows.")
    ] = False,
    form: FormatName = None,
    as_json: Json = False,
    output: OutputFile = None,
    no_indexes: Annotated[
        bool, typer.Option("--no-indexes", help="Do not use indexes, for comparison.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print on stderr what was read, and why.")
    ] = False,
) -> None:
    """Print the matching rows of a table.

    Reads only what indexes and statistics cannot rule out. The table format prints 20 rows unless
    --limit is given, all other formats print all rows. The json format is one document, jsonl one
    per row.

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
            "--count: prints only a number, so it cannot be combined with --format or --output"
        )
    require_writable("--output", output)
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
        matching = scan.count()
        print_json({"count": matching}) if form is Format.JSON else print_lines(str(matching))
    else:
        rows = scan.to_arrow()
        shown = rows.slice(0, min(_SHOWN, len(rows))) if is_cut else rows
        write_rows(shown, form, output, more=len(rows) > len(shown))
    if explain:
        print_lines(str(scan.explain()), to_stderr=True)


@command(Section.QUERY)
def explain(
    table: TableName,
    how: ReadOpening,
    where: Where = None,
    select: Select = None,
    order_by: OrderBy = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Read at most this many rows.", show_default="all")
    ] = None,
    run: Annotated[
        bool,
        typer.Option("--run", help="Run the query and report what was read, not only the plan."),
    ] = False,
    files: Annotated[
        bool, typer.Option("--files", help="With --json: include the outcome of each file.")
    ] = False,
    html: HtmlFile = None,
    as_json: Json = False,
) -> None:
    """Explain what a query reads of a table, stage by stage, and why.

    \b
    Examples:
      alcid explain events --where "user = 'u7'"
      alcid explain events --where "score > 0.99" --select id --run
      alcid explain events --where "id = 77" --html plan.html
    """  # noqa: D301
    from alcid.cli.printing import print_json, print_report_or_page
    from alcid.errors import OptionError
    from alcid.scan.sorting import parse_order

    require_writable("--html", html)
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
    explanation = scan.explain()
    if not files:
        print_report_or_page(explanation, html, as_json=as_json)
        return
    if not as_json or html is not None:
        raise OptionError("--files: needs --json without --html, which always includes the files")
    print_json(explanation.to_dict(files=True))


_NAMED = re.compile(r"(\w+)=(.+)", re.DOTALL)


@command(Section.QUERY)
def sql(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A query in Spark SQL.", show_default=False)
    ],
    how: Opening,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]TABLE",
            help="A table and its name in the query, by default the last part of its path; may be"
            " repeated.",
            show_default=False,
        ),
    ] = None,
    limit: RowLimit = None,
    form: FormatName = None,
    as_json: Json = False,
    output: OutputFile = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Explain what would be read of each table, without running."
        ),
    ] = False,
    html: HtmlFile = None,
) -> None:
    """Run a Spark SQL query over tables.

    Reads only what the query needs. Starts a local Spark, or uses the one that --conf
    spark.master=... names. The formats are those of alcid query.

    \b
    Examples:
      alcid sql "SELECT user, max(score) FROM events GROUP BY user ORDER BY user" --table events
      alcid sql "SELECT e.id FROM e JOIN o USING (id)" --table e=events --table o=orders --json
      alcid sql "SELECT * FROM events WHERE id = 7" --table events --explain
    """  # noqa: D301
    import alcid
    from alcid.cli.options import Format
    from alcid.cli.printing import print_report_or_page
    from alcid.cli.row_output import choose_format, write_rows
    from alcid.errors import OptionError
    from alcid.spark.errors import spark_errors

    if html is not None and not explain:
        raise OptionError("--html: needs --explain, since the page shows what is read")
    form = choose_format(form, as_json=as_json, output=output)
    require_writable("--output", output)
    require_writable("--html", html)
    locations = _named(table or [])
    start_spark(how)
    tables = {
        name: open_table(location, how, needs_spark=True) for name, location in locations.items()
    }
    with spark_errors(tables):
        if explain:
            print_report_or_page(alcid.explain_sql(query, **tables), html, as_json=as_json)
            return
        frame = alcid.sql(query, **tables)
        is_cut = form is Format.TABLE and limit is None
        row_limit = _SHOWN + 1 if is_cut else limit
        rows = (frame.limit(row_limit) if row_limit else frame).toArrow()
    shown = rows.slice(0, min(_SHOWN, len(rows))) if is_cut else rows
    write_rows(shown, form, output, more=len(rows) > len(shown))


def _named(texts: list[str]) -> dict[str, str]:
    """The tables by their names.

    >>> _named(["data/events/", "o=lake.shop.orders"])
    {'events': 'data/events/', 'o': 'lake.shop.orders'}
    """
    from alcid.errors import OptionError

    tables: dict[str, str] = {}
    for text in texts:
        named = _NAMED.fullmatch(text)
        name = named[1] if named else re.split(r"[/.]", text.rstrip("/."))[-1]
        if not re.fullmatch(r"\w+", name):
            raise OptionError(f"--table {text}: give it a name for the query, as t={text}")
        if name in tables:
            raise OptionError(f"--table: {name} is given twice; rename one, as t={text}")
        tables[name] = named[2] if named else text
    return tables
