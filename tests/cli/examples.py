"""The examples in the help of each command, and a folder in which they can be run."""

from __future__ import annotations

import re
import shlex
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.cli.commands import app

EVENTS = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "user": [f"u{row % 10}" for row in range(1000)],
        "score": [row * 7919 % 1000 / 1000 for row in range(1000)],
        "day": [date(2025, 8, 1) + timedelta(days=row // 250) for row in range(1000)],
    }
)
ORDERS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5], pa.int64()),
        "item": ["book", "pen", None, "book", "lamp"],
        "amount": [12.5, 1.0, 3.0, None, 40.0],
    }
)
USERS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["ann", "bob", "eve"]})


def command_names() -> list[str]:
    return sorted(command.name or command.callback.__name__ for command in app.registered_commands)  # type: ignore[union-attr]


def examples_of(name: str, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """The arguments of each example in the help of a command."""
    from alcid.cli import main

    assert main([name, "--help"]) == 0
    block = re.search(r"^  Examples:\n((?:    .+\n)+)", capsys.readouterr().out, re.MULTILINE)
    assert block is not None, f"alcid {name} --help has no examples"
    words = [shlex.split(line) for line in block[1].splitlines()]
    assert [word[:2] for word in words] == [["alcid", name]] * len(words)
    return [word[1:] for word in words]


def needs_more(arguments: list[str]) -> bool:
    """Whether an example needs an Iceberg catalog, which is not there."""
    return any(word.startswith("lake.") for word in arguments)


def make_folder(folder: Path) -> None:
    """Write what the examples name."""
    (folder / "events").mkdir()
    for number in range(2):
        part = EVENTS.slice(number * 500, 500)
        pq.write_table(part, folder / "events" / f"part-{number}.parquet")
    vectors = {"deletion-vectors.enabled": True}
    indexed = vectors | {"file-index.range-bitmap.columns": "amount"}
    orders = alcid.create_table(folder / "orders", ORDERS.schema, options=indexed)
    orders.append(ORDERS)
    buckets = vectors | {"bucket": 2}
    users = alcid.create_table(folder / "users", USERS.schema, primary_key=["id"], options=buckets)
    users.upsert(USERS)
    more = ORDERS.slice(0, 2)
    pq.write_table(more, folder / "new.parquet")
    pyarrow.csv.write_csv(more, folder / "new.csv")
    (folder / "new.jsonl").write_text('{"id": 6, "item": "cup", "amount": 4.5}\n')
    pq.write_table(pa.table({"id": [3, 4], "name": ["eva", "joe"]}), folder / "changes.parquet")
    changes = '{"id": 3, "name": "eva", "op": "+U"}\n{"id": 1, "name": "ann", "op": "-D"}\n'
    (folder / "changes.jsonl").write_text(changes)
    _write_index_files(folder)


def _write_index_files(folder: Path) -> None:
    options = {"file-index.range-bitmap.columns": "score", "file-index.bitmap.columns": "user"}
    index = alcid.FileIndex.build(EVENTS, options).to_bytes()
    sketch = alcid.ThetaSketch().update(EVENTS["user"])
    for name in ("data-1.orc.index", "data-2.orc.index"):
        (folder / name).write_bytes(index)
    for name in ("8744736658442914487-1.stats", "a.puffin", "b.puffin"):
        with alcid.puffin.create(folder / name) as writer:
            writer.add_theta_sketch(sketch, 2, snapshot_id=8744736658442914487, sequence_number=1)
