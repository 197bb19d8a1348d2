"""Files whose keys overlap, compared with a check of every pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.errors import FormatError
from alcid.formats.deletion_vector import DeletionVector
from alcid.tables.paimon.merge_on_read import is_raw, plan_sections, superseded_rows
from tests.tables.paimon.key_rows import VALUES, File, Rank, columns, rank, tables


def connected(buckets: list[int], ranges: list[tuple[Rank, Rank]]) -> list[list[int]]:
    """Files grouped by overlaps of any two."""
    group = list(range(len(ranges)))
    for left, (least, greatest) in enumerate(ranges):
        for right, (other_least, other_greatest) in enumerate(ranges):
            overlap = rank(least) <= rank(other_greatest) and rank(other_least) <= rank(greatest)
            if overlap and buckets[left] == buckets[right]:
                old, new = group[right], group[left]
                group = [new if label == old else label for label in group]
    return sorted(
        [file for file, label in enumerate(group) if label == name] for name in set(group)
    )


@given(data=st.data())
def test_sections_are_the_files_that_overlap_directly_or_by_others(data: st.DataObject) -> None:
    kinds = [
        VALUES[name]
        for name in data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    ]
    key = st.tuples(*(st.sampled_from(values) for _, values in kinds))
    pair = st.tuples(key, key).map(lambda keys: tuple(sorted(keys, key=rank)))
    ranges: list[Any] = data.draw(st.lists(pair, max_size=10))
    size = len(ranges)
    buckets = data.draw(st.lists(st.integers(-1, 2), min_size=size, max_size=size))
    types = [kind for kind, _ in kinds]
    sections = plan_sections(
        np.array(buckets, np.int64),
        columns([least for least, _ in ranges], types),
        columns([greatest for _, greatest in ranges], types),
    )
    assert sorted(files.tolist() for files in sections) == connected(buckets, ranges)
    begins = [
        (buckets[files[0]], min(rank(ranges[file][0]) for file in files)) for files in sections
    ]
    assert begins == sorted(begins)


@given(files=tables())
def test_sections_merged_alone_hide_what_all_files_together_would(files: list[File]) -> None:
    files = [file for file in files if file.keys]
    ends = [(min(file.keys, key=rank), max(file.keys, key=rank)) for file in files]
    types = files[0].key_types if files else []
    together = [file.key_rows() for file in files]
    vectors_by_file: dict[int, DeletionVector] = {}
    for section in plan_sections(
        [0] * len(files),
        columns([least for least, _ in ends], types),
        columns([greatest for _, greatest in ends], types),
    ):
        vectors = superseded_rows([together[file] for file in section])
        vectors_by_file |= zip(section.tolist(), vectors, strict=True)
    assert [vectors_by_file[file] for file in range(len(files))] == superseded_rows(together)


def test_ranges_that_share_one_key_are_one_section() -> None:
    least, greatest = pa.array(["a", "c\0", "x"]), pa.array(["c", "x", "z"])
    sections = plan_sections([0, 0, 0], [least], [greatest])
    assert [files.tolist() for files in sections] == [[0], [1, 2]]


def test_a_long_range_holds_later_ones_together() -> None:
    least, greatest = pa.array([1, 2, 4, 100, 101]), pa.array([50, 3, 5, 100, 102])
    sections = plan_sections([0] * 5, [least], [greatest])
    assert [files.tolist() for files in sections] == [[0, 1, 2], [3], [4]]


def test_a_least_key_above_the_greatest_is_refused() -> None:
    keys = [pa.array([1, 5]), pa.array(["a", "b"])]
    with pytest.raises(FormatError) as caught:
        plan_sections([0, 0], keys, [pa.array([1, 5]), pa.array(["a", "a"])])
    assert str(caught.value) == "minimum key of data file 1: found (5, 'b'), expected <= (5, 'a')"


@pytest.mark.parametrize(
    ("section", "expected"),
    [([0], True), ([1], False), ([2], False), ([3], False), ([0, 4], False)],
    ids=["one", "level 0", "deletes", "deletes unknown", "two"],
)
def test_only_one_file_above_level_0_without_deletes_is_raw(
    section: list[int], expected: bool
) -> None:
    levels, delete_rows = np.array([5, 0, 5, 5, 4]), np.array([0, 0, 1, -1, 0])
    assert is_raw(np.array(section), levels, delete_rows) is expected
