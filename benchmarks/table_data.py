"""Keys, values and positions from fixed seeds, the same in every run of one scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid._arrays import Int64Array

__all__ = ["RUN", "SHAPES", "decimals", "hashes", "longs", "positions", "random", "texts", "times"]


SHAPES = {"1 in 100": 100, "1 in 1000": 1000, "runs of 1000": None}
"""How many rows a data file has for each that is deleted; None for runs with gaps as long."""
RUN = 1000
"""How many rows follow each other in such runs."""
_SEED = 20_250_915


def random(name: str) -> np.random.Generator:
    """The numbers that belong to a name."""
    return np.random.default_rng([_SEED, *name.encode()])


def longs(count: int, distinct: int | None = None) -> pa.Array:
    """Numbers over all 64 bits, drawn from `distinct` ones, or from all."""
    rng = random("longs")
    if distinct is not None:
        return pa.array(rng.choice(_any_longs(rng, distinct), count))
    return pa.array(_any_longs(rng, count))


def _any_longs(rng: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    return rng.integers(-(2**63), 2**63 - 1, count, endpoint=True)


def hashes(count: int) -> npt.NDArray[np.int32]:
    """Hashes of keys; of five million, 0.06 % come twice."""
    return random("hashes").integers(-(2**31), 2**31, count).astype(np.int32)


def texts(count: int, shortest: int, longest: int) -> pa.Array:
    """Small letters, as many as `shortest` to `longest`, each length as often."""
    rng = random(f"texts {shortest} {longest}")
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(rng.integers(shortest, longest, count, endpoint=True), out=offsets[1:])
    letters = rng.integers(97, 123, int(offsets[-1]), np.uint8)
    buffers: list[Any] = [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def decimals(count: int, precision: int, scale: int) -> pa.Array:
    """Decimals of either sign, whose unscaled numbers have half to all of the possible bits.

    Not fewer, as pypaimon hashes -128, -32768 and their like in another way than Paimon does.
    """
    rng = random(f"decimals {precision}")
    most = int(10**precision).bit_length() - 1
    bits = rng.integers(most // 2, most, count, endpoint=True)
    low = rng.integers(0, 2**64, count, np.uint64) >> np.clip(64 - bits, 0, 63).astype(np.uint64)
    high = rng.integers(0, 2**62, count, np.uint64) >> np.clip(126 - bits, 0, 62).astype(np.uint64)
    sign = rng.integers(0, 2, count, np.uint64) * np.uint64(2**64 - 1)
    words = np.column_stack((low ^ sign, high ^ sign))
    return pa.Array.from_buffers(
        pa.decimal128(precision, scale), count, [None, pa.py_buffer(words)]
    )


def times(count: int) -> pa.Array:
    """Timestamps in microseconds, from 1970 to 2041."""
    return pa.array(random("times").integers(0, 2**51, count)).view(pa.timestamp("us"))


def positions(shape: str, count: int) -> Int64Array:
    """Ascending positions in a data file, of one of `SHAPES`."""
    rng, rows_each = random(shape), SHAPES[shape]
    if rows_each is not None:
        return np.sort(rng.choice(rows_each * count, count, replace=False))
    runs = max(count // RUN, 1)
    starts = np.cumsum(rng.integers(RUN + 1, 3 * RUN, runs))
    return (starts[:, None] + np.arange(-(-count // runs))).reshape(-1)[:count]
