"""Deletion vectors, beside the bitmaps of pyroaring alone, which have no frame and no checksum."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from pyroaring import BitMap

from alcid import DeletionVector
from alcid._arrays import Int64Array
from benchmarks import table_data
from benchmarks.table_run import TIME, Case, Group, Side, here, scaled

__all__ = ["vector_cases"]

_POSITIONS = Group("Deletion vectors: positions", "positions")
_WHOLE = Group("Deletion vectors: union and bytes", "vectors", TIME)
_FEW = Group("Deletion vectors, small calls", "calls", TIME)
_NUMPY, _ARRAY = "pyroaring", "pyroaring, array.array"
_SMALL = 10


def vector_cases(scale: float) -> Iterator[Case]:
    """Everything that is done to a vector, for positions that lie in several ways."""
    many = scaled(1_000_000, scale)
    sets = {shape: 1000 if shape == "1 in 1000" else many for shape in table_data.SHAPES}
    for shape, count in sets.items():
        for operation, sides in (
            ("build, sorted", partial(_build, shape, count, False)),
            ("build, shuffled", partial(_build, shape, count, True)),
            (f"contains, {many:,} asked", partial(_contains, shape, count, many)),
        ):
            yield Case(_POSITIONS, operation, f"{count:,}, {shape}", sides)
    for shape, count in (*sets.items(), ("1 in 100", _SMALL)):
        for operation, make in (
            ("to_bytes", _to_bytes),
            ("from_bytes", _from_bytes),
            ("union of two halves", _union),
        ):
            yield Case(_WHOLE, operation, f"{count:,}, {shape}", partial(make, shape, count))
    for operation, data, sides in (
        ("build from a list", f"{_SMALL}, 1 in 100", partial(_build_small)),
        ("in", f"{many:,}, 1 in 100", partial(_one, many, True)),
        ("contains, 1 asked", f"{many:,}, 1 in 100", partial(_one, many, False)),
    ):
        yield Case(_FEW, operation, data, sides)


def _bitmap(positions: Int64Array) -> BitMap:
    """The bitmap as a writer has it: runs are stored as runs."""
    bitmap = BitMap(positions.astype(np.uint32))
    bitmap.run_optimize()
    return bitmap


def _is_bitmap(positions: Int64Array) -> Callable[[Any], bool]:
    return lambda found: bool(found == BitMap(positions.astype(np.uint32)))


def _is_vector(positions: Int64Array) -> Callable[[Any], bool]:
    return lambda found: np.array_equal(found.to_numpy(), positions)


def _build(shape: str, count: int, shuffled: bool) -> Iterator[Side]:
    expected = table_data.positions(shape, count)
    given = table_data.random("order").permutation(expected) if shuffled else expected
    yield here(count, lambda: DeletionVector(given), _is_vector(expected))
    narrow = given.astype(np.uint32)
    copied = array("I", narrow.tobytes())
    yield here(count, lambda: BitMap(narrow), _is_bitmap(expected), _NUMPY)
    yield here(count, lambda: BitMap(copied), _is_bitmap(expected), _ARRAY)


def _build_small() -> Iterator[Side]:
    expected = table_data.positions("1 in 100", _SMALL)
    given = expected.tolist()
    yield here(1, lambda: DeletionVector(given), _is_vector(expected))
    yield here(1, lambda: BitMap(given), _is_bitmap(expected), _NUMPY)


def _to_bytes(shape: str, count: int) -> Iterator[Side]:
    positions = table_data.positions(shape, count)
    vector, bitmap = DeletionVector(positions), _bitmap(positions)
    yield here(1, vector.to_bytes, lambda found: bool(found[8:-4] == bitmap.serialize()))
    yield here(1, bitmap.serialize, lambda found: BitMap.deserialize(found) == bitmap, _NUMPY)


def _from_bytes(shape: str, count: int) -> Iterator[Side]:
    positions = table_data.positions(shape, count)
    data, bare = DeletionVector(positions).to_bytes(), _bitmap(positions).serialize()
    yield here(1, lambda: DeletionVector.from_bytes(data), _is_vector(positions))
    yield here(1, lambda: BitMap.deserialize(bare), _is_bitmap(positions), _NUMPY)


def _contains(shape: str, count: int, asked_count: int) -> Iterator[Side]:
    positions = table_data.positions(shape, count)
    asked = table_data.random("asked").integers(0, int(positions[-1]) + 1, asked_count)
    expected = np.isin(asked, positions)
    vector, bitmap = DeletionVector(positions), _bitmap(positions)
    yield here(
        asked_count, lambda: vector.contains(asked), lambda found: np.array_equal(found, expected)
    )
    listed = asked[: asked_count // 10].tolist()
    yield here(
        len(listed),
        lambda: [position in bitmap for position in listed],
        lambda found: np.array_equal(found, expected[: len(listed)]),
        _NUMPY,
    )


def _union(shape: str, count: int) -> Iterator[Side]:
    """Every second position, or run, and the others."""
    positions = table_data.positions(shape, count)
    together = table_data.RUN if table_data.SHAPES[shape] is None else 1
    chosen = np.arange(count) // together % 2 == 0
    halves = positions[chosen], positions[~chosen]
    first, second = map(DeletionVector, halves)
    yield here(1, lambda: first | second, _is_vector(positions))
    one, other = map(_bitmap, halves)
    yield here(1, lambda: one | other, _is_bitmap(positions), _NUMPY)


def _one(count: int, by_operator: bool) -> Iterator[Side]:
    """One position a call, by `in` or as an array; the peer has `in` only."""
    positions = table_data.positions("1 in 100", count)
    asked = table_data.random("asked").integers(0, int(positions[-1]) + 1, 1000)
    expected, listed = np.isin(asked, positions).tolist(), asked.tolist()
    vector, bitmap = DeletionVector(positions), _bitmap(positions)
    arrays = np.split(asked, len(asked))

    def ask() -> list[bool]:
        if by_operator:
            return [position in vector for position in listed]
        return [bool(vector.contains(one)[0]) for one in arrays]

    yield here(len(asked), ask, lambda found: bool(found == expected))
    yield here(
        len(asked),
        lambda: [position in bitmap for position in listed],
        lambda found: bool(found == expected),
        _NUMPY,
    )
