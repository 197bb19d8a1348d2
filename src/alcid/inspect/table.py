"""How notebooks show a table: its size, its columns, and the indexes that these have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from alcid._text import count_text, size_text
from alcid.inspect.page import Markup, element, table
from alcid.scan import TableFiles

if TYPE_CHECKING:
    from alcid.tables.base import Table
    from alcid.tables.reports import IndexInfo

__all__ = ["table_parts"]


def table_parts(shown: Table[Any], indexes: Sequence[IndexInfo]) -> list[Markup]:
    """The parts of a page about a table."""
    files = shown.snapshot
    counts = (
        count_text(len(files.sizes), "file"),
        _rows_text(files),
        size_text(int(files.sizes.sum())),
    )
    by_column: dict[str, list[str]] = {}
    for info in indexes:
        outer, key, _ = info.column.partition("[")  # a key of a map stands by the map
        kind, told = info.index_type, str(info).partition(": ")[2]
        by_column.setdefault(outer.lower(), []).append(
            f"{kind} of {info.column}: {told}" if key else f"{kind}: {told}"
        )
    partitions = set(files.columns.partitions)
    rows = [
        [
            element("code", name),
            str(column.data_type or "not known"),
            "; ".join(by_column.get(name.lower(), ["partition"] if name in partitions else [])),
        ]
        for name, column in files.columns.columns.items()
    ]
    return [
        element("p", ", ".join(counts)),
        table(["column", "type", "indexes"], rows),
    ]


def _rows_text(files: TableFiles) -> str:
    """How many rows there are; to count those that are deleted may take reading all files."""
    rows, deletions = int(files.rows.sum()), files.deletions
    if isinstance(deletions, dict):
        rows -= sum(map(len, deletions.values()))
    text = count_text(rows, "row")
    if getattr(files, "delegated_reason", "") or (deletions and not isinstance(deletions, dict)):
        return f"{text} with those that are deleted"
    return text
