"""Exchange of theta sketches with the PyPI package datasketches, in both directions.

It fills a sketch differently from us once there are more than 4096 values, so a sketch is
compared after the exchange: what one side reads is what the other side wrote.
"""

from __future__ import annotations

import struct
from typing import Any

import datasketches
import pyarrow as pa
import pytest

from alcid import ThetaSketch

COUNTS = [0, 1, 2, 10, 4095, 4096, 4097, 7681, 100_000]


def ours(first: int, count: int) -> ThetaSketch:
    return ThetaSketch().update(pa.array(range(first, first + count), pa.int64()))


def theirs(first: int, count: int) -> Any:
    sketch = datasketches.update_theta_sketch()
    for number in range(first, first + count):
        sketch.update(number)
    return sketch.compact()


def read_by_it(data: bytes) -> Any:
    return datasketches.compact_theta_sketch.deserialize(data)


def check_equal(sketch: ThetaSketch, peer: Any) -> None:
    """Check equal estimates, thresholds and hashes, seen from both sides."""
    assert len(sketch) == peer.num_retained
    assert sketch.theta == peer.theta
    # It divides by theta as a fraction; we follow Java, where the last bit may differ.
    assert peer.get_estimate() == len(sketch) / sketch.theta
    assert sketch.estimate == pytest.approx(peer.get_estimate(), rel=1e-15)
    assert hashes(sketch.to_bytes()) == list(peer)


def hashes(data: bytes) -> list[int]:
    """The hashes of a compact sketch of serial version 3, from its bytes."""
    return list(struct.unpack(f"<{len(data) // 8 - data[0]}Q", data[8 * data[0] :]))


@pytest.mark.parametrize("count", COUNTS)
def test_it_reads_our_sketch(count: int) -> None:
    sketch = ours(-5, count)
    peer = read_by_it(sketch.to_bytes())
    check_equal(sketch, peer)
    assert (peer.is_empty(), peer.is_ordered()) == (count == 0, True)
    assert peer.is_estimation_mode() == (count > 4096)


@pytest.mark.parametrize("compress", [False, True], ids=["serial_version_3", "serial_version_4"])
@pytest.mark.parametrize("count", COUNTS)
def test_we_read_its_sketch(count: int, compress: bool) -> None:
    peer = theirs(-5, count)
    data = peer.serialize(compress=compress)
    assert data[1] == (4 if compress and count > 1 else 3)
    check_equal(ThetaSketch.from_bytes(data), peer)


@pytest.mark.parametrize("count", [count for count in COUNTS if count <= 4096])
def test_few_values_make_the_same_sketch(count: int) -> None:
    """Except for two fields that it leaves at zero, and a flag of single values."""
    check_equal(ours(0, count), theirs(0, count))


@pytest.mark.parametrize(
    "values",
    [
        [str(number) for number in range(4000)],
        [f"čas 日本 {number} " * (number % 9 + 1) for number in range(4000)],
        [number * 0.37 - 500 for number in range(4000)],
        [-(2**63), -1, 0, 1, 2**31, 2**63 - 1],
    ],
    ids=["text", "long_text", "double", "bigint"],
)
def test_it_hashes_values_as_we_do(values: list[Any]) -> None:
    peer = datasketches.update_theta_sketch()
    for value in values:
        peer.update(value)
    check_equal(ThetaSketch().update(pa.array(values)), peer.compact())


@pytest.mark.parametrize(
    ("first", "second"),
    [((0, 100), (50, 100)), ((0, 0), (0, 5000)), ((0, 9000), (4000, 30_000)), ((0, 5000), (7, 1))],
)
def test_union_of_sketches_from_both_sides(first: tuple[int, int], second: tuple[int, int]) -> None:
    """Ours, theirs and mixed: the union of the same two sketches is always the same."""
    pairs = [
        (ours(*first), ours(*second)),
        (ours(*first), ThetaSketch.from_bytes(theirs(*second).serialize())),
        (ThetaSketch.from_bytes(theirs(*first).serialize(compress=True)), ours(*second)),
    ]
    for pair in pairs:
        union = datasketches.theta_union()
        for sketch in pair:
            union.update(read_by_it(sketch.to_bytes()))
        check_equal(pair[0].union(pair[1]), union.get_result())
