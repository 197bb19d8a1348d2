"""Make the golden files of paimon-rust's table indexes, from the released package pypaimon-rust.

    python -m tests.golden.make_table_index_rust

Writes the same files every time: names of data files are random, and so is the order of what it
writes, so a table is written again until it comes in the order that we want.
"""

from __future__ import annotations

import importlib.metadata
import shutil
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyroaring import BitMap

from tests.golden.arrow_values import arrow_array
from tests.golden.make_pypaimon_rust import PACKAGE, VERSION
from tests.golden.positions import SETS, positions_of
from tests.golden.values import Json, save, timestamp

GOLDEN = Path(__file__).resolve().parent
WRITER: dict[str, Json] = {"writer": "pypaimon-rust", "version": VERSION}
VECTORS = GOLDEN / "deletion-vectors" / f"pypaimon-rust-{VERSION}"
HASHES = GOLDEN / "table-index" / f"pypaimon-rust-{VERSION}"
# It deletes rows of such tables only; `deletion-vectors.bitmap64` makes no difference to it.
OPTIONS = dict.fromkeys(
    ("row-tracking.enabled", "data-evolution.enabled", "deletion-vectors.enabled"), "true"
)

# Every file of vectors: for each data file its rows, and what is deleted in one commit or in two.
FILES: dict[str, list[tuple[int, list[Json]]]] = {
    "one": [(60, [SETS["few"]])],
    "zero": [(1, [SETS["zero"]])],
    "three": [
        (60, [SETS["run"]]),
        (100_003, [[{"scatter": [500, 7919, 100_003, 0]}]]),
        (70_000, [SETS["one"]]),
    ],
    "mixed_containers": [(209_000, [SETS["mixed_containers"]])],
    "bitset": [(9000, [SETS["bitset_4097"]])],
    "whole_container": [(65_600, [SETS["whole_container"]])],
    "twice": [(100, [[3, [7, 11]], [100 - 1, 8, 12]]), (50, [[1], []])],
}
KEYS: dict[str, tuple[list[str], list[list[Json]]]] = {
    "bigint": (["BIGINT"], [[0], [-1], [2**63 - 1], [-(2**63)]]),
    "int_string": (["INT", "STRING"], [[1, ""], [-5, "abcdefg"], [0, "abcdefgh"], [7, "é" * 9]]),
    "decimal_timestamp": (
        ["DECIMAL(20, 2)", "TIMESTAMP(6)", "DECIMAL(10, 2)"],
        [
            ["1.27", timestamp(0, 1000), "0.00"],
            ["-1.29", timestamp(-1, 999_000), "-123.45"],
            ["123456789012345678.90", timestamp(1_700_000_000_123), "99999999.99"],
        ],
    ),
}


class Warehouse:
    """Tables in a folder, made by SQL and written through Arrow."""

    def __init__(self, folder: Path) -> None:
        from pypaimon_rust.datafusion import PaimonCatalog, SQLContext

        self.folder = folder / "files.db"
        self.context: Any = SQLContext()
        self.context.register_catalog("golden", {"warehouse": str(folder)})
        self.context.sql("CREATE SCHEMA golden.files")
        self.catalog: Any = PaimonCatalog({"warehouse": str(folder)})
        self.tables = 0

    def create(self, types: Sequence[str], options: dict[str, str], key: bool) -> str:
        """A table with the columns c0, c1, ...; all of them may be its key."""
        self.tables += 1
        name = f"t{self.tables}"
        columns = [
            f"c{number} {kind}{' NOT NULL' if key else ''}" for number, kind in enumerate(types)
        ]
        if key:
            columns.append(
                f"PRIMARY KEY ({', '.join(f'c{number}' for number in range(len(types)))})"
            )
        properties = ", ".join(f"'{option}' = '{text}'" for option, text in options.items())
        self.context.sql(
            f"CREATE TABLE golden.files.{name} ({', '.join(columns)}) WITH ({properties})"
        )
        return name

    def append(self, name: str, types: Sequence[str], rows: Sequence[Sequence[Json]]) -> str:
        """Write rows in one commit; returns the name of their data file."""
        import pyarrow as pa

        before = set(self.folder.glob(f"{name}/bucket-0/*.parquet"))
        arrays = [
            arrow_array(kind, [row[number] for row in rows]) for number, kind in enumerate(types)
        ]
        builder = self.catalog.get_table(("files", name)).new_batch_write_builder()
        writer = builder.new_write()
        names = [f"c{number}" for number in range(len(types))]
        writer.write_arrow(pa.record_batch(arrays, names=names))
        builder.new_commit().commit(writer.prepare_commit())
        (written,) = set(self.folder.glob(f"{name}/bucket-0/*.parquet")) - before
        return written.name

    def delete(self, name: str, row_ids: Sequence[int]) -> None:
        """Delete rows in one commit."""
        builder = self.catalog.get_table(("files", name)).new_batch_write_builder()
        messages = builder.new_update().delete_by_row_id(row_ids)
        builder.new_commit().commit(messages)

    def index_file(self, name: str) -> tuple[bytes, dict[str, Json]]:
        """The only index file of the latest snapshot, and its entry in the index manifest."""
        import pyarrow as pa

        batches = self.context.sql(f'SELECT * FROM golden.files."{name}$table_indexes"')
        (entry,) = pa.Table.from_batches(batches).to_pylist()
        return (self.folder / name / "index" / entry["file_name"]).read_bytes(), entry


def write_vectors(warehouse: Warehouse, name: str, files: list[tuple[int, list[Json]]]) -> None:
    """A file of deletion vectors, with the data files in the given order."""
    data_files: list[str] = []
    table = ""
    while not data_files or data_files != sorted(data_files):
        table = warehouse.create(["BIGINT"], OPTIONS, key=False)
        data_files = [
            warehouse.append(table, ["BIGINT"], [[row] for row in range(rows)]) for rows, _ in files
        ]
    for commit in range(len(files[0][1])):
        first, ids = 0, []
        for rows, specs in files:
            ids += [first + position for position in positions_of(specs[commit])]
            first += rows
        warehouse.delete(table, ids)
    data, entry = warehouse.index_file(table)
    vectors: list[Json] = []
    for number, item in enumerate(entry["dv_ranges"]):
        assert item["f0"] == data_files[number]
        facts = {"data_file": f"data-{number}.parquet", "offset": item["f1"], "length": item["f2"]}
        facts |= {"cardinality": item["_CARDINALITY"], "bits": 32}
        vectors.append(facts | {"positions": [part for spec in files[number][1] for part in spec]})
    # It writes no runs; where they would be smaller, other writers write other bytes.
    exact = not any(BitMap(positions_of(item["positions"])).run_optimize() for item in vectors)
    facts = {"kind": "deletion_vector_file", **WRITER, **({} if exact else {"exact": False})}
    facts |= {"index_type": entry["index_type"], "row_count": entry["row_count"]}
    save(VECTORS, f"file_{name}", facts | {"vectors": vectors}, data)


def write_hashes(warehouse: Warehouse, name: str, types: list[str], rows: list[list[Json]]) -> None:
    """A hash file for the keys of a table with dynamic buckets, its hashes ascending."""
    hashes: list[int] = []
    data, entry = b"", {"index_type": "", "row_count": 0}
    while not hashes or hashes != sorted(hashes):
        table = warehouse.create(types, {"bucket": "-1"}, key=True)
        warehouse.append(table, types, rows)
        data, entry = warehouse.index_file(table)
        hashes = list(struct.unpack(f">{len(data) // 4}i", data))
    facts: dict[str, Json] = {"kind": "hash_index", **WRITER, "index_type": entry["index_type"]}
    facts |= {"row_count": entry["row_count"], "types": types, "rows": rows, "stored": hashes}
    save(HASHES, f"hash_{name}", facts, data)


def main() -> None:
    """Make both folders again."""
    assert importlib.metadata.version(PACKAGE) == VERSION
    for folder in (VECTORS, HASHES):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        warehouse = Warehouse(Path(temporary))
        for name, files in FILES.items():
            write_vectors(warehouse, name, files)
        for name, (types, rows) in KEYS.items():
            write_hashes(warehouse, name, types, rows)
    for folder in (VECTORS, HASHES):
        written = sorted(folder.iterdir())
        size = sum(file.stat().st_size for file in written)
        print(f"{len(written)} files, {size} bytes in {folder.relative_to(GOLDEN)}")


if __name__ == "__main__":
    main()
