"""Rows by their places, of tables that are larger than one Arrow array may be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["take_rows"]

_STEP_BYTES = 1 << 28  # of rows that are put together at a time

_Places = npt.NDArray[np.int64]


def take_rows(rows: pa.Table, places: _Places) -> pa.Table:
    """The rows of these places, in this order.

    `Table.take` makes one array of all chunks of a column first, and fails where that has more than
    2 GiB of text, however few rows are asked for. Here it is done in steps, and what comes out has
    a chunk for each.

    >>> rows = pa.concat_tables([pa.table({"a": [10, 11]}), pa.table({"a": [12]})])
    >>> take_rows(rows, np.array([2, 0, 2])).column("a").to_pylist()
    [12, 10, 12]
    """
    batches = rows.to_batches()
    if len(batches) <= 1:
        return rows.take(pa.array(places))
    step = max(_STEP_BYTES * len(rows) // max(rows.nbytes, 1), 1)
    steps = [
        _gather(batches, places[start : start + step]) for start in range(0, len(places), step)
    ]
    return pa.concat_tables([rows.slice(0, 0), *steps])


def _gather(batches: list[pa.RecordBatch], places: _Places) -> pa.Table:
    """Take them from batch after batch, then bring them into their order."""
    ends = np.cumsum([batch.num_rows for batch in batches])
    order = np.argsort(places, kind="stable")
    parts = np.split(order, np.searchsorted(places[order], ends[:-1]))
    taken = [
        batch.take(pa.array(places[part] - (end - batch.num_rows)))
        for batch, end, part in zip(batches, ends, parts, strict=True)
        if len(part)
    ]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return pa.Table.from_batches(taken).combine_chunks().take(pa.array(back))
