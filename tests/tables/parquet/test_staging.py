"""From rows to files of a table: what is staged, what is moved, and what a failure leaves."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from alcid.errors import (
    AlcidWarning,
    FormatError,
    LiteralError,
    NameTakenError,
    UnsupportedError,
)
from alcid.index.bundle import PayloadKind, State
from alcid.options import parse_options
from alcid.storage import Storage
from alcid.storage.backend import FileStat
from alcid.tables.bundle_folder import FOLDER, BundleFolder, written_at
from alcid.tables.parquet.staging import (
    STAGING,
    StagedBundle,
    StagingJob,
    check_paths,
    move_files,
    new_job,
    publish_bundle,
    with_versions,
)
from alcid.tables.parquet_table import ParquetTable
from alcid.tables.parquet_writer import GROUP_ROWS
from alcid.tables.schema import fit_columns

SPECS = parse_options({"file-index.bitmap.columns": "id"})
ODD = ["a/b", "10:00", "100%", "é ü", "", None, "x=y", "__HIVE_DEFAULT_PARTITION__"]
PATHS = ["p=a%2Fb", "p=10%3A00", "p=100%25", "p=é ü"] + ["p=__HIVE_DEFAULT_PARTITION__"] * 2
PATHS += ["p=x%3Dy", "p=__HIVE_DEFAULT_PARTITION__"]


def batch_of(ids: Sequence[int], keys: Sequence[str | None]) -> pa.RecordBatch:
    arrays = [pa.array(ids, pa.int64()), pa.array(keys, pa.string())]
    return pa.RecordBatch.from_arrays(arrays, ["c0", "p0"])


def job_on(storage: Storage, target_bytes: int = 1 << 30, above: str = "") -> StagingJob:
    columns = fit_columns(pa.schema([("id", pa.int64()), ("p", pa.string())]), None, ["p"])
    return StagingJob(storage, new_job(), columns, above, tuple(SPECS), {}, target_bytes)


def publish(job: StagingJob, staged: Sequence[StagedBundle]) -> list[int]:
    files = [file for bundle in staged for file in bundle.files]
    moved = dict(zip([f.path for f in files], move_files(job.storage, files), strict=True))
    folder = BundleFolder(job.storage, FOLDER)
    return [
        publish_bundle(job.storage, folder, bundle, [moved[file.path] for file in bundle.files])
        for bundle in staged
    ]


def test_staged_files_become_files_of_the_table_with_fresh_indexes(storage: Storage) -> None:
    job = pickle.loads(pickle.dumps(job_on(storage)))
    batches = [batch_of([1, 2, 3], ["a", "a", "b"]), batch_of([4, 5], ["b", None])]
    (written,) = job.write(batches, 7)
    staged: StagedBundle = pickle.loads(pickle.dumps(written))
    assert staged == written
    assert storage.list().paths.to_pylist() == []
    assert [(file.path.split("/")[0], file.rows) for file in staged.files] == [
        ("p=a", 2),
        ("p=b", 2),
        ("p=__HIVE_DEFAULT_PARTITION__", 1),
    ]
    assert all(f"/part-{job.name}-00007-" in file.path for file in staged.files)
    if storage.remote:
        time.sleep(1.1)  # a copy in the same second would have the same version
    (size,) = publish(job, [staged])
    assert size > 0
    storage.remove_folder(job.folder)
    table = ParquetTable(storage)
    assert len(storage.list(STAGING, hidden=True)) == 0
    assert [str(index).split(",")[0] for index in table.indexes()] == [
        "bitmap of 'id': 3 files fresh"
    ]
    assert table.scan("id = 4").to_arrow().to_pydict() == {"id": [4], "p": ["b"]}
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5]
    bundles = table._indexes.open(storage.list(suffix=".parquet"))
    for kind in (PayloadKind.index("id", "bitmap"), PayloadKind.pages("id")):
        assert bundles.coverage(kind).states.tolist() == [State.FRESH] * 3
    assert bundles.footer_crcs.null_count == 0


def test_what_is_written_twice_is_moved_once(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    job = job_on(storage)
    batches = [batch_of([1, 2], ["a", "b"])]
    lost, won = (list(job.write(batches, 0)) for _ in range(2))
    assert not {file.staged for file in lost[0].files} & {file.staged for file in won[0].files}
    publish(job, won)
    storage.remove_folder(job.folder)
    assert ParquetTable(storage).scan().to_arrow().to_pydict() == {"id": [1, 2], "p": ["a", "b"]}
    assert [path.name for path in tmp_path.joinpath(STAGING).iterdir()] == []


def test_files_end_where_they_are_long_enough_and_where_rows_take_much_memory(
    tmp_path: Path,
) -> None:
    batches = [
        batch_of(range(start, start + 50_000), ["a"] * 50_000)
        for start in range(0, 400_000, 50_000)
    ]
    by_length = job_on(Storage.open(tmp_path), target_bytes=1000)
    (staged,) = by_length.write(batches, 0)
    assert [file.rows for file in staged.files] == [GROUP_ROWS] * 3 + [400_000 - 3 * GROUP_ROWS]
    base = job_on(Storage.open(tmp_path))
    by_memory = StagingJob(
        base.storage, base.name, base.columns, "", (), {}, 1 << 30, buffered_bytes=1_000_000
    )
    (staged,) = by_memory.write(batches, 0)
    assert [file.rows for file in staged.files] == [GROUP_ROWS] * 3 + [400_000 - 3 * GROUP_ROWS]
    assert ParquetTable(base.storage).files == 0  # staged files are invisible
    publish(by_memory, [staged])
    assert ParquetTable(base.storage).scan().to_arrow()["id"].to_pylist() == [*range(400_000)]


def test_no_rows_no_files(tmp_path: Path) -> None:
    job = job_on(Storage.open(tmp_path))
    assert list(job.write([], 0)) == []
    assert list(job.write([batch_of([], [])], 0)) == []
    assert list(tmp_path.iterdir()) == []


def test_folders_are_named_as_spark_names_them(tmp_path: Path) -> None:
    job = job_on(Storage.open(tmp_path), above="x/y")
    (staged,) = job.write([batch_of([number], [key]) for number, key in enumerate(ODD)], 0)
    expected = [f"x/y/{path}" for path in PATHS]
    folders = [file.path.rpartition("/")[0] for file in staged.files]
    assert folders == [
        folder for n, folder in enumerate(expected) if n == 0 or expected[n - 1] != folder
    ]


def test_names_of_jobs_tell_their_age() -> None:
    assert written_at(f"{new_job()}.puffin") is not None


def test_a_file_that_cannot_be_moved_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    job = job_on(storage)
    (staged,) = job.write([batch_of([1, 2, 3], ["a", "b", "c"])], 0)
    storage.put(staged.files[1].path, b"somebody else's")
    with pytest.raises(NameTakenError):
        move_files(storage, staged.files)
    assert storage.list().paths.to_pylist() == [staged.files[1].path]
    assert storage.source(staged.files[1].path).read(0, 8) == b"somebody"


def test_a_file_that_is_gone_leaves_the_table_as_it_was(storage: Storage) -> None:
    job = job_on(storage)
    (staged,) = job.write([batch_of([1, 2, 3], ["a", "b", "c"])], 0)
    storage.delete([staged.files[2].staged])
    with pytest.raises(FileNotFoundError):
        move_files(storage, staged.files)
    assert storage.list().paths.to_pylist() == []


def test_indexes_that_cannot_be_published_are_a_warning(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path / "data")
    elsewhere = BundleFolder(Storage.open(tmp_path / "indexes"))
    job = job_on(storage)
    (staged,) = job.write([batch_of([1], ["a"])], 0)
    storage.delete([staged.bundle])
    moved = move_files(storage, staged.files)
    with pytest.warns(AlcidWarning, match="rows were appended, but not their indexes"):
        assert publish_bundle(storage, elsewhere, staged, moved) == 0
    changed = [FileStat(1, "1")]
    with pytest.warns(AlcidWarning, match="not their indexes"):
        assert publish_bundle(storage, elsewhere, staged, changed) == 0
    assert ParquetTable(storage).count() == 1


def test_other_versions_are_all_that_changes_in_a_bundle(tmp_path: Path) -> None:
    storage = Storage.open(tmp_path)
    (staged,) = job_on(storage).write([batch_of(range(5000), ["a"] * 3000 + ["b"] * 2000)], 0)
    data = storage.source(staged.bundle).read(0, staged.size)
    same = [FileStat(file.size, file.version) for file in staged.files]
    other = [FileStat(file.size, f"{file.version}0") for file in staged.files]
    assert with_versions(data, staged.files, same) == data
    changed = with_versions(data, staged.files, other)
    files = [
        replace(file, version=info.version) for file, info in zip(staged.files, other, strict=True)
    ]
    assert changed != data
    assert with_versions(changed, files, same) == data


def test_bundles_go_to_a_folder_of_their_own(tmp_path: Path) -> None:
    storage, indexes = Storage.open(tmp_path / "data"), Storage.open(tmp_path / "indexes")
    job = job_on(storage)
    (staged,) = job.write([batch_of([1], ["a"])], 0)
    moved = move_files(storage, staged.files)
    assert publish_bundle(storage, BundleFolder(indexes), staged, moved) == staged.size
    storage.remove_folder(job.folder)
    assert len(storage.list(hidden=True)) == 1
    assert [index.fresh for index in ParquetTable(storage, indexes).indexes()] == [1]


def test_paths_that_would_change_the_table_are_refused() -> None:
    before = pa.array(["dt=1/a.parquet", "dt=2/a.parquet"])
    check_paths(before, ["dt=3/b.parquet", "dt=__HIVE_DEFAULT_PARTITION__/b.parquet"], None)
    with pytest.raises(UnsupportedError, match=r"partition column dt: .* INT .* become STRING"):
        check_paths(before, ["dt=x/b.parquet"], None)
    with pytest.raises(LiteralError, match="does not take 'x'"):
        check_paths(before, ["dt=x/b.parquet"], {"dt": "INT"})
    check_paths(before, ["dt=x/b.parquet"], {"dt": "STRING"})
    with pytest.raises(FormatError, match="partition folders differ"):
        check_paths(before, ["b.parquet"], None)
    with pytest.raises(UnsupportedError, match="readers pass over"):
        check_paths(pa.array([], pa.string()), [".p=1/b.parquet"], None)
    check_paths(pa.array([], pa.string()), ["p=1/b.parquet", "p=x/b.parquet"], None)
