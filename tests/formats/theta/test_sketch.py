from __future__ import annotations

import copy
import hashlib
import pickle
from collections.abc import Iterable

import datasketches
import numpy as np
import pyarrow as pa
import pytest

from alcid import FormatError, UnsupportedError
from alcid.formats.hashing import murmur
from alcid.formats.theta.sketch import ThetaSketch, single_values
from alcid.inspect.byte_bar import histogram
from alcid.inspect.display import picture
from alcid.inspect.page import table


def longs(start: int, stop: int) -> pa.Array:
    return pa.array(np.arange(start, stop))


def peer_of(values: Iterable[int | str]) -> datasketches.compact_theta_sketch:
    sketch = datasketches.update_theta_sketch(12)
    for value in values:
        sketch.update(value)
    return sketch.compact()


def to_peer(sketch: ThetaSketch) -> datasketches.compact_theta_sketch:
    return datasketches.compact_theta_sketch.deserialize(sketch.to_bytes())


@pytest.mark.parametrize("count", [0, 1, 2, 100, 4095, 4096])
def test_up_to_k_longs_are_kept_as_datasketches_keeps_them(count: int) -> None:
    sketch = ThetaSketch().update(longs(0, count))
    assert sketch == ThetaSketch.from_bytes(peer_of(range(count)).serialize())
    assert (sketch.estimate, sketch.ndv, sketch.theta, len(sketch)) == (count, count, 1.0, count)


def test_up_to_k_strings_are_kept_as_datasketches_keeps_them() -> None:
    texts = ["é" * (number % 70) + str(number) for number in range(4096)]
    assert ThetaSketch().update(pa.array(texts)) == ThetaSketch.from_bytes(
        peer_of(texts).serialize()
    )


# What Java's Alpha sketch (datasketches 6.2.0) keeps of the longs 0 to n - 1, in this order.
@pytest.mark.parametrize(
    ("count", "hashes", "theta", "estimate", "digest"),
    [
        (
            4097,
            4095,
            0.9997559189650964,
            4095.999755859375,
            "f0ecfbd7b39db0c94d511f12c0ef6d1b53783ce6",
        ),
        (
            4098,
            4095,
            0.9995118975057444,
            4096.99975579977,
            "77e8cf05ef9023346ccd9e57bef284ebffdcacd8",
        ),
        (
            5000,
            4078,
            0.8189906128491657,
            4979.300050599053,
            "613c74813f9dbe2f87e5176754e9e7f1a11c5050",
        ),
        (
            10_000,
            4082,
            0.4117483743575617,
            9913.821776149132,
            "b02062812fe1fad8e7a1dbe05efe0dbfe83b0e3e",
        ),
        (
            100_000,
            4084,
            0.041655453839904426,
            98042.38397440469,
            "356e36922e25037aec265670447f68e4882c6b47",
        ),
        (
            1_000_000,
            4103,
            0.004086521928173274,
            1004032.2974197501,
            "73e5d3feb15e931588b65ac06e763d032da98acf",
        ),
    ],
)
def test_beyond_k_the_sketch_is_that_of_java_to_the_byte(
    count: int, hashes: int, theta: float, estimate: float, digest: str
) -> None:
    sketch = ThetaSketch().update(longs(0, count))
    assert (len(sketch), sketch.theta, sketch.estimate) == (hashes, theta, estimate)
    assert sketch.ndv == int(estimate)
    assert hashlib.sha1(sketch.to_bytes()).hexdigest() == digest


def test_neither_chunks_nor_calls_nor_pickling_in_between_change_anything() -> None:
    values = np.random.default_rng(7).integers(0, 30_000, 60_000)
    whole = ThetaSketch().update(pa.array(values))
    parts = [pa.array(part) for part in np.array_split(values, 11)]
    assert ThetaSketch().update(pa.chunked_array(parts)) == whole
    sketch = ThetaSketch()
    for part in parts:
        assert sketch.update(part) is sketch
        sketch = pickle.loads(pickle.dumps(sketch))
    assert sketch == whole


def test_the_order_of_rows_matters_beyond_k_only() -> None:
    few, many = np.arange(4096), np.arange(20_000)
    assert ThetaSketch().update(pa.array(few[::-1])) == ThetaSketch().update(pa.array(few))
    assert ThetaSketch().update(pa.array(many[::-1])) != ThetaSketch().update(pa.array(many))


def test_repeated_values_count_once() -> None:
    values = np.tile(np.arange(3000), 100)
    assert ThetaSketch().update(pa.array(values)) == ThetaSketch().update(longs(0, 3000))


def test_int_and_long_are_different_values() -> None:
    sketch = ThetaSketch().update(pa.array([1, 2], pa.int32())).update(pa.array([1, 2], pa.int16()))
    assert sketch.ndv == 2
    assert sketch.update(pa.array([1, 2], pa.int64())).ndv == 4


def test_nulls_and_empty_values_are_not_counted() -> None:
    sketch = ThetaSketch().update(pa.array(["", None])).update(pa.nulls(5))
    assert sketch == ThetaSketch()
    assert (sketch.estimate, sketch.theta, len(sketch)) == (0.0, 1.0, 0)


def test_union_of_full_sketches_keeps_the_k_lowest_hashes() -> None:
    first, second = (ThetaSketch().update(longs(*ends)) for ends in ((0, 9000), (5000, 20_000)))
    union = first.union(second)
    peer = datasketches.theta_union(12)
    for sketch in (first, second):
        peer.update(to_peer(sketch))
    assert union == ThetaSketch.from_bytes(peer.get_result().serialize())
    assert len(union) == 4096
    assert union.estimate == pytest.approx(peer.get_result().get_estimate(), rel=1e-12)
    assert second.union(first) == union
    assert first == ThetaSketch().update(longs(0, 9000))


def test_union_with_a_sketch_of_datasketches_that_keeps_more_than_k() -> None:
    peer = peer_of(range(5000))  # its table is not full yet
    assert peer.num_retained == 5000
    read = ThetaSketch.from_bytes(peer.serialize())
    assert read.ndv == 5000
    united = datasketches.theta_union(12)
    united.update(peer)
    assert ThetaSketch().union(read) == ThetaSketch.from_bytes(united.get_result().serialize())


def test_union_of_one_task_cuts_to_k() -> None:
    larger = ThetaSketch().update(longs(0, 1_000_000))
    smaller = ThetaSketch().update(longs(0, 100_000))
    assert (len(larger), len(smaller)) == (4103, 4084)
    assert len(ThetaSketch().union(larger)) == 4096
    assert ThetaSketch().union(smaller) == smaller


def test_union_takes_the_lower_theta_and_leaves_out_what_is_not_below() -> None:
    few, many = ThetaSketch().update(longs(0, 3000)), ThetaSketch().update(longs(0, 100_000))
    union = few.union(many)
    assert (union.theta, len(union)) == (many.theta, len(many))
    assert union == many


def test_update_of_a_union_unites_with_a_sketch_of_the_array() -> None:
    first, rows = ThetaSketch().update(longs(0, 9000)), longs(5000, 20_000)
    expected = first.union(ThetaSketch().update(rows))
    for sketch in (ThetaSketch().union(first), ThetaSketch.from_bytes(first.to_bytes())):
        assert sketch.update(rows) is sketch
        assert sketch == expected
        travelled = pickle.loads(pickle.dumps(sketch))
        assert travelled.update(longs(0, 1)) == sketch.update(longs(0, 1))


def test_a_copy_is_independent() -> None:
    sketch = ThetaSketch().update(longs(0, 10))
    other = copy.deepcopy(sketch).update(longs(0, 11))
    assert (sketch.ndv, other.ndv) == (10, 11)


def test_datasketches_reads_ours() -> None:
    for count in (0, 1, 2, 4096, 10_000):
        sketch = ThetaSketch().update(longs(0, count))
        peer = to_peer(sketch)
        assert peer.num_retained == len(sketch)
        assert peer.get_estimate() == pytest.approx(sketch.estimate, rel=1e-12)


def test_sketches_are_equal_by_what_they_keep_and_have_no_hash() -> None:
    sketch = ThetaSketch().update(longs(0, 10))
    assert sketch == ThetaSketch.from_bytes(sketch.to_bytes())
    assert sketch != ThetaSketch().update(longs(0, 9))
    assert sketch != sketch.to_bytes()
    with pytest.raises(TypeError, match="unhashable"):
        hash(sketch)


def test_it_shows_the_count_and_whether_it_is_an_estimate() -> None:
    assert repr(ThetaSketch()) == "<ThetaSketch: 0 distinct values, 0 hashes>"
    sketch = ThetaSketch().update(longs(0, 10_000))
    assert repr(sketch) == "<ThetaSketch: about 9913 distinct values, 4082 hashes>"


def test_a_refused_column_leaves_the_sketch_as_it_was() -> None:
    sketch = ThetaSketch().update(longs(0, 10))
    with pytest.raises(UnsupportedError, match="ARRAY<BIGINT> cannot be counted"):
        sketch.update(pa.array([[1]]))
    assert sketch == ThetaSketch().update(longs(0, 10))


def test_an_error_names_the_bytes_as_the_caller_does() -> None:
    with pytest.raises(FormatError, match=r"^a\.stats: truncated at offset 0: found 0 bytes"):
        ThetaSketch.from_bytes(b"", name="a.stats")


def test_the_hashes_of_a_sketch_are_a_copy() -> None:
    sketch = ThetaSketch().update(longs(0, 3))
    assert sketch.hashes.tolist() == sorted(sketch.hashes.tolist())
    hashes = sketch.hashes
    hashes[:] = 0
    assert (len(sketch), 0 in sketch.hashes.tolist()) == (3, False)


def test_sketches_are_united_by_an_operator() -> None:
    first, other = ThetaSketch().update(longs(0, 10)), ThetaSketch().update(longs(5, 30))
    assert (first | other) == first.union(other) == ThetaSketch().update(longs(0, 30))
    assert ((first | other).ndv, first.ndv, other.ndv) == (30, 10, 25)


@pytest.mark.parametrize("count", [0, 100, 4096, 20_000])
def test_a_sketch_of_a_column_keeps_its_lowest_hashes(count: int) -> None:
    sketch = ThetaSketch.of(longs(0, count))
    parts = [murmur(values) >> np.uint64(1) for values in single_values(longs(0, count))]
    every = np.sort(np.concatenate([np.zeros(0, np.uint64), *parts])).tolist()
    assert sketch.hashes.tolist() == every[:4096]
    assert sketch.theta == (1.0 if count <= 4096 else every[4096] / 2.0**63)
    if count <= 4096:
        assert sketch == ThetaSketch().update(longs(0, count))


@pytest.mark.parametrize(("count", "about"), [(0, ""), (1, ""), (3, ""), (50_000, "about ")])
def test_a_picture_counts_the_hashes_of_each_tenth_of_theta(count: int, about: str) -> None:
    sketch = ThetaSketch().update(longs(0, count))
    title, parts = picture(sketch)
    value = "value" if count == 1 else "values"
    assert title == f"Theta sketch of {about}{sketch.ndv:,} distinct {value}"
    facts = table(
        ["estimate", "theta", "hashes"],
        [[f"{sketch.estimate:,.1f}", f"{sketch.theta:.4g}", len(sketch)]],
        numbers=(0, 1, 2),
    )
    assert parts[:2] == [f"<p>{title}</p>", facts]
    tenths = [0] * 10
    for hash_ in sketch.hashes.tolist():
        tenths[int(hash_ / (sketch.theta * 2.0**63) * 10)] += 1
    labels = [f"{tenth} % of theta" for tenth in range(0, 100, 10)]
    assert parts[2:] == ([histogram(labels, tenths, what="hashes")] if count else [])
