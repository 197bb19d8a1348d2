"""Theta sketches compared with models in plain Python: one hash at a time, and sets."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import mmh3
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from alcid.formats.theta.compact import MAX_THETA, CompactTheta
from alcid.formats.theta.sketch import NOMINAL_ENTRIES, AlphaRule, ThetaSketch, lowest_hashes, unite

Content = tuple[int, list[int]]

HASHES = st.integers(0, MAX_THETA)
CUTS = st.lists(st.floats(0, 1), max_size=5)


def alpha(hashes: Iterable[int], k: int) -> Content:
    """The content of an Alpha sketch: theta, and the hashes below."""
    theta, accepted, kept = MAX_THETA, 0, dict[int, None]()
    for value in hashes:
        if value == 0 or value >= theta or value in kept:
            continue
        kept[value] = None
        accepted += 1
        if accepted > k:
            theta = int(float(theta) * (k / (k + 1.0)))
    return theta, sorted(value for value in kept if value < theta)


def union(first: Content, second: Content, k: int) -> Content:
    theta = min(first[0], second[0])
    hashes = sorted({value for value in first[1] + second[1] if value < theta})
    return (hashes[k], hashes[:k]) if len(hashes) > k else (theta, hashes)


def content(sketch: CompactTheta) -> Content:
    return sketch.theta, sketch.hashes.tolist()


def compact(sketch: Content) -> CompactTheta:
    return CompactTheta(sketch[0], np.array(sketch[1], np.uint64))


def hash_of(value: int) -> int:
    return mmh3.hash64(value.to_bytes(8, "little"), 9001, signed=False)[0] >> 1


@given(st.lists(HASHES, max_size=60), st.integers(1, 8), CUTS, st.randoms(use_true_random=False))
def test_the_alpha_rule_for_any_stream_in_any_batches(
    pool: list[int], k: int, cuts: list[float], random: Random
) -> None:
    choose = np.random.default_rng(random.getrandbits(32))
    stream = [pool[index] for index in choose.integers(0, len(pool), 3 * len(pool))] if pool else []
    rule = AlphaRule(nominal_entries=k)
    ends = sorted(round(cut * len(stream)) for cut in cuts)
    for start, end in zip([0, *ends], [*ends, len(stream)], strict=True):
        rule.add(np.array(stream[start:end], np.uint64))
        assert content(rule.kept()) == alpha(stream[:end], k)
        rule = AlphaRule(rule.kept(), nominal_entries=k)  # as after pickling


@st.composite
def sketches(draw: st.DrawFn) -> Content:
    theta = draw(st.one_of(st.just(MAX_THETA), st.integers(1, 200)))
    hashes = draw(st.sets(st.integers(1, min(theta - 1, 250)), max_size=30)) if theta > 1 else set()
    return theta, sorted(hashes)


@given(st.lists(sketches(), min_size=1, max_size=4), st.integers(1, 20))
def test_union_keeps_the_lowest_hashes(parts: list[Content], k: int) -> None:
    united, expected = compact((MAX_THETA, [])), (MAX_THETA, list[int]())
    for part in parts:
        united = unite(united, compact(part), nominal_entries=k)
        expected = union(expected, part, k)
        assert content(united) == expected
    assert content(unite(united, united, nominal_entries=k)) == expected


@given(st.lists(st.lists(st.integers(0, 90), max_size=40), max_size=4), st.integers(1, 20))
def test_the_lowest_hashes_of_parts_and_of_parts_united(parts: list[list[int]], k: int) -> None:
    lowest = sorted({value for part in parts for value in part} - {0})
    expected = (lowest[k], lowest[:k]) if len(lowest) > k else (MAX_THETA, lowest)
    arrays = [np.array(part, np.uint64) for part in parts]
    assert content(lowest_hashes(arrays, k)) == expected
    united = compact((MAX_THETA, []))
    for array in arrays:
        united = unite(united, lowest_hashes([array], k), k)
    assert content(united) == expected


@settings(max_examples=10)
@given(st.integers(0, 2**32), st.integers(1, 150_000), st.integers(1, 100_000))
def test_the_sketch_of_a_column_by_its_lowest_hashes(seed: int, rows: int, domain: int) -> None:
    values = np.random.default_rng(seed).integers(0, domain, rows)
    lowest = sorted(set(map(hash_of, np.unique(values).tolist())) - {0})
    theta = lowest[NOMINAL_ENTRIES] if len(lowest) > NOMINAL_ENTRIES else MAX_THETA
    sketch = ThetaSketch.of(pa.chunked_array(np.array_split(values, 3)))
    assert content(sketch._compact) == (theta, lowest[:NOMINAL_ENTRIES])


@settings(max_examples=10)
@given(st.integers(0, 2**32), st.integers(1, 150_000), st.integers(1, 100_000), st.integers(1, 4))
def test_sketches_of_tasks_and_their_union(seed: int, rows: int, domain: int, tasks: int) -> None:
    values = np.random.default_rng(seed).integers(0, domain, rows)
    sketch, expected = ThetaSketch(), (MAX_THETA, list[int]())
    for part in np.array_split(values, tasks):
        task = ThetaSketch().update(pa.array(part))
        kept = alpha(map(hash_of, part.tolist()), NOMINAL_ENTRIES)
        assert content(task._compact) == kept
        sketch, expected = sketch.union(task), union(expected, kept, NOMINAL_ENTRIES)
    assert content(sketch._compact) == expected
    assert sketch.estimate == len(expected[1]) * (2.0**63 / expected[0])
