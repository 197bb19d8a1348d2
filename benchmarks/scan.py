"""What an index competes with: reading the column from Parquet, and comparing every value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from alcid._arrays import Int64Array
from benchmarks.columns import Column
from benchmarks.measure import fastest

__all__ = ["Scan", "scan_column"]

_REPEATS = 5


@dataclass(frozen=True, slots=True)
class Scan:
    """Equality by a scan, in one thread."""

    column: str
    rows: int
    micros: float
    """Microseconds of the wall clock: opening the file, decoding the column, comparing."""
    size: int
    """Bytes of the Parquet file."""


def scan_column(column: Column, path: Path) -> Scan:
    """Write the column to `path` with pyarrow's defaults, and find the rows of one value."""
    pq.write_table(pa.table({"c": column.array}), path)
    order = int(column.order[column.rows // 2])
    literal = pa.scalar(column.literal(order), column.array.type)

    def scan() -> Int64Array:
        values = pq.read_table(path, use_threads=False).column("c")
        found: Int64Array = np.flatnonzero(pc.equal(values, literal))
        return found

    micros, found = fastest(scan, _REPEATS)
    assert np.array_equal(found, np.flatnonzero(column.order == order))
    return Scan(column.name, column.rows, micros, path.stat().st_size)
