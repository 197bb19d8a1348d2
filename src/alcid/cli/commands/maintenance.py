"""`alcid verify`.

`alcid repair`.

`alcid clean`.

`alcid compact`.

`alcid stats`.

What `alcid stats` counted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import pyarrow as pa
import typer

from alcid._text import count_text
from alcid.cli.app import Section, command
from alcid.cli.options import (
    DryRun,
    Json,
    OlderThan,
    Quiet,
    TableName,
    names,
    pairs,
    parse_age,
)
from alcid.cli.tables import Opening, open_table
from alcid.errors import LiteralError
from alcid.options import find_column

__all__ = ["CountedColumn", "StatsReport", "clean", "compact", "repair", "stats", "verify"]


@command(Section.INDEX)
def verify(
    table: TableName,
    how: Opening,
    sample: Annotated[
        float, typer.Option(min=0, max=1, help="The share of files to look at.")
    ] = 1.0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Compare the indexes of a table with its data.

    Its files are read, and compared with all that is kept of them. The status is 1 if an index
    hides a row or gives a wrong one, or if something is damaged. One that is stale or missing makes
    queries slower, and not wrong.

    \b
    Examples:
      alcid verify events
      alcid verify orders --sample 0.1 --json
    """  # noqa: D301
    from alcid.cli.printing import choose_progress, print_report

    report = open_table(table, how).verify(sample, progress=choose_progress(quiet=quiet))
    print_report(report, as_json=as_json)
    if not report.ok:
        raise typer.Exit(1)


@command(Section.CHANGE)
def repair(
    table: TableName,
    how: Opening,
    older_than: OlderThan = "1d",
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Mend what verify finds, and say what cannot be mended.

    Deletion vectors, keys that are live twice, indexes and statistics are put right, as far as
    nothing is lost by it; then leftovers are removed, as by clean. The status is 1 if something is
    still wrong.

    \b
    Examples:
      alcid repair orders --dry-run
      alcid repair users --older-than 12h --json
    """  # noqa: D301
    from alcid.cli.printing import choose_progress, print_report

    age = parse_age(older_than)
    report = open_table(table, how).repair(
        age, dry_run=dry_run, progress=choose_progress(quiet=quiet)
    )
    print_report(report, as_json=as_json)
    if not report.ok:
        raise typer.Exit(1)


@command(Section.CHANGE)
def clean(
    table: TableName,
    how: Opening,
    older_than: OlderThan = "1d",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Remove what killed work has left.

    Small bundles of indexes of a Parquet folder are merged, too.

    \b
    Examples:
      alcid clean events --older-than 12h --dry-run
    """  # noqa: D301
    from alcid.cli.printing import print_report

    age = parse_age(older_than)
    print_report(open_table(table, how).clean(age, dry_run=dry_run), as_json=as_json)


@command(Section.CHANGE)
def compact(
    table: TableName,
    how: Opening,
    partition: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Only partitions with this value; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Merge the files of each bucket, of a table with a primary key.

    It is for Paimon tables. Rows that were deleted are gone from the files then.

    \b
    Examples:
      alcid compact users --dry-run
    """  # noqa: D301
    from alcid.cli.printing import choose_progress, print_report
    from alcid.cli.tables import require_paimon

    opened = require_paimon(open_table(table, how), "compact")
    given = pairs("--partition", partition)
    values = {name: _value(text, opened.schema, name) for name, text in given.items()}
    report = opened.compact(values or None, dry_run=dry_run, progress=choose_progress(quiet=quiet))
    print_report(report, as_json=as_json)


def _value(text: str, schema: pa.Schema, name: str) -> Any:
    """A value of a column, from its text."""
    kind = schema.field(find_column(name, schema.names)).type
    try:
        return pa.scalar(text).cast(kind).as_py()
    except pa.ArrowException:
        raise LiteralError(f"--partition {name}: found {text!r}, expected {kind}") from None


@command(Section.CHANGE)
def stats(
    table: TableName,
    how: Opening,
    column: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN,...",
            help="Only these columns; by default all that can be counted.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - typer copies it
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Count the distinct values of columns.

    They are kept as sketches, in a Puffin file, and engines that read the table plan by them. Empty
    texts are not counted, as everywhere with these sketches. What was kept of other columns is
    replaced, so give all that are to be known.

    \b
    Examples:
      alcid stats events
      alcid stats lake.shop.orders --column user,day
    """  # noqa: D301
    from alcid.cli.printing import choose_progress, print_report
    from alcid.tables.statistics import countable

    columns = names("--column", column) if column else None
    opened = open_table(table, how)
    if dry_run:
        found = countable(opened.snapshot, columns)
        every = [CountedColumn(name, str(kind)) for name, kind in found.items()]
        report = StatsReport(opened.count(), opened.files, tuple(every), dry_run=True)
    else:
        counted = opened.compute_stats(columns, progress=choose_progress(quiet=quiet))
        report = StatsReport.of(counted, opened.files)
    print_report(report, as_json=as_json)


_SHOWN = "column", "type", "ndv", "nulls"


@dataclass(frozen=True, slots=True)
class CountedColumn:
    """What was counted of a column; None of a dry run.

    >>> print(CountedColumn("id", "BIGINT", 40_000, 3))
    id BIGINT: 40,000 distinct values, 3 nulls
    >>> print(CountedColumn("id", "BIGINT"))
    id BIGINT
    """

    column: str
    type: str
    ndv: int | None = None
    nulls: int | None = None

    def __str__(self) -> str:
        name = f"{self.column} {self.type}"
        if self.ndv is None:
            return name
        nulls = f", {count_text(self.nulls, 'null')}" if self.nulls else ""
        return f"{name}: {count_text(self.ndv, 'distinct value')}{nulls}"


@dataclass(frozen=True, slots=True)
class StatsReport:
    """What was counted, or would be.

    >>> print(StatsReport(1000, 4, (CountedColumn("id", "INT"),), dry_run=True))
    would have counted 1 column of 1,000 rows in 4 files
    id INT
    """

    rows: int
    files: int
    columns: tuple[CountedColumn, ...]
    dry_run: bool = False

    @classmethod
    def of(cls, counted: pa.Table, files: int) -> StatsReport:
        """From what `compute_stats` gives, which tells the rows with each column."""
        every = counted.to_pylist()
        return cls(
            every[0]["rows"] if every else 0,
            files,
            tuple(CountedColumn(*(one[key] for key in _SHOWN)) for one in every),
        )

    def __str__(self) -> str:
        would = "would have " if self.dry_run else ""
        where = f"{count_text(self.rows, 'row')} in {count_text(self.files, 'file')}"
        first = f"{would}counted {count_text(len(self.columns), 'column')} of {where}"
        return "\n".join([first, *map(str, self.columns)])

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)
