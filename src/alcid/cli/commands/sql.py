"""`alcid sql`."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import FormatName, HtmlFile, Json, MostRows, OutputFile, require_place
from alcid.cli.tables import Opening, open_table, start_spark

__all__ = ["sql"]

_SHOWN = 20
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
    from alcid.spark.spark_errors import spark_errors

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
