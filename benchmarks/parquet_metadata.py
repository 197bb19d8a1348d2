"""Parquet metadata: how long footers, offset indexes and page headers take.

`python -m benchmarks.parquet_metadata` makes a file of 1,000 columns in 20 row groups and prints
milliseconds. Where there are two decoders of one structure, both are here: the second is worth its
lines only as long as it is much faster.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from time import process_time
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from alcid.datafiles.parquet import footer, layout, open_scan, pages, read_layout, read_rows
from alcid.formats.source import BytesSource

__all__ = ["main", "measurements"]


def measurements(columns: int = 1000, row_groups: int = 20) -> dict[str, float]:
    """Milliseconds by what was done; the best of three."""
    rows = np.arange(100 * row_groups)
    table = pa.table({f"c{number}": rows + number for number in range(columns)})
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=100, write_page_index=True)
    data = file.getvalue()
    source, name, positions = BytesSource(data), f"c{columns // 2}", [5, len(rows) - 1]

    def look_up() -> object:
        return read_rows(source, positions, [name])

    with patch.object(footer, "_LONG", 1 << 60):
        at_once = _milliseconds(look_up)
    indexes = [_offset_index(1000) for _ in range(20)]
    page = bytes.fromhex("15 00 15 10 15 10 2c 15 04 15 00 15 06 15 06 00 00") + bytes(8)
    headers, starts = page * 1000, np.arange(1000) * len(page)
    sizes = np.full(1000, len(page))
    return {
        "footer by Arrow": _milliseconds(lambda: pq.read_metadata(io.BytesIO(data))),
        "two rows of a column": _milliseconds(look_up),
        "two rows of a column, all chunks parsed": at_once,
        "statistics of a column": _milliseconds(
            lambda: open_scan(source).statistics.of_leaf(columns // 2)
        ),
        "layout of all columns": _milliseconds(lambda: read_layout(source)),
        "20,000 page locations": _milliseconds(
            lambda: layout.parse_offset_indexes(indexes, "benchmark")
        ),
        "20,000 page locations, field by field": _milliseconds(
            lambda: [layout._parse(index, "benchmark") for index in indexes]
        ),
        "1,000 page headers": _milliseconds(lambda: pages.values_of_pages(headers, starts, sizes)),
        "1,000 page headers, field by field": _milliseconds(
            lambda: [pages._values(page) for _ in range(1000)]
        ),
    }


def _offset_index(count: int) -> bytes:
    location = bytes.fromhex("16 8020 15 c801 16 ac02 00")
    return b"\x19\xfc" + bytes((count & 0x7F | 0x80, count >> 7)) + location * count + b"\0"


def _milliseconds(call: Callable[[], object]) -> float:
    def once() -> float:
        begin = process_time()
        call()
        return 1000 * (process_time() - begin)

    return min(once() for _ in range(3))


def main() -> None:
    """Print the measurements as a table."""
    for what, milliseconds in measurements().items():
        print(f"{milliseconds:10.2f} ms  {what}")


if __name__ == "__main__":
    main()
