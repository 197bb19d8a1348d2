"""What is counted of the columns of a table: now, and before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcid.formats.theta import ThetaSketch
from alcid.types import DataType

__all__ = ["ColumnCount", "KnownCounts"]


@dataclass(frozen=True, slots=True)
class ColumnCount:
    """What was counted of a column."""

    column: str
    type: str
    sketch: ThetaSketch
    nulls: int
    field: int | None = None
    """The id of the column, where there are such."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownCounts:
    """What was counted of some files of a table, which are as they were."""

    is_new: npt.NDArray[np.bool_]
    """For each file of the table, whether it has come since."""
    counts: Mapping[str, ColumnCount]
    """By column."""

    def has(self, columns: Mapping[str, DataType]) -> bool:
        """Whether all of some columns were counted, as what they are now, and files have come."""
        counts = self.counts
        return bool(self.is_new.any()) and all(
            name in counts and counts[name].type == str(columns[name]) for name in columns
        )
