"""Which rows have another value, by two indexes of the same column."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from alcid.byte_map.values import key_text
from alcid.cli.diff.report import Difference, compared
from alcid.formats.selection import Selection
from alcid.types import DataType

__all__ = ["RowValues", "compare_positions", "compare_rows"]


class RowValues(Protocol):
    """An index that tells the value of every row."""

    row_count: int

    def contents(self) -> tuple[npt.NDArray[np.uint32], Any]:
        """Every row that has a key, and the keys."""

    def is_null(self) -> Selection:
        """Rows without a value."""


def compare_rows(entry: str, a: RowValues, b: RowValues, data_type: DataType) -> list[Difference]:
    """The first value whose rows are not the same, and the first of these rows."""
    found = compared(entry, "rows", a.row_count, b.row_count)
    count = max(a.row_count, b.row_count)
    left, right = (_by_row(index, count) for index in (a, b))
    only_one = pc.xor(pc.is_valid(left), pc.is_valid(right))
    unequal = pc.or_(only_one, pc.fill_null(pc.not_equal(left, right), False))
    rows = np.flatnonzero(unequal.to_numpy(zero_copy_only=False))
    sides = (("A", left), ("B", right))
    pairs = [
        (key, row, side)
        for side, values in sides
        for key, row in zip(values.take(pa.array(rows)).to_pylist(), rows.tolist(), strict=True)
        if key is not None
    ]
    if pairs:
        key, row, side = min(pairs)
        shown = key_text(key, data_type)
        more = f"; {len(rows)} rows differ" if len(rows) > 1 else ""
        found.append(Difference(entry, "differs", f"value {shown}: row {row} only in {side}{more}"))
    nulls = (index.is_null().rows for index in (a, b))
    return found or compare_positions(entry, "null: row", *nulls)


def _by_row(index: RowValues, count: int) -> Any:
    """The key of each row, null without one."""
    rows, keys = index.contents()
    places = np.full(count, -1, np.int64)
    places[rows] = np.arange(len(rows))
    array = keys if isinstance(keys, pa.Array) else pa.array(keys)
    return array.take(pa.array(places, mask=places < 0))


def compare_positions(
    entry: str, what: str, a: BitMap | None, b: BitMap | None
) -> list[Difference]:
    """The first of the rows that only one of two sets has."""
    left, right = a or BitMap(), b or BitMap()
    different = left ^ right
    if not different:
        return []
    first = different[0]
    side = "A" if first in left else "B"
    more = f"; {len(different)} differ" if len(different) > 1 else ""
    return [Difference(entry, "differs", f"{what} {first} only in {side}{more}")]
