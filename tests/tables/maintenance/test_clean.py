"""Clean: what is merged, what is removed, and what is kept."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from alcid import DamagedIndexWarning, OptionError
from alcid.errors import FileGoneError
from alcid.index.bundle import BundleWriter
from alcid.storage import Listing, Storage
from alcid.tables import bundle_folder
from alcid.tables.bundle_folder import BundleFolder, new_name
from alcid.tables.maintenance import clean as cleaning
from alcid.tables.maintenance.clean import CleanReport, clean
from alcid.tables.parquet.indexes import FolderIndexes
from tests.index.bundle.test_bundle import with_version
from tests.tables.folders import (
    OPTIONS,
    bundle_names,
    check_indexes,
    fill,
    opened,
    path_of,
    put_table,
    rows_of,
)
from tests.tables.maintenance.kit import folder_of, set_age

NOW = timedelta(0)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
OLD = "20200101T000000.000000Z-0123456789ab"


@pytest.fixture
def local(tmp_path: Path) -> Storage:
    return Storage.open(tmp_path / "table")


def cleaned(storage: Storage, **options: Any) -> CleanReport:
    return clean(storage, folder_of(storage), **options)


def build_one_by_one(storage: Storage, count: int, first: int = 0) -> FolderIndexes:
    """A bundle for each file."""
    indexes = FolderIndexes(storage)
    for number in range(first, first + count):
        fill(storage, 1, first=number)
        assert indexes.build(OPTIONS).indexed == 1
    return indexes


def named(moment: datetime) -> str:
    """A name as it would have been given at another time."""
    return moment.strftime("%Y%m%dT%H%M%S.%fZ") + new_name()[23:].removesuffix(".puffin")


def removed(report: CleanReport) -> list[tuple[str, str]]:
    return [(file.path, file.reason) for file in report.removed]


def kept(report: CleanReport) -> list[tuple[str, str]]:
    return [(file.path, file.reason) for file in report.kept]


def test_bundles_become_one_and_the_old_go_later(storage: Storage) -> None:
    indexes = build_one_by_one(storage, 3)
    names = bundle_names(storage)
    report = cleaned(storage)
    assert (report.merged, len(report.written), report.removed) == (tuple(names), 1, ())
    assert kept(report) == [(f"_alcid/{name}", "replaced") for name in names]
    assert bundle_names(storage) == [*names, *report.written]
    tables = {path_of(number): rows_of(number) for number in range(3)}
    check_indexes(opened(indexes, storage), tables)
    again = cleaned(storage)
    assert (again.merged, again.removed, kept(again)) == ((), (), kept(report))
    last = cleaned(storage, older_than=NOW)
    assert (removed(last), last.kept, last.merged) == (kept(report), (), ())
    assert bundle_names(storage) == list(report.written)
    check_indexes(opened(indexes, storage), tables)


def test_a_dry_run_changes_nothing(local: Storage) -> None:
    build_one_by_one(local, 2)
    local.put(f"_alcid/staging/{OLD}/a.parquet", b"12345")
    set_age(f"{local.location}/_alcid/staging/{OLD}/a.parquet", 3 * 86400)
    everything = local.list(hidden=True)
    report = cleaned(local, dry_run=True)
    assert report.merged == tuple(bundle_names(local)[:2])
    assert (report.written, removed(report)) == ((), [(f"_alcid/staging/{OLD}", "staged")])
    after = local.list(hidden=True)
    assert after.paths.equals(everything.paths)
    assert after.versions.equals(everything.versions)
    done = cleaned(local)
    assert (done.merged, removed(done)) == (report.merged, removed(report))


def test_a_single_bundle_is_left_alone(local: Storage) -> None:
    fill(local, 3)
    FolderIndexes(local).build(OPTIONS)
    names = bundle_names(local)
    report = cleaned(local, older_than=NOW)
    assert (report.merged, report.removed, report.kept) == ((), (), ())
    assert bundle_names(local) == names


def test_entries_of_files_that_are_gone_or_changed_are_dropped(local: Storage) -> None:
    fill(local, 3)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    local.delete([path_of(0)])
    put_table(local, path_of(1), rows_of(70))
    report = cleaned(local)
    assert (len(report.merged), len(report.written)) == (1, 1)
    (bundle,) = opened(indexes, local).bundles
    assert bundle.files.paths.to_pylist() == [path_of(2)]
    assert cleaned(local).merged == ()


def test_full_bundles_are_left_alone_unless_much_of_them_is_dead(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(local, 20)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    (full,) = bundle_names(local)
    build_one_by_one(local, 2, first=20)
    small = bundle_names(local)[1:]
    size = (Path(local.location) / "_alcid" / full).stat().st_size
    monkeypatch.setattr(bundle_folder, "FULL_BYTES", 2 * size)
    local.delete([path_of(0)])
    assert cleaned(local, dry_run=True).merged == tuple(small)
    local.delete([path_of(1)])
    assert cleaned(local, dry_run=True).merged == (full, *small)
    cleaned(local)
    tables = {path_of(number): rows_of(number) for number in range(2, 22)}
    check_indexes(opened(indexes, local), {path: tables[path] for path in sorted(tables)})


def test_a_bundle_of_dead_files_alone_vanishes_in_the_end(local: Storage) -> None:
    build_one_by_one(local, 1)
    local.delete([path_of(0)])
    assert len(cleaned(local).written) == 1
    reasons = [
        sorted({file.reason for file in cleaned(local, older_than=NOW).removed}) for _ in range(2)
    ]
    assert (reasons, bundle_names(local)) == ([["replaced"], ["empty"]], [])


def test_a_bundle_that_only_replaces_others_stays_as_long_as_these(local: Storage) -> None:
    indexes = build_one_by_one(local, 1)
    (first,) = bundle_names(local)
    indexes.build(OPTIONS, rebuild=True)
    names = bundle_names(local)
    report = cleaned(local)
    assert (report.merged, report.removed, kept(report)) == (
        (),
        (),
        [(f"_alcid/{first}", "replaced")],
    )
    assert removed(cleaned(local, older_than=NOW)) == [(f"_alcid/{first}", "replaced")]
    assert bundle_names(local) == names[1:]
    ((path, reason),) = removed(cleaned(local, older_than=NOW))
    assert (path, reason) == (f"_alcid/{names[-1]}", "empty")
    check_indexes(opened(indexes, local), {path_of(0): rows_of(0)})


def test_what_was_replaced_goes_after_ten_minutes_whatever_the_age(local: Storage) -> None:
    build_one_by_one(local, 1)
    (name,) = bundle_names(local)
    for minutes, expected in ((9, []), (11, [(f"_alcid/{name}", "replaced")])):
        data = io.BytesIO()
        BundleWriter(data, replaces=[name]).finish()
        moment = datetime.now(UTC) - timedelta(minutes=minutes)
        local.put(f"_alcid/{named(moment)}.puffin", data.getvalue())
        assert removed(cleaned(local, dry_run=True)) == expected


def test_a_damaged_bundle_is_removed_when_it_is_old(local: Storage) -> None:
    fill(local, 1)
    FolderIndexes(local).build(OPTIONS)
    (sound,) = bundle_names(local)
    moment = datetime.now(UTC) - HOUR
    name = f"{named(moment)}.puffin"
    local.put(f"_alcid/{name}", b"no Puffin file at all")
    report = cleaned(local)
    assert (report.removed, kept(report)) == ((), [(f"_alcid/{name}", "damaged")])
    report = cleaned(local, older_than=HOUR)
    assert (removed(report), report.bytes_removed) == ([(f"_alcid/{name}", "damaged")], 21)
    assert bundle_names(local) == [sound]


def test_a_bundle_with_a_damaged_payload_is_merged_without_it(local: Storage) -> None:
    build_one_by_one(local, 2)
    path = Path(local.location) / "_alcid" / bundle_names(local)[0]
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    with pytest.warns(DamagedIndexWarning, match="damaged block of bitmap of 'class_id'"):
        assert len(cleaned(local).merged) == 2
    assert FolderIndexes(local).build(OPTIONS).indexed == 1


def test_a_bundle_of_a_later_version_and_files_of_others_are_left_alone(local: Storage) -> None:
    build_one_by_one(local, 2)
    others = [f"{OLD}.puffin", "00000-stats.puffin", "notes.txt", ".hidden.tmp", "other/a.tmp"]
    local.put(f"_alcid/{others[0]}", with_version("2.0"))
    for name in others[1:]:
        local.put(f"_alcid/{name}", b"of someone else")
        set_age(f"{local.location}/_alcid/{name}", 10 * 86400)
    cleaned(local)
    cleaned(local, older_than=NOW)
    left = set(local.list("_alcid", hidden=True).paths.to_pylist())
    assert {f"_alcid/{name}" for name in others} < left
    assert len(left) == len(others) + 1


def test_data_files_are_never_removed(local: Storage) -> None:
    tables = fill(local, 3)
    put_table(local, "_hidden/a.parquet", rows_of(1))
    FolderIndexes(local).build(OPTIONS)
    cleaned(local, older_than=NOW)
    listed = local.list(hidden=True).paths.to_pylist()
    assert {*tables, "_hidden/a.parquet"} <= set(listed)


def test_jobs_are_removed_when_all_of_them_is_old(local: Storage) -> None:
    def stage(job: str, ages: list[float]) -> None:
        for number, age in enumerate(ages):
            path = f"_alcid/staging/{job}/{number}.parquet"
            local.put(path, b"12345")
            set_age(f"{local.location}/{path}", age)

    days = 86400.0
    recent = named(datetime.now(UTC) - HOUR)
    stage(OLD, [3 * days, 2 * days])
    stage("20200101T000000.000000Z-aaaaaaaaaaaa", [3 * days, 0])  # still running after years
    stage(recent, [3 * days])  # moved there, with the modification time it had
    stage("by-hand", [2 * days])
    report = cleaned(local)
    gone = [OLD, "by-hand"]
    assert removed(report) == [(f"_alcid/staging/{job}", "staged") for job in gone]
    assert report.bytes_removed == 15
    young = sorted(["20200101T000000.000000Z-aaaaaaaaaaaa", recent])
    assert kept(report) == [(f"_alcid/staging/{job}", "staged") for job in young]
    left = {path.split("/")[2] for path in local.list("_alcid/staging").paths.to_pylist()}
    assert left == set(young)
    assert not (Path(local.location) / "_alcid" / "staging" / OLD).exists()
    assert len(cleaned(local, older_than=NOW).removed) == 2
    assert local.list("_alcid", hidden=True).paths.to_pylist() == []


def test_jobs_go_by_their_names_where_files_have_no_time(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As through fsspec, where the version of a file is its ETag."""
    real = Storage.list

    def with_tags(self: Storage, under: str = "", **options: Any) -> Listing:
        listing = real(self, under, **options)
        return Listing(
            listing.paths, listing.sizes, pa.array(['"abc"'] * len(listing), pa.string())
        )

    for job in (OLD, named(datetime.now(UTC)), "by-hand"):
        storage.put(f"_alcid/staging/{job}/a.parquet", b"12345")
    monkeypatch.setattr(Storage, "list", with_tags)
    report = cleaned(storage)
    assert removed(report) == [(f"_alcid/staging/{OLD}", "staged")]
    assert [file.since is None for file in report.kept] == [False, True]
    assert len(storage.list("_alcid/staging")) == 2


def test_files_that_were_being_written_are_removed(local: Storage) -> None:
    folder = Path(local.location) / "_alcid"
    folder.mkdir(parents=True)
    draft = folder / f".{'5f1e0c7ab2d4' * 2}5f1e0c7a.tmp"
    draft.write_bytes(b"123")
    report = cleaned(local)
    assert (report.removed, kept(report)) == ((), [(f"_alcid/{draft.name}", "unfinished")])
    set_age(str(draft), 2 * 86400)
    assert removed(cleaned(local)) == [(f"_alcid/{draft.name}", "unfinished")]
    assert os.listdir(folder) == []  # noqa: PTH208


def test_of_statistics_the_newest_stay(local: Storage) -> None:
    names = [
        f"statistics-{named(datetime.now(UTC) - age)}.puffin"
        for age in (3 * DAY, 2 * DAY, timedelta(minutes=5))
    ]
    for name in [*names, "statistics-of-mine.puffin"]:
        local.put(f"_alcid/{name}", b"any bytes")
    report = cleaned(local)
    assert removed(report) == [(f"_alcid/{names[0]}", "old statistics")]
    assert kept(report) == [(f"_alcid/{names[1]}", "old statistics")]
    assert bundle_names(local) == sorted([*names[1:], "statistics-of-mine.puffin"])


def test_with_a_folder_of_their_own_indexes_and_jobs_are_cleaned(
    local: Storage, tmp_path: Path
) -> None:
    beside = Storage.open(tmp_path / "indexes")
    indexes = FolderIndexes(local, index_storage=beside)
    for number in range(2):
        fill(local, 1, first=number)
        indexes.build(OPTIONS)
    local.put(f"_alcid/staging/{OLD}/a.parquet", b"12345")
    names = bundle_names(beside, "")
    folder = BundleFolder(beside)
    report = clean(local, folder)
    assert report.merged == tuple(names)
    report = clean(local, folder, older_than=NOW)
    staged = (f"_alcid/staging/{OLD}", "staged")
    assert removed(report) == [*((name, "replaced") for name in names), staged]
    assert len(bundle_names(beside, "")) == 1
    assert len(local.list("_alcid", hidden=True)) == 0


def test_another_build_that_merges_meanwhile_is_no_error(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_one_by_one(local, 2)

    def gone(*_: object, **__: object) -> list[str]:
        raise FileGoneError("removed", file="a bundle")

    monkeypatch.setattr(cleaning, "merge_folder", gone)
    report = cleaned(local)
    assert (report.merged, report.written, report.removed) == ((), (), ())


def test_a_bundle_that_comes_while_cleaning_is_not_taken_for_dead(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are listed after the bundles, so that those of a new bundle are among them."""
    indexes = build_one_by_one(local, 2)
    real: Callable[..., Any] = BundleFolder.load

    def late(self: BundleFolder, **options: Any) -> Any:
        monkeypatch.setattr(BundleFolder, "load", real)
        build_one_by_one(local, 1, first=2)
        return self.load(**options)

    monkeypatch.setattr(BundleFolder, "load", late)
    assert len(cleaned(local).merged) == 3
    check_indexes(opened(indexes, local), {path_of(n): rows_of(n) for n in range(3)})


def test_an_age_below_zero_is_an_error(local: Storage) -> None:
    with pytest.raises(OptionError, match="older_than: found -1 day"):
        cleaned(local, older_than=-DAY)


def test_a_report_is_text_and_plain_values(local: Storage) -> None:
    build_one_by_one(local, 2)
    local.put(f"_alcid/staging/{OLD}/a.parquet", b"12345")
    set_age(f"{local.location}/_alcid/staging/{OLD}/a.parquet", 2 * 86400)
    text = str(cleaned(local, dry_run=True))
    assert text == "would have merged 2 bundles and removed 1 leftover (5 B)\nstaged: 1"
    report = cleaned(local)
    first, *others = str(report).splitlines()
    assert first.startswith("merged 2 bundles to 1 and removed 1 leftover (5 B) in ")
    assert first.endswith(" s; 2 too young")
    assert others == ["staged: 1"]
    as_json = json.loads(json.dumps(report.to_dict()))
    assert (as_json["dry_run"], len(as_json["merged"]), len(as_json["kept"])) == (False, 2, 2)
    assert as_json["removed"][0]["path"] == f"_alcid/staging/{OLD}"
