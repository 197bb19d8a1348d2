"""ORDER BY: what it says, and rows in that order, as Spark would put them.

NaN is above every number, the two zeros are equal, text goes by its UTF-8 bytes. Rows that are
equal in all keys stay in the order of files and positions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int64Array, plain
from alcid.errors import PredicateError, UnsupportedError, require
from alcid.formats.file_index.keys import order_floats
from alcid.types import DataType

_KEY = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<name>[^\s,`]+))"
    r"(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?\s*(?P<more>,|$)",
    re.IGNORECASE,
)
_FEW = 1000
_UNORDERED = ("ARRAY", "MAP", "MULTISET", "ROW", "VARIANT", "BLOB")


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column to sort by."""

    column: str
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        direction = "DESC" if self.descending else "ASC"
        return f"{self.column} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


def parse_order(order_by: str | Sequence[str], what: str = "order_by") -> tuple[SortKey, ...]:
    """Read `score DESC, name ASC NULLS LAST`; names in backticks may hold anything.

    Without a word on nulls they come first if ascending, last if descending, as in Spark.

    Args:
        order_by: The text, or one for each column.
        what: What errors call it.

    Raises:
        PredicateError: It is no order.

    >>> [str(key) for key in parse_order("score DESC, `my name` NULLS LAST")]
    ['score DESC NULLS LAST', 'my name ASC NULLS LAST']
    """
    texts = [order_by] if isinstance(order_by, str) else list(order_by)
    keys: list[SortKey] = []
    for text in texts:
        require(text, str, what)
        start, more = 0, True
        while more:
            key = _KEY.match(text, start)
            if key is None:
                raise PredicateError(
                    f"{what}: found {text[start:].strip()!r}, expected a column (in backticks if it"
                    " has a space or a comma), ASC or DESC, NULLS FIRST or NULLS LAST"
                )
            quoted = key["quoted"]
            name = key["name"] if quoted is None else quoted.replace("``", "`")
            descending = (key["direction"] or "").upper() == "DESC"
            nulls = (key["nulls"] or ("LAST" if descending else "FIRST")).upper()
            keys.append(SortKey(name, descending, nulls == "FIRST"))
            start, more = key.end(), key["more"] == ","
    return tuple(keys)


def sort_indices(
    columns: Sequence[tuple[pa.ChunkedArray, DataType | None]], keys: Sequence[SortKey]
) -> Int64Array:
    """The indices that sort rows by keys, whose columns are passed in the same order."""
    arrays: dict[str, pa.Array] = {}
    order: list[tuple[str, str]] = []
    for number, ((column, data_type), key) in enumerate(zip(columns, keys, strict=True)):
        values = _comparable(column, data_type, key.column)
        if values.null_count:
            is_null = pc.is_null(values).cast(pa.int8())
            arrays[f"null{number}"] = is_null
            order.append((f"null{number}", "descending" if key.nulls_first else "ascending"))
        arrays[f"key{number}"] = values
        order.append((f"key{number}", "descending" if key.descending else "ascending"))
    rows = len(columns[0][0])
    arrays["row"] = pa.array(np.arange(rows))
    order.append(("row", "ascending"))
    indices = pc.sort_indices(pa.table(arrays), sort_keys=order)
    return indices.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def top_k_indices(
    columns: Sequence[tuple[pa.ChunkedArray, DataType | None]], keys: Sequence[SortKey], k: int
) -> Int64Array:
    """The first `k` of `sort_indices`, without sorting the others.

    Rows behind the k-th value of the first key, which a partial sort gives, are left out.
    """
    (column, data_type), key = columns[0], keys[0]
    if len(column) <= 4 * k + _FEW:
        return sort_indices(columns, keys)[:k]
    values = _comparable(column, data_type, key.column)
    is_null = pc.is_null(values).to_numpy(zero_copy_only=False)
    present = values.drop_null()
    enough = int(is_null.sum()) >= k if key.nulls_first else False
    keep = is_null.copy() if key.nulls_first else np.zeros(len(values), bool)
    if not enough:
        if len(present) <= k:
            return sort_indices(columns, keys)[:k]
        keep[~is_null] |= _not_behind(present, k, descending=key.descending)
    left = np.flatnonzero(keep)
    taken = [(array.take(pa.array(left)), kind) for array, kind in columns]
    return left[sort_indices(taken, keys)[:k]]


def _not_behind(values: pa.Array, k: int, *, descending: bool) -> BoolArray:
    """Which values are among the `k` best, or equal to the last of them."""
    if pa.types.is_integer(values.type):
        numbers = values.to_numpy()
        if descending:
            return np.asarray(numbers >= np.partition(numbers, len(numbers) - k)[len(numbers) - k])
        return np.asarray(numbers <= np.partition(numbers, k - 1)[k - 1])
    order = "descending" if descending else "ascending"
    best = pc.select_k_unstable(pa.table({"key": values}), k, sort_keys=[("key", order)])
    last = values[best[k - 1].as_py()]
    compare = pc.greater_equal if descending else pc.less_equal
    return compare(values, last).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _comparable(column: pa.ChunkedArray, data_type: DataType | None, name: str) -> pa.Array:
    """The column as values that Arrow orders as Spark does."""
    values = plain(column)
    root = "" if data_type is None else data_type.root
    if data_type is None or root in _UNORDERED:
        raise UnsupportedError(f"order_by: column {name}: rows are not ordered by {column.type}")
    if pa.types.is_null(values.type):
        return values.cast(pa.int8())
    if pa.types.is_floating(values.type):
        width = max(values.type.bit_width // 8, 4)
        numbers = values.cast(pa.float32() if width == 4 else pa.float64()).fill_null(0.0)
        ranks = order_floats(numbers.to_numpy())
        ranks = np.where(ranks == -1, 0, ranks)  # -0.0 comes just below 0.0, and equals it
        return pa.array(ranks, mask=pc.is_null(values).to_numpy(zero_copy_only=False))
    if root == "CHAR" and data_type.length:
        values = pc.utf8_rpad(values.cast(pa.large_string()), data_type.length)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return values.cast(pa.large_binary())
    if pa.types.is_boolean(values.type):
        return values.cast(pa.int8())
    return values
