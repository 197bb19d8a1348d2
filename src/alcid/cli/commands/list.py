"""`alcid list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alcid.cli.app import Section, command
from alcid.cli.options import Json, TableName
from alcid.cli.tables import ReadOpening, open_table

if TYPE_CHECKING:
    from alcid.cli.tables import AnyTable
    from alcid.tables.build_report import IndexInfo

__all__ = ["list_indexes"]

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
    from alcid.cli.text_table import aligned

    columns = zip(_TITLES, *map(_row, found), strict=True)
    print_lines("\n".join(aligned(list(columns), range(2, len(_TITLES)))))


def _key_indexes(opened: AnyTable) -> list[IndexInfo]:
    """Indexes that Paimon keeps of a table with a primary key."""
    from alcid.tables.paimon.table import PaimonTable

    return opened.key_indexes() if isinstance(opened, PaimonTable) else []


def _row(info: IndexInfo) -> tuple[str, ...]:
    counts = (info.fresh, info.stale, info.absent, info.damaged, info.bytes)
    each = "-" if info.bytes_per_row is None else f"{info.bytes_per_row:.2f}"
    return (info.column, info.index_type, *(f"{count:,}" for count in counts), each)
