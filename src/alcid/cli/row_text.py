"""Columns of rows as texts, for tables and CSV, and as values for JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from alcid.byte_map.values import not_finite
from alcid.cli.printing import plain

__all__ = ["json_values", "texts"]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_ZONE = "(Z|[+-][0-9:]+)?$"
_ZEROS = ((rf"\.0+{_ZONE}", r"\1"), (rf"(\.[0-9]*[1-9])0+{_ZONE}", r"\1\2"))


def texts(column: pa.ChunkedArray) -> list[str | None]:
    """Each value as a text on its own, None for null.

    >>> texts(pa.chunked_array([[1.5, None, float("nan")]]))
    ['1.5', None, 'NaN']
    >>> texts(pa.chunked_array([[{"a": [1]}, None]]))
    ['{"a": [1]}', None]
    """
    is_nested = types.is_nested(column.type)
    return [
        None if value is None else _text(value, is_nested=is_nested)
        for value in json_values(column)
    ]


def _text(value: Any, *, is_nested: bool) -> str:
    if is_nested:
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)


def json_values(column: pa.ChunkedArray) -> list[Any]:
    """Each value as JSON has it: times and decimals are texts, bytes are hexadecimal.

    Of a key that a map has twice, the last value counts.

    >>> from datetime import datetime
    >>> json_values(pa.chunked_array([[datetime(2025, 8, 1, 12, 0, 0, 500_000)]]))
    ['2025-08-01 12:00:00.5']
    >>> json_values(pa.chunked_array([[[(7, 0.5)], None]], pa.map_(pa.int32(), pa.float32())))
    [{'7': 0.5}, None]
    """
    return [value for chunk in column.chunks for value in _values(chunk)]


def _values(array: pa.Array) -> list[Any]:
    """Of what is nested its parts first: Python's own times and maps do not hold all of Arrow's."""
    kind = array.type
    if types.is_dictionary(kind):
        return _values(array.dictionary_decode())
    if types.is_struct(kind):
        return _structs(array)
    if types.is_nested(kind):
        return _lists(array)
    if types.is_duration(kind):
        units = array.cast(pa.int64()).to_pylist()
        return [None if one is None else one / _PER_SECOND[kind.unit] for one in units]
    if types.is_temporal(kind):
        return _times(array)
    if types.is_decimal(kind):
        return array.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]
    if types.is_float32(kind) or types.is_float16(kind):
        return [None if one is None else _narrow(one) for one in array.to_pylist()]
    return [plain(value) for value in array.to_pylist()]


def _structs(array: pa.StructArray) -> list[Any]:
    names = [field.name for field in array.type]
    columns = [_values(part) for part in array.flatten()]
    every = zip(*columns, strict=True) if columns else [()] * len(array)
    return [
        dict(zip(names, values, strict=True)) if is_there else None
        for values, is_there in zip(every, array.is_valid().to_pylist(), strict=True)
    ]


def _lists(array: Any) -> list[Any]:
    """Lists of any kind, and maps."""
    kind = array.type
    if not (types.is_map(kind) or types.is_list(kind) or types.is_large_list(kind)):
        array = array.cast(pa.large_list(kind.value_type))
    ends = array.offsets.to_numpy()
    first, count = int(ends[0]), int(ends[-1] - ends[0])
    ends = (ends - first).tolist()
    if types.is_map(kind):
        keys = [_key(key) for key in _values(array.keys.slice(first, count))]
        items = list(zip(keys, _values(array.items.slice(first, count)), strict=True))
        found: list[Any] = [dict(items[ends[at] : ends[at + 1]]) for at in range(len(array))]
    else:
        values = _values(array.values.slice(first, count))
        found = [values[ends[at] : ends[at + 1]] for at in range(len(array))]
    is_valid = array.is_valid().to_pylist()
    return [one if is_there else None for one, is_there in zip(found, is_valid, strict=True)]


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def _times(array: pa.Array) -> list[Any]:
    """As SQL writes them: Python's own have microseconds, and end with the year 9999."""
    found = array.cast(pa.string())
    for pattern, replacement in _ZEROS:
        found = pc.replace_substring_regex(found, pattern=pattern, replacement=replacement)
    return found.to_pylist()  # type: ignore[no-any-return]


def _narrow(value: float) -> float | str:
    """The shortest digits of narrow floats: 0.1, not 0.10000000149011612."""
    return float(str(np.float32(value))) if np.isfinite(value) else not_finite(value)
