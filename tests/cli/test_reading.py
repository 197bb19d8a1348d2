"""`alcid explain`, `list` and `verify`: what they print, and their status."""

from __future__ import annotations

import os
import re
import struct
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid as library
from alcid.cli.row_output import table_lines
from alcid.tables.paimon.metadata.commit import Change
from alcid.tables.paimon.metadata.statistics import EMPTY
from alcid.tables.paimon.metadata.table_state import IndexEntry
from tests.cli.examples import EVENTS, ORDERS
from tests.cli.samples import Alcid


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Two files, with a bitmap in the first only."""
    folder = tmp_path / "events"
    folder.mkdir()
    pq.write_table(EVENTS.slice(0, 500), folder / "a.parquet")
    library.parquet(folder).build_indexes({"file-index.bitmap.columns": "user"}, progress=False)
    pq.write_table(EVENTS.slice(500), folder / "b.parquet")
    return folder


def test_explain_is_that_of_the_table(alcid: Alcid, events: Path) -> None:
    where = "user = 'u7' AND id < 100"
    run = alcid("explain", events, "--where", where, "--select", "score", "--limit", "3")
    explanation = str(library.parquet(events).explain(where, columns=["score"], limit=3))
    assert (run.status, run.err) == (0, "")
    without_times = re.compile(r" +(ms|\d+\.\d)$", re.MULTILINE)
    assert without_times.sub("", run.out) == without_times.sub("", f"{explanation}\n")


def test_explain_of_a_run_says_what_was_read(alcid: Alcid, events: Path) -> None:
    def rows_of(*more: str) -> object:
        document = alcid("explain", events, "--where", "score > 0.9", "--json", *more).json
        return document["stages"][-1]["after"]["rows"]

    assert (rows_of(), rows_of("--run")) == (None, 99)


def test_explain_writes_a_page(alcid: Alcid, events: Path) -> None:
    page = events.parent / "plan.html"
    run = alcid("explain", events, "--where", "id = 7", "--html", page)
    assert (run.status, run.out, run.err) == (0, f"written to {page}\n", "")
    assert page.read_text().startswith("<!doctype html>")
    document = alcid("explain", events, "--where", "id = 7", "--html", page, "--json").json
    assert document["predicate"] == "id = 7"


def test_explain_tells_what_becomes_of_each_file(alcid: Alcid, events: Path) -> None:
    command = ("explain", events, "--where", "id >= 500", "--files")
    document = alcid(*command, "--json").json
    assert [file["path"] for file in document["files"]] == ["a.parquet", "b.parquet"]
    assert alcid(*command).err == (
        "alcid: --files: needs --json without --html, which always includes the files\n"
    )


def test_list_shows_each_index_and_its_bytes(alcid: Alcid, events: Path) -> None:
    (info,) = library.parquet(events).indexes()
    run = alcid("list", events)
    assert (run.status, run.err) == (0, "")
    head, titles, row = run.out.splitlines()
    assert head == f"ParquetTable {events}: 2 files"
    assert re.split("  +", titles) == [
        *("COLUMN", "INDEX", "FRESH", "STALE", "ABSENT", "DAMAGED", "BYTES", "PER ROW")
    ]
    assert row.split() == [
        *("user", "bitmap", "1", "0", "1", "0", f"{info.bytes:,}", f"{info.bytes / 500:.2f}")
    ]
    document = alcid("list", events, "--json").json
    assert document == {
        "table": str(events),
        "files": 2,
        "indexes": [
            {
                "column": "user",
                "index_type": "bitmap",
                "fresh": 1,
                "stale": 0,
                "absent": 1,
                "damaged": 0,
                "bytes": info.bytes,
                "rows": 500,
                "bytes_per_row": info.bytes / 500,
            }
        ],
    }


def test_list_without_an_index_says_what_makes_one(alcid: Alcid, tmp_path: Path) -> None:
    library.create_table(tmp_path / "orders", ORDERS.schema)
    assert alcid("list", tmp_path / "orders").out == (
        f"PaimonTable {tmp_path}/orders: 0 files\n"
        "no index: alcid build creates them, alcid advise recommends which\n"
    )


def source_of(level: int, **files: int) -> bytes:
    """What the entry of a primary-key index says about its data files."""
    parts = [struct.pack(">iii", 1, level, len(files))]
    for name, rows in files.items():
        parts += (struct.pack(">H", len(name)), name.encode(), struct.pack(">q", rows))
    return b"".join(parts)


def test_list_has_the_indexes_that_paimon_keeps_of_keys(alcid: Alcid, tmp_path: Path) -> None:
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    table = library.create_table(
        tmp_path / "orders", ORDERS.schema, primary_key=["id"], options=options
    )
    table.upsert(ORDERS)
    (file,) = [entry.file for entry in table.snapshot.state.entries]
    column = table.snapshot.schema.fields[1]
    asked = {"pk-btree.index.columns": column.name, "pk-bitmap.index.columns": f"{column.name},x"}
    whole = {"_ROW_RANGE_START": 0, "_ROW_RANGE_END": 4, "_INDEX_FIELD_ID": column.id}

    def entry(number: int, source: bytes) -> IndexEntry:
        record = {**whole, "_SOURCE_META": source}
        return IndexEntry(EMPTY, 0, "btree", f"index-{number}", 123, 5, None, None, record)

    name, rows = file.name, file.rows
    before = table.folder.latest_schema()
    change = Change(
        kind="COMPACT",
        index_added=[
            entry(1, source_of(file.level, **{name: rows})),
            entry(2, source_of(file.level, **{name: rows, "gone": 7})),
            entry(3, b"\0\0\0\1"),
        ],
    )
    table.committer().commit(lambda _: change)
    after = replace(before, id=1, options={**before.options, **asked})
    table.storage.create("schema/schema-1", after.to_json())
    listed = alcid("list", tmp_path / "orders", "--json").json["indexes"]
    states = ("index_type", "fresh", "stale", "absent", "damaged", "bytes", "rows")
    assert [tuple(index[key] for key in states) for index in listed] == [
        ("pk-bitmap", 0, 0, 1, 0, 0, 0),
        ("pk-btree", 1, 1, 0, 1, 123, 5),
    ]
    assert {index["column"] for index in listed} == {column.name}
    text = alcid("list", tmp_path / "orders").out
    assert "no index" not in text
    assert "pk-btree" in text


def test_list_of_a_paimon_table_counts_rows(alcid: Alcid, tmp_path: Path) -> None:
    options = {"file-index.bitmap.columns": "item"}
    library.create_table(tmp_path / "orders", ORDERS.schema, options=options).append(ORDERS)
    (state,) = alcid("list", tmp_path / "orders", "--json").json["indexes"]
    assert (state["fresh"], state["rows"]) == (1, 5)
    assert state["bytes_per_row"] == state["bytes"] / 5


def test_verify_of_a_sound_table(alcid: Alcid, events: Path) -> None:
    run = alcid("verify", events)
    assert (run.status, run.err) == (0, "")
    assert re.sub(r"\d+\.\d s", "0 s", run.out) == (
        "checked 1 of 2 files (500 rows) in 0 s: ok\n"
        "bitmap of 'user': 1 of 1 file sound, 1 missing\n"
        "1 file without an index\n"
    )
    assert alcid("verify", events, "--sample", "1", "--json").json["rows"] == 500
    run = alcid("verify", events, "--sample", "0")
    problem = "alcid: sample: found 0.0, expected a number above 0 and at most 1\n"
    assert (run.status, run.out, run.err) == (2, "", problem)


def test_verify_ends_with_1_where_an_index_is_wrong(alcid: Alcid, events: Path) -> None:
    path = events / "a.parquet"
    before = path.stat()
    other = EVENTS.slice(0, 500).set_column(1, "user", pa.array(["u3"] * 500))
    pq.write_table(other, path)
    os.truncate(path, before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    run = alcid("verify", events)
    assert (run.status, run.err) == (1, "")
    assert ": ok" not in run.out.splitlines()[0]
    assert alcid("verify", events, "--json").json["ok"] is False


def test_index_path_is_where_the_indexes_are(alcid: Alcid, events: Path) -> None:
    document = alcid("list", events, "--index-path", events.parent / "elsewhere", "--json").json
    assert document["indexes"] == []


def test_narrow_terminal_leaves_columns_out_and_cuts_texts() -> None:
    rows = pa.table({"id": [1], "text": ["x" * 70], "more": [2], "last": [3]})
    assert table_lines(rows, more=False, width=66) == [
        f"id  text{' ' * 56}".rstrip(),
        f" 1  {'x' * 57}...",
        "(2 more columns: --select chooses, --format json has all)",
        "(1 row)",
    ]
    assert table_lines(rows, more=False, width=1)[:2] == ["id", " 1"]
    assert table_lines(rows, more=True, width=None)[-1] == (
        "(1 row, and there are more: --limit 0 for all)"
    )
