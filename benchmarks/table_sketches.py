"""Theta sketches, beside the PyPI package datasketches, which is updated value by value."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

import datasketches
import pyarrow as pa

from alcid import ThetaSketch
from benchmarks import table_data
from benchmarks.table_run import TIME, Case, Group, Side, here, scaled

__all__ = ["sketch_cases"]

_UPDATING = Group("Theta sketches: update", "values")
_WHOLE = Group("Theta sketches: union and bytes", "sketches", TIME)
_SMALL = Group("Theta sketches, small updates", "updates", TIME)
_PEER = "datasketches"
_NEAR = 0.05  # three standard errors
_SKETCHES = 100


def sketch_cases(scale: float) -> Iterator[Case]:
    """Updates with many values, of which the peer gets fewer; whole sketches; single values."""
    fewer = scaled(2_000_000, scale)
    for name, count, make in (
        ("long, all different", 10_000_000, table_data.longs),
        ("long, 1000 values", 10_000_000, lambda rows: table_data.longs(rows, 1000)),
        ("string of 8 to 20", 5_000_000, lambda rows: table_data.texts(rows, 8, 20)),
        ("string of 900 to 1100", 50_000, lambda rows: table_data.texts(rows, 900, 1100)),
        ("decimal(18, 2)", 5_000_000, lambda rows: table_data.decimals(rows, 18, 2)),
    ):
        sides = partial(_updating, make, scaled(count, scale), fewer)
        yield Case(_UPDATING, "update", name, sides)
    each = scaled(100_000, scale)
    for operation, sides in (
        (f"union of {_SKETCHES}", partial(_union, each)),
        ("to_bytes", partial(_to_bytes, each)),
        ("from_bytes", partial(_from_bytes, each)),
    ):
        yield Case(_WHOLE, operation, f"{each:,} longs each", sides)
    for values, updates in ((1, 1000), (100, 1000), (1000, 1), (100_000, 1)):
        sides = partial(_updating_often, values, updates)
        yield Case(_SMALL, f"update with {values:,}", f"{updates:,} for a new sketch", sides)


def _near(count: int) -> Callable[[Any], bool]:
    """Whether an estimate is right: exact up to 4096 values, close above."""
    allowed = _NEAR * count if count > 4096 else 0.0
    return lambda found: abs(_estimate(found) - count) <= allowed


def _estimate(sketch: Any) -> float:
    """Of a sketch of either side."""
    if isinstance(sketch, ThetaSketch):
        return sketch.estimate
    return float(sketch.get_estimate())


def _updated_by_it(values: list[Any]) -> Any:
    sketch = datasketches.update_theta_sketch()
    deque(map(sketch.update, values), maxlen=0)  # the fastest loop that Python has
    return sketch


def _updating(make: Callable[[int], pa.Array], count: int, fewer: int) -> Iterator[Side]:
    values = make(count)
    yield here(count, lambda: ThetaSketch().update(values), _near(len(values.unique())))
    if pa.types.is_decimal(values.type):
        return  # it has no such type
    few = values[:fewer]
    listed = few.to_pylist()
    yield here(len(few), lambda: _updated_by_it(listed), _near(len(few.unique())), _PEER)


def _sketches(each: int) -> list[ThetaSketch]:
    """Sketches as they are read: of parts of one column, none with a value of another."""
    values = table_data.longs(_SKETCHES * each)
    parts = [values.slice(start, each) for start in range(0, len(values), each)]
    return [ThetaSketch.from_bytes(ThetaSketch().update(part).to_bytes()) for part in parts]


def _read_by_it(sketch: ThetaSketch) -> Any:
    return datasketches.compact_theta_sketch.deserialize(sketch.to_bytes())


def _union(each: int) -> Iterator[Side]:
    sketches = _sketches(each)
    right = _near(_SKETCHES * each)
    yield here(_SKETCHES, lambda: reduce(ThetaSketch.union, sketches, ThetaSketch()), right)
    theirs = [_read_by_it(sketch) for sketch in sketches]

    def unite() -> Any:
        union = datasketches.theta_union()
        for sketch in theirs:
            union.update(sketch)
        return union.get_result()

    yield here(_SKETCHES, unite, right, _PEER)


def _to_bytes(each: int) -> Iterator[Side]:
    sketch = ThetaSketch.from_bytes(ThetaSketch().update(table_data.longs(each)).to_bytes())
    theirs = _read_by_it(sketch)
    yield here(1, sketch.to_bytes, lambda found: ThetaSketch.from_bytes(found) == sketch)
    yield here(1, theirs.serialize, lambda found: ThetaSketch.from_bytes(found) == sketch, _PEER)


def _from_bytes(each: int) -> Iterator[Side]:
    sketch = ThetaSketch().update(table_data.longs(each))
    data = sketch.to_bytes()
    yield here(1, lambda: ThetaSketch.from_bytes(data), lambda found: bool(found == sketch))
    yield here(
        1,
        lambda: datasketches.compact_theta_sketch.deserialize(data),
        lambda found: ThetaSketch.from_bytes(found.serialize()) == sketch,
        _PEER,
    )


def _updating_often(values: int, updates: int) -> Iterator[Side]:
    """Updates with few values each; the peer takes them one by one, as always."""
    longs = table_data.longs(updates * values)
    parts = [longs.slice(start, values) for start in range(0, len(longs), values)]
    listed, right = longs.to_pylist(), _near(len(longs))

    def update() -> ThetaSketch:
        sketch = ThetaSketch()
        for part in parts:
            sketch.update(part)
        return sketch

    yield here(updates, update, right)
    yield here(updates, lambda: _updated_by_it(listed), right, _PEER)
