from __future__ import annotations

import numpy as np
import pyarrow as pa

from alcid.formats import hashing
from alcid.formats.hashing import ByteValues


def test_values_of_one_length_stay_in_their_order() -> None:
    """The first and the last of them tell whether they are contiguous."""
    lengths = np.random.default_rng(5).integers(1, 4, 5_000)
    values = ByteValues.of(pa.array([b"x" * length for length in lengths], pa.large_binary()))
    parts = [(np.asarray(rows), length) for rows, length in hashing._parts(values)]
    assert [length for _, length in parts] == [1, 2, 3]
    for rows, length in parts:
        assert rows.tolist() == np.flatnonzero(lengths == length).tolist()
