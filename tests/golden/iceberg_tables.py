"""Iceberg tables on Spark: a row-level delete of format version 3, and statistics.

Data files are written by Arrow and added to the table, so that their names and the order of their
rows are ours; each is read by a task of its own.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.golden.arrow_values import arrow_array
from tests.golden.iceberg_jvm import CATALOG, IcebergJvm, iceberg_spark
from tests.golden.java_puffin import WRITER, puffin_facts, read_puffin
from tests.golden.positions import spec_of
from tests.golden.theta_cases import BIGINT, BIGINT_TASKS, TYPES, TYPES_TASKS, Column
from tests.golden.values import Json, save

# Names of data files stand in the Puffin files, so this is not a folder of one machine.
PLACE = Path("/tmp/alcid-golden")
SNAPSHOT = 4_611_686_018_427_387_905  # instead of a random number
SPLIT = 128 << 20
PROPERTIES = {
    "format-version": "3",
    "write.delete.mode": "merge-on-read",
    # A file weighs as much as a split holds, however small it is.
    "read.split.target-size": str(SPLIT),
    "read.split.open-file-cost": str(SPLIT),
    "read.split.adaptive-size.enabled": "false",
}
DELETE_TASKS = [[0, 100], [100, 70_000], [70_000, 70_200]]
DELETES: dict[str, tuple[str, Callable[[int], bool]]] = {
    "delete_first": (
        "id % 7 = 1 AND id < 300 OR id BETWEEN 5000 AND 69000",
        lambda row: (row % 7 == 1 and row < 300) or 5000 <= row <= 69_000,
    ),
    "delete_second": (
        "id BETWEEN 69001 AND 69500 OR id IN (3, 70199)",
        lambda row: 69_001 <= row <= 69_500 or row in (3, 70_199),
    ),
}


class Tables:
    """Tables of data files that we wrote."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.jvm = IcebergJvm(session.sparkContext._gateway)

    def create(self, name: str, columns: dict[str, Column], tasks: Sequence[Sequence[int]]) -> str:
        """A table with one data file for the rows of each task, and one snapshot."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = ", ".join(f"{column} {kind.iceberg_type}" for column, kind in columns.items())
        options = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
        table = f"{CATALOG}.db.{name}"
        self.session.sql(f"CREATE TABLE {table} ({schema}) USING iceberg TBLPROPERTIES ({options})")
        folder = PLACE / name
        folder.mkdir(parents=True)
        for number, (first, end) in enumerate(tasks):
            arrays = {
                column: arrow_array(kind.data_type, [kind.value(row) for row in range(first, end)])
                for column, kind in columns.items()
            }
            pq.write_table(pa.table(arrays), folder / f"part-{number}.parquet")
        self.session.sql(
            f"CALL {CATALOG}.system.add_files(table => 'db.{name}', "
            f"source_table => '`parquet`.`{folder}`')"
        )
        files = self.session.sql(f"SELECT DISTINCT _file, spark_partition_id() FROM {table}")
        filled = sum(first < end for first, end in tasks)
        assert len({row[0] for row in files.collect()}) == filled
        assert len({row[1] for row in files.collect()}) == filled
        return table

    def fix_snapshot(self, name: str) -> None:
        """Give the only snapshot of a table an id that is the same in every run."""
        folder = PLACE / "warehouse" / "db" / name / "metadata"
        version = (folder / "version-hint.text").read_text()
        path = folder / f"v{version}.metadata.json"
        metadata = json.loads(path.read_text())
        (snapshot,) = metadata["snapshots"]
        (log,) = metadata["snapshot-log"]
        for item in (snapshot, log, metadata["refs"]["main"]):
            item["snapshot-id"] = SNAPSHOT
        metadata["current-snapshot-id"] = SNAPSHOT
        path.write_text(json.dumps(metadata))
        (folder / f".{path.name}.crc").unlink()

    def delete(self, name: str, condition: str) -> tuple[Path, list[Json]]:
        """Delete rows; returns the Puffin file that was written, and its manifest entries."""
        files = PLACE / "warehouse" / "db" / name / "data"
        before = set(files.glob("*.puffin"))
        self.session.sql(f"DELETE FROM {CATALOG}.db.{name} WHERE {condition}")
        (written,) = set(files.glob("*.puffin")) - before
        members = ["referenced_data_file", "content_offset", "content_size_in_bytes"]
        members += ["record_count", "file_size_in_bytes"]
        rows = self.session.sql(
            f"SELECT {', '.join(members)} FROM {CATALOG}.db.{name}.delete_files "
            f"WHERE file_path LIKE '%/{written.name}' ORDER BY content_offset"
        )
        return written, [row.asDict() for row in rows.collect()]

    def statistics(self, name: str) -> Path:
        """Compute the statistics of all columns; returns the file."""
        call = f"CALL {CATALOG}.system.compute_table_stats(table => 'db.{name}')"
        (row,) = self.session.sql(call).collect()
        return Path(row[0])


def write_delete(tables: Tables, folder: Path) -> None:
    """Two deletes, the second merged with the first, each with its manifest entries."""
    tables.create("deletes", {"id": BIGINT}, DELETE_TASKS)
    deleted: dict[str, set[int]] = {}
    for name, (condition, matches) in DELETES.items():
        touched = set()
        for number, (first, end) in enumerate(DELETE_TASKS):
            data_file = f"file:{PLACE}/deletes/part-{number}.parquet"
            rows = {row - first for row in range(first, end) if matches(row)}
            deleted.setdefault(data_file, set()).update(rows)
            touched |= {data_file} if rows else set()
        path, entries = tables.delete("deletes", condition)
        specs = {data_file: spec_of(sorted(deleted[data_file])) for data_file in touched}
        for entry in entries:
            assert entry["record_count"] == len(deleted[entry["referenced_data_file"]])
        facts = puffin_facts(tables.jvm, path, specs.__getitem__)
        save(folder, name, facts | {"delete_files": entries}, path.read_bytes())


def write_sketches(tables: Tables, folder: Path, puffin_folder: Path) -> None:
    """The blobs of statistics, and some files of statistics whole."""
    cases = {name: ({"c_bigint": BIGINT}, tasks) for name, tasks in BIGINT_TASKS.items()}
    cases["types"] = TYPES, TYPES_TASKS
    for name, (columns, tasks) in cases.items():
        tables.create(name, columns, tasks)
        tables.fix_snapshot(name)
        path = tables.statistics(name)
        _, blobs = read_puffin(tables.jvm, path)
        for (column, kind), (blob, payload) in zip(columns.items(), blobs, strict=True):
            facts = theta_facts(tables.jvm, payload)
            facts |= {"ndv": int(blob.properties()["ndv"]), "data_type": kind.data_type}
            facts |= {"iceberg_type": kind.iceberg_type}
            if kind is BIGINT:
                facts["tasks"] = [{"range": rows} for rows in tasks]
            else:
                facts["tasks"] = [
                    {"values": [kind.value(row) for row in range(*rows)]} for rows in tasks
                ]
            save(folder, column.removeprefix("c_") if name == "types" else name, facts, payload)
        if name in ("types", "bigint_100_one_task"):
            data = path.read_bytes()
            save(puffin_folder, f"statistics_{name}", puffin_facts(tables.jvm, path), data)


def theta_facts(jvm: IcebergJvm, payload: bytes) -> dict[str, Json]:
    """What the sketch library inside Iceberg reads from a blob."""
    library = jvm.iceberg.shaded.org.apache.datasketches
    memory = library.memory.Memory.wrap(bytearray(payload))
    sketch = library.theta.CompactSketch.heapify(memory)
    return {
        "kind": "theta",
        **WRITER,
        "estimate": sketch.getEstimate(),
        "retained": sketch.getRetainedEntries(True),
        "theta": sketch.getThetaLong(),
    }


def write_tables(vectors: Path, sketches: Path) -> None:
    """All files that need Spark."""
    shutil.rmtree(PLACE, ignore_errors=True)
    try:
        with iceberg_spark(PLACE / "warehouse") as session:
            session.sparkContext.setLogLevel("ERROR")
            tables = Tables(session)
            write_delete(tables, vectors)
            write_sketches(tables, sketches, vectors)
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)
