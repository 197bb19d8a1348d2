"""Which delete files apply to which data files: sequence numbers, partitions, specs, names."""

from __future__ import annotations

import pytest

from alcid.errors import FormatError
from alcid.tables.iceberg.deletes.plan import PATH_FIELD, DeletePlan
from alcid.tables.iceberg.metadata.schema import PartitionField, PartitionSpec
from tests.tables.iceberg.deletes.delete_files import Row, data_file, deletes_of, entries_of

SPECS = {
    0: PartitionSpec(0, ()),
    1: PartitionSpec(1, (PartitionField(1, 1000, "p", "identity"),)),
    2: PartitionSpec(2, (PartitionField(2, 1001, "q", "identity"),)),
    3: PartitionSpec(3, (PartitionField(1, 1000, "p", "void"),)),
}


def plan(*rows: Row) -> DeletePlan:
    return DeletePlan(entries_of(rows), SPECS)


def in_p(path: str, age: int, value: int | None, spec: int = 1) -> Row:
    return data_file(path, age, {"p": value, "q": None}, spec)


def vector(path: str, age: int, of: str | None, **more: object) -> Row:
    blob = {"file_format": "PUFFIN", "content_offset": 4, "content_size_in_bytes": 44}
    return deletes_of(path, age) | blob | {"referenced_data_file": of} | more


def test_a_table_without_delete_files() -> None:
    delete_plan = plan(data_file("a", 1), data_file("b", 2))
    assert delete_plan.files.tolist() == []
    assert (delete_plan.vector(0), delete_plan.positions(0), delete_plan.equality(0)) == (
        None,
        [],
        [],
    )
    assert plan().files.tolist() == []


def test_positions_apply_to_files_that_are_not_newer() -> None:
    rows = [data_file("a", 1), data_file("b", 2), data_file("c", 3)]
    delete_plan = plan(*rows, deletes_of("d", 2))
    assert delete_plan.files.tolist() == [0, 1]
    assert [delete_plan.positions(file) for file in range(3)] == [[0], [0], []]
    assert [delete_plan.own_positions(file) for file in range(3)] == [[], [], []]


def test_equality_deletes_apply_to_older_files_only() -> None:
    rows = [data_file("a", 1), data_file("b", 2), data_file("c", 3)]
    delete_plan = plan(*rows, deletes_of("d", 2, 2, equality_ids=[1]))
    assert delete_plan.files.tolist() == [0]
    assert [delete_plan.equality(file) for file in range(3)] == [[0], [], []]


def test_deletes_of_a_partition_apply_within_it_and_its_spec() -> None:
    files = [
        in_p("a", 1, 7),
        in_p("b", 1, 8),
        in_p("c", 1, None),
        data_file("d", 1, {"p": None, "q": "x"}, 2),
        data_file("e", 1),
    ]
    in_seven = {"partition": {"p": 7, "q": None}, "spec_id": 1}
    in_null = {"partition": {"p": None, "q": None}, "spec_id": 1}
    in_x = {"partition": {"p": None, "q": "x"}, "spec_id": 2}
    delete_plan = plan(
        *files,
        deletes_of("k", 2) | in_seven,
        deletes_of("l", 2, 2, equality_ids=[1], **in_null),
        deletes_of("m", 2, 2, equality_ids=[1], **in_x),
    )
    assert delete_plan.files.tolist() == [0, 2, 3]
    assert [delete_plan.positions(file) for file in range(5)] == [[0], [], [], [], []]
    assert [delete_plan.equality(file) for file in range(5)] == [[], [], [1], [2], []]


@pytest.mark.parametrize("spec", [0, 3], ids=["no fields", "all void"])
def test_equality_deletes_without_partition_apply_everywhere(spec: int) -> None:
    files = [in_p("a", 1, 7), data_file("b", 1), in_p("c", 5, 7)]
    delete_plan = plan(*files, deletes_of("d", 3, 2, equality_ids=[1], spec_id=spec))
    assert delete_plan.files.tolist() == [0, 1]
    assert [delete_plan.equality(file) for file in range(3)] == [[0], [0], []]


def test_positions_without_partition_do_not_apply_to_files_of_partitions() -> None:
    delete_plan = plan(in_p("a", 1, 7), data_file("b", 1), deletes_of("d", 3))
    assert delete_plan.files.tolist() == [1]
    assert [delete_plan.positions(file) for file in range(2)] == [[], [0]]


def test_positions_of_one_file_by_its_name_or_by_equal_bounds() -> None:
    def bounds(least: bytes, most: bytes) -> Row:
        return {"lower_bounds": [(PATH_FIELD, least)], "upper_bounds": [(PATH_FIELD, most)]}

    delete_plan = plan(
        data_file("a", 1),
        data_file("b", 1),
        data_file("c", 4),
        deletes_of("k", 2, referenced_data_file="b"),
        deletes_of("l", 2, **bounds(b"a", b"a")),
        deletes_of("m", 2, referenced_data_file="c"),
        deletes_of("n", 2, referenced_data_file="gone"),
        deletes_of("o", 2, **bounds(b"\xff", b"\xff")),
    )
    assert [delete_plan.own_positions(file) for file in range(3)] == [[1], [0], []]
    assert [delete_plan.positions(file) for file in range(3)] == [[1], [0], []]
    assert delete_plan.files.tolist() == [0, 1]
    several = plan(data_file("a", 1), data_file("b", 1), deletes_of("k", 2, **bounds(b"a", b"b")))
    assert several.own_positions(0) == []
    assert several.positions(0) == several.positions(1) == [0]


def test_a_vector_takes_the_place_of_positions_but_not_of_equality_deletes() -> None:
    delete_plan = plan(
        data_file("a", 1),
        data_file("b", 1),
        deletes_of("k", 2),
        deletes_of("l", 2, referenced_data_file="a"),
        deletes_of("m", 3, 2, equality_ids=[1]),
        vector("v", 4, "a"),
        vector("v", 4, "gone"),
    )
    assert [delete_plan.vector(file) for file in range(2)] == [3, None]
    assert [delete_plan.positions(file) for file in range(2)] == [[], [0]]
    assert [delete_plan.own_positions(file) for file in range(2)] == [[1], []]
    assert [delete_plan.equality(file) for file in range(2)] == [[2], [2]]


def test_equality_deletes_are_not_of_one_file_even_with_bounds_of_paths() -> None:
    same = [(PATH_FIELD, b"a")]
    row = deletes_of("k", 2, 2, equality_ids=[1], lower_bounds=same, upper_bounds=same)
    delete_plan = plan(data_file("a", 1), data_file("b", 1), row)
    assert [delete_plan.equality(file) for file in range(2)] == [[0], [0]]


def test_two_vectors_of_a_file_are_an_error_when_its_rows_are_asked_for() -> None:
    vectors = vector("v", 2, "a"), vector("w", 3, "a"), vector("v", 2, "b")
    delete_plan = plan(data_file("a", 1), data_file("b", 1), *vectors)
    problem = "w: two deletion vectors of a, which repair merges: found v, expected one"
    with pytest.raises(FormatError, match=problem):
        delete_plan.vector(0)
    assert delete_plan.vector(1) == 2
    assert delete_plan.files.tolist() == [0, 1]


def test_a_vector_older_than_its_file_is_an_error() -> None:
    with pytest.raises(FormatError, match="sequence number 1, expected 2 or more"):
        plan(data_file("a", 2), vector("v", 1, "a"))


@pytest.mark.parametrize(
    "lacking", ["referenced_data_file", "content_offset", "content_size_in_bytes"]
)
def test_a_vector_that_the_manifest_does_not_place_is_an_error(lacking: str) -> None:
    row = vector("v", 2, "a")
    row[lacking] = None
    with pytest.raises(FormatError, match="without offset, size or data file"):
        plan(data_file("a", 1), row)
