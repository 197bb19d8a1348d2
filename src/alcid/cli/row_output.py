"""Rows that a query gave, in the form that was asked for: on stdout, or in a file."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from typing import BinaryIO

import pyarrow as pa

from alcid.cli.options import Format
from alcid.cli.printing import plain
from alcid.cli.row_text import json_values, texts
from alcid.errors import OptionError

__all__ = ["choose_format", "write_rows"]

_BATCH = 10_000
_ENDINGS = {"": Format.TABLE, ".txt": Format.TABLE} | {
    f".{one}": one for one in Format if one is not Format.TABLE
}


def choose_format(asked: Format | None, *, as_json: bool, output: str | None) -> Format:
    """The format: the one that was asked for, else that of the name of the file, else a table.

    Raises:
        OptionError: Two formats, a name that ends otherwise, or Parquet for a terminal.

    >>> choose_format(None, as_json=False, output="rows.csv")
    <Format.CSV: 'csv'>
    """
    if as_json and asked not in (None, Format.JSON):
        raise OptionError(f"--json and --format {asked}: found both, expected one of them")
    ending = Path(output or "").suffix.lower()
    chosen = Format.JSON if as_json else asked or _ENDINGS.get(ending)
    if chosen is None:
        known = ", ".join(filter(None, _ENDINGS))
        raise OptionError(
            f"--output: found a name that ends in {ending}, expected {known}; or give --format"
        )
    if chosen is Format.PARQUET and output is None and sys.stdout.isatty():
        raise OptionError("--format parquet: a terminal cannot show it; give --output FILE")
    return chosen


def write_rows(rows: pa.Table, form: Format, output: str | None, *, more: bool = False) -> None:
    """Write rows.

    Args:
        rows: All of them.
        form: How.
        output: A file, which is replaced; None for stdout.
        more: Whether there are more, which a table says at its end.

    Raises:
        OptionError: Two columns of a name, which JSON cannot hold.
    """
    if form in (Format.JSON, Format.JSONL):
        _require_names(rows)
    with _opened(output) as stream:
        match form:
            case Format.TABLE:
                from alcid.cli.row_table import table_lines

                is_wide = output is not None or not sys.stdout.isatty()
                width = None if is_wide else get_terminal_size().columns
                encoding = "utf-8" if output is not None else sys.stdout.encoding or "utf-8"
                lines = table_lines(rows, more=more, width=width)
                stream.writelines(f"{one}\n".encode(encoding, "backslashreplace") for one in lines)
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
        stream.flush()  # here, where a closed pipe is seen to


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

    memory = BytesIO()  # stdout is text in memory
    yield memory
    sys.stdout.write(memory.getvalue().decode("utf-8", "backslashreplace"))


def _require_names(rows: pa.Table) -> None:
    name, times = next(iter(Counter(rows.column_names).most_common(1)), ("", 0))
    if times > 1:
        raise OptionError(f"column {name}: is there {times} times, and JSON has each name once")


def _json_rows(rows: pa.Table) -> Iterator[bytes]:
    names = [json.dumps(name) for name in rows.column_names]
    for start in range(0, len(rows), _BATCH):
        part = rows.slice(start, _BATCH)
        columns = [json_values(part.column(place)) for place in range(part.num_columns)]
        for values in zip(*columns, strict=True) if columns else [()] * len(part):
            cells = (f"{n}: {json.dumps(plain(v))}" for n, v in zip(names, values, strict=True))
            yield f"{{{', '.join(cells)}}}".encode("ascii")


def _write_csv(stream: BinaryIO, rows: pa.Table) -> None:
    """With a head; null is an empty field, the empty text is two quotes."""
    from pyarrow import csv

    fields = [
        pa.field(one.name, pa.string()) if _needs_text(one.type) else one for one in rows.schema
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
    """Whether Arrow has no form for CSV, or would write bytes as they are."""
    types = pa.types
    is_bytes = (
        types.is_binary(kind),
        types.is_large_binary(kind),
        types.is_fixed_size_binary(kind),
    )
    others = (types.is_nested(kind), types.is_dictionary(kind), types.is_duration(kind))
    return any((*is_bytes, *others))
