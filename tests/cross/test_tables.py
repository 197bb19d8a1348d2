"""The tables of the cases are as their levels say; otherwise all cases could pass for nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import alcid
from tests.cross.asking import with_costs
from tests.cross.data import ROW, A, Data
from tests.cross.factors import FACTORS, TABLE, Case, draw, is_allowed
from tests.cross.layouts import group_rows
from tests.cross.questions import Question
from tests.cross.tables import make_table
from tests.cross.truth import matches, ranks

KINDS = TABLE["kind"]
USUAL = {
    "index": "none",
    "type": "INT",
    "nulls": "some",
    "deletions": "none",
    "groups": "several",
    "pages": "small",
    "page index": "yes",
    "partition": "none",
}


def made(folder: Path, **levels: str) -> tuple[Data, Any]:
    chosen = {**USUAL, **levels}
    assert is_allowed(chosen)
    source = random.Random(3)
    data = Data(chosen, source)
    return data, make_table(chosen, data, folder, source)


def written(folder: Path) -> Iterator[pq.ParquetFile]:
    for path in sorted(folder.rglob("*.parquet")):
        with pq.ParquetFile(path) as file:
            yield file


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", TABLE["groups"])
def test_files_have_the_row_groups_of_their_level(kind: str, groups: str, tmp_path: Path) -> None:
    made(tmp_path, kind=kind, groups=groups)
    most = group_rows({"groups": groups})
    for file in written(tmp_path):
        rows = file.metadata.num_rows
        assert file.metadata.num_row_groups == -(-rows // most)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("page_index", "expected"), [("yes", True), ("no", False)])
def test_files_have_a_page_index_or_not(
    kind: str, page_index: str, expected: bool, tmp_path: Path
) -> None:
    made(tmp_path, kind=kind, **{"page index": page_index})
    for file in written(tmp_path):
        assert file.metadata.row_group(0).column(0).has_offset_index is expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", [index for index in TABLE["index"] if index != "none"])
def test_indexes_of_every_kind_answer(kind: str, index: str, tmp_path: Path) -> None:
    data, table = made(tmp_path, kind=kind, index=index)
    asked = set()
    with with_costs("indexes"):
        for value in data.columns[A].present:
            scan = table.scan(alcid.col(A) == value)
            assert scan.to_arrow().num_rows > 0
            uses = scan.explain().indexes
            asked |= {use.index for use in uses if use.outcome in ("answered", "may contain it")}
    index_types = {"bitmap-1": "bitmap", "bitmap-2": "bitmap"}
    if index == "several":  # the most precise one is asked, after the bloom filter
        assert len(asked) > 1
    else:
        assert asked == {index_types.get(index, index)}


@pytest.mark.parametrize("kind", KINDS)
def test_deleted_rows_are_those_of_vectors(kind: str, tmp_path: Path) -> None:
    data, table = made(tmp_path, kind=kind, deletions="64")
    stages = {stage.name for stage in table.scan().explain().stages}
    assert "deletion vectors" in stages
    row_numbers = table.scan(columns=[ROW]).to_arrow()[ROW].to_pylist()
    assert sorted(row_numbers) == np.flatnonzero(data.is_live).tolist()
    assert 0 < len(data.deleted) < len(data.is_live)


def test_the_same_case_is_the_same_question() -> None:
    case = Case(draw(FACTORS, random.Random(1)), 5, 6)
    again = Case.parse(str(case))
    asked = []
    for each_case in (case, again):
        data = Data(each_case.levels, random.Random(each_case.table))
        asked.append(
            (data.rows, Question(data, each_case["shape"], each_case["order"], each_case.question))
        )
    assert asked[0][0].equals(asked[1][0])
    assert str(asked[0][1].arguments) == str(asked[1][1].arguments)


def test_truths_have_three_values() -> None:
    levels = {**USUAL, "kind": "folder"}
    data = Data(levels, random.Random(1))
    column, values = data.columns[A], data.columns[A].values
    value = column.present[0]
    is_it = alcid.col(A) == value
    not_null = column.codes < len(values) - 1
    equal = column.codes == values.index(value)
    assert (~not_null).any()
    assert matches(data.columns, is_it).tolist() == equal.tolist()
    assert matches(data.columns, ~is_it).tolist() == (not_null & ~equal).tolist()
    either = is_it | (alcid.col(A) == None)  # noqa: E711
    assert matches(data.columns, either).tolist() == equal.tolist()
    assert not matches(data.columns, ~either).any()


def test_ranks_go_by_values_with_nulls_where_they_are_wanted() -> None:
    data = Data({**USUAL, "kind": "folder"}, random.Random(1))
    column = data.columns[A]
    values = [column.values[code] for code in column.codes.tolist()]
    for descending in (False, True):
        ranked = ranks(column, descending=descending, nulls_first=True)
        order = [values[row] for row in np.argsort(ranked, kind="stable").tolist()]
        nulls = values.count(None)
        assert order[:nulls] == [None] * nulls
        numbers = [value for value in values if value is not None]
        assert order[nulls:] == sorted(numbers, reverse=descending)
