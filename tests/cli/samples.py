"""A file index with every index type, and the command run on it within the test's process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

from alcid import FileIndex
from alcid.cli import main

Json: TypeAlias = Any

TABLE = pa.table(
    {
        "class_id": pa.array([1, 2, None, 1, -3], pa.int32()),
        "day": pa.array([date(2024, 1, row + 1) for row in range(5)]),
        "name": ["ann", None, None, "it's", "\x1b[31m"],
        "score": [50.0, 90.0, 70.0, float("nan"), None],
        "tags": pa.array(
            [{"a": 1}, {"a": 2}, {}, None, {"a": 1}], pa.map_(pa.string(), pa.int32())
        ),
    }
)
OPTIONS: dict[str, str | int] = {
    "file-index.bitmap.columns": "name, tags[a]",
    "file-index.bitmap.tags[a].version": 1,
    "file-index.bloom-filter.columns": "name",
    "file-index.bloom-filter.name.items": 10,
    "file-index.range-bitmap.columns": "day, score",
    "file-index.bsi.columns": "class_id",
}
TYPES = (
    *("--type", "class_id=INT", "--type", "day=DATE", "--type", "name=STRING"),
    *("--type", "score=DOUBLE", "--type", "tags=MAP<STRING, INT>"),
)


@dataclass(frozen=True)
class Run:
    """What a run of the command left."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Json:
        """The one document on the one line of stdout."""
        assert (self.err, self.out.count("\n"), self.out[-1:]) == ("", 1, "\n")
        return json.loads(self.out)


Alcid: TypeAlias = Callable[..., Run]


def runner(capsys: pytest.CaptureFixture[str]) -> Alcid:
    def run(*arguments: object) -> Run:
        status = main([str(argument) for argument in arguments])
        return Run(status, *capsys.readouterr())

    return run


def write_sample(folder: Path) -> Path:
    path = folder / "sample.index"
    path.write_bytes(FileIndex.build(TABLE, OPTIONS).to_bytes())
    return path


def patched(path: Path, offset: int, data: bytes) -> Path:
    """The same file with other bytes at `offset`."""
    content = bytearray(path.read_bytes())
    content[offset : offset + len(data)] = data
    path.write_bytes(content)
    return path
