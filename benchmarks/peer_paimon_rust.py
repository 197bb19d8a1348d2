"""The peer's side: write columns with pypaimon-rust, in an environment and a process of its own.

Reads one request a line, as JSON, and answers each with one line. It stands alone: of this project
nothing is imported.

    {"arrow": "column.arrow", "type": "BIGINT", "options": {...}}
        -> {"cpu": seconds, "wall": seconds, "index": path or null}
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from pypaimon_rust.datafusion import PaimonCatalog, SQLContext

SIDECAR = {"file-index.in-manifest-threshold": "1 B"}  # an index becomes a file of its own


class Warehouse:
    """Tables of one column `c`, written once and removed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.context: Any = SQLContext()
        self.context.register_catalog("bench", {"warehouse": str(folder)})
        self.context.sql("CREATE SCHEMA bench.files")
        self.catalog: Any = PaimonCatalog({"warehouse": str(folder)})
        self.written = 0

    def write(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write a column into a new table, and say what that took."""
        name = f"t{self.written}"
        self.written += 1
        options = ", ".join(
            f"'{key}' = '{value}'" for key, value in (request["options"] | SIDECAR).items()
        )
        self.context.sql(f"CREATE TABLE bench.files.{name} (c {request['type']}) WITH ({options})")
        builder = self.catalog.get_table(("files", name)).new_batch_write_builder()
        with pa.memory_map(request["arrow"]) as source:
            (batch,) = pa.ipc.open_file(source).read_all().to_batches()
        wall, cpu = time.perf_counter(), time.process_time()
        writer = builder.new_write()
        writer.write_arrow(batch)
        messages = writer.prepare_commit()
        taken = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        builder.new_commit().commit(messages)
        return taken | {"index": self.take(name)}

    def take(self, name: str) -> str | None:
        """Keep the index file of a table, if there is one, and remove the rest."""
        indexes = list(self.folder.glob(f"**/{name}/**/*.index"))
        if len(indexes) > 1:
            raise RuntimeError(f"found {len(indexes)} data files with an index, expected 1")
        kept = self.folder / "kept.index"
        for index in indexes:
            index.replace(kept)
        for table in self.folder.glob(f"**/{name}"):
            shutil.rmtree(table)
        return str(kept) if indexes else None


def main() -> None:
    """Serve until the input ends."""
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Warehouse(Path(folder))
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            print(json.dumps(warehouse.write(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
