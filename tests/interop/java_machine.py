"""Steps of Paimon's Java on a table that we write to as well."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import alcid
from alcid.errors import UnsupportedError
from alcid.tables.paimon.metadata.schema import Field, TableSchema
from tests.golden.container_cases import leaf
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.tables.paimon.known_rows import as_text
from tests.tables.paimon.machine import NOTHING, Machine
from tests.tables.paimon.random_predicates import Question, draw_question

__all__ = ["WRITE_ONLY", "JavaMachine"]

WRITE_ONLY = {"write-only": "true"}


class JavaMachine(Machine):
    """A table without a key that Java and we write to in turn."""

    def __init__(self, source: random.Random, path: Path, java: JavaPaimon) -> None:
        self.java = java
        super().__init__(source, path, is_thorough=True)

    def _make(
        self, columns: Sequence[tuple[str, str]], partitions: Sequence[str], options: dict[str, str]
    ) -> TableSchema:
        options = options | {"compaction.min.file-num": "2"}
        if self.source.random() < 0.2:
            options["file.format"] = "orc"
        if self.source.random() < 0.5:
            return super()._make(columns, partitions, options)
        self.java.create(self.path, dict(columns), partition_keys=partitions, options=options)
        return alcid.paimon(self.path).snapshot.schema

    def steps(self) -> dict[Callable[[], str], int]:
        return super().steps() | {
            self.travel: 1,
            self.java_append: 8,
            self.java_delete: 5,
            self.java_compact: 3,
            self.java_rewrite: 3,
            self.java_expire: 2,
        }

    def check(self) -> None:
        super().check()
        rows = self.java.read(self.path)
        assert rows.column_names == list(self.now.columns)
        assert as_text(rows) == as_text(self.now.named())
        question = draw_question(self.source, self.now.columns, 0)
        if question.java is not None:
            expected = as_text(question.among(self.now.named()))
            assert as_text(self.java.read(self.path, question.java)) == expected, question.sql

    def append(self) -> str:
        if self.now.schema.options.get("file.format") != "orc":
            return super().append()
        with pytest.raises(UnsupportedError, match="only parquet is written"):
            self.table.append(self.arrow([], self.now.columns))
        return NOTHING

    def java_append(self) -> str:
        rows = [{**dict.fromkeys(self.now.columns), **row} for row in self.draw_rows()]
        written = self.arrow(rows, self.now.columns)
        self.java.write(self.path, written, options=WRITE_ONLY)
        self.now = self.now.with_rows(rows)
        return f"{len(rows)} rows"

    def java_delete(self) -> str:
        if not self.has_vectors:
            return NOTHING
        first = self.source.randrange(self._next_id + 1)
        last = first + self.source.choice((0, 4, 30))
        gone = Question("", lambda row: first <= row["id"] <= last)
        self.java.delete(self.path, leaf("id", "BETWEEN", first, last))
        self.now = self.now.without(gone)
        return f"{first} to {last}"

    def java_compact(self) -> str:
        if not self.past:  # which Java takes for the end of a stream
            return NOTHING
        self.java.compact(self.path)
        return ""

    def java_rewrite(self) -> str:
        options = self.now.schema.options
        if not any(key.endswith(".columns") for key in options):
            return NOTHING
        # In a manifest, Java may add the same index to a file again, and then loses its rows.
        if options.get("file-index.in-manifest-threshold") != "1 b":
            return NOTHING
        self.table.refresh()
        files, left = self.table.snapshot, self.now.schema.by_id.keys()
        if any(files.schemas[placed.file.schema_id].by_id.keys() - left for placed in files.placed):
            return NOTHING  # it fails on files that have a dropped column
        self.java.rewrite_file_index(self.path)
        return ""

    def java_expire(self) -> str:
        self.java.expire(self.path)
        self.past = {number: self.past[number] for number in sorted(self.past)[-1:]}
        self.check_past()
        return ""

    # Java ignores options that name a dropped column.

    def add_column(self, name: str, kind: str) -> None:
        self._alter("addColumn", name, kind)

    def widen_column(self, column: Field, kind: str) -> None:
        self._alter("updateColumnType", column.name, kind)

    def rename_column(self, column: Field, name: str) -> None:
        self._forget_indexes()
        self._alter("renameColumn", column.name, name)

    def drop_column(self, column: Field) -> None:
        self._forget_indexes()
        self._alter("dropColumn", column.name)

    def _forget_indexes(self) -> None:
        options = self.now.schema.options
        self.put_schema(
            options={key: value for key, value in options.items() if not key.endswith(".columns")}
        )

    def _alter(self, change: str, *arguments: str) -> None:
        if self.source.random() < 0.5:
            self.java.alter(self.path, change, *arguments)
            self.now = replace(self.now, schema=self.table.folder.latest_schema())
            return
        name, *rest = arguments
        column = self.now.schema.field(name) if change != "addColumn" else None
        if column is None:
            super().add_column(name, *rest)
        elif change == "updateColumnType":
            super().widen_column(column, *rest)
        elif change == "renameColumn":
            super().rename_column(column, *rest)
        else:
            super().drop_column(column)
