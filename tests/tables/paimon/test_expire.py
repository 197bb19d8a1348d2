"""Expiry of snapshots: what stays is whole, what only expired snapshots named is gone."""

from __future__ import annotations

import io
import json
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import fastavro
import pytest

import alcid
from alcid import PaimonTable
from alcid.errors import (
    AlcidError,
    AlcidWarning,
    FileGoneError,
    FormatError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from alcid.storage import Storage
from alcid.tables.paimon import expire
from alcid.tables.paimon.metadata import references
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.retention import Retention
from tests.golden.paimon_tables import unpack_table
from tests.tables.paimon.keyed.sink_tables import keyed_table, names_of, rows_of
from tests.tables.paimon.newer_fields import add_fields
from tests.tables.paimon.small_tables import append, commit, create, ids, set_options

NOW = timedelta(0)
OTHER = "99999999-8888-7777-6666-555555555555"


def files_of(table: Path) -> set[str]:
    return {path.relative_to(table).as_posix() for path in table.rglob("*") if path.is_file()}


def folders_of(table: Path) -> Counter[str]:
    """How many files are in each folder, without hints."""
    names = files_of(table) - {"snapshot/LATEST", "snapshot/EARLIEST"}
    return Counter(name.rpartition("/")[0] for name in names)


def change_json(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **fields}))


def copy_on_write_table(folder: Path, files: int = 4) -> PaimonTable:
    """A table whose every snapshot but the last replaces the only data file."""
    table = create(folder)
    entry = append(table, [0])
    for number in range(1, files):
        before = entry
        entry = append(table, [number])
        commit(table, Change(kind="OVERWRITE", deleted=[before]))
    return table


# -- what is removed -------------------------------------------------------------------------------


def test_sixty_batches_of_a_sink_leave_the_live_files_and_the_snapshots_that_stay(
    tmp_path: Path,
) -> None:
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    table = create(tmp_path, primary_keys=["id"], options=options)
    sink = alcid.upsert_sink(table, "s")
    for batch in range(60):
        sink(rows_of({batch: f"b{batch}", batch + 5: "x"}), batch)
    names = names_of(table)
    assert folders_of(tmp_path) == {
        "schema": 1,
        "snapshot": 119,
        "manifest": 405,
        "bucket-0": 71,
        "index": 44,
    }
    table.refresh()
    assert table.files == 5
    would = table.expire_snapshots(NOW, 3, dry_run=True)
    assert folders_of(tmp_path)["snapshot"] == 119
    report = table.expire_snapshots(NOW, 3)
    assert {**report.to_dict(), "seconds": 0, "dry_run": True} == {**would.to_dict(), "seconds": 0}
    assert (report.snapshots, report.earliest, report.latest) == (116, 117, 119)
    assert folders_of(tmp_path)["snapshot"] == 3
    assert (tmp_path / "snapshot/EARLIEST").read_text() == "117"
    assert table.clean(NOW, dry_run=True).removed == ()
    last = table.expire_snapshots(NOW, 1)
    assert folders_of(tmp_path) == {
        "schema": 1,
        "snapshot": 1,
        "manifest": 6,
        "bucket-0": 5,
        "index": 1,
    }
    assert report.data_files + last.data_files == 66
    assert report.index_files + last.index_files == 43
    assert report.manifests + last.manifests == 399
    assert table.clean(NOW, dry_run=True).removed == ()
    assert names_of(table) == names
    assert table.verify(progress=False).ok
    sink(rows_of({0: "after"}), 60)
    assert names_of(table) == names | {0: "after"}


def test_every_snapshot_that_stays_is_read_as_before(tmp_path: Path) -> None:
    table = copy_on_write_table(tmp_path, 5)
    before = {
        number: ids(PaimonTable(Storage.open(tmp_path), snapshot_id=number))
        for number in range(1, 10)
    }
    assert before[1] == [0]
    assert before[9] == [4]
    for keep in (7, 4, 2, 1):
        report = table.expire_snapshots(NOW, keep)
        assert (report.earliest, report.latest) == (10 - keep, 9)
        for number in range(10 - keep, 10):
            assert ids(PaimonTable(Storage.open(tmp_path), snapshot_id=number)) == before[number]
        with pytest.raises(FileGoneError, match=f"there are {10 - keep} to 9"):
            PaimonTable(Storage.open(tmp_path), snapshot_id=9 - keep)
        assert table.clean(NOW, dry_run=True).removed == ()
    assert folders_of(tmp_path)["bucket-0"] == 1


def test_the_report_says_what_expired(tmp_path: Path) -> None:
    table = create(tmp_path)
    assert str(table.expire_snapshots()) == "expired nothing: there are no snapshots"
    table = copy_on_write_table(tmp_path / "t", 3)
    assert str(table.expire_snapshots()) == "expired nothing: snapshots 1 to 5 stay"
    would = table.expire_snapshots(NOW, 2, dry_run=True)
    size = (2 * (tmp_path / "t" / "snapshot" / "snapshot-1").stat().st_size) and would.bytes
    assert str(would).startswith("would have expired 3 snapshots: 4 to 5 stay; removed 1 data file")
    before = files_of(tmp_path / "t")
    report = table.expire_snapshots(NOW, 2)
    gone = before - files_of(tmp_path / "t")
    assert len(gone) == 3 + report.data_files + report.manifests
    assert (report.index_files, report.statistics, report.bytes) == (0, 0, size)
    assert str(table.expire_snapshots(NOW, 1)).startswith("expired 1 snapshot: 5 stays; removed 1")
    assert str(table.expire_snapshots(NOW, 1)) == "expired nothing: snapshot 5 stays"


def test_statistics_and_index_files_go(tmp_path: Path) -> None:
    table = unpack_table("vectors_32", tmp_path)
    opened = PaimonTable(Storage.open(table))
    opened.compute_stats(progress=False)
    opened.compute_stats(progress=False)
    assert len(list((table / "statistics").glob("*"))) == 2
    opened.delete("ring < 3", progress=False)
    rows = opened.scan().to_arrow()
    indexes = len(list((table / "index").glob("*")))
    report = opened.expire_snapshots(NOW, 1)
    assert report.statistics == 1
    assert report.index_files == indexes - len(opened.snapshot.state.indexes)
    assert len(list((table / "index").glob("*"))) == len(opened.snapshot.state.indexes)
    assert opened.scan().to_arrow().equals(rows)
    left = opened.clean(NOW, dry_run=True).removed
    assert [one.reason for one in left] == ["old statistics"]  # a sketch of ours, not of Paimon's


# -- which snapshots expire ------------------------------------------------------------------------


def test_defaults_are_the_options_of_the_table(tmp_path: Path) -> None:
    table = copy_on_write_table(tmp_path, 20)
    assert table.snapshot_id == 39
    assert table.expire_snapshots().snapshots == 0  # all are younger than an hour
    set_options(table, snapshot__time_retained="0 ms", snapshot__expire__limit="12")
    assert table.expire_snapshots().snapshots == 12
    other = PaimonTable(Storage.open(tmp_path))
    set_options(other, snapshot__expire__limit="50")  # which the table need not know yet
    assert table.expire_snapshots().earliest == 30
    set_options(table, snapshot__num_retained__min="4")
    assert table.expire_snapshots(timedelta(hours=1)).snapshots == 0
    assert table.expire_snapshots(retain_last=8).earliest == 32
    assert table.expire_snapshots().earliest == 36
    set_options(
        table,
        snapshot__num_retained__min="1",
        snapshot__num_retained__max="2",
        snapshot__time_retained="1d",
    )
    assert table.expire_snapshots(retain_last=3).earliest == 37
    assert table.expire_snapshots().earliest == 38


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"snapshot.num-retained.min": "0"}, "snapshot.num-retained.min: found '0'"),
        ({"snapshot.num-retained.max": "9"}, "snapshot.num-retained.max: found 9, expected 10"),
        ({"snapshot.time-retained": "1 fortnight"}, "snapshot.time-retained: found '1 fortnight'"),
        ({"snapshot.expire.limit": "x"}, "snapshot.expire.limit: found 'x'"),
        ({"consumer.changelog-only": "1"}, "consumer.changelog-only: found '1'"),
    ],
)
def test_an_option_that_cannot_be(tmp_path: Path, options: dict[str, str], problem: str) -> None:
    table = create(tmp_path, options=options)
    append(table, [1])
    with pytest.raises(OptionError, match=problem):
        table.expire_snapshots()


def test_arguments_that_cannot_be(tmp_path: Path) -> None:
    table = create(tmp_path)
    for age, number, problem in [
        (timedelta(-1), None, "older_than: found -1 day"),
        (3, None, "older_than: found int, expected timedelta"),
        (None, 0, "retain_last: found 0, expected 1 or more"),
        (None, "1", "retain_last: found str, expected int"),
    ]:
        arguments: Any = age, number
        with pytest.raises((OptionError, UnsupportedError), match=problem):
            table.expire_snapshots(*arguments)


def test_durations_of_any_length_are_read() -> None:
    options = {"snapshot.time-retained": f"{10**17} days", "snapshot.num-retained.min": "1"}
    table = create(Storage.open(f"memory://expire-{OTHER}"), options=options)
    retention = Retention.of(table.snapshot.options, None, None)
    assert retention.first_kept({1: 0, 2: 0, 3: 0}, [], now=10**15) == 1


def test_a_consumer_keeps_what_it_has_not_read(tmp_path: Path) -> None:
    table = copy_on_write_table(tmp_path, 6)
    (tmp_path / "consumer").mkdir()
    for name, following in (("slow", 4), ("fast", 99)):
        (tmp_path / f"consumer/consumer-{name}").write_text(json.dumps({"nextSnapshot": following}))
    (tmp_path / "consumer/notes").write_text("no consumer")
    report = table.expire_snapshots(NOW, 1)
    assert (report.snapshots, report.earliest) == (3, 4)
    assert str(report).splitlines()[1:] == ["consumer slow is to read snapshot 4 next"]
    assert report.to_dict()["consumers"] == [{"name": "slow", "next_snapshot": 4}]
    set_options(table, consumer__changelog_only="true")
    assert table.expire_snapshots(NOW, 3).earliest == 9
    set_options(table, consumer__changelog_only="false")
    (tmp_path / "consumer/consumer-slow").write_text('{"next": 4}')
    before = files_of(tmp_path)
    with pytest.raises(FormatError, match=r"consumer-slow: consumer: nextSnapshot: found None"):
        table.expire_snapshots(NOW, 1)
    assert files_of(tmp_path) == before


def test_snapshots_with_gaps_between_them(tmp_path: Path) -> None:
    table = copy_on_write_table(tmp_path, 6)
    for number in (3, 4, 8):
        (tmp_path / f"snapshot/snapshot-{number}").unlink()
    report = table.expire_snapshots(NOW, 4)  # 8 would be the first that stays
    assert (report.snapshots, report.earliest) == (5, 9)
    assert ids(table) == [5]
    assert {one.reason for one in table.clean(NOW).removed} <= {"manifest", "data file"}


# -- what others name ------------------------------------------------------------------------------


def test_tags_and_branches_keep_what_they_name(tmp_path: Path) -> None:
    table = copy_on_write_table(tmp_path, 5)
    for number, path in ((1, "tag/tag-a"), (5, "branch/branch-b/snapshot/snapshot-5")):
        (tmp_path / path).parent.mkdir(parents=True)
        shutil.copy(tmp_path / f"snapshot/snapshot-{number}", tmp_path / path)
    shutil.copytree(tmp_path / "schema", tmp_path / "branch/branch-b/schema")
    report = table.expire_snapshots(NOW, 1)
    assert (report.snapshots, report.data_files) == (8, 2)
    assert ids(PaimonTable(Storage.open(tmp_path), tag="a")) == [0]
    assert ids(PaimonTable(Storage.open(tmp_path), branch="b")) == [2]
    assert ids(table) == [4]
    assert table.clean(NOW, dry_run=True).removed == ()


def test_a_tag_that_is_made_while_snapshots_expire_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = copy_on_write_table(tmp_path, 4)
    real = Storage.delete

    def delete(self: Storage, paths: Any) -> None:
        monkeypatch.setattr(Storage, "delete", real)
        (tmp_path / "tag").mkdir()
        shutil.copy(tmp_path / "snapshot/snapshot-1", tmp_path / "tag/tag-late")
        real(self, paths)

    monkeypatch.setattr(Storage, "delete", delete)
    assert table.expire_snapshots(NOW, 1).snapshots == 6
    assert ids(PaimonTable(Storage.open(tmp_path), tag="late")) == [0]
    assert folders_of(tmp_path)["bucket-0"] == 2


def test_commits_while_snapshots_expire_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One commits before every step; it merges and compacts what is there."""
    table = keyed_table(tmp_path, bucket="1")
    for number in range(8):
        table.upsert(rows_of({number: "x"}))
    names = names_of(table)
    other = PaimonTable(Storage.open(tmp_path))
    is_busy, count = [False], [0]

    def before(call: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any, **more: Any) -> Any:
            if not is_busy[0]:
                is_busy[0] = True
                count[0] += 1
                other.upsert(rows_of({100 + count[0]: "new"}))
                is_busy[0] = False
            return call(*arguments, **more)

        return act

    for name in ("read_roots", "needed_names", "remove_files"):
        monkeypatch.setattr(expire, name, before(getattr(expire, name)))
    monkeypatch.setattr(Storage, "delete", before(Storage.delete))
    report = table.expire_snapshots(NOW, 1)
    monkeypatch.undo()
    assert report.snapshots > 10
    assert count[0] > 15
    assert names_of(table) == names | {100 + number: "new" for number in range(1, count[0] + 1)}
    assert table.verify(progress=False).ok
    table.expire_snapshots(NOW, 1)
    assert table.clean(NOW, dry_run=True).removed == ()


def test_two_who_expire_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = copy_on_write_table(tmp_path, 5)
    other = PaimonTable(Storage.open(tmp_path))
    real = references.MetadataReader.read_lists

    def read(self: Any, names: Any) -> Any:
        monkeypatch.setattr(references.MetadataReader, "read_lists", real)
        other.expire_snapshots(NOW, 3)
        return real(self, names)

    monkeypatch.setattr(references.MetadataReader, "read_lists", read)
    report = table.expire_snapshots(NOW, 2)
    assert (report.snapshots, report.earliest) == (1, 8)  # planned anew after the other one
    assert ids(table) == [4]
    assert table.clean(NOW, dry_run=True).removed == ()


def test_what_a_field_of_a_newer_paimon_names_is_kept(tmp_path: Path) -> None:
    table = copy_on_write_table(tmp_path, 3)
    first = next(iter((tmp_path / "bucket-0").glob("*.parquet")))
    gone = sorted(
        entry.file.name
        for number in (1, 3)
        for entry in PaimonTable(Storage.open(tmp_path), snapshot_id=number).snapshot.state.entries
    )
    assert first.name
    latest = max((tmp_path / "snapshot").glob("snapshot-*"), key=lambda path: int(path.name[9:]))
    change_json(latest, x={"files": [f"bucket-0/{gone[0]}"]})
    assert table.expire_snapshots(NOW, 1).data_files == 1
    assert (tmp_path / "bucket-0" / gone[0]).exists()
    assert not (tmp_path / "bucket-0" / gone[1]).exists()


def test_what_an_unknown_field_of_a_live_entry_names_is_kept(tmp_path: Path) -> None:
    table = create(tmp_path)
    old, new = append(table, [1]), append(table, [2])
    (meta,) = table.snapshot.state.delta
    path = tmp_path / "manifest" / meta.name
    data = add_fields(path.read_bytes(), {("_FILE", "_X"): ("string", f"x/{old.file.name}")})
    path.write_bytes(data)
    _set_manifest_sizes(tmp_path)
    table = PaimonTable(Storage.open(tmp_path))
    commit(table, Change(kind="OVERWRITE", deleted=[old]))
    assert table.expire_snapshots(NOW, 1).data_files == 0
    assert (tmp_path / "bucket-0" / old.file.name).exists()
    assert ids(table) == [2]
    assert new.file.name != old.file.name


def _set_manifest_sizes(table: Path) -> None:
    """Let lists say how large manifests are, and snapshots nothing of lists."""
    for path in (table / "manifest").glob("manifest-list-*"):
        read = fastavro.reader(io.BytesIO(path.read_bytes()))
        schema, records = read.writer_schema, list[Any](read)
        for record in records:
            record["_FILE_SIZE"] = (table / "manifest" / record["_FILE_NAME"]).stat().st_size
        file = io.BytesIO()
        fastavro.writer(file, schema, records, codec="zstandard")
        path.write_bytes(file.getvalue())
    for path in (table / "snapshot").glob("snapshot-*"):
        fields = json.loads(path.read_bytes())
        kept = {name: value for name, value in fields.items() if not name.endswith("ListSize")}
        path.write_text(json.dumps(kept))


# -- what is refused, and what is damaged ----------------------------------------------------------


def test_tables_that_nothing_is_written_to_are_refused(tmp_path: Path) -> None:
    table = copy_on_write_table(tmp_path, 3)
    shutil.copytree(tmp_path / "snapshot", tmp_path / "branch/branch-b/snapshot")
    shutil.copytree(tmp_path / "schema", tmp_path / "branch/branch-b/schema")
    (tmp_path / "tag").mkdir()
    shutil.copy(tmp_path / "snapshot/snapshot-1", tmp_path / "tag/tag-a")
    before = files_of(tmp_path)
    for at in ({"branch": "b"}, {"snapshot_id": 2}, {"tag": "a"}):
        arguments: Any = at
        with pytest.raises(UnsupportedError, match="which nothing is written to"):
            PaimonTable(Storage.open(tmp_path), **arguments).expire_snapshots(NOW, 1)
    for key in ("num-retained.min", "num-retained.max", "time-retained"):
        longer = "3 days" if key == "time-retained" else "2147483647"
        options = {f"changelog__{key.replace('-', '_').replace('.', '__')}": longer}
        set_options(table, snapshot__num_retained__max="20", **options)
        with pytest.raises(UnsupportedError, match=f"changelog.{key}={longer}: cannot expire"):
            table.expire_snapshots(NOW, 1)
        set_options(table, **dict.fromkeys(options, "0 s" if key == "time-retained" else "1"))
    assert files_of(tmp_path) - {path for path in files_of(tmp_path) if "schema/" in path} == {
        path for path in before if "schema/" not in path
    }
    assert table.expire_snapshots(NOW, 1).snapshots == 4


@pytest.mark.filterwarnings("ignore:.*manifests of snapshots that expire are gone")
def test_metadata_that_are_damaged_or_gone_stop_it_before_anything_is_removed(
    tmp_path: Path,
) -> None:
    """Of everything that tells what is needed: one byte less, the last byte otherwise, no file."""
    base = tmp_path / "base"
    table = keyed_table(base, bucket="1")
    for number in range(3):
        table.upsert(rows_of({number: "x"}))
    (base / "tag").mkdir()
    shutil.copy(base / "snapshot/snapshot-2", base / "tag/tag-a")
    latest = table.snapshot.state
    assert latest.snapshot is not None
    assert latest.snapshot.index_manifest is not None
    tag = PaimonTable(Storage.open(base), tag="a").snapshot.state
    assert tag.snapshot is not None
    needed = {
        latest.snapshot.base_manifest_list,
        latest.snapshot.delta_manifest_list,
        latest.snapshot.index_manifest,
        tag.snapshot.base_manifest_list,
        tag.snapshot.delta_manifest_list,
        *(meta.name for meta in (*latest.manifests, *tag.manifests)),
    }
    assert len(needed) > 8
    paths = [f"manifest/{name}" for name in sorted(needed)]
    paths += [f"snapshot/snapshot-{latest.snapshot.id}", "tag/tag-a"]
    for number, path in enumerate(paths):
        data = (base / path).read_bytes()
        for damage in (data[:-1], data[:-1] + bytes([data[-1] ^ 0x55]), None):
            if damage is None and not path.startswith("manifest/"):
                continue  # then there is no such snapshot or tag
            copy = Path(shutil.copytree(base, tmp_path / f"{number}"))
            opened = PaimonTable(Storage.open(copy))
            if damage is None:
                (copy / path).unlink()
            else:
                (copy / path).write_bytes(damage)
            before = files_of(copy)
            with pytest.raises((FormatError, StorageError)) as raised:
                opened.expire_snapshots(NOW, 1)
            assert not isinstance(raised.value, FileGoneError), path
            assert files_of(copy) == before, path
            shutil.rmtree(copy)


def test_an_entry_of_an_unknown_kind_stops_it(tmp_path: Path) -> None:
    table = copy_on_write_table(tmp_path, 3)
    (meta,) = table.snapshot.state.delta
    path = tmp_path / "manifest" / meta.name
    path.write_bytes(add_fields(path.read_bytes(), {("_KIND",): ("int", 2)}))
    _set_manifest_sizes(tmp_path)
    before = files_of(tmp_path)
    with pytest.raises(FormatError, match="kind of an entry: found 2, expected 0 or 1"):
        table.expire_snapshots(NOW, 1)
    assert files_of(tmp_path) == before


def test_data_files_outside_of_the_table_stop_it(tmp_path: Path) -> None:
    table = copy_on_write_table(tmp_path, 3)
    (meta,) = table.snapshot.state.delta
    path = tmp_path / "manifest" / meta.name
    outside = ["null", "string"], "/elsewhere/data.parquet"
    path.write_bytes(add_fields(path.read_bytes(), {("_FILE", "_EXTERNAL_PATH"): outside}))
    _set_manifest_sizes(tmp_path)
    before = files_of(tmp_path)
    with pytest.raises(UnsupportedError, match="names data files outside of the table"):
        table.expire_snapshots(NOW, 1)
    assert files_of(tmp_path) == before


def test_what_java_has_removed_of_an_expiry_that_was_killed_is_passed_over(tmp_path: Path) -> None:
    """It removes manifests before the snapshots that name them."""
    table = copy_on_write_table(tmp_path, 4)
    fields = json.loads((tmp_path / "snapshot/snapshot-2").read_bytes())
    (tmp_path / "manifest" / fields["deltaManifestList"]).unlink()
    with pytest.warns(AlcidWarning, match="1 manifests of snapshots that expire are gone"):
        report = table.expire_snapshots(NOW, 1)
    assert report.snapshots == 6
    assert ids(table) == [3]
    table.clean(NOW)
    assert folders_of(tmp_path)["bucket-0"] == 1


def test_the_oldest_snapshot_goes_first_and_files_go_after_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that was asleep must not find a number free after one that is still there."""
    table = copy_on_write_table(tmp_path, 4)
    steps: list[str] = []
    remove, replace = Storage.delete, Storage.replace

    def delete(self: Storage, paths: Any) -> None:
        every = list(paths)
        steps.extend(every)
        remove(self, every)

    def hint(self: Storage, path: str, data: bytes) -> None:
        steps.append(f"{path}={data.decode()}")
        replace(self, path, data)

    monkeypatch.setattr(Storage, "delete", delete)
    monkeypatch.setattr(Storage, "replace", hint)
    table.expire_snapshots(NOW, 2)
    assert steps[:6] == [
        *(f"snapshot/snapshot-{number}" for number in range(1, 6)),
        "snapshot/EARLIEST=6",
    ]
    assert len(steps) > 10
    assert not any(step.startswith("snapshot/") for step in steps[6:])


def test_a_hint_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = copy_on_write_table(tmp_path, 3)

    def fail(*_: Any) -> None:
        raise StorageError("could not be written", file="x")

    monkeypatch.setattr(Storage, "replace", fail)
    assert table.expire_snapshots(NOW, 1).snapshots == 4
    assert ids(table) == [2]


class _KilledError(Exception):
    """The process ends."""


@pytest.mark.filterwarnings("ignore:.*not yet compacted")
def test_a_kill_at_any_point_leaves_a_table_that_is_read_and_what_clean_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base"
    table = keyed_table(base, bucket="1")
    for number in range(4):
        table.upsert(rows_of({number: "x"}))
    (base / "tag").mkdir()
    shutil.copy(base / "snapshot/snapshot-3", base / "tag/tag-a")
    names = names_of(table)
    last = table.snapshot_id or 0
    tagged = PaimonTable(Storage.open(base), tag="a").scan().to_arrow()
    whole = Path(shutil.copytree(base, tmp_path / "whole"))
    PaimonTable(Storage.open(whole)).expire_snapshots(NOW, 2)
    expected = files_of(whole) - {"snapshot/EARLIEST"}
    removed = len(files_of(base) - files_of(whole))
    assert removed > 20
    monkeypatch.setattr(expire, "remove_files", _one_by_one)
    for kill in range(removed + 1):
        copy = Path(shutil.copytree(base, tmp_path / f"{kill}"))
        left = [kill]

        def delete(self: Storage, paths: Any, left: list[int] = left) -> None:
            for path in paths:
                if not left[0]:
                    raise _KilledError
                left[0] -= 1
                self._backend.delete(path)

        with monkeypatch.context() as patch:
            patch.setattr(Storage, "delete", delete)
            if kill < removed:
                with pytest.raises(_KilledError):
                    PaimonTable(Storage.open(copy)).expire_snapshots(NOW, 2)
        opened = PaimonTable(Storage.open(copy))
        assert names_of(opened) == names
        assert PaimonTable(Storage.open(copy), tag="a").scan().to_arrow().equals(tagged)
        for number in opened.folder.snapshots.numbers():  # none is there without its files
            PaimonTable(Storage.open(copy), snapshot_id=number).scan().to_arrow()
        assert {last - 1, last} <= set(opened.folder.snapshots.numbers())
        opened.expire_snapshots(NOW, 2)
        opened.clean(NOW)
        assert files_of(copy) - {"snapshot/EARLIEST"} == expected
        shutil.rmtree(copy)


def _one_by_one(storage: Storage, paths: Any, _engine: Any) -> None:
    storage.delete(paths.to_pylist())


def test_an_error_of_a_removal_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = copy_on_write_table(tmp_path, 3)

    def fail(*_: Any) -> None:
        raise StorageError("could not be removed", file="x")

    monkeypatch.setattr(Storage, "delete", fail)
    with pytest.raises(AlcidError, match="could not be removed"):
        table.expire_snapshots(NOW, 1)
    monkeypatch.undo()
    assert ids(table) == [2]


def test_it_is_the_same_on_every_storage(storage: Storage) -> None:
    table = create(storage)
    entry = append(table, [0])
    for number in range(1, 4):
        before, entry = entry, append(table, [number])
        commit(table, Change(kind="OVERWRITE", deleted=[before]))
    report = table.expire_snapshots(NOW, 1)
    assert (report.snapshots, report.data_files) == (6, 3)
    assert ids(table) == [3]
    listed = storage.list(hidden=True).paths.to_pylist()
    assert [path for path in listed if path.startswith("bucket-0/")] == [
        f"bucket-0/{entry.file.name}"
    ]
    assert sum(path.startswith("snapshot/snapshot-") for path in listed) == 1
