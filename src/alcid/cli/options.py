"""Arguments and options that several commands have.

How old files must be before a command removes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from alcid.errors import OptionError, StorageError

__all__ = [
    "DryRun",
    "File",
    "Format",
    "FormatName",
    "HtmlFile",
    "Json",
    "Limit",
    "MostRows",
    "OlderThan",
    "OrderBy",
    "OutputFile",
    "Quiet",
    "Select",
    "TableName",
    "Types",
    "Where",
    "names",
    "pairs",
    "parse_age",
    "require_place",
]

_SECRETS = ("--conf", "--storage-option")  # what may hold one is not shown

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
        help="The type of a column, as Paimon writes it; may be repeated. Files do not hold types.",
        show_default=False,
    ),
]
Where: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="PREDICATE",
        help="What may stand behind WHERE in Spark's SQL.",
        show_default=False,
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Limit: TypeAlias = Annotated[
    int, typer.Option("--limit", min=0, help="Show at most so many of a list; 0 for all of them.")
]
Select: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="COLUMNS",
        help="Columns with commas between; a name that has a comma in backticks: 'id,`a, b`'.",
        show_default="all",
    ),
]
OrderBy: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--order-by",
        metavar="ORDER",
        help="As in SQL: 'score DESC NULLS LAST, id'; a name with a space in backticks.",
        show_default="by file and position",
    ),
]
MostRows: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=0,
        help="How many rows at most; 0 for all.",
        show_default="20 as a table, else all",
    ),
]
HtmlFile: TypeAlias = Annotated[
    str | None,
    typer.Option("--html", metavar="FILE", help="Write a page that shows it."),
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Only say what would be done; nothing is written.")
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", help="Do not tell on stderr how far it is.")
]


class Format(StrEnum):
    """What rows can be written as."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


FormatName: TypeAlias = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="What rows are written as; jsonl is one JSON object on each line.",
        show_default="as the name of --output ends; table without one",
    ),
]
OutputFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--output", metavar="FILE", help="A file for the rows; what is there is replaced."
    ),
]


def pairs(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """What was given as `key=value`, one or more times; a value may hold `=`.

    >>> pairs("--conf", ["spark.master=local[2]", "a=b=c"])
    {'spark.master': 'local[2]', 'a': 'b=c'}
    """
    found: dict[str, str] = {}
    for text in texts or ():
        key, separator, value = text.partition("=")
        if not separator or not key:
            found_text = "something else" if option in _SECRETS else repr(text)
            raise OptionError(f"{option}: found {found_text}, expected KEY=VALUE")
        if key in found:
            raise OptionError(f"{option}: {key} is given twice")
        found[key] = value
    return found


def names(option: str, texts: Iterable[str]) -> list[str]:
    """Names with commas between, one or more times; `[...]` and backticks may hold commas.

    >>> names("--select", ["id, tags[a,b]", "`odd, name`"])
    ['id', 'tags[a,b]', 'odd, name']
    """
    found: list[str] = []
    for text in texts:
        word, closing = "", ""
        for letter in f"{text},":
            if letter == "," and not closing:
                found.append(word.strip())
                word = ""
                continue
            if closing:
                closing = "" if letter == closing else closing
            else:
                closing = {"[": "]", "`": "`"}.get(letter, "")
            word += letter if letter != "`" else ""
    if not all(found):
        raise OptionError(
            f"{option}: found {','.join(texts)!r}, expected names with commas between"
        )
    return found


def require_place(option: str, output: str | None) -> None:
    """Make sure, before anything is read, that a file can be written there.

    Raises:
        StorageError: There is no such folder, or it is one itself.
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
        help="What is younger is left alone, as somebody may be writing it: 90s, 30m, 12h, 1d"
        " or 2w.",
    ),
]


def parse_age(text: str) -> timedelta:
    """A time span with its unit.

    >>> parse_age("12h")
    datetime.timedelta(seconds=43200)
    """
    found = re.fullmatch(r"(\d{1,9})([smhdw])", text.strip())
    if found is None:
        raise OptionError(f"--older-than: found {text!r}, expected a number and a unit, as 12h")
    try:
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        raise OptionError(f"--older-than: found {text!r}, expected less") from None
