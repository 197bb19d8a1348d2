"""`alcid create`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import DryRun, Json, names, pairs
from alcid.errors import OptionError

if TYPE_CHECKING:
    from alcid.paimon_metadata.schema import TableSchema
    from alcid.types import DataType

__all__ = ["create"]


@dataclass(frozen=True, slots=True)
class _CreateReport:
    """The table that was made, or would be."""

    location: str
    schema: TableSchema
    dry_run: bool

    def __str__(self) -> str:
        from alcid.pictures.units import count_text

        schema = self.schema
        would = "would have " if self.dry_run else ""
        first = f"{would}created {self.location}: {count_text(len(schema.fields), 'column')}"
        if schema.primary_keys:
            first += f", primary key {', '.join(schema.primary_keys)}"
        if schema.partition_keys:
            first += f", partitioned by {', '.join(schema.partition_keys)}"
        types = (
            f"{one.name} {one.data_type}{'' if one.nullable else ' NOT NULL'}"
            for one in schema.fields
        )
        return "\n".join([first, *types])

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "dry_run": self.dry_run,
            "location": self.location,
            "columns": [
                {"name": one.name, "type": str(one.data_type), "nullable": one.nullable}
                for one in self.schema.fields
            ],
            "primary_key": list(self.schema.primary_keys),
            "partition_by": list(self.schema.partition_keys),
            "options": dict(self.schema.options),
        }


@command(Section.CHANGE)
def create(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="The folder of the new table.", show_default=False),
    ],
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="Its columns, with types as Paimon or Spark writes them: id BIGINT NOT NULL, name"
            " STRING.",
            show_default=False,
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A Parquet, ORC or Arrow file with its columns.",
            show_default=False,
        ),
    ] = None,
    primary_key: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN,...", help="The columns that tell rows apart.", show_default=False
        ),
    ] = [],  # noqa: B006 - typer copies it
    partition_by: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN,...",
            help="The columns whose values stand in the paths.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    option: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUE",
            help="A table option of Paimon, as bucket=4; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    storage_option: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUE",
            help="A key, an endpoint or such of an object store; may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Make a Paimon table without rows.

    \b
    Examples:
      alcid create people --schema "id BIGINT, name STRING" --primary-key id
      alcid create shop/items --like new.parquet --option file-index.bloom-filter.columns=id
    """  # noqa: D301
    from alcid.cli.printing import print_report
    from alcid.paimon_metadata.table_folder import TableFolder
    from alcid.storage import Storage
    from alcid.tables.paimon.creating import new_schema

    how = pairs("--storage-option", storage_option) or None
    made = new_schema(
        _columns(schema, like, how),
        names("--primary-key", primary_key) if primary_key else [],
        names("--partition-by", partition_by) if partition_by else [],
        pairs("--option", option),
    )
    storage = Storage.open(table, how)
    TableFolder(storage.rehearsal() if dry_run else storage).create(made)
    print_report(_CreateReport(storage.location, made, dry_run), as_json=as_json)


def _columns(
    schema: str | None, like: str | None, storage_options: dict[str, str] | None
) -> list[tuple[str, DataType, bool]]:
    from alcid.cli.column_definitions import parse_columns
    from alcid.cli.rows import file_schema
    from alcid.types import DataType

    if (schema is None) == (like is None):
        raise OptionError("expected --schema or --like, and not both")
    if schema is not None:
        return parse_columns(schema)
    assert like is not None
    found = file_schema(like, storage_options)
    return [(one.name, DataType.from_arrow(one.type), one.nullable) for one in found]
