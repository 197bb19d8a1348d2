"""Rows of CSV and of JSON lines, in the types of the table that they are for.

A moment without a zone, in a column of moments, is one of the time zone of `alcid.options`, as in
predicates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, types
from pyarrow import json as arrow_json

from alcid.errors import UnsupportedError
from alcid.options import current_settings, match_column

__all__ = ["read_csv", "read_json_lines"]

_ZONE = r":\d\d(\.\d+)?\s*(Z|[+-]\d\d(:?\d\d)?)$"
_EPOCH_DAY = "1970-01-01"


def read_csv(content: bytes, table: pa.Schema) -> pa.Table:
    r"""Rows below a head; a field without anything is null, one of two quotes the empty text.

    >>> columns = pa.schema([("id", pa.int64()), ("name", pa.string())])
    >>> read_csv(b'id,name\n007,\n8,""\n', columns).to_pylist()
    [{'id': 7, 'name': None}, {'id': 8, 'name': ''}]
    """
    names = csv.open_csv(pa.BufferReader(content)).schema.names
    wanted = _types(names, table)
    for name, kind in wanted.items():
        if types.is_nested(kind):
            raise UnsupportedError(f"column {name}: CSV does not hold {kind}: give JSON or Parquet")
    moments = {name: kind for name, kind in wanted.items() if _is_moment(kind)}
    how = csv.ConvertOptions(
        column_types=wanted | dict.fromkeys(moments, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return _with_texts(csv.read_csv(pa.BufferReader(content), convert_options=how), moments)


def read_json_lines(content: bytes, table: pa.Schema) -> pa.Table:
    r"""Rows of which each is an object on a line of its own.

    >>> columns = pa.schema([("day", pa.date32()), ("tags", pa.map_(pa.string(), pa.int32()))])
    >>> read_json_lines(b'{"day": "2025-08-01", "tags": {"a": 1}}\n', columns).to_pylist()
    [{'day': datetime.date(2025, 8, 1), 'tags': [('a', 1)]}]
    """
    names = arrow_json.read_json(pa.BufferReader(content)).schema.names
    wanted = _types(names, table)
    maps = {name: kind for name, kind in wanted.items() if _has_map(kind)}
    texts = {name: kind for name, kind in wanted.items() if _is_moment(kind) or _is_time(kind)}
    plain = {name: kind for name, kind in wanted.items() if name not in maps}
    how = arrow_json.ParseOptions(
        explicit_schema=pa.schema(list((plain | dict.fromkeys(texts, pa.string())).items()))
    )
    rows = arrow_json.read_json(pa.BufferReader(content), parse_options=how)
    if maps:  # which Arrow does not read
        lines = [json.loads(line) for line in content.splitlines() if line.strip()]
        for name, kind in maps.items():
            values = pa.array([_as_pairs(line.get(name), kind) for line in lines], kind)
            rows = rows.set_column(rows.schema.names.index(name), name, values)
    return _with_texts(rows, texts)


def _types(names: Sequence[str], table: pa.Schema) -> dict[str, Any]:
    """The types of those columns of a file that the table has."""
    found = {name: match_column(name, table.names) for name in names}
    return {name: table.field(own).type for name, own in found.items() if own is not None}


def _is_moment(kind: Any) -> bool:
    return bool(types.is_timestamp(kind)) and kind.tz is not None


def _is_time(kind: Any) -> bool:
    return bool(types.is_date(kind) or types.is_time(kind))


def _has_map(kind: Any) -> bool:
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    return bool(types.is_map(kind)) or any(map(_has_map, inner))


def _as_pairs(value: Any, kind: Any) -> Any:
    """A value of JSON with maps as Arrow takes them; what is no map is left for it to refuse."""
    if types.is_map(kind) and isinstance(value, dict):
        return [(key, _as_pairs(item, kind.item_type)) for key, item in value.items()]
    if types.is_list(kind) and isinstance(value, list):
        return [_as_pairs(item, kind.value_type) for item in value]
    if types.is_struct(kind) and isinstance(value, dict):
        return {field.name: _as_pairs(value.get(field.name), field.type) for field in kind}
    return value


def _with_texts(rows: pa.Table, wanted: Mapping[str, Any]) -> pa.Table:
    """The rows with values in place of the texts of some columns."""
    for name, kind in wanted.items():
        place = rows.schema.names.index(name)
        try:
            values = _from_text(rows.column(place), kind)
        except pa.ArrowException as error:
            raise UnsupportedError(f"column {name}: {str(error).splitlines()[0]}") from None
        rows = rows.set_column(place, name, values)
    return rows


def _from_text(texts: pa.ChunkedArray, kind: Any) -> pa.ChunkedArray:
    if types.is_time(kind):
        moments = pc.binary_join_element_wise(_EPOCH_DAY, texts, " ")
        return moments.cast(pa.timestamp("ns")).cast(kind)
    if not _is_moment(kind):
        return texts.cast(kind)
    has_zone = pc.match_substring_regex(texts, _ZONE)
    nothing = pa.scalar(None, pa.string())
    local = pc.if_else(has_zone, nothing, texts).cast(pa.timestamp(kind.unit))
    local = pc.assume_timezone(
        local, current_settings().timezone, ambiguous="earliest", nonexistent="latest"
    )
    return pc.coalesce(pc.if_else(has_zone, texts, nothing).cast(kind), local.cast(kind))
