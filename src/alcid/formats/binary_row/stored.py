"""Binary rows as they are found: where each lies in memory, and what of it can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.formats.arrays import byte_offsets, plain
from alcid.formats.binary_row.tails import Lengths

__all__ = ["Mask", "Stored", "StoredRows"]

Mask: TypeAlias = npt.NDArray[np.bool_]
Stored: TypeAlias = "pa.Array | pa.ChunkedArray | Sequence[bytes | None]"
"""Rows as Arrow's binary or large_binary, or as bytes; null where there is no row."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows that lie anywhere in `data`."""

    data: npt.NDArray[np.uint8]
    starts: Lengths
    lengths: Lengths
    present: Mask
    """False where there is no row."""

    @classmethod
    def of(cls, rows: Stored) -> StoredRows:
        """The rows of an Arrow array, or of a sequence.

        >>> StoredRows.of([b"one", None, b"three"]).lengths.tolist()
        [3, 0, 5]
        """
        arrow = isinstance(rows, pa.Array | pa.ChunkedArray)
        array = plain(rows).cast(pa.large_binary()) if arrow else pa.array(rows, pa.large_binary())
        offsets = byte_offsets(array)
        buffer = array.buffers()[2]
        data = np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
        present = pc.is_valid(array).to_numpy(zero_copy_only=False)
        return cls(data, offsets[:-1], np.diff(offsets), present)

    def __len__(self) -> int:
        return len(self.starts)

    def without_head(self, size: int, refused: Mask) -> StoredRows:
        """What follows the first `size` bytes of each row; rows that are refused are gone.

        Rows that are shorter must be among the refused.
        """
        present = self.present & ~refused
        starts = np.where(present, self.starts + size, 0)
        lengths = np.where(present, self.lengths - size, 0)
        return replace(self, starts=starts, lengths=lengths, present=present)
