"""Bundles of a folder: names, merging, removal, and the handling of damaged ones."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alcid import DamagedIndexWarning, FormatError
from alcid.errors import AlcidWarning, FileGoneError
from alcid.index.bundle import Bundle, BundleWriter, PayloadKind
from alcid.storage import Listing, Storage
from alcid.tables import bundle_folder
from alcid.tables.bundle_folder import (
    BundleFolder,
    FolderBundles,
    new_name,
    written_at,
)
from alcid.tables.engine import Threads
from alcid.tables.open_files import list_data_files
from alcid.tables.parquet import indexes as folder_indexes
from alcid.tables.parquet.indexes import FolderIndexes
from tests.index.bundle.test_bundle import with_version
from tests.tables.folders import (
    KINDS,
    OPTIONS,
    bundle_names,
    check_indexes,
    fill,
    opened,
    path_of,
    put_table,
    rows_of,
    states,
)

OLD = "20200101T000000.000000Z-0123456789ab.puffin"


@pytest.fixture
def local(tmp_path: Path) -> Storage:
    return Storage.open(tmp_path / "table")


def bundle_path(storage: Storage, name: str) -> Path:
    return Path(storage.location) / "_alcid" / name


def damage(storage: Storage, name: str, offset: int) -> None:
    """Flip a bit of a bundle."""
    path = bundle_path(storage, name)
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def build_one_by_one(storage: Storage, count: int) -> FolderIndexes:
    """A bundle for each file."""
    indexes = FolderIndexes(storage)
    for number in range(count):
        fill(storage, 1, first=number)
        assert indexes.build(OPTIONS).indexed == 1
    return indexes


def test_names_of_bundles_sort_by_time_and_differ() -> None:
    before = datetime.now(UTC)
    names = [new_name() for _ in range(1000)]
    after = datetime.now(UTC)
    assert len(set(names)) == 1000
    moments = [written_at(name) for name in names]
    assert [at for at in moments if at is None or not before <= at <= after] == []
    assert sorted(moments, key=str) == moments
    assert [name[:23] for name in sorted(names)] == [name[:23] for name in names]


@pytest.mark.parametrize("name", ["a.puffin", OLD[:-7], f"x{OLD}", OLD.replace("0101T", "1301T")])
def test_other_names_are_no_bundles(name: str) -> None:
    assert written_at(name) is None


def test_files_of_other_names_are_neither_read_nor_removed(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_folder, "GRACE", timedelta(0))
    tables = fill(local, 1)
    for path in ("00000-stats.puffin", f"deeper/{OLD}", "notes.txt"):
        local.put(f"_alcid/{path}", b"of someone else")
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    check_indexes(opened(indexes, local), tables)
    indexes.drop()
    assert bundle_names(local) == ["00000-stats.puffin", OLD, "notes.txt"]


def test_many_bundles_are_merged_and_the_old_removed_later(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_folder, "MOST_BUNDLES", 3)
    indexes = build_one_by_one(local, 3)
    before = bundle_names(local)
    tables = {path_of(number): rows_of(number) for number in range(4)}
    statistics = opened(indexes, local).statistics("id")[0].values
    put_table(local, path_of(3), tables[path_of(3)])
    indexes.build(OPTIONS)
    names = bundle_names(local)
    assert (names[:3], len(names)) == (before, 5)
    bundles = opened(indexes, local)
    (merged,) = bundles.bundles
    assert (merged.replaces, merged.name.endswith(names[4])) == (tuple(names[:4]), True)
    check_indexes(bundles, tables)
    assert bundles.statistics("id")[0].values[:3].equals(statistics)
    assert bundles.schemas.null_count == 0
    # The next build finds them too young, one after the grace period does not.
    indexes.build(OPTIONS)
    assert bundle_names(local) == names
    monkeypatch.setattr(bundle_folder, "GRACE", timedelta(0))
    indexes.build(OPTIONS)
    assert bundle_names(local) == names[4:]
    check_indexes(opened(indexes, local), tables)


def test_merging_is_the_same_everywhere(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_folder, "MOST_BUNDLES", 1)
    monkeypatch.setattr(bundle_folder, "GRACE", timedelta(0))
    indexes = build_one_by_one(storage, 3)
    check_indexes(opened(indexes, storage), {path_of(n): rows_of(n) for n in range(3)})
    indexes.build(OPTIONS)
    assert len(opened(indexes, storage).bundles) == len(bundle_names(storage)) == 1


def test_what_fills_several_bundles_is_merged_to_several(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexes = build_one_by_one(local, 5)
    tables = {path_of(number): rows_of(number) for number in range(5)}
    bundle_set = opened(indexes, local)
    sizes = np.sum([bundle_set.coverage(kind).lengths for kind in bundle_set.kinds], axis=0)
    monkeypatch.setattr(bundle_folder, "FULL_BYTES", int(sizes[0]) + 1)
    counts = Counter((int(sizes[:number].sum()) // (int(sizes[0]) + 1)) for number in range(5))
    old = bundle_names(local)
    folder = BundleFolder(local, "_alcid")
    bundle_folder.merge_folder(folder, folder.load(), list_data_files(local), Threads())
    bundle_set = opened(indexes, local)
    assert [bundle.file_count for bundle in bundle_set.bundles] == list(counts.values())
    *others, last = [bundle.replaces for bundle in bundle_set.bundles]
    assert (set(others), last) == ({()}, tuple(old))
    check_indexes(bundle_set, tables)


def test_full_bundles_do_not_count_as_many(local: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    build_one_by_one(local, 4)
    monkeypatch.setattr(bundle_folder, "MOST_BUNDLES", 3)
    bundles = BundleFolder(local, "_alcid").load()
    listing = list_data_files(local)
    assert len(bundle_folder.bundles_to_merge(bundles, listing)) == 4
    size = sum(bundle.source.size for bundle in bundles.bundles)
    monkeypatch.setattr(bundle_folder, "FULL_BYTES", size)
    assert not bundle_folder.bundles_to_merge(bundles, listing)


def test_merging_forgets_files_that_are_gone_or_changed(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexes = build_one_by_one(local, 3)
    local.delete([path_of(0)])
    put_table(local, path_of(1), rows_of(70))
    monkeypatch.setattr(bundle_folder, "MOST_BUNDLES", 0)
    assert indexes.build({"file-index.bitmap.columns": "class_id"}).indexed == 1
    (bundle,) = opened(indexes, local).bundles
    assert bundle.files.paths.to_pylist() == [path_of(1), path_of(2)]


def test_bundles_without_a_live_file_are_merged_to_an_empty_one(local: Storage) -> None:
    build_one_by_one(local, 2)
    local.delete([path_of(0), path_of(1)])
    folder = BundleFolder(local, "_alcid")
    bundles = folder.load()
    bundle_folder.merge_folder(folder, bundles, list_data_files(local), Threads())
    (bundle,) = folder.load().current
    assert (bundle.file_count, bundle.replaces) == (0, bundles.names)


def test_a_bundle_that_is_damaged_as_a_whole_is_built_again_and_removed(local: Storage) -> None:
    tables = fill(local, 2)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    (bad,) = bundle_names(local)
    damage(local, bad, -1)
    with pytest.warns(DamagedIndexWarning, match="bundle left out"):
        assert opened(indexes, local).bundles == ()
    with pytest.raises(FormatError):
        opened(FolderIndexes(local, strict=True), local)
    with pytest.warns(DamagedIndexWarning, match="bundle left out"):
        assert FolderIndexes(local, strict=True).build(OPTIONS).indexed == 2
    assert bad not in bundle_names(local)
    assert indexes.build(OPTIONS).fresh == 2
    check_indexes(opened(indexes, local), tables)


def test_a_damaged_directory_is_built_again_and_merged_away(local: Storage) -> None:
    tables = fill(local, 2)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    (name,) = bundle_names(local)
    (bundle,) = opened(indexes, local).bundles
    directories = next(b for b in bundle._reader.blobs if b.type == "alcid-directory-v1")
    damage(local, name, directories.offset)  # of the first index
    with pytest.warns(DamagedIndexWarning, match="damaged directory"):
        (first, *others) = indexes.indexes()
    assert (first.damaged, first.fresh) == (2, 0)
    assert [info.fresh for info in others] == [2, 2]
    with pytest.warns(DamagedIndexWarning, match="damaged directory"):
        assert indexes.build(OPTIONS).indexed == 2
    bundles = opened(indexes, local)  # without a warning
    assert len(bundles.bundles) == 1
    check_indexes(bundles, tables)


def test_damaged_pages_are_made_again(local: Storage) -> None:
    tables = fill(local, 2)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    (name,) = bundle_names(local)
    (bundle,) = opened(indexes, local).bundles
    blobs = {blob.type: blob for blob in bundle._reader.blobs}
    pages = blobs["alcid-pages-v1"]  # the last of them
    assert pages.properties["column"] == "tags"
    at = blobs["alcid-directory-v1"].offset + int(pages.properties["directory"])
    damage(local, name, at)
    with pytest.warns(DamagedIndexWarning, match="damaged directory"):
        assert indexes.build(OPTIONS).indexed == 2
    check_indexes(opened(indexes, local), tables)
    assert states(opened(indexes, local), PayloadKind.pages("tags")) == ["FRESH", "FRESH"]


def test_a_damaged_index_is_left_out_by_merging_and_then_built_again(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = fill(local, 2)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    (name,) = bundle_names(local)
    damage(local, name, 10)  # a block of the first file's first index
    monkeypatch.setattr(bundle_folder, "MOST_BUNDLES", 0)
    with pytest.warns(DamagedIndexWarning, match="damaged block of bitmap of 'class_id'"):
        assert indexes.build(OPTIONS).fresh == 2
    assert states(opened(indexes, local), KINDS[0]) == ["ABSENT", "FRESH"]
    assert indexes.build(OPTIONS).indexed == 1
    check_indexes(opened(indexes, local), tables)


def test_a_bundle_of_a_later_version_is_left_alone(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_folder, "GRACE", timedelta(0))
    monkeypatch.setattr(bundle_folder, "MOST_BUNDLES", 0)
    fill(local, 1)
    local.put(f"_alcid/{OLD}", with_version("2.0"))
    indexes = FolderIndexes(local)
    with pytest.warns(AlcidWarning, match=r"found a bundle of version '2\.0'"):
        indexes.build(OPTIONS)
    with pytest.warns(AlcidWarning, match=r"found a bundle of version '2\.0'"):
        indexes.drop()
    assert bundle_names(local) == [OLD]


def test_a_damaged_bundle_goes_when_all_is_dropped(local: Storage) -> None:
    indexes = build_one_by_one(local, 2)
    damage(local, bundle_names(local)[0], -1)
    with pytest.warns(DamagedIndexWarning, match="bundle left out"):
        assert indexes.drop() == 1
    assert bundle_names(local) == []


def test_a_bundle_that_vanishes_while_it_is_opened_is_no_error(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexes = build_one_by_one(local, 6)
    real, left = Storage.list, [1]

    def vanishing(self: Storage, under: str = "", **options: Any) -> Listing:
        listed = real(self, under, **options)
        if under and left[0]:
            left[0] -= 1
            self.delete([listed.paths[0].as_py()])
        return listed

    monkeypatch.setattr(Storage, "list", vanishing)
    listing = real(local, suffix=".parquet")
    assert states(indexes.open(listing), KINDS[0]) == ["ABSENT"] + ["FRESH"] * 5
    left[0] = 2
    assert states(indexes.open(listing), KINDS[0]) == ["ABSENT"] * 3 + ["FRESH"] * 3
    left[0] = 3
    with pytest.raises(FileGoneError):
        indexes.open(listing)


def test_bundles_that_vanish_while_they_are_merged_do_not_spoil_the_build(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexes = build_one_by_one(local, 2)
    monkeypatch.setattr(bundle_folder, "MOST_BUNDLES", 0)
    real = bundle_folder.bundles_to_merge

    def and_then_gone(bundles: FolderBundles, listing: Listing) -> tuple[Bundle, ...]:
        chosen = real(bundles, listing)
        local.delete(f"_alcid/{name}" for name in bundles.names)
        return chosen

    monkeypatch.setattr(folder_indexes, "bundles_to_merge", and_then_gone)
    assert indexes.build(OPTIONS).fresh == 2
    assert bundle_names(local) == []


def test_replaced_bundles_are_not_used_and_unknown_names_do_no_harm(local: Storage) -> None:
    indexes = build_one_by_one(local, 2)
    names = bundle_names(local)
    data = io.BytesIO()
    with BundleWriter(data, replaces=[names[0], OLD]):
        pass
    BundleFolder(local, "_alcid").put(data.getvalue())
    assert states(opened(indexes, local), KINDS[0]) == ["ABSENT", "FRESH"]


@pytest.mark.parametrize(
    ("name", "is_data"),
    [
        ("a.parquet", True),
        ("dt=2025-01-01/a.snappy.parquet", True),
        ("a.PARQUET", True),
        ("a.parq", True),
        ("a.pq", True),
        ("000000_0", True),
        ("v1.0/000000_0", True),
        ("_day=1/part", True),
        ("a.parquet.crc", False),
        ("a.parquet.index", False),
        ("a.csv", False),
        ("parquet", True),
        ("_SUCCESS", False),
        (".a.parquet.crc", False),
        ("_alcid/a.parquet", False),
        ("_delta_log/00.parquet", False),
    ],
)
def test_data_files_are_recognized_by_their_names(local: Storage, name: str, is_data: bool) -> None:
    local.put(name, b"any bytes")
    assert list_data_files(local).paths.to_pylist() == ([name] if is_data else [])


def test_markers_of_folders_are_no_data_but_empty_parquet_files_are(local: Storage) -> None:
    local.put("dt=1_$folder$", b"")
    local.put("dt=1/a.parquet", b"")
    listing = list_data_files(local)
    assert (listing.paths.to_pylist(), listing.sizes.tolist()) == (["dt=1/a.parquet"], [0])
    assert listing.versions.null_count == 0


def test_a_merge_rewrites_the_small_bundles_and_leaves_the_large_one_alone(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """39 builds of one file on a table of 200 rewrote all 41 bundles; now only the new ones."""
    monkeypatch.setattr(bundle_folder, "GRACE", timedelta(0))
    count, builds = 200, 39
    options = {"file-index.bitmap.columns": "class_id"}
    tables = fill(local, count)
    indexes = FolderIndexes(local)
    indexes.build(options)
    merges: list[tuple[int, ...]] = []
    real = bundle_folder.merge_folder

    def record(*arguments: Any, chosen: Sequence[Bundle]) -> list[str]:
        merges.append(tuple(bundle.file_count for bundle in chosen))
        return real(*arguments, chosen=chosen)

    monkeypatch.setattr(folder_indexes, "merge_folder", record)
    for number in range(count, count + builds):
        tables |= fill(local, 1, first=number)
        assert indexes.build(options).indexed == 1
        assert set(states(opened(indexes, local), KINDS[0])) == {"FRESH"}
    bundles = opened(indexes, local)
    assert merges == [(1,) * 16, (16, *[1] * 15)]  # 15 footers are as large as 16 merged ones
    assert [bundle.file_count for bundle in bundles.bundles] == [count, 31, *[1] * 8]
    check_indexes(bundles, tables, options)


def test_a_large_bundle_is_rewritten_when_most_of_it_is_dead(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = fill(local, 4)
    indexes = FolderIndexes(local)
    indexes.build(OPTIONS)
    (large,) = bundle_names(local)
    monkeypatch.setattr(bundle_folder, "FULL_BYTES", bundle_path(local, large).stat().st_size)
    for dead, expected in ((1, [large]), (2, [large, "new"])):
        local.delete([path_of(dead)])
        del tables[path_of(dead)]
        indexes.build(OPTIONS)
        assert len(bundle_names(local)) == len(expected)
        check_indexes(opened(indexes, local), tables)
    (merged,) = opened(indexes, local).bundles
    assert (merged.file_count, merged.replaces) == (2, (large,))


def test_what_a_merged_bundle_replaced_stays_replaced_when_it_is_merged(
    local: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_folder, "MOST_BUNDLES", 1)
    build_one_by_one(local, 3)
    bundles = BundleFolder(local, "_alcid").load()
    (last,) = bundles.current
    assert last.replaces == bundles.names[:-1]
