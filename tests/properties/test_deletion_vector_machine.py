"""Deletion vectors that grow, merge, are written and read in any order, and Python's sets."""

from __future__ import annotations

import pickle
from typing import Literal

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, multiple, rule

from alcid.formats.deletion_vector import DeletionVector, DeletionVectorFile

LARGEST_32 = 2**31 - 1
BORDERS = [0, 1 << 16, 5 << 16, 1 << 31, 1 << 32, (1 << 32) + (1 << 16), 7 << 32]

positions = st.builds(
    lambda border, distance: max(border + distance, 0),
    st.sampled_from(BORDERS),
    st.integers(-4, 4) | st.integers(0, 200_000),
)
# (first, count, step): arrays, the largest array and the smallest bitset, bitsets, runs
stretches = st.tuples(
    positions,
    st.sampled_from([1, 2, 3, 4, 5, 4096, 4097, 66_000]),
    st.sampled_from([1, 1, 2, 3, 16]),
)
Held = tuple[DeletionVector, frozenset[int]]


class Vectors(RuleBasedStateMachine):
    """Pairs of a vector and the set that it must equal."""

    vectors = Bundle("vectors")

    @rule(target=vectors, values=st.lists(positions, max_size=12))
    def make_from_list(self, values: list[int]) -> Held:
        return DeletionVector(values), frozenset(values)

    @rule(target=vectors, stretch=stretches, shuffled=st.booleans(), as_arrow=st.booleans())
    def make_from_stretch(
        self, stretch: tuple[int, int, int], shuffled: bool, as_arrow: bool
    ) -> Held:
        first, count, step = stretch
        values = np.arange(first, first + count * step, step)
        expected = frozenset(values.tolist())
        if shuffled:
            values = np.random.default_rng(count).permutation(values)
        return DeletionVector(pa.array(values) if as_arrow else values), expected

    @rule(target=vectors, left=vectors, right=vectors)
    def unite(self, left: Held, right: Held) -> Held:
        union = left[0] | right[0]
        assert union.bits == max(left[0].bits, right[0].bits)
        return union, left[1] | right[1]

    @rule(target=vectors, pair=vectors, values=st.lists(positions, max_size=5))
    def delete_more(self, pair: Held, values: list[int]) -> Held:
        return pair[0].union(DeletionVector(values)), pair[1].union(values)

    @rule(target=vectors, pair=vectors, wide=st.booleans())
    def write_and_read(self, pair: Held, wide: bool) -> Held:
        vector, expected = pair
        bits: Literal[32, 64] = 64 if wide or max(expected, default=0) > LARGEST_32 else 32
        data = vector.to_bytes(bits)
        read = DeletionVector.from_bytes(data, len(expected))
        assert read.bits == bits
        assert read.to_bytes() == data
        return read, expected

    @rule(target=vectors, first=consumes(vectors), second=consumes(vectors))
    def write_and_read_a_file(self, first: Held, second: Held) -> object:
        pairs = {"a": first, "b": second}
        written = DeletionVectorFile.write({name: vector for name, (vector, _) in pairs.items()})
        read = DeletionVectorFile.from_bytes(written.data).read_all(written.ranges)
        assert [read[name].bits for name in pairs] == [first[0].bits, second[0].bits]
        return multiple(*((read[name], expected) for name, (_, expected) in pairs.items()))

    @rule(target=vectors, pair=vectors)
    def pickle_and_back(self, pair: Held) -> Held:
        return pickle.loads(pickle.dumps(pair[0])), pair[1]

    @rule(pair=vectors)
    def holds_what_it_should(self, pair: Held) -> None:
        vector, expected = pair
        ascending = sorted(expected)
        assert vector.to_numpy().tolist() == ascending
        assert list(vector) == ascending
        assert (len(vector), bool(vector)) == (len(expected), bool(expected))
        assert (vector.first, vector.last) == (
            (ascending[0], ascending[-1]) if ascending else (None, None)
        )

    @rule(pair=vectors, first=positions, count=st.sampled_from([1, 50, 20_000]))
    def tells_which_rows_of_a_batch_are_deleted(self, pair: Held, first: int, count: int) -> None:
        vector, expected = pair
        batch = range(first, first + count)
        answers = vector.contains(np.arange(first, first + count))
        assert np.flatnonzero(answers).tolist() == sorted(
            row - first for row in expected & {*batch}
        )

    @rule(pair=vectors, asked=st.lists(positions, max_size=20))
    def tells_which_positions_it_has(self, pair: Held, asked: list[int]) -> None:
        vector, expected = pair
        answers = [position in expected for position in asked]
        assert vector.contains(np.array(asked, np.int64)).tolist() == answers
        assert [position in vector for position in asked] == answers

    @rule(left=vectors, right=vectors)
    def equals_those_with_the_same_positions(self, left: Held, right: Held) -> None:
        assert (left[0] == right[0]) is (left[1] == right[1])
        if left[1] == right[1]:
            assert hash(left[0]) == hash(right[0])


TestVectors = Vectors.TestCase
TestVectors.settings = settings(stateful_step_count=20)
