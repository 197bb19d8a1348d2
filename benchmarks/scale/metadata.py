"""Tables of which there is nothing but metadata: up to a million files of ten columns.

    python -m benchmarks.scale --metadata [--files 1000000] [--kinds folder iceberg paimon]

No data file is written: Iceberg's and Paimon's manifests name files that are not there, and the
listing of the folder is made up. So no row is read, but a table is opened, a query and a build are
planned, and the plan of a task is pickled, as for real files. Files lie in partitions of
`FILES_OF_A_DAY`, whose days are a column `day`.
"""

from __future__ import annotations

import io
import json
import pickle
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import alcid
from alcid.errors import UnsupportedError
from alcid.formats.source import FileSource
from alcid.index.build import index_file
from alcid.index.bundle import BundleWriter, ColumnStatistics
from alcid.storage.backend import Entry
from alcid.storage.local import LocalFiles
from alcid.tables.base import Table
from alcid.tables.bundle_folder import FOLDER, new_name
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.manifest import ADD, DataFile, ManifestEntry
from alcid.tables.paimon.metadata.statistics import EMPTY, NO_STATS, RowStats, pack_rows
from alcid.types import DataType
from benchmarks.measure import Cost, cost_of, memory_in_use
from tests.iceberg.saved import SavedTable

__all__ = ["FILES_OF_A_DAY", "METADATA_KINDS", "MetadataCost", "ask", "make"]

FILES_OF_A_DAY = 5_000
_COLUMNS = [f"c{number}" for number in range(9)]
_ROWS, _SIZE = 1_000_000, 128 << 20
_TASK = 1_000  # files of a task, of which the pickled plan is measured
_BLOOM = {"file-index.bloom-filter.columns": "c0"}
_SNAPSHOT = 1


@dataclass(frozen=True, slots=True)
class MetadataCost:
    """What the metadata of a table took."""

    kind: str
    files: int
    open: tuple[float, float]
    """Milliseconds, and those of the processor."""
    bytes_per_file: float
    """In memory of the driver when the table is open."""
    peak_bytes: int
    """Of the process at any time."""
    plan: tuple[float, float]
    """Of the first plan by the bounds of a column."""
    task_bytes: float
    """Of a file in the pickled plan of a task."""
    build: tuple[float, float]
    """Of the plan of a build of all files."""
    day: tuple[float, float]
    """Of opening the table and planning a query of one partition."""
    day_files: int
    """Files that this query looks at."""


def ask(base: Path, kind: str, count: int) -> MetadataCost:
    """Open a table, plan a query and a build, and open it once more for one partition."""
    open_table = _OPEN[kind]
    before = memory_in_use()
    opened, table = cost_of(lambda: _with_files(open_table(base / kind, count)))
    in_use = memory_in_use() - before
    assert table.files == count
    planned, _ = cost_of(table.scan("c0 = -1").plan)
    every = table.scan("c0 IS NOT NULL").plan()[0].read_plan()
    assert len(every.candidates) == count
    sent = pickle.dumps(every.part(np.arange(min(_TASK, count))))
    built, report = cost_of(partial(table.build_indexes, _BLOOM, dry_run=True))
    assert report.indexed == count
    table = None
    day, scan = cost_of(lambda: _planned(open_table(base / kind, count)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return MetadataCost(
        kind,
        count,
        _millis(opened),
        in_use / count,
        peak,
        _millis(planned),
        len(sent) / min(_TASK, count),
        _millis(built),
        _millis(day),
        len(scan._files.sizes),
    )


def _millis(cost: Cost) -> tuple[float, float]:
    return 1000 * cost.wall, 1000 * cost.cpu


def _with_files(table: Any) -> Any:
    _ = table.snapshot  # which is read when it is first asked for
    return table


def _planned(table: Any) -> Any:
    """A scan of one partition whose plan is made."""
    scan = table.scan("day = 1 AND c0 = -1")
    scan.plan()
    return scan


def make(base: Path, kind: str, count: int) -> None:
    """Make the metadata of a table below a folder, if they are not there."""
    folder = base / kind
    if not (folder / "made").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _MAKE[kind](folder, count)
        (folder / "made").touch()


def _days(count: int) -> Iterator[tuple[int, range]]:
    """The files of each day."""
    for day, first in enumerate(range(0, count, FILES_OF_A_DAY)):
        yield day, range(first, min(first + FILES_OF_A_DAY, count))


def _folder_path(day: int, number: int) -> str:
    return f"day={day}/part-{number:08}-0123456789abcdef.parquet"


def _make_folder(folder: Path, count: int) -> None:
    """The one file that is there, and a bundle with the bounds of all that are not."""
    real = folder / "real.parquet"
    pq.write_table(pa.table({name: [1, 2] for name in _COLUMNS}), real)
    status = real.stat()
    version = str(status.st_mtime_ns)
    with FileSource(real) as source:
        found = index_file(source, [], path="", size=status.st_size, version=version)
    (folder / FOLDER).mkdir()
    with (folder / FOLDER / new_name()).open("wb") as file, BundleWriter(file) as writer:
        for day, numbers in _days(count):
            for number in numbers:
                bounds = ColumnStatistics(DataType("BIGINT"), number, number + 100, 0)
                statistics = dict.fromkeys(_COLUMNS, bounds)
                path = _folder_path(day, number)
                entry = replace(found.entry, path=path, statistics=statistics)
                replace(found, entry=entry).add_to(writer)


def _open_folder(folder: Path, count: int) -> Table[Any]:
    """A folder whose listing is made up, but for that of its bundles."""
    status = (folder / "real.parquet").stat()
    size, version = status.st_size, str(status.st_mtime_ns)

    def entries(self: LocalFiles, under: str, *, hidden: bool) -> list[Entry]:
        if under:
            return _list(self, under, hidden=hidden)
        return [
            (_folder_path(day, number), size, version)
            for day, numbers in _days(count)
            for number in numbers
        ]

    LocalFiles.entries = entries  # type: ignore[method-assign]
    return alcid.parquet(folder)


_list = LocalFiles.entries
_LIST_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "partition_spec_id", "type": "int", "field-id": 502},
        {"name": "content", "type": "int", "field-id": 517},
        {"name": "sequence_number", "type": "long", "field-id": 515},
        {"name": "added_files_count", "type": "int", "field-id": 504},
        {"name": "existing_files_count", "type": "int", "field-id": 505},
        {
            "name": "partitions",
            "field-id": 507,
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "r508",
                    "fields": [
                        {"name": "contains_null", "type": "boolean", "field-id": 509},
                        {"name": "lower_bound", "type": ["null", "bytes"], "field-id": 510},
                        {"name": "upper_bound", "type": ["null", "bytes"], "field-id": 511},
                    ],
                },
            },
        },
    ],
}


def _metric(name: str, number: int, kind: str) -> dict[str, Any]:
    fields = [{"name": "key", "type": "int"}, {"name": "value", "type": kind}]
    items = {"type": "record", "name": f"m{number}", "fields": fields}
    return {"name": name, "field-id": number, "type": {"type": "array", "items": items}}


_PARTITION = {
    "type": "record",
    "name": "r102",
    "fields": [{"name": "day", "type": ["null", "int"], "field-id": 1000}],
}
_DATA_FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        {"name": "content", "type": "int", "field-id": 134},
        {"name": "file_path", "type": "string", "field-id": 100},
        {"name": "file_format", "type": "string", "field-id": 101},
        {"name": "partition", "type": _PARTITION, "field-id": 102},
        {"name": "record_count", "type": "long", "field-id": 103},
        {"name": "file_size_in_bytes", "type": "long", "field-id": 104},
        _metric("value_counts", 109, "long"),
        _metric("null_value_counts", 110, "long"),
        _metric("lower_bounds", 125, "bytes"),
        _metric("upper_bounds", 128, "bytes"),
    ],
}
_ENTRY_SCHEMA = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        {"name": "sequence_number", "type": "long", "field-id": 3},
        {"name": "data_file", "type": _DATA_FILE, "field-id": 2},
    ],
}


def _make_iceberg(folder: Path, count: int) -> None:
    """A manifest for each day."""
    keys = range(1, len(_COLUMNS) + 1)
    rows = [{"key": key, "value": _ROWS} for key in keys]
    nulls = [{"key": key, "value": 0} for key in keys]
    manifests = []
    for day, numbers in _days(count):
        records = []
        for number in numbers:
            lower, upper = ((number + end).to_bytes(8, "little") for end in (0, 100))
            data_file = {
                "content": 0,
                "file_path": f"{folder}/data/day={day}/{number:08}-0123456789abcdef.parquet",
                "file_format": "PARQUET",
                "partition": {"day": day},
                "record_count": _ROWS,
                "file_size_in_bytes": _SIZE,
                "value_counts": rows,
                "null_value_counts": nulls,
                "lower_bounds": [{"key": key, "value": lower} for key in keys],
                "upper_bounds": [{"key": key, "value": upper} for key in keys],
            }
            records.append({"status": 1, "sequence_number": 1, "data_file": data_file})
        path = folder / f"manifest-{day}.avro"
        path.write_bytes(_avro(_ENTRY_SCHEMA, records))
        bound = day.to_bytes(4, "little")
        manifests.append(
            {
                "manifest_path": str(path),
                "manifest_length": path.stat().st_size,
                "partition_spec_id": 0,
                "content": 0,
                "sequence_number": 1,
                "added_files_count": len(numbers),
                "existing_files_count": 0,
                "partitions": [
                    {"contains_null": False, "lower_bound": bound, "upper_bound": bound}
                ],
            }
        )
    (folder / "snap-1.avro").write_bytes(_avro(_LIST_SCHEMA, manifests))
    (folder / "metadata.json").write_text(json.dumps(_iceberg_metadata(folder)))


def _avro(schema: dict[str, Any], records: Sequence[Mapping[str, Any]]) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, schema, records, codec="deflate", sync_interval=64_000)
    return file.getvalue()


def _iceberg_metadata(folder: Path) -> dict[str, Any]:
    names = [*_COLUMNS, "day"]
    kinds = ["long"] * len(_COLUMNS) + ["int"]
    fields = [
        {"id": number, "name": name, "type": kind, "required": False}
        for number, (name, kind) in enumerate(zip(names, kinds, strict=True), 1)
    ]
    day = {"source-id": len(names), "field-id": 1000, "name": "day", "transform": "identity"}
    snapshot = {
        "snapshot-id": _SNAPSHOT,
        "sequence-number": 1,
        "timestamp-ms": 1_754_000_000_000,
        "schema-id": 0,
        "summary": {"operation": "append"},
        "manifest-list": str(folder / "snap-1.avro"),
    }
    return {
        "format-version": 2,
        "table-uuid": "5f1e0c7a-0000-0000-0000-000000000000",
        "location": str(folder),
        "schemas": [{"schema-id": 0, "type": "struct", "fields": fields}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": [day]}],
        "default-spec-id": 0,
        "properties": {},
        "current-snapshot-id": _SNAPSHOT,
        "snapshots": [snapshot],
        "refs": {"main": {"snapshot-id": _SNAPSHOT, "type": "branch"}},
        "statistics": [],
    }


class _WithoutSpark(SavedTable):
    """A catalog that lists no files: all manifests are read in this process."""

    def entries(self, snapshot_id: int, *, metrics: bool = True) -> pa.Table:
        raise UnsupportedError(f"entries of {snapshot_id}, {metrics}")


def _open_iceberg(folder: Path, _count: int) -> Table[Any]:
    """The table; where there is Spark, it would list a table of this size."""
    return IcebergTable(_WithoutSpark("lake.db.many", (folder / "metadata.json").read_text(), {}))


def _make_paimon(folder: Path, count: int) -> None:
    """A commit for each day."""
    kinds = {name: DataType("BIGINT") for name in _COLUMNS} | {"day": DataType("INT")}
    schema = pa.schema([(name, kind.to_arrow()) for name, kind in kinds.items()])
    table = alcid.create_table(folder, schema, partition_by=["day"])
    types = list(kinds.values())
    for day, numbers in _days(count):
        days = pa.array([day] * len(numbers), pa.int32())
        partition = pack_rows([days[:1]], [DataType("INT")])[0]
        lower, upper = (
            pack_rows([pa.array(np.array(numbers) + end)] * len(_COLUMNS) + [days], types)
            for end in (0, 100)
        )
        entries = [
            ManifestEntry(ADD, partition, 0, -1, _paimon_file(number, *bounds, len(types)))
            for number, bounds in zip(numbers, zip(lower, upper, strict=True), strict=True)
        ]

        def added(_state: object, entries: list[ManifestEntry] = entries) -> Change:
            return Change(kind="APPEND", added=entries)

        table.committer().commit(added)


def _paimon_file(number: int, lower: bytes, upper: bytes, columns: int) -> DataFile:
    return DataFile(
        name=f"data-{number:08}-0123-4567-89ab-cdef01234567-0.parquet",
        size=_SIZE,
        rows=_ROWS,
        min_key=EMPTY,
        max_key=EMPTY,
        key_stats=NO_STATS,
        value_stats=RowStats(lower, upper, (0,) * columns),
        min_sequence=0,
        max_sequence=_ROWS - 1,
        schema_id=0,
        level=0,
        creation_time=datetime(2025, 8, 1, tzinfo=UTC),
        delete_rows=0,
        source=0,
    )


def _open_paimon(folder: Path, _count: int) -> Table[Any]:
    return alcid.paimon(folder)


_MAKE: dict[str, Callable[[Path, int], None]] = {
    "folder": _make_folder,
    "iceberg": _make_iceberg,
    "paimon": _make_paimon,
}
_OPEN: dict[str, Callable[[Path, int], Table[Any]]] = {
    "folder": _open_folder,
    "iceberg": _open_iceberg,
    "paimon": _open_paimon,
}
METADATA_KINDS = tuple(_MAKE)


def main(arguments: Sequence[str]) -> None:
    """Make a table or print what it took as JSON; both in a process of their own."""
    step, base, kind, count = arguments
    if step == "make":
        make(Path(base), kind, int(count))
    else:
        print(json.dumps(asdict(ask(Path(base), kind, int(count)))))


if __name__ == "__main__":
    main(sys.argv[1:])
