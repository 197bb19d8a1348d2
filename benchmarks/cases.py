"""Which index is built on which column, with which options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from benchmarks.columns import Column

__all__ = ["FPP", "Case", "cases_of"]

FPP = 0.01


@dataclass(frozen=True, slots=True)
class Case:
    """An index type on the column `c`."""

    label: str
    index_type: str
    settings: dict[str, str] = field(default_factory=dict)
    with_peer: bool = True
    """Whether the peer builds the same index from the same options."""

    @property
    def options(self) -> dict[str, str]:
        """The table options, as Paimon names them."""
        prefix = f"file-index.{self.index_type}"
        columns = {f"{prefix}.columns": "c"}
        return columns | {f"{prefix}.c.{key}": value for key, value in self.settings.items()}


def cases_of(column: Column) -> Iterator[Case]:
    """The indexes that take the column.

    The peer sizes a bloom filter by its options only, so both are given the true number of values.
    """
    distinct = len(np.unique(column.order))
    yield Case("bloom-filter", "bloom-filter", {"items": str(distinct), "fpp": str(FPP)})
    yield Case("bloom-filter, sized itself", "bloom-filter", with_peer=False)
    yield Case("bitmap", "bitmap")
    yield Case("range-bitmap", "range-bitmap")
    if column.data_type == "BIGINT":
        yield Case("bsi", "bsi")
