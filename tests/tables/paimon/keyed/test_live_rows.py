"""New rows find the older ones of their keys, as merging all of them would."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.errors import UnsupportedError
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.paimon.keyed.older_rows import KeyMatches, look_up
from alcid.tables.paimon.merge_on_read import KeyRows, superseded_rows
from tests.tables.paimon.key_rows import File, rank, tables


def rows_of(
    keys: list[Any],
    *,
    level: int = 5,
    sequence: list[Any] | None = None,
    deleted: list[int] | None = None,
    kinds: list[int] | None = None,
) -> KeyRows:
    return KeyRows(
        [pa.array(keys)],
        np.arange(len(keys)),
        np.array(kinds or [0] * len(keys), np.int8),
        level,
        [] if sequence is None else [pa.array(sequence, pa.int32())],
        None if deleted is None else DeletionVector(deleted),
    )


def outcome(matches: KeyMatches) -> tuple[list[list[int]], list[int], list[int]]:
    """Superseded rows, the new rows that are outdated, and those whose key exists."""
    return (
        [list(vector) for vector in matches.superseded],
        np.flatnonzero(matches.is_outdated).tolist(),
        np.flatnonzero(matches.is_existing).tolist(),
    )


@pytest.mark.parametrize(
    "key",
    [int, float, str, lambda value: str(value).encode()],
    ids=["int", "float", "str", "bytes"],
)
@pytest.mark.parametrize("count", [4, 40], ids=["many new", "few new"])
def test_older_rows_are_marked(key: Any, count: int) -> None:
    first = rows_of(sorted(key(value) for value in range(10, 10 + count)))
    second = rows_of(sorted(key(value) for value in range(100, 100 + count)), level=4)
    new = rows_of([key(value) for value in (9, 11, 101, 12)], level=0)
    assert outcome(look_up([first, second], new)) == ([[1, 2], [1]], [], [1, 2, 3])


def test_nothing_is_found_in_nothing() -> None:
    new = rows_of([1, 2])
    empty = replace(rows_of([]), keys=[pa.array([], pa.int64())])
    assert outcome(look_up([], new)) == ([], [], [])
    assert outcome(look_up([empty], new)) == ([[]], [], [])
    assert outcome(look_up([new], empty)) == ([[]], [], [])


def test_rows_that_are_marked_already_are_neither_found_nor_marked_again() -> None:
    old = rows_of([1, 2, 3], deleted=[1])
    assert outcome(look_up([old], rows_of([2, 3]))) == ([[2]], [], [1])


@pytest.mark.parametrize(
    ("keys", "marks"), [([3, 1, 2, 1], [0, 1, 3]), ([1, 1, 2, 3], [0, 1, 3])], ids=str
)
def test_a_file_that_is_not_sorted_is_searched_too(keys: list[int], marks: list[int]) -> None:
    assert outcome(look_up([rows_of(keys)], rows_of([1, 3]))) == ([marks], [], [0, 1])


def test_every_nan_is_the_same_key_and_no_zero_is_the_other() -> None:
    bits = np.array([0x7FF8 << 48, (0xFFF0 << 48) + 1], np.uint64)
    keys = np.concatenate([bits.view(np.float64), np.array([0.0, -0.0, *range(1, 9)])])
    old = replace(rows_of([0] * len(keys)), keys=[pa.array(keys, from_pandas=False)])
    assert outcome(look_up([old], rows_of([float("nan"), -0.0]))) == ([[0, 1, 3]], [], [0, 1])


def test_sequence_numbers_do_not_save_an_older_row() -> None:
    old = replace(rows_of([1]), sequence_numbers=np.array([1 << 40]))
    assert outcome(look_up([old], rows_of([1]))) == ([[0]], [], [0])
    aged = replace(old, sequence=[pa.array([7])])
    new = replace(rows_of([1]), sequence=[pa.array([7])])
    assert outcome(look_up([aged], new)) == ([[0]], [], [0])


@pytest.mark.parametrize("descending", [False, True])
def test_the_greater_sequence_field_wins(descending: bool) -> None:
    old = rows_of([1, 2, 3, 4, 5], sequence=[5, 5, 5, None, 5])
    new = rows_of([1, 2, 3, 4, 5], sequence=[4, 5, 6, None, None])
    lower, greater = ([0], [2]) if descending else ([2], [0])
    expected = sorted([*lower, 1, 3])
    assert outcome(look_up([old], new, descending=descending)) == (
        [expected],
        sorted([*greater, 4]),
        [0, 1, 2, 3, 4],
    )


def test_of_rows_that_are_live_twice_one_stays_at_most() -> None:
    top = rows_of([1, 2, 3], sequence=[5, 9, 1])
    lower = rows_of([1, 2, 3], sequence=[6, 4, 1], level=4)
    new = rows_of([1, 2, 3], sequence=[5, 5, 5], level=0)
    assert outcome(look_up([lower, top], new)) == ([[1, 2], [0, 2]], [0, 1], [0, 1, 2])


def test_of_equal_rows_that_are_live_twice_that_of_the_lower_level_stays() -> None:
    top, lower = rows_of([1], sequence=[9]), rows_of([1], sequence=[9], level=4)
    new = rows_of([1], sequence=[5], level=0)
    assert outcome(look_up([lower, top], new)) == ([[], [0]], [0], [0])
    assert outcome(look_up([top, lower], new)) == ([[0], []], [0], [0])


def test_a_row_that_deletes_is_no_row_that_is_there() -> None:
    old = rows_of([1, 2], kinds=[3, 0])
    assert outcome(look_up([old], rows_of([1, 2]))) == ([[0, 1]], [], [1])


def test_keys_of_other_types_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="expected one type"):
        look_up([rows_of([1])], replace(rows_of([1]), keys=[pa.array([1], pa.int32())]))


@given(tables(), st.booleans())
def test_the_same_rows_lose_as_when_all_are_merged(files: list[File], descending: bool) -> None:
    *older, last = files
    new = _unique(last)
    wanted = {rank(key) for key in new.keys}
    old = [file.key_rows() for file in older]
    found = look_up(old, new.key_rows(), descending=descending)
    *marked, beaten = superseded_rows([*old, new.key_rows()], descending=descending)
    expected, present = [], set()
    for file, vector in zip(older, marked, strict=True):
        live = [row for row in range(len(file.keys)) if row not in (file.deleted or ())]
        met = [row for row in live if rank(file.keys[row]) in wanted]
        expected.append([row for row in met if row in vector])
        present |= {rank(file.keys[row]) for row in met if not file.kinds[row] & 1}
    assert outcome(found) == (
        expected,
        list(beaten),
        [row for row, key in enumerate(new.keys) if rank(key) in present],
    )


def _unique(file: File) -> File:
    """The rows of a file, each key once, newer than all others."""
    kept = list({rank(key): row for row, key in enumerate(file.keys)}.values())
    return replace(
        file,
        keys=[file.keys[row] for row in kept],
        sequence=[file.sequence[row] for row in kept],
        numbers=[100] * len(kept),
        kinds=[0] * len(kept),
        level=0,
        deleted=None,
    )


@given(
    st.lists(st.sets(st.integers(-9, 9)), max_size=3),
    st.lists(st.integers(-9, 9), unique=True),
    st.sampled_from([pa.int8(), pa.int64(), pa.date32(), pa.time32("ms"), pa.timestamp("ns")]),
)
def test_a_search_finds_what_ranking_finds(
    older: list[set[int]], new: list[int], kind: pa.DataType
) -> None:
    def keys(values: list[int]) -> pa.Array:
        width = pa.int64() if kind.bit_width == 64 else pa.int32()
        return (
            pa.array(values, pa.int8()) if kind == pa.int8() else pa.array(values, width).view(kind)
        )

    def both(values: list[int]) -> tuple[KeyRows, KeyRows]:
        rows = replace(rows_of([0] * len(values)), keys=[keys(values)])
        # Of two columns the first is the same everywhere: such keys are ranked.
        return rows, replace(rows, keys=[pa.array([0] * len(values), pa.int8()), keys(values)])

    files = [both(sorted(values)) for values in older]
    newer = both(new)
    searched, ranked = (
        outcome(look_up([file[way] for file in files], newer[way])) for way in range(2)
    )
    assert searched == ranked
