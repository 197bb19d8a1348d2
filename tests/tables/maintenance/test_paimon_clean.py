"""Clean on Paimon tables: what no snapshot needs is removed, and nothing else."""

from __future__ import annotations

import io
import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import fastavro
import pyarrow as pa
import pytest

from alcid import OptionError
from alcid.errors import FormatError
from alcid.storage import Storage
from alcid.tables.engine import Engine
from alcid.tables.maintenance import paimon_clean
from alcid.tables.maintenance.clean import CleanReport
from alcid.tables.maintenance.paimon_clean import clean
from alcid.tables.many_files import list_all
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon_table import PaimonTable
from tests.golden.paimon_tables import table_names, unpack_table
from tests.tables.maintenance.forging import flip, snapshot_of, state_of
from tests.tables.maintenance.kit import set_age
from tests.tables.paimon.newer_fields import change_snapshot, newer_file
from tests.tables.paimon.small_tables import append, commit, create

UUID = "11111111-2222-3333-4444-555555555555"
GARBAGE = {
    f"bucket-0/data-{UUID}-0.parquet": "data file",
    f"bucket-0/changelog-{UUID}-0.parquet": "data file",
    f"bucket-0/data-{UUID}-0.parquet-1.index": "file index",
    f"bucket-7/data-{UUID}-1.orc": "data file",
    f"bucket-0/.data-{UUID}-2.parquet.{UUID}.tmp": "data file",
    f"bucket-0/index-{UUID}-0": "index file",
    f"index/index-{UUID}-0": "index file",
    f"manifest/manifest-{UUID}-0": "manifest",
    f"manifest/manifest-list-{UUID}-0": "manifest",
    f"manifest/index-manifest-{UUID}-0": "manifest",
    f"statistics/stats-{UUID}-0": "statistics",
    f"manifest/.{'0' * 32}.tmp": "unfinished",
    f"bucket-0/.{'1' * 32}.tmp": "unfinished",
    f"_alcid/.{'2' * 32}.tmp": "unfinished",
}
NO_GARBAGE = [
    "README.md",
    "bucket-0/notes.txt",
    "bucket-0/_SUCCESS",
    f"bucket-x/data-{UUID}-0.parquet",
    f"bucket-0/deeper/data-{UUID}-0.parquet",
    f"other/data-{UUID}-0.parquet",
    f"dt=1/bucket-0/data-{UUID}-0.parquet",
    f"snapshot/.snapshot-9.{UUID}.tmp",
    f"schema/.schema-9.{UUID}.tmp",
    f"tag/.tag-x.{UUID}.tmp",
    f"branch/branch-b/schema/{UUID}",
    f"consumer/consumer-{UUID}",
    f"metadata/{UUID}.metadata.json",
    f"_alcid/{UUID}.txt",
]


def cleaned(table: Path, age: timedelta = timedelta(0), **options: Any) -> CleanReport:
    return clean(Storage.open(table), older_than=age, **options)


def put(table: Path, path: str, data: bytes = b"12345") -> None:
    (table / path).parent.mkdir(parents=True, exist_ok=True)
    (table / path).write_bytes(data)


def removed(report: CleanReport) -> dict[str, str]:
    assert report.kept == ()
    return {file.path: file.reason for file in report.removed}


def files_of(table: Path) -> set[str]:
    return {path.relative_to(table).as_posix() for path in table.rglob("*") if path.is_file()}


def rows_of(table: Path, **at: Any) -> list[dict[str, Any]]:
    rows: pa.Table = PaimonTable(Storage.open(table), merge_on_read=False, **at).scan().to_arrow()
    return sorted(rows.to_pylist(), key=repr)


def forget(table: Path, *numbers: int) -> None:
    """Let snapshots expire, but keep everything that they named."""
    for number in numbers:
        (table / f"snapshot/snapshot-{number}").unlink()


@pytest.mark.parametrize("name", table_names())
def test_golden_tables_have_no_orphans(tmp_path: Path, name: str) -> None:
    table = unpack_table(name, tmp_path)
    before = files_of(table)
    assert removed(cleaned(table)) == {}
    assert files_of(table) == before


def test_what_nothing_names_is_removed_and_what_paimon_does_not_call_so_is_kept(
    tmp_path: Path,
) -> None:
    table = unpack_table("vectors_32", tmp_path)
    before, rows = files_of(table), rows_of(table)
    for path in (*GARBAGE, *NO_GARBAGE):
        put(table, path)
    would = cleaned(table, dry_run=True)
    assert removed(would) == GARBAGE
    assert would.bytes_removed == 5 * len(GARBAGE)
    assert files_of(table) == before | {*GARBAGE, *NO_GARBAGE}
    assert removed(cleaned(table)) == GARBAGE
    assert files_of(table) == before | {*NO_GARBAGE}
    assert rows_of(table) == rows


def test_partitions_are_looked_into_as_deep_as_the_table_has_them(tmp_path: Path) -> None:
    table = unpack_table("sidecars", tmp_path)
    name = f"data-{UUID}-0.parquet"
    gone, kept = (
        [f"dt=1/bucket-0/{name}", f"dt=/bucket-0/{name}"],
        [
            f"bucket-0/{name}",
            f"dt=1/hh=2/bucket-0/{name}",
            f"1/bucket-0/{name}",
        ],
    )
    for path in (*gone, *kept):
        put(table, path)
    assert removed(cleaned(table)) == dict.fromkeys(sorted(gone), "data file")
    assert set(kept) <= files_of(table)


def test_young_files_are_kept(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    old, young = f"bucket-0/data-{UUID}-0.parquet", f"bucket-0/data-{UUID}-1.parquet"
    put(table, old)
    put(table, young)
    set_age(str(table / old), 86_500)
    report = clean(Storage.open(table))
    assert [file.path for file in report.removed] == [old]
    assert [file.path for file in report.kept] == [young]
    assert str(report).splitlines()[1:] == ["data file: 1"]
    assert str(report).startswith("removed 1 leftover (5 B) in ")
    assert str(report).splitlines()[0].endswith("; 1 too young")
    with pytest.raises(OptionError, match="older_than: found -1 day"):
        cleaned(table, timedelta(days=-1))


def test_indexes_that_were_replaced_go_with_the_last_snapshot_that_has_them(
    tmp_path: Path,
) -> None:
    table = unpack_table("sidecars", tmp_path)
    rows = rows_of(table)
    replaced = {path for path in files_of(table) if path.endswith(".parquet.index")}
    assert len(replaced) == 6
    forget(table, 1)
    lists = removed(cleaned(table))
    assert set(lists.values()) == {"manifest"}
    assert replaced <= files_of(table)
    forget(table, 2)
    reasons = removed(cleaned(table))
    assert {path for path, reason in reasons.items() if reason == "file index"} == replaced
    assert set(reasons.values()) == {"file index", "manifest"}
    assert rows_of(table) == rows
    assert removed(cleaned(table)) == {}


def test_a_tag_keeps_what_it_names(tmp_path: Path) -> None:
    table = unpack_table("history", tmp_path)
    numbers = sorted(int(path.name[9:]) for path in (table / "snapshot").glob("snapshot-*"))
    forget(table, *numbers[:-1])
    tagged, rows = rows_of(table, tag="second"), rows_of(table)
    first = removed(cleaned(table))
    assert first
    assert rows_of(table, tag="second") == tagged
    live = {entry.file.name for entry in state_of(table).entries}
    (table / "tag/tag-second").unlink()
    second = removed(cleaned(table))
    assert {path.rpartition("/")[2] for path, why in second.items() if why == "data file"}
    assert {path.name for path in table.rglob("*.parquet")} == live
    assert rows_of(table) == rows


@pytest.mark.parametrize("folder", ["branch/branch-b/snapshot", "branch/branch-b/tag"])
def test_a_branch_keeps_what_it_names(tmp_path: Path, folder: str) -> None:
    table = unpack_table("history", tmp_path)
    name = "snapshot-1" if folder.endswith("snapshot") else "tag-t"
    put(table, f"{folder}/{name}", (table / "tag/tag-second").read_bytes())
    (table / "tag/tag-second").unlink()
    assert removed(cleaned(table)) == {}
    shutil.rmtree(table / "branch")
    assert "manifest" in removed(cleaned(table)).values()


def test_a_changelog_keeps_what_is_left_of_it(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    snapshot = json.loads((table / "snapshot/snapshot-1").read_bytes())
    delta = snapshot["deltaManifestList"]
    put(table, "changelog/changelog-1", json.dumps(snapshot).encode())
    (table / "manifest" / snapshot["baseManifestList"]).unlink()
    forget(table, 1)
    assert removed(cleaned(table)) == {}
    (table / "changelog/changelog-1").unlink()
    assert removed(cleaned(table)) == {f"manifest/{delta}": "manifest"}


def test_nothing_is_removed_if_the_needed_files_are_unknown(tmp_path: Path) -> None:
    table = unpack_table("history", tmp_path)
    put(table, f"day=1/bucket-0/data-{UUID}-0.parquet")
    tag = json.loads((table / "tag/tag-second").read_bytes())
    path = table / "manifest" / tag["deltaManifestList"]
    flip(path, -1)
    before = files_of(table)
    with pytest.raises(FormatError, match="damaged Avro file"):
        cleaned(table)
    path.unlink()
    with pytest.raises(FormatError, match="a snapshot names it, and it is not there"):
        cleaned(table)
    assert files_of(table) == before - {path.relative_to(table).as_posix()}


def test_a_commit_after_the_listing_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it wrote before is named when snapshots are read; what it writes later is not listed."""
    table = unpack_table("append", tmp_path)
    latest = table / "snapshot/snapshot-2"
    snapshot = latest.read_bytes()
    latest.unlink()  # its files exist, but it does not yet

    def listed(storage: Storage, engine: Engine) -> Any:
        files = list_all(storage, engine)
        latest.write_bytes(snapshot)
        return files

    monkeypatch.setattr(paimon_clean, "list_all", listed)
    assert removed(cleaned(table)) == {}
    assert len(rows_of(table)) == 45


def test_a_snapshot_that_expires_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = unpack_table("append", tmp_path)
    snapshot = json.loads((table / "snapshot/snapshot-1").read_bytes())
    real = Storage.read_many

    def expire(self: Storage, requests: Any) -> Any:
        monkeypatch.setattr(Storage, "read_many", real)
        forget(table, 1)
        (table / "manifest" / snapshot["baseManifestList"]).unlink()
        return real(self, requests)

    monkeypatch.setattr(Storage, "read_many", expire)
    # Both were listed; the one that is already gone is skipped.
    lists = (snapshot["baseManifestList"], snapshot["deltaManifestList"])
    assert removed(cleaned(table)) == {f"manifest/{name}": "manifest" for name in lists}


# -- what a newer Paimon names ---------------------------------------------------------------------

OTHER = "99999999-8888-7777-6666-555555555555"
SIDECAR = f"manifest-{OTHER}-0.avro.sidecar"
NEWER_FIELDS: dict[str, tuple[str, tuple[str, ...], Any, Any]] = {
    "the sidecar of a manifest": (
        "manifest lists",
        ("_EXTRA_FILES",),
        ["null", {"type": "array", "items": "string"}],
        [SIDECAR],
    ),
    "a text of a manifest list": ("manifest lists", ("_X",), "string", f"x/{SIDECAR}, 17"),
    "the statistics of a manifest list": (
        "manifest lists",
        ("_PARTITION_STATS", "_X"),
        {"type": "map", "values": "bytes"},
        {"file": b"\x2e" + SIDECAR.encode()},
    ),
    "an entry": ("manifest", ("_X",), "string", SIDECAR),
    "the file of an entry": ("manifest", ("_FILE", "_X"), "bytes", SIDECAR.encode()),
    "an index file": ("index_manifest", ("_X",), {"type": "map", "values": "int"}, {SIDECAR: 1}),
    "a vector": ("index_manifest", ("_DELETIONS_VECTORS_RANGES", "*", "_X"), "string", SIDECAR),
}


@pytest.mark.parametrize("case", NEWER_FIELDS)
def test_what_a_field_of_a_newer_paimon_names_is_kept(tmp_path: Path, case: str) -> None:
    table = unpack_table("vectors_32", tmp_path)
    field, path, kind, value = NEWER_FIELDS[case]
    change_snapshot(table, lambda _: None)
    snapshot, state = snapshot_of(table), state_of(table)
    names: dict[str, list[str | None]] = {
        "manifest lists": [snapshot.base_manifest_list, snapshot.delta_manifest_list],
        "manifest": [meta.name for meta in state.manifests],
        "index_manifest": [snapshot.index_manifest],
    }
    rows = rows_of(table)
    for name in names[field]:
        newer_file(table / f"manifest/{name}", {path: (kind, value)})
    _set_manifest_sizes(table)
    for name in (SIDECAR, f"manifest-{UUID}-0.avro.sidecar"):
        put(table, f"manifest/{name}")
    assert removed(cleaned(table)) == {f"manifest/manifest-{UUID}-0.avro.sidecar": "manifest"}
    assert (table / f"manifest/{SIDECAR}").exists()
    assert rows_of(table) == rows


def _set_manifest_sizes(table: Path) -> None:
    """Add the sizes of manifests to manifest lists."""
    for path in (table / "manifest").glob("manifest-list-*"):
        read = fastavro.reader(io.BytesIO(path.read_bytes()))
        schema, records = read.writer_schema, [cast("dict[str, Any]", record) for record in read]
        for record in records:
            record["_FILE_SIZE"] = (table / "manifest" / record["_FILE_NAME"]).stat().st_size
        file = io.BytesIO()
        fastavro.writer(file, schema, records, codec="zstandard")
        path.write_bytes(file.getvalue())
    for path in (table / "snapshot").glob("snapshot-*"):
        snapshot = json.loads(path.read_bytes())
        kept = {
            name: value for name, value in snapshot.items() if not name.endswith("ManifestListSize")
        }
        path.write_text(json.dumps(kept))


@pytest.mark.parametrize(
    "newer", [{"sidecars": [{"of": [SIDECAR]}]}, {"properties": {"sidecar": f"/{SIDECAR}"}}]
)
def test_what_a_snapshot_of_a_newer_paimon_names_is_kept(
    tmp_path: Path, newer: dict[str, Any]
) -> None:
    table = unpack_table("append", tmp_path)
    change_snapshot(table, lambda snapshot: snapshot.update(newer))
    put(table, f"manifest/{SIDECAR}")
    assert removed(cleaned(table)) == {}
    change_snapshot(table, lambda snapshot: snapshot.update(dict.fromkeys(newer)))
    assert removed(cleaned(table)) == {f"manifest/{SIDECAR}": "manifest"}


def test_what_a_file_that_is_gone_named_is_not_kept(tmp_path: Path) -> None:
    table = create(tmp_path)
    entry = append(table, [1, 2])
    state = state_of(tmp_path)
    named = ("string", f"bucket-0/data-{OTHER}-0.side")
    newer_file(tmp_path / f"manifest/{state.manifests[0].name}", {("_FILE", "_X"): named})
    _set_manifest_sizes(tmp_path)
    put(tmp_path, f"bucket-0/data-{OTHER}-0.side")
    assert removed(cleaned(tmp_path)) == {}
    commit(table, Change(kind="OVERWRITE", deleted=[entry]))
    assert removed(cleaned(tmp_path)) == {}
    forget(tmp_path, 1)
    gone = removed(cleaned(tmp_path))
    assert gone[f"bucket-0/data-{OTHER}-0.side"] == "data file"
    assert f"bucket-0/{entry.file.name}" in gone


def test_old_statistics_go_and_the_newest_stay(tmp_path: Path) -> None:
    table = unpack_table("append", tmp_path)
    old, new = (
        f"_alcid/statistics-2025080{day}T093000.123456Z-5f1e0c7ab2d4.puffin" for day in (1, 2)
    )
    put(table, old)
    put(table, new)
    assert removed(cleaned(table)) == {old: "old statistics"}
    assert new in files_of(table)


def test_it_is_the_same_on_every_storage_that_tells_times(storage: Storage, tmp_path: Path) -> None:
    table = unpack_table("vectors_32", tmp_path)
    for path in sorted(files_of(table)):
        storage.put(path, (table / path).read_bytes())
    for path in GARBAGE:
        storage.put(path, b"12345")
    before = PaimonTable(storage).scan().to_arrow()
    report = clean(storage, older_than=timedelta(0))
    tells_times = report.removed != ()
    assert [file.path for file in (*report.removed, *report.kept)] == sorted(GARBAGE)
    assert (len(report.removed), len(report.kept)) in ((len(GARBAGE), 0), (0, len(GARBAGE)))
    assert tells_times != (storage.list().versions[0].as_py().startswith('"'))
    assert PaimonTable(storage).scan().to_arrow().equals(before)
