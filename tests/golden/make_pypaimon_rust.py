"""Make the golden containers of paimon-rust, from the released package pypaimon-rust.

    python -m tests.golden.make_pypaimon_rust

Needs the network; makes a virtual environment in a temporary folder, unless the package is there.
Writes the same files every time.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.golden.arrow_values import arrow_array
from tests.golden.container_cases import Table
from tests.golden.container_head import parse_head
from tests.golden.payload_columns import EDGES, KINDS, LTZ, slug
from tests.golden.values import Json, save

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, VERSION = "pypaimon-rust", "0.4.0"
FOLDER = ROOT / "tests" / "golden" / "file-index" / f"pypaimon-rust-{VERSION}"
PAIRS = {
    "points": [KINDS["bitmap_v2"], KINDS["bloom"]],
    "ranges": [KINDS["bsi"], KINDS["range"]],
}
SIDECAR = {"file-index.in-manifest-threshold": "1 B"}  # every container becomes a file


def tables() -> Iterator[Table]:
    """Every data type with the indexes that take it, then some shapes.

    No table has more than two indexes of a column, or three in all: see `Warehouse.write_ordered`.
    """
    for data_type, (rows, _) in EDGES.items():
        if data_type.startswith("TIME("):  # its SQL has no such type
            continue
        for pair, kinds in PAIRS.items():
            taken = {
                index_type: options
                for index_type, options, data_types in kinds
                if data_type in data_types
            }
            # The writer of bsi fails on the lowest BIGINT.
            lift = "bsi" in taken
            values = [value + 1 if lift and value == -(2**63) else value for value in rows]
            if taken:
                yield one_column(f"{slug(data_type)}_{pair}", data_type, values, taken)
    for pair, kinds in PAIRS.items():
        ints = {index_type: options for index_type, options, _ in kinds}
        yield one_column(f"int_all_null_{pair}", "INT", [None] * 5, ints)
        yield one_column(f"int_one_value_{pair}", "INT", [7, None, 7, 7], ints)
        yield one_column(f"int_negative_{pair}", "INT", [-7, None, -1, -7], ints)
    runs = [None if row % 251 == 0 else row // 90 % 6 for row in range(2500)]
    yield one_column("int_runs", "INT", runs, {"bitmap": {}, "range-bitmap": {}})
    many = [row * 7919 % 700 for row in range(900)]
    small = {"bitmap": {"index-block-size": "1 kb"}, "range-bitmap": {"chunk-size": "256 b"}}
    yield one_column("int_small_blocks", "INT", many, small)
    texts = [f"bird-{row * 31 % 90}" for row in range(120)]
    yield one_column("string_small_blocks", "STRING", texts, small)
    yield Table(
        "three_columns",
        {"id": "INT", "name": "STRING", "price": "BIGINT"},
        {
            "file-index.bitmap.columns": "id",
            "file-index.range-bitmap.columns": "price",
            "file-index.bloom-filter.columns": "name",
            "file-index.bloom-filter.name.items": "20",
        },
        [[row % 4, None if row % 5 == 0 else f"n{row}", row * row - 50] for row in range(20)],
    )
    yield Table(
        "odd_names",
        {"größe": "INT", "a b": "INT", "🐧": "INT"},
        {"file-index.bitmap.columns": "größe,🐧", "file-index.bsi.columns": "a b"},
        [[1, 2, 3], [1, None, 4]],
    )


def one_column(
    name: str, data_type: str, values: list[Json], indexes: dict[str, dict[str, str]]
) -> Table:
    """A table of the column c, with these index types and their options."""
    options = {f"file-index.{index_type}.columns": "c" for index_type in indexes}
    for index_type, settings in indexes.items():
        options |= {f"file-index.{index_type}.c.{key}": text for key, text in settings.items()}
    return Table(name, {"c": data_type}, options, [[value] for value in values])


class Warehouse:
    """Tables in a folder, made by SQL and written through Arrow."""

    def __init__(self, folder: str) -> None:
        from pypaimon_rust.datafusion import PaimonCatalog, SQLContext

        self.folder = Path(folder)
        self.context: Any = SQLContext()
        self.context.register_catalog("golden", {"warehouse": folder})
        self.context.sql("CREATE SCHEMA golden.files")
        self.catalog: Any = PaimonCatalog({"warehouse": folder})
        self.written = 0

    def write(self, table: Table) -> bytes:
        """The container of the only data file that the rows make."""
        import pyarrow as pa

        self.written += 1
        name = f"t{self.written}"
        columns = ", ".join(f'"{column}" {_sql(kind)}' for column, kind in table.fields.items())
        options = ", ".join(
            f"'{key}' = '{text}'" for key, text in (table.options | SIDECAR).items()
        )
        self.context.sql(f"CREATE TABLE golden.files.{name} ({columns}) WITH ({options})")
        builder = self.catalog.get_table(("files", name)).new_batch_write_builder()
        arrays = [
            arrow_array(kind, [row[number] for row in table.rows])
            for number, kind in enumerate(table.fields.values())
        ]
        writer = builder.new_write()
        writer.write_arrow(pa.record_batch(arrays, names=list(table.fields)))
        builder.new_commit().commit(writer.prepare_commit())
        (sidecar,) = self.folder.glob(f"**/{name}/**/*.index")
        return sidecar.read_bytes()

    def write_ordered(self, table: Table) -> bytes:
        """Write until the order is right.

        This writer shuffles the entries of the head, the payloads after it, and nothing else. We
        want the entries sorted, and the payloads in the same order; in tables of several columns in
        the reverse order, so that readers do not rely on it.
        """
        while True:
            data = self.write(table)
            entries = parse_head(data)["entries"]
            names = [(entry["column"], entry["index_type"]) for entry in entries]
            starts = [entry["start"] for entry in entries]
            ordered = sorted(starts, reverse=len(table.fields) > 1)
            if names == sorted(names) and starts == ordered:
                return data


def _sql(data_type: str) -> str:
    return data_type.replace(LTZ, " WITH TIME ZONE")


def write_tables() -> None:
    """Make the folder again."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Warehouse(folder)
        for table in tables():
            data = warehouse.write_ordered(table)
            fields = [
                {"id": number, "name": name, "type": kind}
                for number, (name, kind) in enumerate(table.fields.items())
            ]
            facts = {
                "kind": "container",
                "fields": fields,
                "table_options": table.options | SIDECAR,
                "head": parse_head(data),
                "row_count": len(table.rows),
                "rows": table.rows,
                "predicates": [],
                "topn": [],
            }
            save(FOLDER, table.name, facts, data)
    files = sorted(FOLDER.iterdir())
    print(
        f"{len(files)} files, {sum(file.stat().st_size for file in files)} bytes in {FOLDER.name}"
    )


def main() -> None:
    """Write here if the package is installed, otherwise in another environment."""
    try:
        installed = importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        installed = None
    if installed == VERSION:
        write_tables()
        return
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        needed = [f"{PACKAGE}=={VERSION}", "numpy", "pyarrow", "pyroaring"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *needed], check=True)
        subprocess.run([python, "-m", "tests.golden.make_pypaimon_rust"], check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
