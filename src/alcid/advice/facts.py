"""What a sample says of a column of the whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import numpy.typing as npt

from alcid.advice.column_sample import ColumnSample
from alcid.advice.sizes import all_bytes, all_distinct
from alcid.formats.theta import ThetaSketch
from alcid.types import INDEX_TYPES, DataType

__all__ = ["ColumnFacts", "gather_facts"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnFacts:
    """A column that was sampled."""

    column: str
    data_type: DataType | None
    distinct: float | None = None
    """About how many distinct values the table has; None if they are not counted."""
    null_share: float | None = None
    """How many of the rows are null, from 0 to 1."""
    index_bytes: Mapping[str, int] = field(default_factory=dict)
    """About how many bytes the indexes of all files take, by index type."""
    problem: str = ""
    """Why there is no index; empty if there are some."""


def gather_facts(
    column: str, data_type: DataType | None, samples: Sequence[ColumnSample], rows: Integers
) -> ColumnFacts:
    """Conclude from what was sampled of a column.

    Args:
        column: Its name.
        data_type: Its type in the table.
        samples: What was made of it in each file of the sample that has it.
        rows: The rows of all files of the table.
    """
    sampled = sum(one.rows for one in samples)
    if not sampled:
        return ColumnFacts(column, data_type, problem="no file of the sample has it")
    sketches = [one.sketch for one in samples if one.sketch is not None]
    distinct: float | None = None
    if len(sketches) == len(samples):
        together = reduce(ThetaSketch.union, sketches)
        each = np.array([one.estimate for one in sketches], np.float64)
        distinct = all_distinct(each, together.estimate, sampled / max(int(rows.sum()), 1))
    sizes: dict[str, int] = {}
    for index_type in INDEX_TYPES:
        made = [one for one in samples if index_type in one.payloads]
        if made:
            chosen = np.array([one.file for one in made], np.int64)
            lengths = np.array([len(one.payloads[index_type]) for one in made], np.int64)
            sizes[index_type] = all_bytes(rows, chosen, lengths)
    why = next((text for one in samples for text in one.problems.values()), "")
    return ColumnFacts(
        column,
        data_type,
        distinct,
        sum(one.nulls for one in samples) / sampled,
        sizes,
        "" if sizes else why or f"no index takes {data_type}",
    )
