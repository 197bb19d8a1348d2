"""The libraries that PySpark brings in its own jars: RoaringBitmap, and DataSketches.

A plain JVM with the jars of PySpark on its class path; no session is started, as none is needed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alcid import DeletionVector, ThetaSketch
from tests.golden.positions import SETS, WIDE_SETS, positions_of
from tests.interop.peers import Jvm

POSITIONS = {name: positions_of(rows) for name, rows in SETS.items()}
WIDE = {name: positions_of(rows) for name, rows in WIDE_SETS.items()}
THETA = "org.apache.datasketches.theta"


# -- the bitmaps inside deletion vectors -------------------------------------------------------


def run_optimised(jvm: Jvm, bitmap: Any) -> bytes:
    bitmap.runOptimize()
    buffer = jvm.java.nio.ByteBuffer.allocate(bitmap.serializedSizeInBytes())
    bitmap.serialize(buffer)
    return bytes(buffer.array())


@pytest.mark.parametrize("name", POSITIONS)
def test_it_reads_and_writes_the_bitmap_of_a_32_bit_vector(spark_jvm: Jvm, name: str) -> None:
    inside = DeletionVector(POSITIONS[name]).to_bytes(bits=32)[8:-4]
    read = spark_jvm.org.roaringbitmap.RoaringBitmap()
    read.deserialize(spark_jvm.java.nio.ByteBuffer.wrap(inside))
    assert (read.getLongCardinality(), read.serializedSizeInBytes()) == (
        len(POSITIONS[name]),
        len(inside),
    )
    made = spark_jvm.org.roaringbitmap.RoaringBitmap()
    add = spark_jvm.method("org.roaringbitmap.RoaringBitmap", "add", "int").bindTo(made)
    spark_jvm.numbers(POSITIONS[name], "Integer").forEach(spark_jvm.function("Consumer", add))
    assert read.equals(made)
    assert run_optimised(spark_jvm, made) == run_optimised(spark_jvm, read) == inside


@pytest.mark.parametrize("name", POSITIONS | WIDE)
def test_it_reads_the_bitmaps_of_a_64_bit_vector(spark_jvm: Jvm, name: str) -> None:
    """The portable form of its 64-bit bitmaps is the content of a vector."""
    positions = (POSITIONS | WIDE)[name]
    inside = DeletionVector(positions).to_bytes(bits=64)[8:-4]
    read = spark_jvm.org.roaringbitmap.longlong.Roaring64NavigableMap(False)
    stream = spark_jvm.java.io.ByteArrayInputStream(inside)
    read.deserializePortable(spark_jvm.java.io.DataInputStream(stream))
    values = np.frombuffer(long_bytes(spark_jvm, read.toArray()), ">i8")
    assert values.tolist() == positions


def long_bytes(jvm: Jvm, array: Any) -> bytes:
    """A `long[]` in one call."""
    buffer = jvm.java.nio.ByteBuffer.allocate(8 * len(array))
    buffer.asLongBuffer().put(array)
    return bytes(buffer.array())


# -- theta sketches ----------------------------------------------------------------------------


def alpha_sketch(jvm: Jvm, values: Sequence[Any]) -> Any:
    """The sketch that a task of Iceberg builds from these integers or texts, in this order."""
    family = jvm.org.apache.datasketches.common.Family.ALPHA
    sketch = jvm.org.apache.datasketches.theta.UpdateSketch.builder().setFamily(family).build()
    if values:
        text = isinstance(values[0], str)
        kind = "java.lang.String" if text else "long"
        update = jvm.method(f"{THETA}.UpdateSketch", "update", kind).bindTo(sketch)
        java_values = jvm.texts(values) if text else jvm.numbers(values)
        java_values.forEach(jvm.function("Consumer", update))
    return sketch.compact()


def java_union(jvm: Jvm, *sketches: Any) -> Any:
    union = jvm.org.apache.datasketches.theta.SetOperation.builder().buildUnion()
    for sketch in sketches:
        union.union(sketch)
    return union.getResult()


def read_by_it(jvm: Jvm, data: bytes) -> Any:
    memory = jvm.org.apache.datasketches.memory.Memory.wrap(data)
    return jvm.org.apache.datasketches.theta.Sketches.heapifySketch(memory)


def check_equal(sketch: ThetaSketch, peer: Any) -> None:
    """The same bytes, and estimate, theta and count as in Java."""
    assert sketch.to_bytes() == bytes(peer.toByteArray())
    assert sketch.estimate == peer.getEstimate()
    assert sketch.theta == peer.getTheta()
    assert len(sketch) == peer.getRetainedEntries()


@pytest.mark.parametrize("count", [0, 1, 2, 500, 4096, 4097, 7681, 100_000])
def test_the_alpha_rule_keeps_the_same_hashes(spark_jvm: Jvm, count: int) -> None:
    """In the order of arrival, which decides what is kept beyond 4096 values."""
    values = np.random.default_rng(random.getrandbits(64)).integers(-(2**63), 2**63, count)
    stream = [*values.tolist(), *values[::3].tolist()]
    ours = ThetaSketch().update(pa.array(stream, pa.int64()))
    theirs = alpha_sketch(spark_jvm, stream)
    check_equal(ours, theirs)
    check_equal(ours, read_by_it(spark_jvm, ours.to_bytes()))
    packed = bytes(theirs.toByteArrayCompressed())
    assert packed[1] == (4 if count > 1 else 3)
    assert ThetaSketch.from_bytes(packed) == ours


def test_the_alpha_rule_over_texts(spark_jvm: Jvm) -> None:
    texts = [f"čas 日本 {number} " * (number % 7 + 1) for number in range(20_000)]
    random.shuffle(texts)
    ours = ThetaSketch().update(pa.array(texts))
    check_equal(ours, alpha_sketch(spark_jvm, texts))


@pytest.mark.parametrize(
    "parts", [[], [0], [10], [9000], [100, 200], [0, 5000, 0], [9000, 30_000, 10], [50_000] * 4]
)
def test_the_union_of_tasks_is_the_same(spark_jvm: Jvm, parts: list[int]) -> None:
    """One sketch for each task, merged one by one from an empty one as in Iceberg; they overlap."""
    values = np.random.default_rng(random.getrandbits(64)).integers(-(2**63), 2**63, 60_000)
    tasks = [values[7 * part :][:count].tolist() for part, count in enumerate(parts)]
    ours = ThetaSketch()
    for task in tasks:
        ours = ours.union(ThetaSketch().update(pa.array(task, pa.int64())))
    theirs = java_union(spark_jvm, *(alpha_sketch(spark_jvm, task) for task in tasks))
    check_equal(ours, theirs)
    written = [ThetaSketch().update(pa.array(task, pa.int64())).to_bytes() for task in tasks]
    check_equal(ours, java_union(spark_jvm, *(read_by_it(spark_jvm, data) for data in written)))
