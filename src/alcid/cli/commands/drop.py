"""`alcid drop`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import DryRun, Json, TableName, names
from alcid.cli.tables import Opening, open_table

if TYPE_CHECKING:
    from alcid.tables.build_report import IndexInfo

__all__ = ["drop"]


@dataclass(frozen=True, slots=True)
class _DropReport:
    """What was dropped, or would be."""

    files: int
    indexes: tuple[IndexInfo, ...]
    dry_run: bool

    def __str__(self) -> str:
        from alcid.bundle import Kind
        from alcid.pictures.units import count_text
        from alcid.tables.build_report import size_text

        if not self.indexes and not self.files:
            return "dropped nothing: there is no such index"
        what = count_text(len(self.indexes), "index")
        size = size_text(sum(info.bytes for info in self.indexes))
        would = "would have " if self.dry_run else ""
        first = f"{would}dropped {what} of {count_text(self.files, 'file')}, {size}"
        lines = (
            f"{Kind.index(info.column, info.index_type)}: {count_text(info.fresh, 'file')},"
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
    from alcid.bundle import Kind
    from alcid.cli.printing import print_report
    from alcid.options import find_column
    from alcid.tables.folder_indexes import is_among, require_choice

    columns = names("--column", column) if column else None
    types = names("--type", index_type) if index_type else None
    require_choice(columns, types)
    opened = open_table(table, how)
    infos = opened.indexes()
    indexed = [info.column for info in infos]
    for name in columns or ():
        if not any(is_among(Kind.index(one, "bitmap"), [name], None) for one in indexed):
            find_column(name, opened.schema.names)
    chosen = tuple(
        info for info in infos if is_among(Kind.index(info.column, info.index_type), columns, types)
    )
    files = opened.drop_indexes(columns, types, dry_run=dry_run)
    print_report(_DropReport(files, chosen, dry_run), as_json=as_json)
