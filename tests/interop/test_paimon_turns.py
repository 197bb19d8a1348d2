"""Tables that all systems write in turns: after every step, each reader sees the same rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np

import alcid
from alcid import PaimonTable
from alcid._arrays import Int64Array
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.interop.exchange_rows import INDEXES, QUESTIONS, SCHEMA
from tests.interop.exchange_tables import Model, check_rows
from tests.interop.peers import PyPaimon
from tests.interop.rust_tables import RustWarehouse

EMBEDDED = {"file-index.in-manifest-threshold": "1 mb", "compaction.min.file-num": "2"}
VECTORS = {"deletion-vectors.enabled": "true"}
WRITE_ONLY = {"write-only": "true"}
BY_SQL = {question.sql: question for question in QUESTIONS}
ASKED = [BY_SQL["kind = 'only 0'"], BY_SQL["score > 140.5"], BY_SQL["id IN (3, 31, 300, 59997)"]]
STEP = 900


class Turns:
    """A table, its expected rows, and everyone who writes and reads it."""

    def __init__(
        self,
        table: PaimonTable,
        java: JavaPaimon,
        newest: JavaPaimon,
        pypaimon: PyPaimon,
        rust: RustWarehouse,
    ) -> None:
        self.table, self.path, self.model = table, Path(table.location), Model()
        self.java, self.newest, self.pypaimon, self.rust = java, newest, pypaimon, rust
        rust.link(self.path)
        self._first = count(0, STEP)

    def next_numbers(self) -> Int64Array:
        """Rows that were not written yet."""
        first = next(self._first)
        return np.arange(first, first + STEP)

    def write(self, who: str, numbers: Int64Array, season: int = 0) -> None:
        """Let someone write rows."""
        rows = self.model.write(numbers, season)
        match who:
            case "we":
                self.table.append(rows)
            case "java":
                self.java.write(self.path, rows, options=WRITE_ONLY)
            case "newest":
                self.newest.write(self.path, rows, options=WRITE_ONLY)
            case "pypaimon":
                self.pypaimon.write(self.path, rows)
            case "rust":
                self.rust.write(rows.combine_chunks().to_batches()[0])
        self.check()

    def delete(self, who: str, sql: str) -> None:
        """Let someone delete rows by vectors."""
        question = BY_SQL[sql]
        gone = self.model.delete(question)
        assert gone > 0
        if who == "we":
            assert self.table.delete(sql).rows == gone
        else:
            (self.java if who == "java" else self.newest).delete(self.path, question.java)
        self.check()

    def then(self, step: Callable[[], object]) -> None:
        """Maintenance that changes no rows."""
        step()
        self.check()

    def check(self) -> None:
        """Everyone reads the rows, and we find some of them."""
        expected = self.model.rows()
        for java in (self.java, self.newest):
            check_rows(java.read(self.path), expected)
        check_rows(self.pypaimon.read(self.path), expected)
        check_rows(self.rust.read(), expected)
        self.table.refresh()
        check_rows(self.table.scan().to_arrow(), expected)
        for question in ASKED:
            check_rows(self.table.scan(question.sql).to_arrow(), self.model.rows(question))


def test_a_table_that_all_append_to_and_delete_from(
    java_paimon: JavaPaimon,
    newest_paimon: JavaPaimon,
    pypaimon: PyPaimon,
    tmp_path: Path,
) -> None:
    table = alcid.create_table(
        tmp_path / "t", SCHEMA, partition_by=["dt"], options=INDEXES | EMBEDDED | VECTORS
    )
    rust = RustWarehouse(tmp_path / "rust")
    turns = Turns(table, java_paimon, newest_paimon, pypaimon, rust)
    for who in ("we", "java", "pypaimon", "rust"):
        turns.write(who, turns.next_numbers())
    turns.delete("we", "weight < -25")
    for who in ("newest", "rust", "pypaimon"):
        turns.write(who, turns.next_numbers())
    turns.delete("java", "day = DATE '1969-12-31'")
    turns.then(table.build_indexes)
    turns.delete("newest", "price >= 280")
    turns.write("we", turns.next_numbers())
    turns.then(lambda: java_paimon.compact(turns.path))
    turns.delete("we", "kind IS NULL")
    turns.write("rust", turns.next_numbers())
    turns.then(lambda: java_paimon.expire(turns.path))
    turns.delete("we", "kind = ''")
    turns.then(lambda: newest_paimon.compact(turns.path))
    # Not earlier: it takes a file with a vector for another one, and gives up.
    turns.then(lambda: newest_paimon.rewrite_file_index(turns.path))
    turns.then(lambda: newest_paimon.expire(turns.path))
    turns.write("we", turns.next_numbers())
    assert not table.verify().problems


def test_a_table_with_a_key_that_others_write_and_we_index(
    java_paimon: JavaPaimon,
    newest_paimon: JavaPaimon,
    pypaimon: PyPaimon,
    tmp_path: Path,
) -> None:
    options = INDEXES | EMBEDDED | {"bucket": "2"}
    table = alcid.create_table(tmp_path / "t", SCHEMA, primary_key=["id"], options=options)
    rust = RustWarehouse(tmp_path / "rust")
    turns = Turns(table, java_paimon, newest_paimon, pypaimon, rust)
    for who in ("java", "pypaimon", "rust", "newest"):
        turns.write(who, turns.next_numbers())
    turns.then(table.build_indexes)
    for number, who in enumerate(("pypaimon", "rust", "java")):
        turns.write(who, np.arange(number * 900, number * 900 + 1000), season=(number + 1) % 2)
    turns.then(table.build_indexes)
    turns.then(lambda: newest_paimon.compact(turns.path))
    turns.then(table.build_indexes)
    turns.then(lambda: java_paimon.expire(turns.path))
    turns.write("rust", np.arange(500, 700), season=0)
    turns.then(table.drop_indexes)
    assert not table.verify().problems
