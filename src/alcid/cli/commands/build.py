"""`alcid build`."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import DryRun, Json, Quiet, TableName, names, pairs
from alcid.cli.tables import Opening, open_table
from alcid.errors import AlcidWarning, ColumnError, OptionError, UnsupportedError

if TYPE_CHECKING:
    from alcid import PaimonTable
    from alcid.cli.tables import AnyTable
    from alcid.tables.build_report import IndexInfo

__all__ = ["build"]

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
    from alcid import PaimonTable, ParquetTable
    from alcid.cli.printing import print_report
    from alcid.cli.progress import choose_progress

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
    from alcid.columns import Columns
    from alcid.options import parse_options

    problems, columns = [], Columns(table.schema)
    specs = parse_options(options)
    for spec in specs:
        try:
            spec.resolve(columns)
        except UnsupportedError as error:
            problems.append(str(error))
        except ColumnError:  # which the build tells
            return
    if len(problems) == len(specs):
        others = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise OptionError(f"nothing to build: {problems[0]}{others}")


def _tell_of_options(table: PaimonTable, options: Mapping[str, str]) -> None:
    """Say which indexes the table does not ask for itself, as they do not last."""
    from alcid.tables.paimon.asked_indexes import given_specs, table_specs

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
