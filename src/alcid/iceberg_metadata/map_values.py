"""One key of many maps at once: how manifests keep what they know of columns, by field id."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["value_of"]


def value_of(maps: pa.MapArray, key: int) -> pa.Array:
    """What each map has at a key; null where it has not.

    >>> counts = pa.array([[(1, 7), (2, 8)], None, [(2, 9)]], pa.map_(pa.int32(), pa.int64()))
    >>> value_of(counts, 2).to_pylist()
    [8, None, 9]
    """
    places = np.full(len(maps), -1)
    offsets = maps.offsets.to_numpy()
    first = offsets[0] if len(maps) else 0
    keys = maps.keys.slice(first, offsets[-1] - first if len(maps) else 0)
    found = np.flatnonzero(keys.to_numpy() == key) + first
    places[np.searchsorted(offsets, found, "right") - 1] = found
    missing = (places < 0) | pc.is_null(maps).to_numpy(zero_copy_only=False)
    return maps.items.take(pa.array(places, mask=missing))
