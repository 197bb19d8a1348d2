"""Commands on the indexes of a table: `build`, `drop`, `list` and `advise`."""

from __future__ import annotations

import shlex
import warnings
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import DryRun, Json, Quiet, TableName, names, pairs
from alcid.cli.tables import Opening, ReadOpening, open_table
from alcid.errors import AlcidWarning, ColumnError, OptionError, UnsupportedError
from alcid.index.bundle import PayloadKind

if TYPE_CHECKING:
    from alcid.cli.tables import AnyTable
    from alcid.tables.paimon_table import PaimonTable
    from alcid.tables.reports import IndexInfo

_COLUMNS = "COLUMN,..."


def _index_columns(index_type: str, use: str) -> Any:
    return typer.Option(
        f"--{index_type}", metavar=_COLUMNS, help=f"Columns for {use}.", show_default=False
    )


@command(Section.INDEX)
def build(
    table: TableName,
    how: Opening,
    bloom_filter: Annotated[
        list[str], _index_columns("bloom-filter", "a bloom filter: equality, many values")
    ] = [],  # noqa: B006 - typer copies it
    bitmap: Annotated[
        list[str], _index_columns("bitmap", "a bitmap: equality and nulls, few values")
    ] = [],  # noqa: B006
    range_bitmap: Annotated[
        list[str], _index_columns("range-bitmap", "a range bitmap: ranges and top-n")
    ] = [],  # noqa: B006
    bsi: Annotated[
        list[str], _index_columns("bsi", "a bit-sliced index: ranges of numbers and times")
    ] = [],  # noqa: B006
    option: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUE",
            help="One of Paimon's options, such as file-index.bloom-filter.id.fpp=0.01; may be"
            " repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Also rebuild existing indexes.")
    ] = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Build the indexes that files are missing.

    Without columns, this builds the indexes that the table already has, or those in the options of
    a Paimon table. A Paimon table loses all other indexes; other tables keep them. Put a column
    name with a comma in backticks.

    \b
    Examples:
      alcid build events --bloom-filter id --bitmap user,day
      alcid build orders --range-bitmap amount --dry-run
    """  # noqa: D301
    from alcid.cli.printing import choose_progress, print_report
    from alcid.tables.paimon_table import PaimonTable
    from alcid.tables.parquet_table import ParquetTable

    options = pairs("--option", option)
    requested = {
        "bloom-filter": bloom_filter,
        "bitmap": bitmap,
        "range-bitmap": range_bitmap,
        "bsi": bsi,
    }
    for index_type, columns in requested.items():
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
        report = opened.build_indexes(_options_of(opened.indexes()), **work)
    else:
        report = opened.build_indexes(**work)
    print_report(report, as_json=as_json)
    if options and isinstance(opened, PaimonTable):
        _warn_of_options(opened, options)


def _require_types(table: AnyTable, options: Mapping[str, str]) -> None:
    """Refuse a build if no requested index supports the type of its column."""
    from alcid.expressions.columns import Columns
    from alcid.options import parse_options

    problems, columns = [], Columns(table.schema)
    specs = parse_options(options)
    for spec in specs:
        try:
            spec.resolve(columns, columns.names)
        except UnsupportedError as error:
            problems.append(str(error))
        except ColumnError:  # the build reports it
            return
    if len(problems) == len(specs):
        others = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise OptionError(f"nothing to build: {problems[0]}{others}")


def _warn_of_options(table: PaimonTable, options: Mapping[str, str]) -> None:
    """Warn about indexes that are not in the options of the table, since they do not last."""
    from alcid.tables.paimon.indexes import given_specs, table_specs

    schema = table.snapshot.schema
    own = {(spec.column, spec.index_type) for spec in table_specs(schema)[0]}
    for spec in given_specs(schema, options):
        if (spec.column, spec.index_type) not in own:
            warnings.warn(
                f"{spec.index_type} of {spec.column!r} is not in the options of the table: new"
                " files will not have it, and a build without columns drops it",
                AlcidWarning,
                stacklevel=2,
            )


def _options_of(infos: list[IndexInfo]) -> dict[str, str]:
    """Options that request the existing indexes."""
    columns: dict[str, list[str]] = defaultdict(list)
    for info in infos:
        columns[f"file-index.{info.index_type}.columns"].append(info.column)
    if not columns:
        raise OptionError(
            "the table has no index: name one to build, as --bloom-filter id; alcid advise"
            " recommends them"
        )
    return {key: ",".join(names_) for key, names_ in columns.items()}


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
    """Remove indexes, by default all.

    \b
    Examples:
      alcid drop events --column user
      alcid drop events --type bsi --dry-run
    """  # noqa: D301
    from alcid.cli.printing import print_report
    from alcid.cli.reports import DropReport
    from alcid.options import find_column
    from alcid.tables.build import is_among, require_choice

    columns = names("--column", column) if column else None
    types = names("--type", index_type) if index_type else None
    require_choice(columns, types)
    opened = open_table(table, how)
    infos = opened.indexes()
    indexed = [info.column for info in infos]
    for name in columns or ():
        if not any(
            is_among(PayloadKind.index(indexed_column, "bitmap"), [name], None)
            for indexed_column in indexed
        ):
            find_column(name, opened.schema.names)
    chosen = tuple(
        info
        for info in infos
        if is_among(PayloadKind.index(info.column, info.index_type), columns, types)
    )
    files = opened.drop_indexes(columns, types, dry_run=dry_run)
    print_report(DropReport(dry_run, files, chosen), as_json=as_json)


_TITLES = ("COLUMN", "INDEX", "FRESH", "STALE", "ABSENT", "DAMAGED", "BYTES", "PER ROW")


@command(Section.INDEX, "list")
def list_indexes(table: TableName, how: ReadOpening, as_json: Json = False) -> None:
    """List the indexes of a table.

    For each index, prints how many files have it and its size. FRESH counts files whose index can
    be used, STALE those whose data has changed since. PER ROW is the bytes of the index per row.
    Indexes that Paimon maintains on primary keys are named pk-btree, pk-bitmap and so on; queries
    here do not use them.

    \b
    Examples:
      alcid list events
      alcid list orders --json
    """  # noqa: D301
    from alcid.cli.printing import print_json, print_lines

    opened = open_table(table, how)
    infos = [*opened.indexes(), *_key_indexes(opened)]
    if as_json:
        indexes = [info.to_dict() | {"bytes_per_row": info.bytes_per_row} for info in infos]
        print_json({"table": opened.location, "files": opened.files, "indexes": indexes})
        return
    files = f"{opened.files:,} file{'' if opened.files == 1 else 's'}"
    print_lines(f"{type(opened).__name__} {opened.location}: {files}")
    if not infos:
        print_lines("no index: alcid build creates them, alcid advise recommends which")
        return
    from alcid.cli.printing import aligned

    columns = zip(_TITLES, *map(_row, infos), strict=True)
    print_lines("\n".join(aligned(list(columns), range(2, len(_TITLES)))))


def _key_indexes(opened: AnyTable) -> list[IndexInfo]:
    """Indexes that Paimon maintains on the primary key."""
    from alcid.tables.paimon_table import PaimonTable

    return opened.key_indexes() if isinstance(opened, PaimonTable) else []


def _row(info: IndexInfo) -> tuple[str, ...]:
    counts = (info.fresh, info.stale, info.absent, info.damaged, info.bytes)
    per_row = "-" if info.bytes_per_row is None else f"{info.bytes_per_row:.2f}"
    return (info.column, info.index_type, *(f"{count:,}" for count in counts), per_row)


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
            help="An important query: a condition as after WHERE in Spark SQL, ORDER BY and LIMIT,"
            " or both. May be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    count: Annotated[
        list[str],
        typer.Option(
            metavar="PREDICATE",
            help="A query that only counts the matching rows; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    column: Annotated[
        list[str],
        typer.Option(metavar="COLUMN,...", help="Consider only these columns.", show_default="all"),
    ] = [],  # noqa: B006
    sample: Annotated[int, typer.Option(min=1, help="Read at most this many files.")] = 16,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Recommend an index for each column where one pays.

    The recommendation is based on a sample of the files, and on typical queries if none are given.
    Nothing is written; the last line is the command that builds the recommended indexes.

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
    """The build command to paste, with settings that may be secrets left out.

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
