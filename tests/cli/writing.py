"""Tables that commands change, and what their folders contain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import alcid as library
from alcid import PaimonTable, ParquetTable
from tests.cli.samples import Run

KEYED = {"bucket": "2", "deletion-vectors.enabled": "true"}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("score", pa.float64()),
    ]
)
_SECONDS = re.compile(r"\d+\.\d s\b")


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """All files below a folder, with size and modification time."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def rows_of(first: int, last: int) -> pa.Table:
    """Rows with ids from `first` to `last`, without `last`."""
    ids = range(first, last)
    return pa.table(
        {"id": ids, "name": [f"n{key % 7}" for key in ids], "score": [key / 4 for key in ids]},
        SCHEMA,
    )


def parquet_folder(folder: Path, files: int = 3, rows: int = 100) -> Path:
    """Files with these numbers of rows; ids continue from file to file."""
    folder.mkdir(parents=True)
    for number in range(files):
        part = rows_of(number * rows, (number + 1) * rows)
        pq.write_table(part, folder / f"part-{number}.parquet")
    return folder


def paimon_table(
    folder: Path, *, keyed: bool = False, options: Mapping[str, str] | None = None
) -> PaimonTable:
    """A table without rows, from which rows can be deleted."""
    chosen = KEYED if keyed else {"deletion-vectors.enabled": "true"}
    key = ["id"] if keyed else []
    return library.create_table(
        folder, SCHEMA, primary_key=key, options={**chosen, **(options or {})}
    )


def ids_of(folder: Path) -> list[int]:
    """The ids of the rows that a table has now."""
    table: ParquetTable | PaimonTable
    is_paimon = (folder / "schema").is_dir()
    table = library.paimon(folder) if is_paimon else library.parquet(folder)
    ids: list[int] = table.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    return sorted(ids)


def text_of(run: Run) -> str:
    """What a successful command printed, without its seconds."""
    assert (run.status, run.err) == (0, "")
    return without_seconds(run.out)


def without_seconds(text: str) -> str:
    """A text without its seconds."""
    return _SECONDS.sub("T s", text)


def same_numbers(dry: Run, real: Run) -> dict[str, Any]:
    """What a dry run predicted and was then done, except for the time and what is new."""
    predicted, done = dry.json, real.json
    assert (predicted.pop("dry_run"), done.pop("dry_run")) == (True, False)
    for document in (predicted, done):
        document.pop("seconds", None)
    return {key: value for key, value in predicted.items() if key in done and value == done[key]}
