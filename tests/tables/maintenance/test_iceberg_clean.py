"""Clean next to an Iceberg table's metadata: what is removed, and all that is kept."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid import OptionError
from alcid.index.bundle import BundleWriter
from alcid.storage import Storage
from alcid.tables.bundle_folder import new_name
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.maintenance import iceberg_clean
from alcid.tables.maintenance.clean import CleanReport, ListedFile, list_files
from tests.iceberg.saved import SavedTable
from tests.tables.maintenance.kit import set_age

NOW, DAY = timedelta(0), 86_400
OLD = "20200101T000000.000000Z-0123456789ab.puffin"
DRAFT = ".5f1e0c7ab2d45f1e0c7ab2d45f1e0c7a.tmp"
LISTED, LOST = "7-0b3f6c1d-alcid.stats", "7-5f1e0c7a-alcid.stats"
NO_FILES = pa.table(
    {
        "sequence_number": pa.array([], pa.int64()),
        "content": pa.array([], pa.int32()),
        "file_path": pa.array([], pa.string()),
        "file_format": pa.array([], pa.string()),
        "spec_id": pa.array([], pa.int32()),
        "record_count": pa.array([], pa.int64()),
        "file_size_in_bytes": pa.array([], pa.int64()),
    }
)


def metadata_json(folder: Path) -> str:
    """A table with one snapshot, which has no data and lists one statistics file."""
    statistics = {
        "snapshot-id": 7,
        "statistics-path": f"file:{folder}/metadata/{LISTED}",
        "file-size-in-bytes": (folder / "metadata" / LISTED).stat().st_size,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    fields = [{"id": 1, "name": "id", "required": False, "type": "long"}]
    snapshot = {
        "snapshot-id": 7,
        "sequence-number": 1,
        "timestamp-ms": 1_754_000_000_000,
        "summary": {"operation": "append"},
        "manifest-list": f"{folder}/metadata/snap-7.avro",
        "schema-id": 0,
    }
    content: dict[str, Any] = {
        "format-version": 2,
        "table-uuid": "4b0a1c2d-0000-0000-0000-000000000000",
        "location": str(folder),
        "last-sequence-number": 1,
        "last-updated-ms": 1_754_000_000_000,
        "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": 7,
        "refs": {"main": {"snapshot-id": 7, "type": "branch"}},
        "snapshots": [snapshot],
        "statistics": [statistics],
    }
    return json.dumps(content)


@pytest.fixture
def metadata(tmp_path: Path) -> Path:
    """The folder of metadata, with unrelated files and one that the snapshot lists; all are old."""
    folder = tmp_path / "t" / "metadata"
    (folder / "_alcid").mkdir(parents=True)
    (folder.parent / "data").mkdir()
    for name in ("v3.metadata.json", "snap-7.avro", "version-hint.text", "../data/a.parquet"):
        (folder / name).write_bytes(b"any bytes")
    for name in (LOST, "cut.stats"):  # which do not concern us there
        (folder / "../data" / name).write_bytes(b"any bytes")
    put_bundle(folder / LISTED)
    with alcid.puffin.create(folder / "7-of-others.stats", properties={"created-by": "Iceberg"}):
        pass
    (folder / "7-damaged.stats").write_bytes(b"PFA1 and no end")
    for path in folder.parent.rglob("*"):
        set_age(str(path), 3 * DAY)
    return folder


def put_bundle(path: Path) -> Path:
    data = io.BytesIO()
    BundleWriter(data).finish()
    path.write_bytes(data.getvalue())
    return path


def everything(metadata: Path) -> set[Path]:
    return {path for path in metadata.parent.rglob("*") if path.is_file()}


def clean(metadata: Path, **options: Any) -> CleanReport:
    saved = SavedTable("lake.db.t", metadata_json(metadata.parent), {7: NO_FILES})
    return IcebergTable(saved).clean(**options)


def named(report: CleanReport) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    return tuple(
        [(file.path, file.reason) for file in some] for some in (report.removed, report.kept)
    )  # type: ignore[return-value]


def test_what_is_listed_and_what_is_not_ours_stays(metadata: Path) -> None:
    before = everything(metadata)
    assert named(clean(metadata, older_than=NOW)) == ([], [])
    assert everything(metadata) == before


def test_drafts_of_a_killed_delete_next_to_the_data_are_removed(metadata: Path) -> None:
    """Nothing else removes it: Iceberg's own procedures skip names that begin with a dot."""
    before = everything(metadata)
    (metadata / "../data/city=Graz").mkdir()
    left = [metadata / "../data" / DRAFT, metadata / "../data/city=Graz" / DRAFT]
    for path in left:
        path.write_bytes(b"half of its bytes")
    both = [(DRAFT, "unfinished"), (f"city=Graz/{DRAFT}", "unfinished")]
    assert named(clean(metadata)) == ([], both)
    for path in left:
        set_age(str(path), 2 * DAY)
    assert named(clean(metadata)) == (both, [])
    assert everything(metadata) == before


@pytest.mark.parametrize("key", ["statistics", "partition-statistics", "newer-statistics"])
def test_a_statistics_file_that_any_field_names_stays(metadata: Path, key: str) -> None:
    """Also one of two for the same snapshot, if readers take the other."""
    put_bundle(metadata / LOST)
    content = json.loads(metadata_json(metadata.parent))
    (listed,) = content["statistics"]
    path = f"file:{metadata}/{LOST}"
    content[key] = [{**listed, "statistics-path": path}, *content.get(key, [])]
    before = everything(metadata)
    saved = SavedTable("lake.db.t", json.dumps(content), {7: NO_FILES})
    assert named(IcebergTable(saved).clean(older_than=NOW)) == ([], [])
    assert everything(metadata) == before
    assert named(clean(metadata, older_than=NOW)) == ([(LOST, "statistics")], [])


def test_a_statistics_file_of_ours_that_no_snapshot_lists_goes(metadata: Path) -> None:
    before = everything(metadata)
    lost = put_bundle(metadata / LOST)
    with alcid.puffin.create(metadata / "7-sketches.stats"):
        pass
    both = [("7-5f1e0c7a-alcid.stats", "statistics"), ("7-sketches.stats", "statistics")]
    assert named(clean(metadata)) == ([], both)
    set_age(str(lost), 2 * DAY)
    report = clean(metadata)
    assert named(report) == (both[:1], both[1:])
    assert (report.merged, report.written, report.dry_run) == ((), (), False)
    assert everything(metadata) == before | {metadata / "7-sketches.stats"}
    assert named(clean(metadata, older_than=NOW)) == (both[1:], [])
    assert everything(metadata) == before


def test_a_dry_run_removes_nothing(metadata: Path) -> None:
    put_bundle(metadata / LOST)
    put_bundle(metadata / "_alcid" / OLD)
    before = everything(metadata)
    report = clean(metadata, older_than=NOW, dry_run=True)
    assert named(report) == ([(LOST, "statistics"), (f"_alcid/{OLD}", "unfinished")], [])
    assert report.bytes_removed == sum(
        (metadata / file.path).stat().st_size for file in report.removed
    )
    assert everything(metadata) == before


def test_bundles_of_a_killed_build_stay_as_long_as_one_of_them_is_young(metadata: Path) -> None:
    before = everything(metadata)
    put_bundle(metadata / "_alcid" / OLD)
    young = put_bundle(metadata / "_alcid" / new_name())
    both = [(f"_alcid/{OLD}", "unfinished"), (f"_alcid/{young.name}", "unfinished")]
    assert named(clean(metadata)) == ([], both)
    young.unlink()
    assert named(clean(metadata)) == (both[:1], [])
    assert everything(metadata) == before


@pytest.mark.parametrize("draft_of", ["", "_alcid/"])
def test_a_file_that_was_being_written_goes_when_it_is_old(metadata: Path, draft_of: str) -> None:
    before = everything(metadata)
    draft = metadata / f"{draft_of}{DRAFT}"
    draft.write_bytes(b"half")
    assert named(clean(metadata)) == ([], [(f"{draft_of}{DRAFT}", "unfinished")])
    set_age(str(draft), 2 * DAY)
    assert named(clean(metadata)) == ([(f"{draft_of}{DRAFT}", "unfinished")], [])
    assert everything(metadata) == before


@pytest.mark.parametrize(
    "name", ["notes.puffin", "sub/20200101T000000.000000Z-0123456789ab.puffin"]
)
def test_other_files_among_the_bundles_stay(metadata: Path, name: str) -> None:
    path = metadata / "_alcid" / name
    path.parent.mkdir(exist_ok=True)
    put_bundle(path)
    before = everything(metadata)
    assert named(clean(metadata, older_than=NOW)) == ([], [])
    assert everything(metadata) == before


def test_what_is_registered_while_files_are_listed_stays(
    metadata: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metadata are loaded after the listing, so no listed file is mistaken for a lost one."""
    put_bundle(metadata / LOST)
    saved = SavedTable("lake.db.t", metadata_json(metadata.parent), {7: NO_FILES})
    later = replace(saved, text=saved.text.replace(LISTED, LOST))
    table = IcebergTable(saved)

    def listed(storage: Storage) -> list[ListedFile]:
        files = list_files(storage)
        table.catalog = later
        return files

    monkeypatch.setattr(iceberg_clean, "list_files", listed)
    assert named(table.clean(NOW)) == ([(LISTED, "statistics")], [])


def test_an_age_below_zero_is_refused(metadata: Path) -> None:
    with pytest.raises(OptionError, match=r"older_than: found .*, expected 0 or more"):
        clean(metadata, older_than=timedelta(days=-1))
