"""Rows as a table to read."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from rich.cells import cell_len, set_cell_size

from alcid.cli.row_text import texts
from alcid.cli.text_table import aligned
from alcid.printable import printable

__all__ = ["table_lines"]

_WIDEST = 60  # characters of a cell, where there is an end to the width


def table_lines(rows: pa.Table, *, more: bool, width: int | None) -> list[str]:
    r"""The lines of a table, and how many rows there are.

    Args:
        rows: What is shown.
        more: Whether there are more.
        width: What must not be exceeded: columns that do not fit are left out. None on a pipe or in
            a file, which takes lines of any length.

    >>> rows = pa.table({"id": [7, 11], "name": ["ann", None]})
    >>> print(*table_lines(rows, more=False, width=None), sep="\n")
    id  name
     7  ann
    11  NULL
    (2 rows)
    """
    shown = list(_fitting(rows, width))
    numbers = [place for place, kind in enumerate(rows.schema.types) if _is_number(kind)]
    lines = aligned(shown, numbers)
    hidden = rows.num_columns - len(shown)
    if hidden:
        columns = f"{hidden} more column{'' if hidden == 1 else 's'}"
        lines.append(f"({columns}: --select chooses, --format json has all)")
    count = f"{len(rows):,} row{'' if len(rows) == 1 else 's'}"
    lines.append(f"({count}, and there are more: --limit 0 for all)" if more else f"({count})")
    return lines


def _fitting(rows: pa.Table, width: int | None) -> Iterator[list[str]]:
    """The columns with their names, the first of them in any case, as far as they fit."""
    used = 0
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        cells = [name, *("NULL" if text is None else text for text in texts(column))]
        cells = [printable(cell) for cell in cells]
        if width is not None:
            cells = [_cut(cell) for cell in cells]
            widest = max(map(cell_len, cells))
            if used and used + widest > width:
                return
            used += widest + 2
        yield cells


def _cut(cell: str) -> str:
    return cell if cell_len(cell) <= _WIDEST else f"{set_cell_size(cell, _WIDEST - 3)}..."


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return any((types.is_integer(kind), types.is_floating(kind), types.is_decimal(kind)))
