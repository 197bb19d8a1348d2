"""Merging on read: the rows that are superseded, compared with a dictionary of the newest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.errors import FormatError, UnsupportedError
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.paimon.merge_on_read import KeyRows, superseded_rows
from tests.tables.paimon.key_rows import File, Rank, rank, tables


def merged(files: list[File], *, descending: bool, ignore_delete: bool) -> list[set[int]]:
    """What `superseded_rows` should find, row by row."""
    newest: dict[Rank, tuple[Rank, int, int]] = {}
    for number, file in enumerate(files):
        for position, kind in enumerate(file.kinds):
            if file.deleted and position in file.deleted:
                continue
            if ignore_delete and kind in (1, 3):
                continue
            fields = rank(file.sequence[position], descending=descending)
            age = (fields, file.numbers[position], -file.level, number, position)
            key = rank(file.keys[position])
            if key not in newest or newest[key][0] < age:
                newest[key] = age, number, position
    hidden = [set(range(len(file.kinds))) | set(file.deleted or ()) for file in files]
    for _, number, position in newest.values():
        if files[number].kinds[position] in (0, 2):
            hidden[number].remove(position)
    return hidden


@given(files=tables(), descending=st.booleans(), ignore_delete=st.booleans())
def test_all_but_the_newest_row_of_each_key_are_hidden(
    files: list[File], descending: bool, ignore_delete: bool
) -> None:
    vectors = superseded_rows(
        [file.key_rows() for file in files], descending=descending, ignore_delete=ignore_delete
    )
    expected = merged(files, descending=descending, ignore_delete=ignore_delete)
    assert [set(vector) for vector in vectors] == expected


def rows(
    keys: list[Any],
    numbers: list[int],
    kinds: list[int] | None = None,
    *,
    level: int = 0,
    deleted: DeletionVector | None = None,
    sequence: list[Any] | None = None,
) -> KeyRows:
    return KeyRows(
        [pa.array(keys)],
        pa.array(numbers),
        pa.chunked_array([pa.array([0] * len(keys) if kinds is None else kinds, pa.int8())]),
        level,
        [] if sequence is None else [pa.array(sequence, pa.float64())],
        deleted,
        "bucket-0/a.parquet",
    )


def positions(vectors: list[DeletionVector]) -> list[list[int]]:
    return [list(vector) for vector in vectors]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param((5, 0), [[0], []], id="lower level, given last"),
        pytest.param((0, 5), [[], [0]], id="lower level, given first"),
        pytest.param((3, 3), [[0], []], id="same level"),
    ],
)
def test_equal_sequence_numbers_leave_it_to_level_and_then_file(
    levels: tuple[int, int], expected: list[list[int]]
) -> None:
    files = [rows([1], [7], level=level) for level in levels]
    assert positions(superseded_rows(files)) == expected


def test_a_greater_sequence_number_beats_a_lower_level() -> None:
    assert positions(superseded_rows([rows([1], [8], level=5), rows([1], [7])])) == [[], [0]]


def test_of_equal_rows_of_one_file_the_last_stays() -> None:
    assert positions(superseded_rows([rows([1, 1, 1], [7, 7, 7])])) == [[0, 1]]


@pytest.mark.parametrize("descending", [False, True])
def test_a_row_without_sequence_field_is_the_oldest_in_either_order(descending: bool) -> None:
    files = [rows([1], [9], sequence=[None]), rows([1], [1], sequence=[-math.inf])]
    assert positions(superseded_rows(files, descending=descending)) == [[0], []]


def test_descending_lets_the_least_sequence_field_win() -> None:
    files = [rows([1, 2], [1, 1], sequence=[-0.0, 5]), rows([1, 2], [2, 2], sequence=[0.0, 5])]
    assert positions(superseded_rows(files)) == [[0, 1], []]
    assert positions(superseded_rows(files, descending=True)) == [[1], [0]]


@pytest.mark.parametrize("kind", [1, 3])
def test_a_newest_row_that_deletes_hides_its_key(kind: int) -> None:
    files = [rows([1, 2], [1, 2], level=5), rows([1, 3], [3, 4], [kind, 2])]
    assert positions(superseded_rows(files)) == [[0], [0]]
    assert positions(superseded_rows(files, ignore_delete=True)) == [[], [0]]


def test_an_older_row_comes_back_where_the_newer_was_deleted_by_a_vector() -> None:
    files = [rows([1], [1], level=5), rows([1], [2], deleted=DeletionVector([0]))]
    assert positions(superseded_rows(files)) == [[], [0]]


def test_both_zeros_are_keys_and_all_nans_are_one() -> None:
    other_nan = float(np.array([0xFFF0000000000001], np.uint64).view(np.float64)[0])
    files = [rows([-0.0, math.nan], [1, 1]), rows([0.0, other_nan], [2, 2])]
    assert positions(superseded_rows(files)) == [[1], []]


def test_keys_of_two_columns_are_not_run_together() -> None:
    keys = [pa.array(["ab", "a"]), pa.array(["c", "bc"])]
    assert positions(superseded_rows([KeyRows(keys, np.arange(2), np.zeros(2, int), 0)])) == [[]]


def test_columns_that_need_all_64_bits_each_stay_apart() -> None:
    ends = pa.array([-(1 << 63), (1 << 63) - 1, -(1 << 63), (1 << 63) - 1, -(1 << 63)])
    other = pa.array([0, 0, (1 << 64) - 1, (1 << 64) - 1, 0], pa.uint64())
    files = [KeyRows([ends, other, ends], np.arange(5), np.zeros(5, int), 0)]
    assert positions(superseded_rows(files)) == [[0]]


def test_a_vector_does_not_change_if_no_row_is_superseded() -> None:
    beyond = DeletionVector([1 << 33])
    (left,) = superseded_rows([rows([1], [1], deleted=beyond)])
    assert (list(left), left.bits) == ([1 << 33], 64)


def test_files_without_rows_hide_none() -> None:
    assert superseded_rows([]) == []
    empty = KeyRows([pa.array([], pa.int64())], np.zeros(0, int), np.zeros(0, int), 0)
    assert positions(superseded_rows([empty])) == [[]]
    assert positions(superseded_rows([empty, rows([1, 1], [1, 2])])) == [[], [0]]
    assert positions(superseded_rows([rows([1], [1], deleted=DeletionVector([0]))])) == [[0]]


def test_columns_of_one_value_type_may_be_laid_out_in_several_ways() -> None:
    texts = [
        pa.array(["a", "b"]).dictionary_encode(),
        pa.array(["b", "c"], pa.large_string()),
        pa.array(["c", "d"], pa.string_view()),
    ]
    files = [KeyRows([text], np.zeros(2, int), np.zeros(2, int), 0) for text in texts]
    assert positions(superseded_rows(files)) == [[1], [1], []]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (
            rows([1, 2], [1, 2], [0, 4]),
            "bucket-0/a.parquet: kind of row 1: found 4, expected 0 to 3",
        ),
        (
            rows([1, 2], [1, 2], [0]),
            "bucket-0/a.parquet: columns of several lengths: found 1, expected 2",
        ),
        (
            rows([1, 2], [1, None]),  # type: ignore[list-item]
            "bucket-0/a.parquet: row without sequence number or kind",
        ),
    ],
    ids=["kind", "length", "null"],
)
def test_columns_that_no_writer_makes_are_refused(file: KeyRows, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        superseded_rows([file])
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            [rows([1], [1]), rows(["1"], [1])],
            "column 0: found int64, large_binary, expected one type",
        ),
        (
            [rows([1], [1], sequence=[1.0]), rows([1], [1])],
            "column 0: found in some files only",
        ),
        ([rows([[1]], [1])], "Paimon does not order rows by list<item: int64>"),
        (
            [KeyRows([pa.array([1])], np.zeros(1), np.zeros(1, int), 0)],
            "sequence numbers and kinds: found float64, expected int64",
        ),
    ],
    ids=["types", "columns", "list", "float"],
)
def test_columns_that_cannot_be_compared_are_refused(files: list[KeyRows], message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        superseded_rows(files)
    assert str(caught.value) == message
