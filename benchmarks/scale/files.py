"""Very many data files, most of which are the same: a few patterns, each under many names.

A pattern is a Parquet file of real rows with a hole before its footer, so that it counts as large
and takes no room. What planning knows of a file is real, too: its indexes are built by the usual
code, of the rows of its pattern. Only ids are made up, those of each file are its own: file `i` of
`n` has `i`, `i + n`, `i + 2 n` and so on. No row is ever read.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from alcid._arrays import Int64Array
from alcid.formats.file_index.bloom_filter import build
from alcid.formats.file_index.keys import read_column
from alcid.formats.source import FileSource
from alcid.index.build import IndexedFile, index_file
from alcid.index.bundle import ColumnStatistics, PayloadKind
from alcid.options import parse_options
from alcid.types import DataType

__all__ = ["BLOOM", "CLASSES", "FIELDS", "INDEXES", "ROWS", "SCORES", "ManyFiles"]

ROWS = 100
"""Of each file."""
FIELDS = {"id": "BIGINT", "class_id": "INT", "score": "INT", "at": "BIGINT"}
"""The columns, in their order; their field ids on Iceberg are 1, 2 and so on."""
INDEXES = {
    "file-index.bloom-filter.columns": "id",
    "file-index.bitmap.columns": "class_id",
    "file-index.range-bitmap.columns": "score",
}
"""What is indexed; of `at` there are bounds, and no more."""
BLOOM = PayloadKind.index("id", "bloom-filter")
CLASSES = 1000
"""Different values of `class_id`, of which each file has eight, the least and the greatest among
them: its bounds tell nothing."""
SCORES = 10
"""Different values of `score` in a file; those of the next pattern are above."""

_HOLE = 1 << 20
_END = 8  # the length of the footer, and the magic
_MOST_PATTERNS, _SAME = 1000, 20


@dataclass(frozen=True, slots=True)
class ManyFiles:
    """The files of a table, by their numbers."""

    count: int
    patterns: tuple[IndexedFile, ...]
    """What is known of each pattern; its path is that of the file on the disk."""

    @classmethod
    def make(cls, folder: Path, count: int) -> ManyFiles:
        """Write the patterns of so many files into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        specs = parse_options(INDEXES)
        patterns = []
        for number in range(max(min(_MOST_PATTERNS, count // _SAME), 1)):
            path, rows = folder / f"{number}.parquet", _rows(number)
            _write(path, rows)
            status = path.stat()
            with FileSource(path) as source:
                found = index_file(
                    source,
                    specs,
                    path=str(path),
                    size=status.st_size,
                    version=str(status.st_mtime_ns),
                    rows=rows,
                )
            patterns.append(found)
        return cls(count, tuple(patterns))

    def pattern(self, file: int) -> IndexedFile:
        """What is known of the pattern of a file."""
        return self.patterns[file % len(self.patterns)]

    def ids(self, file: int) -> Int64Array:
        """The ids of a file."""
        return file + self.count * np.arange(ROWS)

    def link(self, file: int, path: Path) -> None:
        """Give a file its name."""
        path.hardlink_to(self.pattern(file).entry.path)

    def indexed(self) -> Iterator[IndexedFile]:
        """What is known of each file, by its number; its path is still that of the pattern."""
        for file in range(self.count):
            found = self.pattern(file)
            ids = self.ids(file)
            own = read_column(pa.array(ids), DataType("BIGINT"))
            bounds = ColumnStatistics(DataType("BIGINT"), int(ids[0]), int(ids[-1]), 0)
            times = replace(bounds, minimum=file * ROWS, maximum=file * ROWS + ROWS - 1)
            known = {**found.entry.statistics, "id": bounds, "at": times}
            yield replace(
                found,
                entry=replace(found.entry, statistics=known),
                payloads={**found.payloads, BLOOM: build(own)},
            )


def _rows(pattern: int) -> pa.Table:
    """The rows of a pattern; columns have the ids that Iceberg knows them by."""
    rng = np.random.default_rng(pattern)
    classes = [0, CLASSES - 1, *rng.choice(np.arange(1, CLASSES - 1), 6, replace=False)]
    columns = {
        "id": np.arange(ROWS),
        "class_id": np.resize(classes, ROWS),
        "score": pattern * SCORES + np.arange(ROWS) % SCORES,
        "at": np.arange(ROWS),
    }
    fields = [
        pa.field(name, DataType.parse(kind).to_arrow(), metadata={"PARQUET:field_id": str(number)})
        for number, (name, kind) in enumerate(FIELDS.items(), 1)
    ]
    return pa.table(columns, schema=pa.schema(fields))


def _write(path: Path, rows: pa.Table) -> None:
    """Write a file without statistics of its own, which would be those of its pattern."""
    file = io.BytesIO()
    pq.write_table(rows, file, write_statistics=False, write_page_index=True)
    data = file.getvalue()
    footer = len(data) - _END - int.from_bytes(data[-_END:-4], "little")
    with path.open("wb") as sparse:
        sparse.write(data[:footer])
        sparse.seek(footer + _HOLE)
        sparse.write(data[footer:])
