"""Indexes of Iceberg tables: built by field ids, stored in statistics files, found by snapshot."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import alcid
from alcid.errors import (
    ColumnError,
    DamagedIndexWarning,
    OptionError,
    StorageError,
    UnsupportedError,
)
from alcid.formats.puffin.writer import THETA_SKETCH
from alcid.formats.source import BytesSource, Source
from alcid.index.build import index_file
from alcid.index.bundle import Bundle
from alcid.tables import build as folder_building
from alcid.tables.engine import Threads
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.metadata.table_metadata import StatisticsFile
from alcid.tables.iceberg.write import build, making
from alcid.tables.iceberg.write.columns import IdResolver
from alcid.tables.iceberg.write.publish import publish
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.reports import Skipped
from tests.tables.iceberg.memory_catalog import MemoryCatalog

BLOOM = {"file-index.bloom-filter.columns": "id"}
BITMAP = {"file-index.bitmap.columns": "name"}
ROWS = 10


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    made = MemoryCatalog(tmp_path / "t")
    made.add({"a.parquet": rows(0), "b.parquet": rows(1)})
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the data files that builds read, in order."""
    paths: list[str] = []

    def note(*args: Any, **named: Any) -> Any:
        paths.append(Path(named["path"]).name)
        return index_file(*args, **named)

    monkeypatch.setattr(folder_building, "index_file", note)
    return paths


@pytest.fixture
def dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bundle is copied only because that is cheap."""
    monkeypatch.setattr(making, "CHEAP_BYTES", 0)
    monkeypatch.setattr(making, "_CHEAP_TIMES", 0)


def rows(number: int) -> dict[str, Sequence[Any]]:
    """The even numbers of a range, and names: the bounds of no file exclude anything."""
    ids = range(1000 + number, 3000 + number, 200)
    return {"id": list(ids), "name": [f"n{number}-{i % 3}" for i in range(ROWS)]}


def index_states(table: IcebergTable) -> dict[tuple[str, str], tuple[int, int]]:
    """How many files have an index, and how many have none."""
    return {(i.column, i.index_type): (i.fresh, i.absent) for i in table.indexes()}


def open_listed(catalog: MemoryCatalog, snapshot: int) -> Bundle:
    path = catalog.folder / "metadata" / catalog.listed()[snapshot]
    return Bundle.open(BytesSource(path.read_bytes(), path.name))


def names(bundle: Bundle) -> list[str]:
    return [Path(path).name for path in bundle.files.paths.to_pylist()]


def answered(table: IcebergTable, where: str) -> dict[str, int]:
    """The outcomes of the indexes for a predicate."""
    return {f"{use.index} {use.outcome}": use.files for use in table.explain(where).indexes}


def put_sketch(catalog: MemoryCatalog, snapshot: int, by: str = "Iceberg") -> None:
    """A statistics file of one sketch replaces what is listed: Iceberg's own action."""
    data = io.BytesIO()
    with alcid.puffin.create(data, properties={"created-by": by}) as writer:
        writer.add(
            THETA_SKETCH,
            b"any sketch",
            fields=[1],
            snapshot_id=snapshot,
            sequence_number=1,
            properties={"ndv": "20"},
        )
    path = catalog.folder / "metadata" / f"{snapshot}-{len(catalog.puffins())}.stats"
    path.write_bytes(data.getvalue())
    with alcid.puffin.open(path) as reader:
        footer, size = reader.footer_size, path.stat().st_size
    catalog.put_statistics(snapshot, StatisticsFile(snapshot, str(path), size, footer).to_json())


def test_a_build_makes_one_statistics_file_and_no_snapshot(catalog: MemoryCatalog) -> None:
    table = IcebergTable(catalog)
    report = table.build_indexes(BLOOM | BITMAP)
    (path,) = catalog.puffins()
    counts = (report.files, report.indexed, report.fresh, report.failed, report.rows)
    assert counts == (2, 2, 0, 0, 2 * ROWS)
    assert (report.bytes_written, report.bundles) == (path.stat().st_size, 1)
    assert report.snapshot_id == 1000
    assert report.skipped == ()
    assert catalog.listed() == {1000: path.name}
    assert catalog.staged() == []
    assert index_states(table) == {("id", "bloom-filter"): (2, 0), ("name", "bitmap"): (2, 0)}
    bundle = open_listed(catalog, 1000)
    assert bundle.complete
    assert bundle.field_ids == {"id": 1, "name": 2}
    assert bundle.files.paths.to_pylist() == [
        str(catalog.folder / "data" / name) for name in ("a.parquet", "b.parquet")
    ]


@pytest.mark.parametrize("index_type", ["bloom-filter", "bitmap", "bsi", "range-bitmap"])
def test_every_type_of_index_answers(catalog: MemoryCatalog, index_type: str) -> None:
    ids = [i * 7919 % 400_000 // 2 * 2 for i in range(40_000)]  # even numbers, in no order
    catalog.add({"large.parquet": {"id": ids, "name": ["x"] * len(ids)}})
    table = IcebergTable(catalog)
    table.build_indexes({f"file-index.{index_type}.columns": "id"})
    outcome = "may contain it" if index_type == "bloom-filter" else "answered"
    assert answered(table, f"id = {ids[777]}")[f"{index_type} {outcome}"] == 1
    matching = ids.count(ids[777])
    assert table.count(f"id = {ids[777]} AND name = 'x'") == matching
    assert table.count(f"id = {ids[777] + 1} AND name = 'x'") == 0


def test_a_second_build_reads_and_writes_nothing(catalog: MemoryCatalog, read: list[str]) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    listed, commits = catalog.listed(), catalog.commits
    read.clear()
    report = table.build_indexes(BLOOM)
    counts = (report.indexed, report.fresh, report.bundles, report.snapshot_id)
    assert counts == (0, 2, 0, None)
    assert (read, catalog.listed(), catalog.commits) == ([], listed, commits)


def test_new_files_only_are_read(catalog: MemoryCatalog, read: list[str]) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    catalog.add({"c.parquet": rows(2)})
    table.refresh()
    assert index_states(table) == {("id", "bloom-filter"): (2, 1)}
    read.clear()
    report = table.build_indexes(BLOOM)
    assert (report.files, report.indexed, report.fresh) == (3, 1, 2)
    assert read == ["c.parquet"]
    assert index_states(table) == {("id", "bloom-filter"): (3, 0)}
    assert names(open_listed(catalog, 1001)) == ["a.parquet", "b.parquet", "c.parquet"]
    assert names(open_listed(catalog, 1000)) == ["a.parquet", "b.parquet"]


def test_without_new_files_the_same_file_is_listed_for_the_new_snapshot(
    catalog: MemoryCatalog, read: list[str]
) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    catalog.add({}, drop=["b.parquet"])
    read.clear()
    report = table.build_indexes(BLOOM)
    assert (report.indexed, report.fresh, report.bundles) == (0, 1, 0)
    assert read == []
    assert catalog.listed()[1001] == catalog.listed()[1000]
    assert len(catalog.puffins()) == 1
    catalog.expire(1000)
    table.refresh()
    assert index_states(table) == {("id", "bloom-filter"): (1, 0)}


@pytest.mark.usefixtures("dear")
def test_another_index_of_the_same_snapshot_joins_those_that_are_there(
    catalog: MemoryCatalog,
) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    table.build_indexes(BITMAP)
    assert len(catalog.puffins()) == 1
    assert open_listed(catalog, 1000).complete
    assert index_states(table) == {("id", "bloom-filter"): (2, 0), ("name", "bitmap"): (2, 0)}


def test_rebuilding_reads_all_files_and_keeps_other_indexes(
    catalog: MemoryCatalog, read: list[str]
) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM | BITMAP)
    before = catalog.listed()
    read.clear()
    report = table.build_indexes(BLOOM, rebuild=True)
    assert sorted(read) == ["a.parquet", "b.parquet"]
    assert (report.indexed, report.bundles) == (2, 1)
    assert catalog.listed() != before
    assert len(catalog.puffins()) == 1
    assert index_states(table) == {("id", "bloom-filter"): (2, 0), ("name", "bitmap"): (2, 0)}


def test_what_a_killed_build_has_staged_is_used_by_the_next(
    catalog: MemoryCatalog, read: list[str]
) -> None:
    table = IcebergTable(catalog)

    def die() -> None:
        raise StorageError("killed")

    catalog.between.append(die)
    with pytest.raises(StorageError, match="killed"):
        table.build_indexes(BLOOM)
    assert len(catalog.staged()) == 1
    table.refresh()
    assert index_states(table) == {}
    read.clear()
    report = table.build_indexes(BLOOM)
    assert read == []
    assert (report.indexed, report.fresh, report.bundles) == (0, 2, 1)
    assert index_states(table) == {("id", "bloom-filter"): (2, 0)}
    # It may belong to a running writer, so it stays for a day, and adds nothing from now on.
    assert len(catalog.staged()) == 1
    assert table.build_indexes(BLOOM).bundles == 0


def test_old_staged_bundles_are_removed(catalog: MemoryCatalog) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    folder = catalog.folder / "metadata" / "_alcid"
    folder.mkdir(exist_ok=True)
    data = catalog.puffins()[0].read_bytes()
    (folder / "20200101T000000.000000Z-000000000000.puffin").write_bytes(data)
    young = build.staging_folder(catalog, table.file_io).put(data)
    table.build_indexes(BLOOM)
    assert [path.name for path in catalog.staged()] == [young]


def test_columns_are_found_by_id_whatever_files_call_them(catalog: MemoryCatalog) -> None:
    catalog.set_fields([("key", 1, "long"), ("id", 3, "long"), ("name", 2, "string")])
    catalog.add(
        {"c.parquet": {"key": [5, 7], "id": [1000, 2], "name": ["x", "y"]}},
        ids={"key": 1, "id": 3, "name": 2},
    )
    table = IcebergTable(catalog)
    report = table.build_indexes({"file-index.bloom-filter.columns": "KEY,id"})
    assert report.skipped == (
        Skipped(
            "bloom-filter of 'id'",
            "column id: not in the file",
            2,
            str(catalog.folder / "data" / "a.parquet"),
        ),
    )
    assert index_states(table) == {("key", "bloom-filter"): (3, 0), ("id", "bloom-filter"): (1, 2)}
    # The column of id 1 is called `id` in two files, and `key` in one.
    bundle = open_listed(catalog, 1001)
    assert [str(kind) for kind in bundle.kinds if kind.index_type] == [
        "bloom-filter of 'id'",
        "bloom-filter of 'key'",
    ]
    assert bundle.field_ids == {"key": 1, "name": 2}
    assert table.scan("key = 1201").to_arrow()["name"].to_pylist() == ["n1-1"]
    assert table.scan("id = 1000").to_arrow()["key"].to_pylist() == [5]
    again = table.build_indexes({"file-index.bloom-filter.columns": "key,id"})
    assert (again.indexed, again.fresh, again.bundles) == (0, 3, 0)
    assert again.skipped == report.skipped
    assert build.options_of(table) == {"file-index.bloom-filter.columns": "id,key"}


def test_files_without_ids_go_by_the_name_mapping(catalog: MemoryCatalog) -> None:
    catalog.add({"c.parquet": {"old": [1300], "name": ["x"]}}, ids={})
    catalog.metadata["properties"]["schema.name-mapping.default"] = (
        '[{"field-id": 1, "names": ["id", "old"]}, {"field-id": 2, "names": ["name"]}]'
    )
    table = IcebergTable(catalog)
    report = table.build_indexes(BLOOM)
    assert (report.indexed, report.skipped) == (3, ())
    assert index_states(table) == {("id", "bloom-filter"): (3, 0)}
    assert table.scan("id = 1300").to_arrow()["name"].to_pylist() == ["x"]


def test_an_unknown_column_is_an_error_before_anything_is_read(
    catalog: MemoryCatalog, read: list[str]
) -> None:
    table = IcebergTable(catalog)
    with pytest.raises(ColumnError, match="column nme: not in the table"):
        table.build_indexes({"file-index.bitmap.columns": "nme"})
    with pytest.raises(OptionError):
        table.build_indexes({})
    assert (read, catalog.puffins(), catalog.staged()) == ([], [], [])


def test_a_table_without_a_snapshot_has_nothing_to_index(tmp_path: Path) -> None:
    catalog = MemoryCatalog(tmp_path / "t")
    table = IcebergTable(catalog)
    report = table.build_indexes(BLOOM)
    assert (report.files, report.indexed, report.bundles) == (0, 0, 0)
    assert (table.indexes(), table.drop_indexes(), catalog.commits) == ([], 0, 0)


def test_a_table_of_the_past_is_not_indexed(catalog: MemoryCatalog) -> None:
    catalog.add({"c.parquet": rows(2)})
    table = IcebergTable(catalog, snapshot_id=1000)
    with pytest.raises(UnsupportedError, match="opened with snapshot_id, ref or as_of"):
        table.build_indexes(BLOOM)
    with pytest.raises(UnsupportedError, match="opened with snapshot_id, ref or as_of"):
        table.drop_indexes()


def test_indexes_are_remembered_when_all_files_are_rewritten(
    catalog: MemoryCatalog, read: list[str]
) -> None:
    """As by a compaction, after which the snapshots with the statistics files expire."""
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    table.build_indexes(BITMAP)
    indexes = [{"field-id": 1, "type": "bloom-filter"}, {"field-id": 2, "type": "bitmap"}]
    assert json.loads(catalog.metadata["properties"]["alcid.indexes"]) == indexes
    catalog.add({"z.parquet": rows(4)}, drop=["a.parquet", "b.parquet"])
    catalog.expire(1000)
    catalog.set_fields([("id", 1, "long"), ("called", 2, "string")])
    read.clear()
    table = IcebergTable(catalog)
    assert index_states(table) == {("called", "bitmap"): (0, 1), ("id", "bloom-filter"): (0, 1)}
    assert (table.build_indexes().indexed, read) == (1, ["z.parquet"])
    assert index_states(table) == {("called", "bitmap"): (1, 0), ("id", "bloom-filter"): (1, 0)}
    assert table.drop_indexes(["called"]) == 1
    assert json.loads(catalog.metadata["properties"]["alcid.indexes"]) == indexes[:1]
    assert index_states(table) == {("id", "bloom-filter"): (1, 0)}
    assert table.drop_indexes() == 1
    assert ("alcid.indexes" in catalog.metadata["properties"], index_states(table)) == (False, {})
    with pytest.raises(OptionError, match="no index"):
        table.build_indexes()


@pytest.mark.parametrize("text", ["[", "{}", '[{"field-id": "x"}]', "[3]", '[{"type": "bsi"}]'])
def test_a_property_that_is_not_understood_counts_as_nothing(
    catalog: MemoryCatalog, text: str
) -> None:
    catalog.metadata["properties"]["alcid.indexes"] = text
    table = IcebergTable(catalog)
    assert index_states(table) == {}
    table.build_indexes(BLOOM)
    indexes = [{"field-id": 1, "type": "bloom-filter"}]
    assert json.loads(catalog.metadata["properties"]["alcid.indexes"]) == indexes


def test_the_past_is_read_with_the_bundles_of_its_own_ancestors(catalog: MemoryCatalog) -> None:
    IcebergTable(catalog).build_indexes(BLOOM)
    catalog.add({"c.parquet": rows(2)})
    IcebergTable(catalog).build_indexes(BITMAP)
    past = IcebergTable(catalog, snapshot_id=1000)
    assert index_states(past) == {("id", "bloom-filter"): (2, 0)}
    assert past.count("id = 1201") == 1


def test_files_of_other_formats_are_skipped_with_a_reason(catalog: MemoryCatalog) -> None:
    catalog.add({"c.orc": rows(2)}, file_format="ORC")
    table = IcebergTable(catalog)
    report = table.build_indexes(BLOOM)
    assert (report.files, report.indexed, report.failed) == (3, 2, 1)
    path = str(catalog.folder / "data" / "c.orc")
    assert report.skipped == (Skipped("", "no indexes of ORC files", 1, path),)
    assert index_states(table) == {("id", "bloom-filter"): (2, 1)}


def test_a_file_that_is_gone_fails_alone(catalog: MemoryCatalog) -> None:
    (catalog.folder / "data" / "a.parquet").unlink()
    report = IcebergTable(catalog).build_indexes(BLOOM)
    assert (report.indexed, report.failed) == (1, 1)
    (skipped,) = report.skipped
    assert "a.parquet" in skipped.reason


@pytest.mark.usefixtures("dear")
def test_older_bundles_that_cost_more_than_is_new_stay_where_they_are(
    catalog: MemoryCatalog,
) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    for number in range(1, 8):
        catalog.add({f"{number}.parquet": rows(number)})
        table.build_indexes(BLOOM)
        bundle = open_listed(catalog, 1000 + number)
        assert names(bundle) == [f"{number}.parquet"]
        assert not bundle.complete
        assert index_states(table) == {("id", "bloom-filter"): (2 + number, 0)}
    catalog.add({"8.parquet": rows(8)})
    table.build_indexes(BLOOM)  # the chain has eight
    bundle = open_listed(catalog, 1008)
    assert bundle.complete
    assert len(names(bundle)) == 10
    assert index_states(table) == {("id", "bloom-filter"): (10, 0)}


@pytest.mark.usefixtures("dear")
def test_bundles_are_merged_once_most_of_their_files_are_gone(
    catalog: MemoryCatalog,
) -> None:
    table = IcebergTable(catalog)
    catalog.add({"c.parquet": rows(2)})
    table.build_indexes(BLOOM)
    catalog.add({"d.parquet": rows(3)}, drop=["a.parquet"])
    table.build_indexes(BLOOM)
    assert names(open_listed(catalog, 1002)) == ["d.parquet"]
    catalog.add({"e.parquet": rows(4)}, drop=["b.parquet", "c.parquet"])
    table.build_indexes(BLOOM)
    assert names(open_listed(catalog, 1003)) == ["d.parquet", "e.parquet"]
    assert open_listed(catalog, 1003).complete


@pytest.mark.usefixtures("dear")
def test_bundles_of_snapshots_that_may_soon_expire_are_taken_over(
    catalog: MemoryCatalog,
) -> None:
    catalog.metadata["properties"]["history.expire.max-snapshot-age-ms"] = "3"
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    catalog.add({"c.parquet": rows(2)})  # a millisecond later
    table.build_indexes(BLOOM)
    assert names(open_listed(catalog, 1001)) == ["c.parquet"]
    catalog.add({"d.parquet": rows(3)})
    table.build_indexes(BLOOM)
    assert len(names(open_listed(catalog, 1002))) == 4
    catalog.expire(1000, 1001)
    table.refresh()
    assert index_states(table) == {("id", "bloom-filter"): (4, 0)}


@pytest.mark.usefixtures("dear")
def test_small_bundles_are_taken_over_and_a_large_one_stays_where_it_is(
    catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "_MOST_BUNDLES", 3)
    table = IcebergTable(catalog)
    catalog.add({f"many-{number:02}.parquet": rows(number) for number in range(40)})
    table.build_indexes(BLOOM)
    for number in range(3):
        catalog.add({f"{number}.parquet": rows(50 + number)})
        table.build_indexes(BLOOM)
    listed = catalog.listed()
    bundle = open_listed(catalog, 1004)
    assert names(bundle) == ["0.parquet", "1.parquet", "2.parquet"]
    assert bundle.replaces == (listed[1002], listed[1003])
    assert not bundle.complete
    used = [
        bundle.name.rpartition("/")[2] for bundle in IcebergTable(catalog).snapshot.bundles.bundles
    ]
    assert used == [listed[1001], listed[1004]]  # what is replaced is not even opened
    assert index_states(table) == {("id", "bloom-filter"): (45, 0)}
    assert table.count("id = 1251") == table.count("id + 0 = 1251") == 1


def test_a_walk_ends_at_a_complete_bundle(catalog: MemoryCatalog) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    first = catalog.folder / "metadata" / catalog.listed()[1000]
    catalog.add({"c.parquet": rows(2)})
    table.build_indexes(BLOOM)
    first.write_bytes(b"nobody looks at it")
    assert index_states(IcebergTable(catalog)) == {("id", "bloom-filter"): (3, 0)}


def test_a_bundle_is_opened_once_however_often_the_table_is_refreshed(
    catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    IcebergTable(catalog).build_indexes(BLOOM)
    opened = []
    own = Bundle.open

    def note(source: Source) -> Bundle:
        opened.append(source.name)
        return own(source)

    monkeypatch.setattr(Bundle, "open", note)
    table = IcebergTable(catalog)
    for _ in range(3):
        table.refresh()
        assert table.files == 2
    catalog.add({"c.parquet": rows(2)})
    table.refresh()
    assert table.files == 3
    assert opened == [str(catalog.puffins()[0])]


def test_a_snapshot_without_files_needs_no_index(catalog: MemoryCatalog) -> None:
    catalog.add({}, drop=["a.parquet", "b.parquet"])
    table = IcebergTable(catalog)
    report = table.build_indexes(BLOOM)
    assert (report.files, report.indexed, report.bundles) == (0, 0, 0)
    assert (table.indexes(), catalog.commits) == ([], 0)


def test_indexes_that_another_tool_replaced_are_reported_and_built_again(
    catalog: MemoryCatalog, read: list[str]
) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    put_sketch(catalog, 1000)
    table.refresh()
    assert index_states(table) == {("id", "bloom-filter"): (0, 2)}
    assert table.count("id = 1201") == 1
    assert table.explain("id = 1201").notes == (
        (
            "no indexes in the statistics file of snapshot 1000, which another tool may have"
            " replaced: build_indexes creates missing ones"
        ),
    )
    read.clear()
    report = table.build_indexes(BLOOM)
    assert sorted(read) == ["a.parquet", "b.parquet"]
    assert (report.indexed, report.bundles) == (2, 1)
    assert index_states(table) == {("id", "bloom-filter"): (2, 0)}
    # The sketch is there as before.
    (listed,) = catalog.metadata["statistics"]
    blobs = [(blob["type"], blob["fields"], blob["properties"]) for blob in listed["blob-metadata"]]
    assert blobs == [(THETA_SKETCH, [1], {"ndv": "20"})]
    with alcid.puffin.open(listed["statistics-path"]) as reader:
        assert [reader.read(blob) for blob in reader.blobs if blob.type == THETA_SKETCH] == [
            b"any sketch"
        ]


def test_what_another_tool_replaced_is_found_at_an_ancestor(catalog: MemoryCatalog) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    catalog.add({"c.parquet": rows(2)})
    table.build_indexes(BLOOM)
    put_sketch(catalog, 1001)
    table.refresh()
    assert index_states(table) == {("id", "bloom-filter"): (2, 1)}
    assert table.explain("id = 1201").notes == (
        (
            "no indexes in the statistics file of snapshot 1001, which another tool may have"
            " replaced: those of an ancestor are used: build_indexes creates missing ones"
        ),
    )


def test_a_sketch_is_not_listed_for_a_snapshot_that_it_does_not_describe(
    catalog: MemoryCatalog,
) -> None:
    put_sketch(catalog, 1000)
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    (first,) = catalog.metadata["statistics"]
    assert [blob["type"] for blob in first["blob-metadata"]] == [THETA_SKETCH]
    catalog.add({})  # only listed again
    table.build_indexes(BLOOM)
    assert catalog.listed()[1001] == catalog.listed()[1000]
    catalog.add({"c.parquet": rows(2)})  # merged
    table.build_indexes(BLOOM)
    assert [file["blob-metadata"] for file in catalog.metadata["statistics"]] == [
        first["blob-metadata"],
        [],
        [],
    ]
    assert open_listed(catalog, 1002).others == ()


def test_a_snapshot_with_sketches_of_its_own_gets_a_copy_of_the_bundle(
    catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    catalog.add({})
    put_sketch(catalog, 1001)
    monkeypatch.setattr(making, "CHEAP_BYTES", 0)
    sketches = catalog.listed()[1001]
    assert table.build_indexes(BLOOM).bundles == 0  # it is found where it is
    assert catalog.listed()[1001] == sketches
    monkeypatch.undo()
    assert table.build_indexes(BLOOM).bundles == 1
    bundle = open_listed(catalog, 1001)
    assert names(bundle) == ["a.parquet", "b.parquet"]
    assert [blob.snapshot_id for blob in bundle.others] == [1001]
    catalog.expire(1000)
    table.refresh()
    assert index_states(table) == {("id", "bloom-filter"): (2, 0)}
    assert table.build_indexes(BLOOM).bundles == 0


def test_a_missing_bundle_is_reported_and_built_again(
    catalog: MemoryCatalog, read: list[str]
) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    (path,) = catalog.puffins()
    path.unlink()
    assert table.count("id = 1201") == 1  # opened before, and removed since
    (note,) = table.explain("id = 1201").notes
    assert note.startswith("indexes of snapshot 1000 are not used until they are rebuilt:")
    assert path.name in note
    read.clear()
    assert table.build_indexes(BLOOM).bundles == 1
    assert sorted(read) == ["a.parquet", "b.parquet"]
    assert index_states(IcebergTable(catalog)) == {("id", "bloom-filter"): (2, 0)}


@pytest.mark.parametrize("position", [10, -10])
def test_a_damaged_bundle_is_passed_over_with_a_warning_and_built_again(
    catalog: MemoryCatalog, position: int
) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    (path,) = catalog.puffins()
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)
    if position > 0:  # a payload: only read when it is needed
        with pytest.warns(DamagedIndexWarning):
            assert IcebergTable(catalog).count("id IN (1201, 1202)") == 1
        return
    table = IcebergTable(catalog)
    with pytest.warns(DamagedIndexWarning, match="bundle left out"):
        assert table.count("id = 1201") == 1
    with pytest.raises(alcid.errors.FormatError):
        IcebergTable(catalog, strict=True).count()
    with pytest.warns(DamagedIndexWarning):
        report = table.build_indexes(BLOOM)
    assert (report.indexed, report.bundles) == (2, 1)
    assert index_states(IcebergTable(catalog, strict=True)) == {("id", "bloom-filter"): (2, 0)}
    assert len(catalog.puffins()) == 1 or path in catalog.puffins()


@pytest.mark.parametrize("moment", ["between", "after"])
def test_two_builders_of_different_indexes_lose_nothing(
    catalog: MemoryCatalog, moment: str
) -> None:
    table, other = IcebergTable(catalog), IcebergTable(catalog)

    def build_other() -> None:
        other.build_indexes(BITMAP)

    getattr(catalog, moment).append(build_other)
    table.build_indexes(BLOOM)
    assert index_states(table) == {("id", "bloom-filter"): (2, 0), ("name", "bitmap"): (2, 0)}
    assert len(catalog.puffins()) == 1
    assert catalog.staged() == []


@pytest.mark.parametrize("moment", ["between", "after"])
def test_a_tool_that_replaces_the_file_at_that_very_moment_does_no_harm(
    catalog: MemoryCatalog, moment: str, read: list[str]
) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    getattr(catalog, moment).append(lambda: put_sketch(catalog, 1000))
    read.clear()
    table.build_indexes(BITMAP)
    assert sorted(read) == ["a.parquet", "b.parquet"]
    assert index_states(table) == {("id", "bloom-filter"): (2, 0), ("name", "bitmap"): (2, 0)}
    (listed,) = catalog.metadata["statistics"]
    assert [blob["type"] for blob in listed["blob-metadata"]] == [THETA_SKETCH]


def test_a_snapshot_that_comes_meanwhile_finds_the_indexes_of_its_parent(
    catalog: MemoryCatalog,
) -> None:
    table = IcebergTable(catalog)
    catalog.between.append(lambda: void(catalog.add({"c.parquet": rows(2)})))
    report = table.build_indexes(BLOOM)
    assert report.snapshot_id == 1000
    assert table.snapshot_id == 1001
    assert index_states(table) == {("id", "bloom-filter"): (2, 1)}


def test_dropping_an_index_hides_those_of_ancestors(catalog: MemoryCatalog) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM | BITMAP)
    catalog.add({"c.parquet": rows(2)})
    table.refresh()
    assert table.drop_indexes(["NAME"]) == 2
    assert index_states(table) == {("id", "bloom-filter"): (2, 1)}
    assert table.drop_indexes(["name"]) == 0
    assert index_states(IcebergTable(catalog, snapshot_id=1000)) == {
        ("id", "bloom-filter"): (2, 0),
        ("name", "bitmap"): (2, 0),
    }
    assert table.drop_indexes(types=["bitmap"]) == 0
    assert table.drop_indexes(types=["bloom-filter"]) == 2
    assert index_states(table) == {}
    bundle = open_listed(catalog, 1001)
    assert (bundle.file_count, bundle.kinds, bundle.complete) == (0, (), True)
    assert table.build_indexes(BLOOM).indexed == 3
    assert index_states(table) == {("id", "bloom-filter"): (3, 0)}


def test_dropping_all_leaves_no_file_or_only_sketches(catalog: MemoryCatalog) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    assert table.drop_indexes() == 2
    assert (catalog.listed(), catalog.puffins()) == ({}, [])
    put_sketch(catalog, 1000, by="Alcid 0")
    table.build_indexes(BLOOM)
    assert table.drop_indexes() == 2
    (path,) = catalog.puffins()
    with alcid.puffin.open(path) as reader:
        assert [blob.type for blob in reader.blobs] == [THETA_SKETCH]
        assert list(reader.properties) == ["created-by"]
    (listed,) = catalog.metadata["statistics"]
    assert [blob["type"] for blob in listed["blob-metadata"]] == [THETA_SKETCH]


def test_dropping_takes_what_a_killed_build_has_staged(catalog: MemoryCatalog) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    data = catalog.puffins()[0].read_bytes()
    build.staging_folder(catalog, table.file_io).put(data)
    assert table.drop_indexes() == 2
    assert catalog.staged() == []


def test_a_renamed_column_is_dropped_by_its_new_name(catalog: MemoryCatalog) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM | BITMAP)
    catalog.set_fields([("key", 1, "long"), ("name", 2, "string")])
    table.refresh()
    assert index_states(table) == {("key", "bloom-filter"): (2, 0), ("name", "bitmap"): (2, 0)}
    assert table.drop_indexes(["id"]) == 0
    assert table.drop_indexes(["key"]) == 2
    assert index_states(table) == {("name", "bitmap"): (2, 0)}


def test_bad_choices_of_what_to_drop_are_refused(catalog: MemoryCatalog) -> None:
    table = IcebergTable(catalog)
    with pytest.raises(OptionError, match="no such index: bloom"):
        table.drop_indexes(types=["bloom"])
    with pytest.raises(OptionError, match="columns: found text"):
        table.drop_indexes("id")


def test_a_file_listed_by_nobody_but_ours_is_not_read_for_indexes(catalog: MemoryCatalog) -> None:
    """A name like those of ours does not make a bundle."""
    data = b"not a Puffin file at all"
    path = catalog.folder / "metadata" / "1000-x-alcid.stats"
    path.write_bytes(data)
    listed = StatisticsFile(1000, str(path), len(data), 12)
    catalog.put_statistics(1000, listed.to_json())
    with pytest.warns(DamagedIndexWarning, match="bundle left out"):
        assert index_states(IcebergTable(catalog)) == {}


def test_work_is_shipped_with_what_finds_columns(catalog: MemoryCatalog) -> None:
    table = IcebergTable(catalog)
    found_by = IdResolver(table.snapshot.schema.by_name, None)
    assert pickle.loads(pickle.dumps(found_by)) == found_by


def test_publishing_another_file_does_not_touch_bundles_of_others(catalog: MemoryCatalog) -> None:
    table = IcebergTable(catalog)
    table.build_indexes(BLOOM)
    before = catalog.listed()
    statistics_file = catalog.load().statistics[1000]
    published = publish(catalog, FileIO(), 1000, lambda _, __: statistics_file, Threads())
    assert published == statistics_file
    assert catalog.listed() == before


def void(_: object) -> None:
    """Nothing: for calls whose result does not matter."""
