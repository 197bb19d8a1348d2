"""A folder of Parquet files with random columns, values, partitions and writer options."""

from __future__ import annotations

import contextlib
import datetime
import math
import random
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.scan.column_kinds import KINDS, ColumnKind

ROW = "__row"
"""A column with a unique number for every row that was ever written."""

_NAMES = ("a", "b", "C", "d_2", "with space", "größe", "e.f", "select", "Ы", "g'h", "i`j", "key=1")
_ROW_COUNTS = (0, 1, 2, 17, 60, 60, 150)
_NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile("[\x01-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
_EPOCH = datetime.date(1970, 1, 1)
_PARTITIONS: dict[str, tuple[str, list[Any]]] = {
    "int32": ("p_int", [-7, 0, 3, 2**31 - 1]),
    "string": ("p text", ["x", "a/b", "a=b c", "100%", "größe", "%41", "\U0001f427"]),
    "date32[day]": ("p_date", [0, 18_000, 20_301]),
}
_NARROWER = {pa.int64(): pa.int32(), pa.int32(): pa.int16(), pa.float64(): pa.float32()}
_FLOATS = {"float", "double"}
_INSTANT = KINDS["timestamp[us, tz=UTC]"]


class RandomTable:
    """A table on disk about which everything is known."""

    def __init__(self, source: random.Random, folder: Path) -> None:
        """Draw the columns and write the files."""
        self._source = source
        self.folder = folder
        folder.mkdir(parents=True)
        names = source.sample(_NAMES, source.randint(4, 8))
        drawn = source.sample(sorted(KINDS), len(names))
        if not _FLOATS & set(drawn):  # they can go wrong in most ways
            drawn[0] = source.choice(sorted(_FLOATS))
        self.stored = {ROW: KINDS["int64"]}
        self.stored |= {name: KINDS[kind] for name, kind in zip(names, drawn, strict=True)}
        levels = source.sample(sorted(_PARTITIONS), source.choice((0, 0, 1, 2)))
        self.partitions = {_PARTITIONS[level][0]: KINDS[level] for level in levels}
        self._partition_values = {_PARTITIONS[level][0]: _PARTITIONS[level][1] for level in levels}
        self._shapes = {name: self._shape(name) for name in self.stored}
        self._int96 = source.random() < 0.1
        self._next_row = self._next_file = 0
        self._folders = self._draw_folders()
        self._files: dict[str, dict[str, Any]] = {}
        self.add_file(self._folders[0])
        for _ in range(source.choice((0, 1, 3))):
            self.add_file()

    @property
    def kinds(self) -> dict[str, ColumnKind]:
        """The columns of the files, then those of the paths; INT96 holds instants."""
        kinds = self.stored | self.partitions
        if not self._int96:
            return kinds
        return {name: _INSTANT if _is_timestamp(kind) else kind for name, kind in kinds.items()}

    @property
    def paths(self) -> list[str]:
        """The files, in the order of a scan."""
        return sorted(self._files)

    def add_file(self, folder: Mapping[str, tuple[str, Any]] | None = None) -> None:
        """One more file."""
        folder = self._source.choice(self._folders) if folder is None else folder
        values = {name: value for name, (_, value) in folder.items()}
        parts = [f"{_escape(name)}={text}" for name, (text, _) in folder.items()]
        path = "/".join([*parts, f"part-{self._source.randrange(10)}{self._next_file}.parquet"])
        self._next_file += 1
        self._files[path] = values
        self.rewrite_file(path)

    def rewrite_file(self, path: str) -> None:
        """Other rows in a file with the same name."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = self._rows(self._source.choice(_ROW_COUNTS))
        if path != next(iter(self._files)):  # the first has all columns, in their widest types
            rows = self._varied(rows)
        pq.write_table(rows, file, **self._write_options(rows))

    def change(self) -> None:
        """A file is rewritten, one is added, one removed: not the first, which has values."""
        first, *others = self._files
        self.rewrite_file(self._source.choice([first, *others[1:]]))
        for gone in others[:1]:
            (self.folder / gone).unlink()
            del self._files[gone]
        self.add_file()

    def rows(self) -> pa.Table:
        """All rows, as Arrow reads them, in the order of a scan."""
        tables = {path: self._read(path) for path in self.paths}
        widest = tables[next(iter(self._files))].schema
        return pa.concat_tables(_conformed(table, widest) for table in tables.values())

    def row_count_of(self, path: str) -> int:
        return int(pq.read_metadata(self.folder / path).num_rows)

    def _read(self, path: str) -> pa.Table:
        file = pq.ParquetFile(self.folder / path, coerce_int96_timestamp_unit="us")
        with file:
            table = file.read().replace_schema_metadata()
        if self._int96:  # instants, which Arrow does not mark as such
            table = table.cast(pa.schema([_instant(field) for field in table.schema]))
        for name, kind in self.partitions.items():
            values = [self._files[path][name]] * table.num_rows
            table = table.append_column(name, kind.to_arrow(values))
        return table

    def _draw_folders(self) -> list[dict[str, tuple[str, Any]]]:
        """For each folder and partition column, the text in the path and the value."""
        folders = []
        for _ in range(3):
            folder: dict[str, tuple[str, Any]] = {}
            for name, values in self._partition_values.items():
                value = None if self._source.random() < 0.2 else self._source.choice(values)
                folder[name] = _partition_text(value, self.partitions[name]), value
            folders.append(folder)
        # Without a text that is not a number, a column of texts would be one of numbers.
        first = {name: values[0] for name, values in self._partition_values.items()}
        folders[0] = {n: (_partition_text(v, self.partitions[n]), v) for n, v in first.items()}
        return folders

    def _shape(self, name: str) -> tuple[str, float, list[Any]]:
        """How the values of a column are distributed, its share of nulls, its few values."""
        if name == ROW:
            return "rows", 0.0, []
        shape = self._source.choice(("few", "few", "few", "many", "many", "sorted", "one", "null"))
        nulls = 1.0 if shape == "null" else self._source.choice((0.0, 0.0, 0.1, 0.5))
        pool = [self.stored[name].draw(self._source) for _ in range(1 if shape == "one" else 6)]
        return shape, nulls, pool

    def _rows(self, row_count: int) -> pa.Table:
        columns = {}
        for name, kind in self.stored.items():
            values = list(self._values(name, row_count))
            columns[name] = kind.to_arrow(values)
        self._next_row += row_count
        return pa.table(columns)

    def _values(self, name: str, row_count: int) -> Iterator[Any]:
        source = self._source
        shape, nulls, pool = self._shapes[name]
        if shape == "rows":
            yield from range(self._next_row, self._next_row + row_count)
            return
        draw = self.stored[name].draw
        # A file has only some of the values, so that others can be left out.
        some = source.sample(pool, source.randint(1, len(pool)))
        if source.random() < 0.1:  # of this file only
            nulls = 1.0
        drawn = [
            draw(source) if shape in ("many", "sorted") else source.choice(some)
            for _ in range(row_count)
        ]
        if shape == "sorted":
            drawn.sort(key=_sort_key)
        for value in drawn:
            yield None if source.random() < nulls else value

    def _varied(self, rows: pa.Table) -> pa.Table:
        """As an older file may be: without a column, or with a narrower one."""
        for number, field in enumerate(rows.schema):
            narrow = _NARROWER.get(field.type)
            if narrow is not None and self._source.random() < 0.3:
                with contextlib.suppress(pa.ArrowInvalid):  # some values need all the bits
                    column = rows.column(number).cast(narrow)
                    rows = rows.set_column(number, field.name, column)
        if self._source.random() < 0.25:
            rows = rows.drop_columns(self._source.choice(rows.column_names[1:]))
        return rows

    def _write_options(self, rows: pa.Table) -> dict[str, Any]:
        source = self._source
        names = rows.column_names
        group_sizes = (3, 25, 1000) if rows.num_rows < 100 else (25, 60, 1000)
        return {
            "row_group_size": source.choice(group_sizes),
            "data_page_size": source.choice((1, 1, 100, 1 << 20)),
            "write_batch_size": source.choice((1, 7, 7, 1024)),
            "write_page_index": source.random() < 0.5,
            "use_dictionary": source.choice((True, False, source.sample(names, 2))),
            "dictionary_pagesize_limit": source.choice((20, 1 << 20)),
            "data_page_version": source.choice(("1.0", "2.0")),
            "compression": source.choice(("none", "snappy", "zstd", "gzip")),
            "write_statistics": source.choice((True, True, False, source.sample(names, 2))),
            "use_deprecated_int96_timestamps": self._int96,
        }


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema; missing ones are null."""
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema)


def _escape(text: str) -> str:
    """The text of a partition in a path, as Spark writes it."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def _partition_text(value: Any, kind: ColumnKind) -> str:
    if value is None:
        return _NULL
    if kind.data_type.root == "DATE":
        return (_EPOCH + datetime.timedelta(days=value)).isoformat()
    return _escape(str(value))


def _is_timestamp(kind: ColumnKind) -> bool:
    return bool(pa.types.is_timestamp(kind.arrow_type))


def _sort_key(value: Any) -> Any:
    is_nan = isinstance(value, float) and math.isnan(value)
    return (1, 0.0) if is_nan else (0, value)


def present_values(column: pa.ChunkedArray, kind: ColumnKind) -> list[Any]:
    """The distinct values of a column, in the form of `alcid.testing`."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    distinct = array.drop_null()
    root = kind.data_type.root
    if root == "DATE":
        return sorted(set(distinct.cast(pa.date32()).view(pa.int32()).to_pylist()))
    if root in ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ"):
        unit = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[array.type.unit]
        width = pa.int32() if array.type.bit_width == 32 else pa.int64()
        return sorted({ticks * unit for ticks in distinct.view(width).to_pylist()})
    values = distinct.to_pylist()
    if root == "DECIMAL":
        return sorted({Decimal(value) for value in values})
    if root in ("FLOAT", "DOUBLE"):
        bits = {float(value).hex(): float(value) for value in values}
        return [bits[key] for key in sorted(bits)]
    return sorted(set(values))


def seeded(*parts: object) -> random.Random:
    """A separate random source for each part of a test, the same in every run."""
    return random.Random("/".join(map(str, parts)))


def deleted_rows(source: random.Random, row_count: int) -> list[int]:
    """Positions of a file: none, one, some or all."""
    share = source.choice((0.0, 0.05, 0.5, 1.0))
    return np.flatnonzero([source.random() < share for _ in range(row_count)]).tolist()


def _instant(field: pa.Field) -> pa.Field:
    if pa.types.is_timestamp(field.type) and field.type.tz is None:
        return field.with_type(pa.timestamp(field.type.unit, "UTC"))
    return field
