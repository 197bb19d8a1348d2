"""`alcid advise`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import Json, Quiet, TableName, names
from alcid.cli.tables import Opening, open_table

__all__ = ["advise"]


@command(Section.INDEX)
def advise(
    table: TableName,
    how: Opening,
    where: Annotated[
        list[str],
        typer.Option(
            "--where",
            "--query",
            metavar="QUERY",
            help="A query that matters, as behind WHERE in Spark's SQL; with ORDER BY and LIMIT, or"
            " these alone, if it has them. May be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    count: Annotated[
        list[str],
        typer.Option(
            metavar="PREDICATE",
            help="One that only counts the rows that match; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    column: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN,...", help="Only these columns; by default all.", show_default=False
        ),
    ] = [],  # noqa: B006
    sample: Annotated[int, typer.Option(min=1, help="Read at most so many files.")] = 16,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Say which index pays for which column.

    That is judged by a sample of the files, and without queries by typical ones. Nothing is
    written; the last line is the command that builds what pays.

    \b
    Examples:
      alcid advise events --where "user = 'u7'" --where "score > 0.99"
      alcid advise events --query "day > '2025-08-02' ORDER BY score DESC LIMIT 10"
      alcid advise events --count "user IN ('u7', 'u8')"
    """  # noqa: D301
    from alcid.cli.printing import print_json, print_lines
    from alcid.cli.progress import choose_progress

    advice = open_table(table, how).advise(
        [*where, *({"where": text, "count": True} for text in count)],
        columns=names("--column", column) if column else None,
        sample=sample,
        progress=choose_progress(quiet=quiet),
    )
    if as_json:
        print_json(advice.to_dict())
    else:
        print_lines(advice.to_text(_build_line(table, how, advice.options)))


def _build_line(table: str, how: Opening, options: Mapping[str, Any]) -> str:
    """The command to paste. Settings may be secrets: that there were some is all it says of them.

    >>> _build_line("my events", Opening(), {"file-index.bitmap.columns": "user,day"})
    "alcid build 'my events' --bitmap user,day"
    """
    words = ["alcid", "build", table]
    words += ["--spark"] if how.spark else []
    words += ["--conf", "..."] if how.conf else []
    words += ["--storage-option", "..."] if how.storage_option else []
    words += [] if how.index_path is None else ["--index-path", how.index_path]
    for key, columns in options.items():
        words += [f"--{key.split('.')[1]}", columns]
    return shlex.join(words)
