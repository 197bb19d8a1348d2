"""Write the rows of a query to stdout or a file: as a table, JSON, JSON lines, CSV or Parquet."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from rich.cells import cell_len, set_cell_size

from alcid._text import printable
from alcid.cli.options import Format
from alcid.cli.printing import aligned, plain
from alcid.errors import OptionError
from alcid.inspect.byte_map.regions import not_finite

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_ZONE = "(Z|[+-][0-9:]+)?$"
_ZEROS = ((rf"\.0+{_ZONE}", r"\1"), (rf"(\.[0-9]*[1-9])0+{_ZONE}", r"\1\2"))


def texts(column: pa.ChunkedArray) -> list[str | None]:
    """Each value as text, None for null.

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
    """Each value as JSON: times and decimals as text, bytes as hexadecimal digits.

    Of a key that a map has twice, the last value counts.

    >>> from datetime import datetime
    >>> json_values(pa.chunked_array([[datetime(2025, 8, 1, 12, 0, 0, 500_000)]]))
    ['2025-08-01 12:00:00.5']
    >>> json_values(pa.chunked_array([[[(7, 0.5)], None]], pa.map_(pa.int32(), pa.float32())))
    [{'7': 0.5}, None]
    """
    return [value for chunk in column.chunks for value in _values(chunk)]


def _values(array: pa.Array) -> list[Any]:
    """Convert nested values from inside: Python's times and maps cannot hold all of Arrow's."""
    kind = array.type
    if types.is_dictionary(kind):
        return _values(array.dictionary_decode())
    if types.is_struct(kind):
        return _structs(array)
    if types.is_nested(kind):
        return _lists(array)
    if types.is_duration(kind):
        units = array.cast(pa.int64()).to_pylist()
        return [None if value is None else value / _PER_SECOND[kind.unit] for value in units]
    if types.is_temporal(kind):
        return _times(array)
    if types.is_decimal(kind):
        return array.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]
    if types.is_float32(kind) or types.is_float16(kind):
        return [None if value is None else _narrow(value) for value in array.to_pylist()]
    return [plain(value) for value in array.to_pylist()]


def _structs(array: pa.StructArray) -> list[Any]:
    names = [field.name for field in array.type]
    columns = [_values(part) for part in array.flatten()]
    rows = zip(*columns, strict=True) if columns else [()] * len(array)
    return [
        dict(zip(names, values, strict=True)) if is_valid else None
        for values, is_valid in zip(rows, array.is_valid().to_pylist(), strict=True)
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
        lists: list[Any] = [dict(items[ends[at] : ends[at + 1]]) for at in range(len(array))]
    else:
        values = _values(array.values.slice(first, count))
        lists = [values[ends[at] : ends[at + 1]] for at in range(len(array))]
    is_valid = array.is_valid().to_pylist()
    return [value if is_set else None for value, is_set in zip(lists, is_valid, strict=True)]


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def _times(array: pa.Array) -> list[Any]:
    """Times in SQL's notation: Python's have only microseconds, and end with the year 9999."""
    formatted = array.cast(pa.string())
    for pattern, replacement in _ZEROS:
        formatted = pc.replace_substring_regex(formatted, pattern=pattern, replacement=replacement)
    return formatted.to_pylist()  # type: ignore[no-any-return]


def _narrow(value: float) -> float | str:
    """The shortest digits of narrow floats: 0.1, not 0.10000000149011612."""
    return float(str(np.float32(value))) if np.isfinite(value) else not_finite(value)


_BATCH = 10_000
_ENDINGS = {"": Format.TABLE, ".txt": Format.TABLE} | {
    f".{form}": form for form in Format if form is not Format.TABLE
}


def choose_format(requested: Format | None, *, as_json: bool, output: str | None) -> Format:
    """The format: the requested one, else that of the file suffix, else a table.

    Raises:
        OptionError: Two formats, an unknown suffix, or Parquet on a terminal.

    >>> choose_format(None, as_json=False, output="rows.csv")
    <Format.CSV: 'csv'>
    """
    if as_json and requested not in (None, Format.JSON):
        raise OptionError(f"--json and --format {requested}: found both, expected one of them")
    suffix = Path(output or "").suffix.lower()
    chosen = Format.JSON if as_json else requested or _ENDINGS.get(suffix)
    if chosen is None:
        suffixes = ", ".join(filter(None, _ENDINGS))
        raise OptionError(
            f"--output: found a name that ends in {suffix}, expected {suffixes}; or give --format"
        )
    if chosen is Format.PARQUET and output is None and sys.stdout.isatty():
        raise OptionError("--format parquet: a terminal cannot show it; give --output FILE")
    return chosen


def write_rows(rows: pa.Table, form: Format, output: str | None, *, more: bool = False) -> None:
    """Write rows to a file, which is replaced, or to stdout.

    A table mentions at its end if there are more rows.

    Raises:
        OptionError: Two columns of the same name, which JSON cannot represent.
    """
    if form in (Format.JSON, Format.JSONL):
        _require_names(rows)
    with _opened(output) as stream:
        match form:
            case Format.TABLE:
                is_wide = output is not None or not sys.stdout.isatty()
                width = None if is_wide else get_terminal_size().columns
                encoding = "utf-8" if output is not None else sys.stdout.encoding or "utf-8"
                lines = table_lines(rows, more=more, width=width)
                stream.writelines(
                    f"{line}\n".encode(encoding, "backslashreplace") for line in lines
                )
            case Format.JSON:
                stream.write(b'{"rows": [')
                stream.writelines(
                    b", " * bool(number) + row for number, row in enumerate(_json_rows(rows))
                )
                stream.write(b'], "count": %d}\n' % len(rows))
            case Format.JSONL:
                stream.writelines(line + b"\n" for line in _json_rows(rows))
            case Format.CSV:
                _write_csv(stream, rows)
            case Format.PARQUET:
                from pyarrow import parquet

                parquet.write_table(rows, stream)
        stream.flush()  # here, where a closed pipe is handled


@contextmanager
def _opened(output: str | None) -> Iterator[BinaryIO]:
    if output is not None:
        with Path(output).open("wb") as file:
            yield file
        return
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is not None:
        yield buffer
        return
    from io import BytesIO

    memory = BytesIO()  # stdout is a text buffer
    yield memory
    sys.stdout.write(memory.getvalue().decode("utf-8", "backslashreplace"))


def _require_names(rows: pa.Table) -> None:
    name, times = next(iter(Counter(rows.column_names).most_common(1)), ("", 0))
    if times > 1:
        raise OptionError(
            f"column {name}: occurs {times} times, but a JSON object has each name once"
        )


def _json_rows(rows: pa.Table) -> Iterator[bytes]:
    names = [json.dumps(name) for name in rows.column_names]
    for start in range(0, len(rows), _BATCH):
        part = rows.slice(start, _BATCH)
        columns = [json_values(part.column(position)) for position in range(part.num_columns)]
        for values in zip(*columns, strict=True) if columns else [()] * len(part):
            cells = (f"{n}: {json.dumps(plain(v))}" for n, v in zip(names, values, strict=True))
            yield f"{{{', '.join(cells)}}}".encode("ascii")


def _write_csv(stream: BinaryIO, rows: pa.Table) -> None:
    """Write CSV with a header; null is an empty field, the empty string two quotes."""
    from pyarrow import csv

    fields = [
        pa.field(field.name, pa.string()) if _needs_text(field.type) else field
        for field in rows.schema
    ]
    with csv.CSVWriter(stream, pa.schema(fields)) as writer:
        for start in range(0, len(rows), _BATCH):
            part = rows.slice(start, _BATCH)
            columns = [
                pa.array(texts(column), pa.string()) if _needs_text(column.type) else column
                for column in part.columns
            ]
            writer.write_table(pa.table(columns, schema=pa.schema(fields)))


def _needs_text(kind: pa.DataType) -> bool:
    """Whether Arrow cannot write a type as CSV, or would write raw bytes."""
    types = pa.types
    is_bytes = (
        types.is_binary(kind),
        types.is_large_binary(kind),
        types.is_fixed_size_binary(kind),
    )
    others = (types.is_nested(kind), types.is_dictionary(kind), types.is_duration(kind))
    return any((*is_bytes, *others))


_WIDEST = 60  # characters of a cell on a terminal


def table_lines(rows: pa.Table, *, more: bool, width: int | None) -> list[str]:
    r"""The lines of a table, and the number of rows.

    Columns beyond the width of a terminal are left out; a pipe or a file has no width.

    >>> rows = pa.table({"id": [7, 11], "name": ["ann", None]})
    >>> print(*table_lines(rows, more=False, width=None), sep="\n")
    id  name
     7  ann
    11  NULL
    (2 rows)
    """
    shown = list(_fitting(rows, width))
    numbers = [position for position, kind in enumerate(rows.schema.types) if _is_number(kind)]
    lines = aligned(shown, numbers)
    hidden = rows.num_columns - len(shown)
    if hidden:
        columns = f"{hidden} more column{'' if hidden == 1 else 's'}"
        lines.append(f"({columns}: --select chooses, --format json has all)")
    count = f"{len(rows):,} row{'' if len(rows) == 1 else 's'}"
    lines.append(f"({count}, and there are more: --limit 0 for all)" if more else f"({count})")
    return lines


def _fitting(rows: pa.Table, width: int | None) -> Iterator[list[str]]:
    """The columns that fit, with their names; the first one always."""
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
