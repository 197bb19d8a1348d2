"""`alcid build`.

`alcid drop`.

`alcid list`.

`alcid advise`.
"""

from __future__ import annotations

import shlex
import warnings
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import (
    DryRun,
    Json,
    Quiet,
    TableName,
    names,
    pairs,
)
from alcid.cli.tables import Opening, ReadOpening, open_table
from alcid.errors import (
    AlcidWarning,
    ColumnError,
    OptionError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from alcid.cli.tables import AnyTable
    from alcid.tables.paimon_table import PaimonTable
    from alcid.tables.reports import IndexInfo

__all__ = ["advise", "build", "drop", "list_indexes"]

_COLUMNS = "COLUMN,..."


def _columns(index_type: str, use: str) -> Any:
    return typer.Option(
        f"--{index_type}", metavar=_COLUMNS, help=f"Columns for {use}.", show_default=False
    )


@command(Section.INDEX)
def build(
    table: TableName,
    how: Opening,
    bloom_filter: Annotated[
        list[str], _columns("bloom-filter", "a bloom filter: equality, many values")
    ] = [],  # noqa: B006 - typer copies it
    bitmap: Annotated[
        list[str], _columns("bitmap", "a bitmap: equality and nulls, few values")
    ] = [],  # noqa: B006
    range_bitmap: Annotated[
        list[str],
        _columns("range-bitmap", "a range bitmap: ranges, the first rows of an order"),
    ] = [],  # noqa: B006
    bsi: Annotated[list[str], _columns("bsi", "bit slices: ranges of numbers and times")] = [],  # noqa: B006
    option: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUE",
            help="An option as Paimon names it, as file-index.bloom-filter.id.fpp=0.01; may be"
            " repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Build also what is there.")] = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Build the indexes that files lack.

    Without columns, those of the indexes that the table has, or that the options of a Paimon table
    ask for. A Paimon table loses the indexes that are not asked for; others keep them. A column
    whose name has a comma stands in backticks.

    \b
    Examples:
      alcid build events --bloom-filter id --bitmap user,day
      alcid build orders --range-bitmap amount --dry-run
    """  # noqa: D301
    from alcid.cli.printing import choose_progress, print_report
    from alcid.tables.paimon_table import PaimonTable
    from alcid.tables.parquet_table import ParquetTable

    options = pairs("--option", option)
    given = {
        "bloom-filter": bloom_filter,
        "bitmap": bitmap,
        "range-bitmap": range_bitmap,
        "bsi": bsi,
    }
    for index_type, columns in given.items():
        key = f"file-index.{index_type}.columns"
        if columns and key in options:
            raise OptionError(f"--{index_type}: {key} is given too, expected one of them")
        if columns:
            options[key] = ",".join(names(f"--{index_type}", columns))
    opened = open_table(table, how)
    work: dict[str, Any] = {
        "rebuild": rebuild,
        "dry_run": dry_run,
        "progress": choose_progress(quiet=quiet),
    }
    if options:
        _require_types(opened, options)
        report = opened.build_indexes(options, **work)
    elif isinstance(opened, ParquetTable):
        report = opened.build_indexes(_known(opened.indexes()), **work)
    else:
        report = opened.build_indexes(**work)
    print_report(report, as_json=as_json)
    if options and isinstance(opened, PaimonTable):
        _tell_of_options(opened, options)


def _require_types(table: AnyTable, options: Mapping[str, str]) -> None:
    """Refuse a build all of whose indexes do not take the types of their columns."""
    from alcid.expressions.columns import Columns
    from alcid.options import parse_options

    problems, columns = [], Columns(table.schema)
    specs = parse_options(options)
    for spec in specs:
        try:
            spec.resolve(columns, columns.names)
        except UnsupportedError as error:
            problems.append(str(error))
        except ColumnError:  # which the build tells
            return
    if len(problems) == len(specs):
        others = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise OptionError(f"nothing to build: {problems[0]}{others}")


def _tell_of_options(table: PaimonTable, options: Mapping[str, str]) -> None:
    """Say which indexes the table does not ask for itself, as they do not last."""
    from alcid.tables.paimon.write.index_plan import given_specs, table_specs

    schema = table.snapshot.schema
    own = {(spec.column, spec.index_type) for spec in table_specs(schema)[0]}
    for spec in given_specs(schema, options):
        if (spec.column, spec.index_type) not in own:
            warnings.warn(
                f"{spec.index_type} of {spec.column!r} is not among the options of the table: new"
                " files lack it, and a build without columns drops it",
                AlcidWarning,
                stacklevel=2,
            )


def _known(infos: list[IndexInfo]) -> dict[str, str]:
    """Options that ask for the indexes that there are."""
    columns: dict[str, list[str]] = defaultdict(list)
    for info in infos:
        columns[f"file-index.{info.index_type}.columns"].append(info.column)
    if not columns:
        raise OptionError(
            "the table has no index: say which to build, as --bloom-filter id; alcid advise says"
            " which pay"
        )
    return {key: ",".join(found) for key, found in columns.items()}


@dataclass(frozen=True, slots=True)
class _DropReport:
    """What was dropped, or would be."""

    files: int
    indexes: tuple[IndexInfo, ...]
    dry_run: bool

    def __str__(self) -> str:
        from alcid._text import count_text
        from alcid.index.bundle import PayloadKind
        from alcid.tables.reports import size_text

        if not self.indexes and not self.files:
            return "dropped nothing: there is no such index"
        what = count_text(len(self.indexes), "index")
        size = size_text(sum(info.bytes for info in self.indexes))
        would = "would have " if self.dry_run else ""
        first = f"{would}dropped {what} of {count_text(self.files, 'file')}, {size}"
        lines = (
            f"{PayloadKind.index(info.column, info.index_type)}: {count_text(info.fresh, 'file')},"
            f" {size_text(info.bytes)}"
            for info in self.indexes
        )
        return "\n".join([first, *lines])

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "dry_run": self.dry_run,
            "files": self.files,
            "indexes": [info.to_dict() for info in self.indexes],
        }


@command(Section.INDEX)
def drop(
    table: TableName,
    how: Opening,
    column: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN,...", help="Only indexes of these columns.", show_default=False
        ),
    ] = [],  # noqa: B006 - typer copies it
    index_type: Annotated[
        list[str],
        typer.Option(
            "--type",
            metavar="INDEX,...",
            help="Only bloom-filter, bitmap, range-bitmap or bsi.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Remove indexes; by default all.

    \b
    Examples:
      alcid drop events --column user
      alcid drop events --type bsi --dry-run
    """  # noqa: D301
    from alcid.cli.printing import print_report
    from alcid.index.bundle import PayloadKind
    from alcid.options import find_column
    from alcid.tables.build import is_among, require_choice

    columns = names("--column", column) if column else None
    types = names("--type", index_type) if index_type else None
    require_choice(columns, types)
    opened = open_table(table, how)
    infos = opened.indexes()
    indexed = [info.column for info in infos]
    for name in columns or ():
        if not any(is_among(PayloadKind.index(one, "bitmap"), [name], None) for one in indexed):
            find_column(name, opened.schema.names)
    chosen = tuple(
        info
        for info in infos
        if is_among(PayloadKind.index(info.column, info.index_type), columns, types)
    )
    files = opened.drop_indexes(columns, types, dry_run=dry_run)
    print_report(_DropReport(files, chosen, dry_run), as_json=as_json)


_TITLES = ("COLUMN", "INDEX", "FRESH", "STALE", "ABSENT", "DAMAGED", "BYTES", "PER ROW")


@command(Section.INDEX, "list")
def list_indexes(table: TableName, how: ReadOpening, as_json: Json = False) -> None:
    """List the indexes of a table.

    Each with how many of the files have it, and what it takes. FRESH are files whose index can be
    used; of STALE ones the data has changed since. PER ROW is bytes of the index for a row of its
    files. Indexes that Paimon's writers keep of a table with a primary key are called pk-btree,
    pk-bitmap and the like; queries here do without them.

    \b
    Examples:
      alcid list events
      alcid list orders --json
    """  # noqa: D301
    from alcid.cli.printing import print_json, print_lines

    opened = open_table(table, how)
    found = [*opened.indexes(), *_key_indexes(opened)]
    if as_json:
        indexes = [one.to_dict() | {"bytes_per_row": one.bytes_per_row} for one in found]
        print_json({"table": opened.location, "files": opened.files, "indexes": indexes})
        return
    files = f"{opened.files:,} file{'' if opened.files == 1 else 's'}"
    print_lines(f"{type(opened).__name__} {opened.location}: {files}")
    if not found:
        print_lines("no index: alcid build makes them, alcid advise says which")
        return
    from alcid.cli.printing import aligned

    columns = zip(_TITLES, *map(_row, found), strict=True)
    print_lines("\n".join(aligned(list(columns), range(2, len(_TITLES)))))


def _key_indexes(opened: AnyTable) -> list[IndexInfo]:
    """Indexes that Paimon keeps of a table with a primary key."""
    from alcid.tables.paimon_table import PaimonTable

    return opened.key_indexes() if isinstance(opened, PaimonTable) else []


def _row(info: IndexInfo) -> tuple[str, ...]:
    counts = (info.fresh, info.stale, info.absent, info.damaged, info.bytes)
    each = "-" if info.bytes_per_row is None else f"{info.bytes_per_row:.2f}"
    return (info.column, info.index_type, *(f"{count:,}" for count in counts), each)


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
    from alcid.cli.printing import choose_progress, print_json, print_lines

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
