"""Indexes of Paimon tables: what is built, kept, shown and dropped."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import alcid
from alcid import PaimonTable
from alcid.errors import (
    AlcidWarning,
    ColumnError,
    DamagedIndexWarning,
    OptionError,
    UnsupportedError,
)
from alcid.formats.file_index.container import Container, write_container
from alcid.formats.source import BytesSource
from alcid.storage import Storage
from alcid.tables.engine import Task
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.manifest import ADD, DELETE
from alcid.tables.paimon.write.build import build, drop, indexes
from alcid.tables.paimon.write.index_plan import FilePlan, IndexItem, IndexWork, indexable_files
from alcid.tables.reports import IndexInfo
from alcid.types import DataType
from tests.tables.paimon.index_contents import (
    BESIDE,
    BITMAP,
    BLOOM,
    ask_always,
    change_schema,
    entries,
    filled,
    hides,
    kinds,
    payloads,
    readable,
    set_table_options,
    sidecars,
)
from tests.tables.paimon.small_tables import (
    append,
    commit,
    create,
    ids,
    partition_of,
    rows_of,
    write_file,
)


@pytest.fixture
def table(tmp_path: Path) -> PaimonTable:
    """Two files, with 20 and 30 rows."""
    return filled(create(tmp_path / "t"))


# -- building ----------------------------------------------------------------------------------


def test_a_build_is_one_compact_snapshot_by_which_files_go_and_come_again(
    table: PaimonTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = entries(table)
    report = build(table, {**BITMAP, **BLOOM, **BESIDE})
    assert (report.files, report.indexed, report.fresh, report.failed) == (2, 2, 0, 0)
    assert (report.rows, report.bundles, report.snapshot_id, report.skipped) == (50, None, 3, ())
    assert str(report).endswith(" in snapshot 3")
    snapshot = table.snapshot.state.snapshot
    assert snapshot is not None
    assert (snapshot.id, snapshot.commit_kind) == (3, "COMPACT")
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (50, 0)
    (delta,) = table.snapshot.state.read(table.snapshot.state.delta)
    assert [entry.kind for entry in delta] == [DELETE, DELETE, ADD, ADD]
    assert [replace(entry, kind=ADD) for entry in delta[:2]] == list(before)
    blank = [replace(entry.file, extra_files=(), embedded_index=None) for entry in delta[2:]]
    assert blank == [entry.file for entry in before]
    assert sidecars(table) == [".index", ".index"]
    sizes = [
        table.storage.stat(f"bucket-0/{entry.file.extra_files[0]}").size for entry in delta[2:]
    ]
    assert report.bytes_written == sum(size or 0 for size in sizes)
    assert ids(table) == list(range(50))
    assert hides(table, "name = 'n3' AND id < 12", monkeypatch) == [3, 8]
    assert hides(table, "id = 33", monkeypatch) == [33]


def test_what_is_there_is_not_built_again(table: PaimonTable) -> None:
    build(table, BITMAP)
    report = build(table, BITMAP)
    assert (report.indexed, report.fresh, report.bytes_written) == (0, 2, 0)
    assert report.snapshot_id is None
    assert str(report).endswith("0 B; 2 were fresh")
    assert table.snapshot_id == 3


def test_only_what_is_missing_is_built_and_the_rest_is_copied(table: PaimonTable) -> None:
    build(table, BITMAP | {"file-index.bitmap.name.version": "1"})
    first, second = readable(table)
    append(table, range(50, 60))
    report = build(table, {**BITMAP, **BLOOM})
    assert (report.indexed, report.rows) == (3, 60)
    assert kinds(table) == [[("id", "bloom-filter"), ("name", "bitmap")]] * 3
    name = ("name", "bitmap")
    by_rows = dict(zip([entry.file.rows for entry in entries(table)], readable(table), strict=True))
    assert by_rows[20][name] == first[name]
    assert by_rows[30][name] == second[name]
    assert [(by_rows[rows][name] or b"")[0] for rows in (20, 30, 10)] == [1, 1, 2]  # the version


def test_a_rebuild_builds_everything_but_adds_no_equal_entry(table: PaimonTable) -> None:
    build(table, BITMAP | {"file-index.bitmap.name.version": "1"})
    report = build(table, BITMAP, rebuild=True)
    assert (report.indexed, report.fresh, report.snapshot_id) == (2, 0, 4)
    assert [(contents["name", "bitmap"] or b"")[0] for contents in readable(table)] == [2, 2]
    report = build(table, {**BITMAP, **BESIDE}, rebuild=True)
    assert (report.indexed, report.fresh, report.snapshot_id) == (0, 2, None)


def test_the_longest_container_of_a_manifest_is_as_long_as_the_threshold(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    append(table, range(20))
    build(table, BITMAP)
    data = entries(table)[0].file.embedded_index
    assert data is not None
    key = "file-index.in-manifest-threshold"
    for threshold, names in ((len(data), []), (len(data) - 1, [".index"])):
        other = create(tmp_path / f"t{threshold}", options={key: str(threshold)})
        append(other, range(20))
        build(other, BITMAP)
        assert sidecars(other) == names
        assert entries(other)[0].file.embedded_index == (None if names else data)


def test_options_of_the_table_say_what_to_build_and_what_to_drop(tmp_path: Path) -> None:
    table = filled(create(tmp_path / "t", options=BITMAP))
    build(table)
    assert kinds(table) == [[("name", "bitmap")]] * 2
    set_table_options(table, BLOOM)
    report = build(table)
    assert (report.indexed, report.snapshot_id) == (2, 4)
    assert kinds(table) == [[("id", "bloom-filter")]] * 2


def test_what_given_options_do_not_ask_for_is_dropped(tmp_path: Path) -> None:
    table = filled(create(tmp_path / "t", options=BITMAP))
    build(table)
    build(table, BLOOM)
    assert kinds(table) == [[("id", "bloom-filter")]] * 2


def test_options_of_the_table_that_are_not_in_order_are_warned_of_once(tmp_path: Path) -> None:
    options = {
        "file-index.bitmap.columns": "name,xyz",
        "file-index.bitmap.version": "1",
        "file-index.bloom-filter.columns": "XYZ",
    }
    table = filled(create(tmp_path / "t", options=options))
    with pytest.warns(AlcidWarning) as warned:
        report = build(table)
    assert [str(warning.message).partition(": ")[2] for warning in warned] == [
        "file-index.bitmap.version: use file-index.bitmap.<column>.version",
        "column XYZ: not in the table",
        "column xyz: not in the table",
    ]
    assert report.indexed == 2
    assert kinds(table) == [[("name", "bitmap")]] * 2


def test_a_table_whose_options_ask_for_nothing_is_left_alone(table: PaimonTable) -> None:
    build(table, BITMAP)
    with pytest.raises(OptionError, match="its options ask for no index: give some"):
        build(table)
    assert kinds(table) == [[("name", "bitmap")]] * 2


def test_a_column_that_the_table_does_not_have_is_an_error(table: PaimonTable) -> None:
    with pytest.raises(ColumnError, match="column nam: not in the table; did you mean name"):
        build(table, {"file-index.bitmap.columns": "nam"})
    with pytest.raises(OptionError, match=r"file-index\.bitmap\.version"):
        build(table, BITMAP | {"file-index.bitmap.version": "1"})


def test_an_index_that_cannot_be_is_skipped_with_the_reason(table: PaimonTable) -> None:
    report = build(table, BLOOM | {"file-index.bsi.columns": "name"})
    (skipped,) = report.skipped
    assert (skipped.what, skipped.files) == ("bsi of 'name'", 2)
    assert "bsi does not take STRING" in skipped.reason
    assert kinds(table) == [[("id", "bloom-filter")]] * 2


def test_a_file_that_is_not_as_its_manifest_says_fails_and_the_others_do_not(
    table: PaimonTable,
) -> None:
    rows = rows_of(range(50, 60))
    entry = write_file(table, rows)
    wrong = entry.with_file(replace(entry.file, rows=11))
    commit(table, Change(kind="APPEND", added=[wrong]))
    report = build(table, BITMAP)
    assert (report.indexed, report.failed, report.rows) == (2, 1, 50)
    (skipped,) = report.skipped
    assert skipped.what == ""
    assert "found 10, expected 11" in skipped.reason
    kinds_by_rows = dict(
        zip([entry.file.rows for entry in entries(table)], kinds(table), strict=True)
    )
    assert kinds_by_rows == {20: [("name", "bitmap")], 30: [("name", "bitmap")], 11: None}


def test_a_table_without_rows(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    report = build(table, BITMAP)
    assert (report.files, report.snapshot_id) == (0, None)
    assert (indexes(table), drop(table)) == ([], 0)


def test_partitions_and_buckets(tmp_path: Path) -> None:
    table = create(
        tmp_path / "t",
        {"day": "STRING", "id": "BIGINT"},
        partition_keys=["day"],
        options={"bucket": "2", "bucket-key": "id", **BESIDE},
    )
    for day, bucket in (("a/b", 0), (None, 1)):
        rows = pa.table({"day": pa.array([day] * 3, pa.string()), "id": [1, 2, 3]})
        entry = write_file(table, rows, partition=partition_of(table, day), bucket=bucket)
        commit(table, Change(kind="APPEND", added=[entry]))
    build(table, {"file-index.bitmap.columns": "day,id"})
    folders = {path.parent.relative_to(tmp_path / "t") for path in tmp_path.rglob("*.index")}
    assert {str(folder) for folder in folders} == {
        "day=a%2Fb/bucket-0",
        "day=__DEFAULT_PARTITION__/bucket-1",
    }
    assert ids(table) == [1, 1, 2, 2, 3, 3]


def test_keys_of_maps(tmp_path: Path) -> None:
    columns = {"id": "BIGINT", "tags": "MAP<STRING, INT>"}
    table = create(tmp_path / "t", columns)
    kind = pa.map_(pa.string(), pa.int32())
    for values in ([[("a", 1)], None, [("b", 2)]], []):
        rows = pa.table({"id": range(len(values)), "tags": pa.array(values, kind)})
        rows = rows.cast(pa.schema([("id", pa.int64()), ("tags", kind)]))
        commit(table, Change(kind="APPEND", added=[write_file(table, rows)]))
    build(table, {"file-index.bitmap.columns": "Tags[a],TAGS[b]"})
    assert kinds(table) == [[("tags[a]", "bitmap"), ("tags[b]", "bitmap")]] * 2
    assert payloads(table)[1] == {("tags[a]", "bitmap"): None, ("tags[b]", "bitmap"): None}
    assert [index.column for index in indexes(table)] == ["tags[a]", "tags[b]"]
    assert table.count("tags['a'] = 1") == 1
    assert drop(table, columns=["tags[b]"]) == 2
    assert kinds(table) == [[("tags[a]", "bitmap")]] * 2
    assert drop(table, columns=["tags"]) == 2


# -- columns of other times --------------------------------------------------------------------


def test_files_spell_columns_as_they_did_when_they_were_written(
    table: PaimonTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = table.folder.latest_schema()
    number, name = first.fields
    number = replace(number, name="number")
    again = replace(name, id=2, name="id", data_type=DataType.parse("BIGINT"))
    change_schema(table, replace(first, fields=(number, name, again), highest_field_id=2))
    rows = pa.table({"number": [50, 51], "name": ["n0", "n1"], "id": [-50, -51]})
    commit(table, Change(kind="APPEND", added=[write_file(table, rows)]))
    report = build(table, {"file-index.bitmap.columns": "number,id"})
    assert (report.indexed, report.failed, report.skipped) == (3, 0, ())
    assert kinds(table) == [[("id", "bitmap")]] * 2 + [[("id", "bitmap"), ("number", "bitmap")]]
    states = [
        (index.column, index.index_type, index.fresh, index.absent) for index in indexes(table)
    ]
    assert states == [("id", "bitmap", 1, 2), ("number", "bitmap", 3, 0)]
    with monkeypatch.context() as patch:
        ask_always(patch)
        assert table.scan("number = 7").to_arrow().column("name").to_pylist() == ["n2"]
        assert table.scan("id = -51").to_arrow().column("number").to_pylist() == [51]
        assert table.count("id IS NULL") == 50
    assert drop(table, columns=["id"]) == 1
    assert kinds(table) == [[("id", "bitmap")]] * 2 + [[("number", "bitmap")]]


def test_a_column_that_is_no_more_has_no_index_that_is_shown(tmp_path: Path) -> None:
    table = filled(create(tmp_path / "t", options=BITMAP))
    build(table)
    first = table.folder.latest_schema()
    change_schema(table, replace(first, fields=first.fields[:1], options=BLOOM))
    assert indexes(table) == []
    build(table)
    assert kinds(table) == [[("id", "bloom-filter")]] * 2


def test_types_are_those_of_the_file(table: PaimonTable) -> None:
    """An index on INT does not serve BIGINT: readers of files use the file's own type."""
    first = table.folder.latest_schema()
    build(table, {"file-index.bitmap.columns": "id"})
    before = payloads(table)
    wider = tuple(
        replace(field, data_type=DataType.parse("DOUBLE")) if field.name == "id" else field
        for field in first.fields
    )
    change_schema(table, replace(first, fields=wider))
    drop(table)
    build(table, {"file-index.bitmap.columns": "id"})
    assert payloads(table) == before


# -- damage ------------------------------------------------------------------------------------


def damaged_sidecar(table: PaimonTable) -> None:
    build(table, {**BITMAP, **BESIDE})
    path = Path(table.location) / "bucket-0" / entries(table)[0].file.extra_files[0]
    path.write_bytes(path.read_bytes()[:-1])


def missing_sidecar(table: PaimonTable) -> None:
    build(table, {**BITMAP, **BESIDE})
    (Path(table.location) / "bucket-0" / entries(table)[0].file.extra_files[0]).unlink()


def damaged_bytes(table: PaimonTable) -> None:
    build(table, BITMAP)
    first = entries(table)[0]
    new = first.with_file(replace(first.file, embedded_index=b"no container"))
    commit(table, Change(kind="COMPACT", deleted=[first], added=[new]))


def two_sidecars(table: PaimonTable) -> None:
    build(table, {**BITMAP, **BESIDE})
    first = entries(table)[0]
    names = (*first.file.extra_files, "another.index")
    new = first.with_file(replace(first.file, extra_files=names))
    commit(table, Change(kind="COMPACT", deleted=[first], added=[new]))


DAMAGES = [damaged_sidecar, missing_sidecar, damaged_bytes, two_sidecars]


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_cannot_be_read_is_shown_and_built_again(
    table: PaimonTable, damage: Callable[[PaimonTable], None]
) -> None:
    damage(table)
    (info,) = indexes(table)
    assert (info.fresh, info.damaged, info.absent) == (1, 1, 0)
    report = build(table, BITMAP)
    assert (report.indexed, report.fresh, report.failed) == (1, 1, 0)
    assert kinds(table) == [[("name", "bitmap")]] * 2
    assert indexes(table)[0].fresh == 2
    assert table.count("name = 'n1'") == 10


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_cannot_be_read_goes_with_a_drop_of_all(
    table: PaimonTable, damage: Callable[[PaimonTable], None]
) -> None:
    damage(table)
    assert drop(table, types=["bsi"]) == 0
    assert drop(table) == 2
    assert indexes(table) == []
    assert ids(table) == list(range(50))


def test_a_damaged_index_is_known_by_the_options_of_the_table(tmp_path: Path) -> None:
    table = create(tmp_path / "t", options={"file-index.bitmap.columns": "NAME"})
    append(table, range(20))
    damaged_bytes(table)
    assert indexes(table) == [IndexInfo("name", "bitmap", 0, 0, 0, 1, 0)]
    with pytest.warns(DamagedIndexWarning):
        assert table.count("name = 'n1'") == 4


def test_an_index_of_a_type_that_is_not_known_stays(tmp_path: Path) -> None:
    table = create(tmp_path / "t", options=BITMAP)
    entry = append(table, range(20))
    foreign = ("name", "trigram")
    other = entry.with_file(
        replace(entry.file, embedded_index=write_container({foreign: b"?", ("id", "bsi"): b"??"}))
    )
    commit(table, Change(kind="COMPACT", deleted=[entry], added=[other]))
    build(table)
    assert kinds(table) == [[("name", "bitmap"), foreign]]
    assert readable(table)[0][foreign] == b"?"


# -- how it is run -----------------------------------------------------------------------------


def test_progress_is_reported_for_files_that_are_processed(table: PaimonTable) -> None:
    build(table, BITMAP)
    append(table, range(50, 60))
    progress: list[tuple[int, int, int]] = []
    build(table, BITMAP, progress=lambda *how: progress.append(how))
    assert progress == [(1, 1, 10)]


def test_work_is_done_the_same_elsewhere(table: PaimonTable) -> None:
    build(table, {**BITMAP, **BLOOM})
    intents = [
        FilePlan(file, keep=(("name", "bitmap"),)) for file in indexable_files(table.snapshot)[0]
    ]
    work = IndexWork(table.storage, 1 << 20, table.snapshot.options)
    items = [IndexItem(1, intents[1], 0)]
    again, sent = pickle.loads(pickle.dumps((work, items)))
    (made,) = again(Task(sent, 2))
    assert [made] == work(Task(items, 2))
    assert (made.item, made.sidecar) == (1, None)
    container = Container.open(BytesSource(made.embedded or b""))
    assert [(entry.column, entry.index_type) for entry in container.entries] == [("name", "bitmap")]


def test_the_case_rule_of_columns_holds(table: PaimonTable) -> None:
    build(table, {"file-index.bitmap.columns": "NAME"})
    assert kinds(table) == [[("name", "bitmap")]] * 2
    assert drop(table, columns=["Name"]) == 2


def test_a_drop_of_an_unknown_type_is_an_error(table: PaimonTable) -> None:
    with pytest.raises(OptionError, match="no such index: bitmaps"):
        drop(table, types=["bitmaps"])
    with pytest.raises(OptionError, match="columns: found text, expected a list of names"):
        drop(table, columns="name")


def test_a_table_that_must_not_be_changed_is_refused(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    append(table, range(3))
    with pytest.raises(UnsupportedError):
        build(PaimonTable(table.storage, snapshot_id=1), BITMAP)


def test_an_object_store(storage: Storage) -> None:
    """Index files do not overwrite existing ones there either."""
    table = filled(create(storage, options=BESIDE))
    for _ in range(2):
        build(table, BITMAP)
        assert ids(table) == list(range(50))
        drop(table)
    assert sidecars(table) == ["-3.index", "-3.index"]


def test_a_column_without_a_value_gets_no_range_bitmap(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int32()), ("none", pa.int64())])
    options = {"file-index.range-bitmap.columns": "id,none", "file-index.bitmap.columns": "none"}
    table = alcid.create_table(tmp_path / "t", schema, options=options)
    report = table.append(pa.table({"id": pa.array([1, 2], pa.int32()), "none": pa.nulls(2)}))
    assert [skip.what for skip in report.skipped] == ["range-bitmap of 'none'"]
    built = build(table)
    assert (built.indexed, built.snapshot_id) == (0, None)
    assert kinds(table) == [[("id", "range-bitmap"), ("none", "bitmap")]]
    assert table.count("none IS NULL") == 2
