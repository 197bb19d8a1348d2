"""Rows that a command puts into a table: the files are read here, or by Spark where it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias

import pyarrow as pa
import typer

from alcid.cli.options import pairs
from alcid.cli.rows import is_parquet, read_rows, require_parquet
from alcid.cli.tables import Opening
from alcid.options import match_column

if TYPE_CHECKING:
    from alcid.cli.tables import AnyTable

__all__ = ["Files", "WriteReport", "arrow_rows", "spark_rows"]

Files: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Files with the rows: .parquet, .orc, .arrow, .csv (with a head) or .jsonl (an object"
        " on each line); the last two also with .gz or .zst.",
        show_default=False,
    ),
]


class _Report(Protocol):
    @property
    def dry_run(self) -> bool: ...

    def to_dict(self) -> dict[str, Any]: ...


def arrow_rows(files: Sequence[str], table: AnyTable, how: Opening) -> pa.Table:
    """The rows, in the memory of this process."""
    return read_rows(files, table.schema, pairs("--storage-option", how.storage_option) or None)


def spark_rows(files: Sequence[str], table: AnyTable, how: Opening, session: Any) -> Any:
    """The rows as a DataFrame; what Spark cannot read as we do goes through this process."""
    if all(is_parquet(file) and "://" not in file for file in files):
        for file in files:
            require_parquet(file)
        return session.read.option("mergeSchema", True).parquet(*files)
    return session.createDataFrame(arrow_rows(files, table, how))


@dataclass(frozen=True, slots=True)
class WriteReport:
    """What a write did; a dry run also tells how the columns go together."""

    report: _Report
    given: tuple[str, ...]
    """The columns of the rows."""
    table: tuple[str, ...]
    """Those of the table."""

    @property
    def absent(self) -> list[str]:
        """Columns of the table that the rows do not have."""
        return [name for name in self.table if match_column(name, self.given) is None]

    def __str__(self) -> str:
        lines = [str(self.report)]
        if self.report.dry_run:
            lines.append(f"columns: {', '.join(self.given)}")
            lines += [f"not given: {', '.join(self.absent)}"] if self.absent else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        document = self.report.to_dict()
        if self.report.dry_run:
            document |= {"columns": list(self.given), "not_given": self.absent}
        return document
