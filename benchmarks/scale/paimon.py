"""A Paimon table without a key; its indexes lie beside the files, or in the manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pyarrow as pa

import alcid
from alcid.formats.file_index.container import write_container
from alcid.index.build import IndexedFile
from alcid.index.bundle.format import INDEX
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.manifest import ADD, DataFile, ManifestEntry
from alcid.tables.paimon.metadata.statistics import EMPTY, NO_STATS, RowStats, pack_rows
from alcid.tables.paimon_table import PaimonTable
from alcid.types import DataType
from benchmarks.scale.files import FIELDS, INDEXES, ManyFiles

__all__ = ["make_paimon", "open_paimon"]

_BUCKET = "bucket-0"
_TYPES = {name: DataType.parse(kind) for name, kind in FIELDS.items()}
_TOGETHER = 1000  # files of which is said at once what their bounds are
_TIME = datetime(2025, 8, 1, tzinfo=UTC)


def make_paimon(files: ManyFiles, folder: Path, options: Mapping[str, str]) -> None:
    """Link the files into the bucket, and commit them all.

    Args:
        files: The files.
        folder: Of the table.
        options: Of the table, besides those that name its indexes.
    """
    schema = pa.schema([(name, kind.to_arrow()) for name, kind in _TYPES.items()])
    table = alcid.create_table(folder, schema, options={**INDEXES, **options})
    (folder / _BUCKET).mkdir()
    most = table.snapshot.options.file_index_in_manifest_threshold
    entries = list(_entries(files, folder / _BUCKET, most))
    table.committer().commit(lambda _: Change(kind="APPEND", added=entries))


def open_paimon(folder: Path) -> PaimonTable:
    """Open the table, which reads its manifests."""
    return alcid.paimon(folder)


def _entries(files: ManyFiles, bucket: Path, most: int) -> Iterator[ManifestEntry]:
    """The entries of all files; an index of more than `most` bytes is written beside its file."""
    known = files.indexed()
    for start in range(0, files.count, _TOGETHER):
        some = list(islice(known, _TOGETHER))
        for number, (found, stats) in enumerate(zip(some, _bounds(some), strict=True), start):
            name = f"data-{number:06}.parquet"
            files.link(number, bucket / name)
            index = write_container(
                {
                    (kind.column, kind.index_type): payload
                    for kind, payload in found.payloads.items()
                    if kind.type == INDEX
                }
            )
            beside = len(index) > most
            if beside:
                (bucket / f"{name}.index").write_bytes(index)
            file = DataFile(
                name=name,
                size=found.entry.size,
                rows=found.entry.rows,
                min_key=EMPTY,
                max_key=EMPTY,
                key_stats=NO_STATS,
                value_stats=stats,
                min_sequence=0,
                max_sequence=found.entry.rows - 1,
                schema_id=0,
                level=0,
                extra_files=(f"{name}.index",) if beside else (),
                creation_time=_TIME,
                delete_rows=0,
                embedded_index=None if beside else index,
                source=0,
            )
            yield ManifestEntry(ADD, EMPTY, 0, -1, file)


def _bounds(files: list[IndexedFile]) -> list[RowStats]:
    """The statistics of files, as manifests have them."""
    known = [[one.entry.statistics[name] for one in files] for name in _TYPES]
    types = list(_TYPES.values())
    least, most = (
        pack_rows(
            [
                pa.array([getattr(one, bound) for one in column], kind.to_arrow())
                for column, kind in zip(known, types, strict=True)
            ],
            types,
        )
        for bound in ("minimum", "maximum")
    )
    nulls = (0,) * len(types)
    return [RowStats(*pair, nulls) for pair in zip(least, most, strict=True)]
