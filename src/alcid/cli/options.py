"""Arguments and options that several commands share, and parsers for their values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from alcid.errors import OptionError, StorageError

_SECRETS = ("--conf", "--storage-option")  # may hold one, so their values are not printed

File: TypeAlias = Annotated[
    str, typer.Argument(metavar="FILE", help="An index file.", show_default=False)
]
TableName: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A folder of Parquet files or of a Paimon table, as a path or a URI; or the"
        " catalog.db.table of an Iceberg table.",
        show_default=False,
    ),
]
Types: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="COLUMN=TYPE",
        help="The type of a column in Paimon's spelling; may be repeated. Files do not have types.",
        show_default=False,
    ),
]
Where: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="PREDICATE",
        help="A condition as after WHERE in Spark SQL.",
        show_default=False,
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Limit: TypeAlias = Annotated[
    int, typer.Option("--limit", min=0, help="Show at most this many entries of a list; 0 for all.")
]
Select: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="COLUMNS",
        help="Columns, separated by commas; put a name with a comma in backticks: 'id,`a, b`'.",
        show_default="all",
    ),
]
OrderBy: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--order-by",
        metavar="ORDER",
        help="As in SQL: 'score DESC NULLS LAST, id'; put a name with a space in backticks.",
        show_default="by file and position",
    ),
]
RowLimit: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=0,
        help="Print at most this many rows; 0 for all.",
        show_default="20 as a table, else all",
    ),
]
HtmlFile: TypeAlias = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="Write an HTML page that shows it.")
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Only report what would be done; write nothing.")
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", help="Do not report progress on stderr.")
]


class Format(StrEnum):
    """Output formats for rows."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


FormatName: TypeAlias = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="The output format; jsonl is one JSON object per line.",
        show_default="by the suffix of --output, else table",
    ),
]
OutputFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--output", metavar="FILE", help="Write the rows to this file and replace what is there."
    ),
]


def pairs(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """Parse repeated `key=value` options; a value may contain `=`.

    >>> pairs("--conf", ["spark.master=local[2]", "a=b=c"])
    {'spark.master': 'local[2]', 'a': 'b=c'}
    """
    values: dict[str, str] = {}
    for text in texts or ():
        key, separator, value = text.partition("=")
        if not separator or not key:
            shown = "something else" if option in _SECRETS else repr(text)
            raise OptionError(f"{option}: found {shown}, expected KEY=VALUE")
        if key in values:
            raise OptionError(f"{option}: {key} is given twice")
        values[key] = value
    return values


def names(option: str, texts: Iterable[str]) -> list[str]:
    """Parse repeated lists of names, separated by commas outside of `[...]` and backticks.

    >>> names("--select", ["id, tags[a,b]", "`odd, name`"])
    ['id', 'tags[a,b]', 'odd, name']
    """
    parsed: list[str] = []
    for text in texts:
        word, closing = "", ""
        for letter in f"{text},":
            if letter == "," and not closing:
                parsed.append(word.strip())
                word = ""
                continue
            if closing:
                closing = "" if letter == closing else closing
            else:
                closing = {"[": "]", "`": "`"}.get(letter, "")
            word += letter if letter != "`" else ""
    if not all(parsed):
        raise OptionError(
            f"{option}: found {','.join(texts)!r}, expected names, separated by commas"
        )
    return parsed


def require_writable(option: str, output: str | None) -> None:
    """Make sure that an output file can be written before anything is read.

    Raises:
        StorageError: Its folder does not exist, or it is a folder itself.
    """
    if output is None:
        return
    if not Path(output).parent.is_dir():
        raise StorageError(f"no such folder, for {option} {output}", file=str(Path(output).parent))
    if Path(output).is_dir():
        raise StorageError(f"a folder, expected a file for {option}", file=output)


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

OlderThan: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="AGE",
        help="Leave younger files alone, since somebody may still be writing them: 90s, 30m, 12h,"
        " 1d or 2w.",
    ),
]


def parse_age(text: str) -> timedelta:
    """Parse an age with its unit.

    >>> parse_age("12h")
    datetime.timedelta(seconds=43200)
    """
    match = re.fullmatch(r"(\d{1,9})([smhdw])", text.strip())
    if match is None:
        raise OptionError(f"--older-than: found {text!r}, expected a number and a unit, as 12h")
    try:
        return timedelta(**{_UNITS[match[2]]: int(match[1])})
    except OverflowError:
        raise OptionError(f"--older-than: found {text!r}, expected less") from None
