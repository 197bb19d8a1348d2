"""Metadata: manifests, schemas and snapshots of tables, and the footers of data files."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pyarrow as pa
from pyarrow import orc

from alcid.datafiles.orc import open_orc_scans
from alcid.datafiles.parquet import ReadReport, read_layout
from alcid.datafiles.parquet.footer import read_footer
from alcid.datafiles.parquet.statistics import FooterStatistics
from alcid.formats.source import BytesSource
from alcid.tables.iceberg.metadata.table_metadata import TableMetadata
from alcid.tables.paimon.metadata.manifest import (
    read_manifest,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.tables.paimon.metadata.snapshot import Snapshot
from alcid.tables.paimon.metadata.table_state import read_index_manifest, write_index_manifest
from tests.datafiles.parquet.kit import PAGED, written
from tests.fuzz.target import Target, small
from tests.golden.bundle_cases import table_of
from tests.golden.paimon_tables import writer_folder
from tests.tables.iceberg.metadata.test_table_metadata import given_table

_MANIFESTS: dict[str, tuple[Callable[..., list[Any]], Callable[..., bytes]]] = {
    "index-manifest": (read_index_manifest, write_index_manifest),
    "manifest-list": (read_manifest_list, write_manifest_list),
    "manifest": (read_manifest, write_manifest),
}
_TABLES = ("append", "types", "vectors_64", "key_dynamic")


def metadata_targets() -> list[Target]:
    """The targets of this module."""
    return [
        *(
            Target(f"paimon-{kind}", partial(_read_manifest, kind), partial(_manifests, kind))
            for kind in _MANIFESTS
        ),
        Target("paimon-snapshot", _read_snapshot, partial(_paimon_files, "snapshot/snapshot-")),
        Target("paimon-schema", _read_schema, partial(_paimon_files, "schema/schema-")),
        Target("iceberg-metadata", _read_metadata, _iceberg_metadata),
        Target("parquet-footer", _read_parquet, _parquet_files),
        Target("orc-footer", _read_orc, _orc_files),
    ]


def _read_manifest(kind: str, data: bytes) -> None:
    read, _ = _MANIFESTS[kind]
    read(data, file="manifest")


def _manifests(kind: str) -> list[bytes]:
    """The files as they are, and without compression, so that records can be changed."""
    read, write = _MANIFESTS[kind]
    stored = _paimon_files(f"manifest/{kind}-")
    if kind == "manifest":
        stored = [data for data in stored if data not in _paimon_files("manifest/manifest-list-")]
    plain = [write(read(data, file="manifest")[:2], "none") for data in stored[:2]]
    return small([*plain, *stored[:1]])


def _read_snapshot(data: bytes) -> None:
    snapshot = Snapshot.parse(data)
    assert Snapshot.parse(snapshot.to_json()) == snapshot


def _read_schema(data: bytes) -> None:
    schema = TableSchema.parse(data)
    assert len(schema.names) == len(schema.fields)


@cache
def _paimon_files(prefix: str) -> list[bytes]:
    """The files of golden tables whose names begin with `prefix`."""
    files = []
    for table in _TABLES:
        with tarfile.open(writer_folder() / f"{table}.tar.xz") as archive:
            for member in archive.getmembers():
                file = archive.extractfile(member) if member.name.startswith(prefix) else None
                if file is not None:
                    files.append(file.read())
    return small(files)


def _read_metadata(data: bytes) -> None:
    metadata = TableMetadata.from_json(data)
    for snapshot in metadata.snapshots.values():
        list(metadata.ancestors(snapshot.id))
        metadata.schema_of(snapshot)


def _iceberg_metadata() -> list[bytes]:
    return [json.dumps(given_table()).encode()]


def _read_parquet(data: bytes) -> None:
    source = BytesSource(data, "a.parquet")
    layout = read_layout(source)
    statistics = FooterStatistics(read_footer(source, ReadReport()), source.name)
    for leaf in range(sum(len(column.field.leaves) for column in layout.columns)):
        assert sum(chunk.rows for chunk in statistics.of_leaf(leaf)) == layout.rows


def _parquet_files() -> list[bytes]:
    few = table_of(1).slice(0, 20)
    return [written(few, **options) for options in (PAGED, {})]


def _read_orc(data: bytes) -> None:
    (scan,) = open_orc_scans([BytesSource(data, "a.orc")])
    assert scan.column_sizes(scan.names).sum() >= 0
    assert sum(scan.group_rows) >= 0


def _orc_files() -> list[bytes]:
    seeds = []
    for compression in ("uncompressed", "zstd"):
        file = io.BytesIO()
        orc.write_table(pa.table(table_of(1).slice(0, 20)), file, compression=compression)
        seeds.append(file.getvalue())
    return seeds
