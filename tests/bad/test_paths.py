"""What metadata and index files name stays within the table: no name leads to other files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.errors import AlcidError
from alcid.storage import Storage
from alcid.tables.paimon.metadata.snapshot import snapshot_path
from alcid.tables.paimon.metadata.table_state import IndexEntry
from tests.tables.maintenance.forging import forge, snapshot_of, with_file

ROWS = pa.table(
    {"id": pa.array(range(100), pa.int64()), "name": [f"n{number}" for number in range(100)]}
)
SECRET = "secret.parquet"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with a deletion vector and an index next to its data, and a file outside it."""
    folder = tmp_path / "warehouse" / "t"
    options = {
        "deletion-vectors.enabled": True,
        "file-index.bitmap.columns": "name",
        "file-index.in-manifest-threshold": "1 B",
    }
    made = alcid.create_table(folder, ROWS.schema, options=options)
    made.append(ROWS)
    made.delete("id < 10")
    made.compute_stats(["id"])
    (data,) = folder.glob("bucket-0/*.parquet")
    shutil.copy(data, tmp_path / SECRET)
    return folder


def outward(table: Path) -> list[str]:
    """Names that would lead to the file outside, or elsewhere."""
    secret = table.parent.parent / SECRET
    return [f"../../../{SECRET}", str(secret), f"file://{secret}", f"s3://bucket/{SECRET}", "", "."]


def refused(table: Path) -> None:
    """Reading and checking do not open what is outside, and cleaning does not remove it."""
    secret = table.parent.parent / SECRET
    before = secret.read_bytes()
    with pytest.raises(AlcidError):
        alcid.paimon(table).scan("name = 'n50'").to_arrow()
    with suppress(AlcidError):
        assert not alcid.paimon(table).verify(progress=False).ok
    with suppress(AlcidError):
        alcid.paimon(table).clean(older_than=timedelta(0))
    assert secret.read_bytes() == before


def test_the_table_itself_is_sound(table: Path) -> None:
    opened = alcid.paimon(table)
    assert opened.scan("name = 'n50'").to_arrow()["id"].to_pylist() == [50]
    assert opened.verify(progress=False).ok


def test_data_files_of_a_manifest(table: Path) -> None:
    for name in outward(table):
        forge(table, with_file(name=name))
        refused(table)


def test_data_files_with_an_external_path(table: Path) -> None:
    for name in outward(table)[:4]:
        forge(table, with_file(external_path=name))
        refused(table)


def test_index_files_next_to_data(table: Path) -> None:
    (index,) = table.glob("bucket-0/*.index")
    outside = table.parent.parent / "outside.index"
    shutil.copy(index, outside)
    for name in ("../../../outside.index", str(outside), f"file://{outside}"):
        forge(table, with_file(extra_files=[name]))
        refused(table)
    assert outside.exists()


def vectors_named(name: str) -> Callable[[list[IndexEntry]], list[IndexEntry]]:
    return lambda entries: [replace(entry, name=name) for entry in entries]


def test_files_of_deletion_vectors(table: Path) -> None:
    (vectors,) = table.glob("index/*")
    shutil.copy(vectors, table.parent.parent / "vectors")
    for name in ("../../../vectors", str(table.parent.parent / "vectors"), "s3://bucket/vectors"):
        forge(table, indexes=vectors_named(name))
        refused(table)


@pytest.mark.parametrize(
    "field",
    ["base_manifest_list", "delta_manifest_list", "index_manifest"],
)
def test_manifests_of_a_snapshot(table: Path, field: str) -> None:
    snapshot = snapshot_of(table)
    real = table / "manifest" / getattr(snapshot, field)
    shutil.copy(real, table.parent.parent / "manifest-outside")
    outside = table.parent.parent / "manifest-outside"
    for name in ("../../../manifest-outside", str(outside), f"file://{outside}"):
        change: dict[str, Any] = {field: name}
        new = replace(snapshot, **change)
        (table / snapshot_path(snapshot.id)).write_bytes(new.to_json())
        refused(table)
    assert outside.exists()


def test_paths_of_a_bundle_are_only_looked_up_among_those_that_are_listed(tmp_path: Path) -> None:
    """A bundle that names files elsewhere does not lead to them."""
    folder, outside = tmp_path / "events", tmp_path / "outside"
    folder.mkdir()
    pq.write_table(ROWS, folder / "a.parquet")
    alcid.parquet(folder).build_indexes({"file-index.bitmap.columns": "name"}, progress=False)
    shutil.copytree(folder, outside)
    (outside / "a.parquet").rename(outside / "b.parquet")
    alcid.parquet(outside).build_indexes({"file-index.bitmap.columns": "name"}, progress=False)
    for bundle in (outside / "_alcid").glob("*.puffin"):
        shutil.copy(bundle, folder / "_alcid" / bundle.name)
    rows = alcid.parquet(folder).scan("name = 'n50'").to_arrow()
    assert rows["id"].to_pylist() == [50]


@pytest.mark.parametrize(
    "name", ["../x", "/etc/hostname", "a/../../x", "a//b", "./a", "a/.", "a\0b"]
)
def test_no_storage_takes_such_a_name(tmp_path: Path, name: str) -> None:
    storage = Storage.open(tmp_path / "t")
    for use in (
        storage.stat,
        storage.delete,
        lambda path: storage.create(path, b""),
        lambda path: storage.replace(path, b""),
        lambda path: storage.source(path).read(0, 1),
    ):
        with pytest.raises(alcid.errors.StorageError, match="not a path below its storage"):
            use(name)
