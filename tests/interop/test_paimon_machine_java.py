"""Random steps on tables that Paimon's Java writes to as well: both read the rows of the model."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alcid
from alcid.errors import AlcidWarning
from alcid.paimon_metadata.schema import Field, TableSchema
from alcid.types import INDEX_TYPES, DataType
from tests.golden.container_cases import leaf
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.tables.paimon.known_rows import as_text
from tests.tables.paimon.machine import NOTHING, Machine
from tests.tables.paimon.machine_runs import machine_count, noted, seed
from tests.tables.paimon.machine_table import every_index_is_asked
from tests.tables.paimon.random_predicates import KINDS, Question, Row, draw_question, draw_value

__all__ = ["seed"]

STEPS = 20
WRITE_ONLY = {"write-only": "true"}
PARTITIONS = ["x", "y z"]  # with a slash in one, a compaction of Java's does not find its own files
VECTORS = {"deletion-vectors.enabled": "true"}


class JavaMachine(Machine):
    """A table without a key, that Java and we write to in turn."""

    def __init__(self, source: random.Random, path: Path, java: JavaPaimon) -> None:
        self.java = java
        super().__init__(source, path, is_thorough=True)

    def _make(
        self, columns: Sequence[tuple[str, str]], partitions: Sequence[str], options: dict[str, str]
    ) -> TableSchema:
        options = options | {"compaction.min.file-num": "2"}
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
        found = self.java.read(self.path)
        assert found.column_names == list(self.now.columns)
        assert as_text(found) == as_text(self.now.named())
        question = draw_question(self.source, self.now.columns, 0)
        if question.java is not None:
            expected = as_text(question.among(self.now.named()))
            assert as_text(self.java.read(self.path, question.java)) == expected, question.sql

    def java_append(self) -> str:
        rows = [{**dict.fromkeys(self.now.columns), **row} for row in self.draw_rows()]
        given = self.arrow(rows, self.now.columns)
        self.java.write(self.path, given, options=WRITE_ONLY)
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
        # In a manifest Java may give a file the very index that it had before, and loses its rows.
        if options.get("file-index.in-manifest-threshold") != "1 b":
            return NOTHING
        self.table.refresh()
        files, left = self.table.snapshot, self.now.schema.by_id.keys()
        if any(files.schemas[one.file.schema_id].by_id.keys() - left for one in files.placed):
            return NOTHING  # it fails on files that have a column which was dropped
        self.java.rewrite_file_index(self.path)
        return ""

    def java_expire(self) -> str:
        self.java.expire(self.path)
        self.past = {number: self.past[number] for number in sorted(self.past)[-1:]}
        self.check_past()
        return ""

    # Java follows no option that names a column which is gone.

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


@pytest.mark.parametrize("number", range(machine_count(5)))
def test_java_and_we_read_the_rows_of_the_model_after_every_step(
    java_paimon: JavaPaimon, number: int, seed: str, tmp_path: Path
) -> None:
    machine = JavaMachine(random.Random(f"{seed} java {number}"), tmp_path / "t", java_paimon)
    machine.log.append(f"ALCID_SEED={seed}, machine {number}")
    machine.run(STEPS)


KEYED: dict[str, dict[str, str]] = {
    "vectors": VECTORS | {"bucket": "2"},
    "vectors-64": VECTORS | {"bucket": "1", "deletion-vectors.bitmap64": "true"},
    "vectors-dynamic": VECTORS | {"bucket": "-1", "dynamic-bucket.target-row-num": "15"},
    "merge": {"bucket": "2"},
    "merge-dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "15"},
}


@dataclass
class KeyMachine:
    """A table with a key, which Java writes to, and of which we build the indexes."""

    source: random.Random
    path: Path
    java: JavaPaimon
    options: dict[str, str]
    rows: dict[tuple[Any, ...], Row] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        kinds = self.source.sample(list(KINDS), 2)
        self.columns = {"id": "INT", "dt": "STRING", "a": kinds[0], "b": kinds[1]}
        if is_partitioned := self.source.random() < 0.5:
            self.partitions, self.keys = ["dt"], ["dt", "id"]
        else:
            self.partitions, self.keys = [], ["id"]
        threshold = self.source.choice(["1 b", "500 b", "1 mb"])
        options = self.options | {"file-index.in-manifest-threshold": threshold}
        given = {
            name: f"{kind} NOT NULL" if name in self.keys else kind
            for name, kind in self.columns.items()
        }
        self.log.append(f"{given}, {options}, partitioned: {is_partitioned}")
        self.java.create(
            self.path,
            given,
            partition_keys=self.partitions,
            primary_keys=self.keys,
            options=options,
        )

    def run(self, steps: int) -> None:
        self.upsert()
        for _ in range(steps):
            weights: dict[Callable[[], str], int] = {
                self.upsert: 6,
                self.remove: 3,
                self.compact: 2,
                self.build: 5,
                self.drop: 3,
                self.compute_stats: 1,
                self.clean: 1,
                self.expire: 2,
            }
            (do,) = self.source.choices(list(weights), list(weights.values()))
            self.log.append(do.__name__)
            self.log[-1] += f" {do()}"
            self.check()
        self.compact()
        self.check()
        report = alcid.paimon(self.path).verify(progress=False)
        assert report.ok, str(report)
        found = alcid.paimon(self.path).scan().to_arrow()
        assert as_text(found) == as_text(list(self.rows.values()))

    def _draw(self, count: int) -> dict[tuple[Any, ...], Row]:
        drawn: dict[tuple[Any, ...], Row] = {}
        for _ in range(count):
            row = {
                name: draw_value(self.source, kind, 0.0 if name in self.keys else 0.15)
                for name, kind in self.columns.items()
            }
            row["id"], row["dt"] = self.source.randrange(60), self.source.choice(PARTITIONS)
            drawn[tuple(row[name] for name in self.keys)] = row
        return drawn

    def _arrow(self, rows: Sequence[Row]) -> pa.Table:
        return pa.table(
            {
                name: pa.array([row[name] for row in rows], DataType.parse(kind).to_arrow())
                for name, kind in self.columns.items()
            }
        )

    def _write_options(self) -> dict[str, str]:
        return WRITE_ONLY if self.source.random() < 0.4 else {}

    def upsert(self) -> str:
        drawn, options = self._draw(self.source.choice((1, 10, 40))), self._write_options()
        self.java.write(self.path, self._arrow(list(drawn.values())), options=options)
        self.rows |= drawn
        return f"{len(drawn)} rows, {options}"

    def remove(self) -> str:
        gone, options = self._draw(self.source.choice((1, 10))), self._write_options()
        self.java.write(self.path, self._arrow(list(gone.values())), "-D", options=options)
        self.rows = {key: row for key, row in self.rows.items() if key not in gone}
        return f"{sorted(gone)}, {options}"

    def compact(self) -> str:
        self.java.compact(self.path)
        return ""

    def build(self) -> str:
        options = {
            f"file-index.{index_type}.columns": self.source.choice(["id", "dt", "a"])
            for index_type in self.source.sample(INDEX_TYPES, 2)
        }
        rebuild = self.source.random() < 0.3
        report = alcid.paimon(self.path).build_indexes(options, rebuild=rebuild, progress=False)
        assert report.failed == 0, report
        return f"{options}, rebuild={rebuild}: {report.indexed} files"

    def drop(self) -> str:
        types = self.source.choice([None, [self.source.choice(INDEX_TYPES)]])
        return f"{types}: {alcid.paimon(self.path).drop_indexes(types=types)} files"

    def compute_stats(self) -> str:
        alcid.paimon(self.path).compute_stats(progress=False)
        return ""

    def clean(self) -> str:
        return f"{len(alcid.paimon(self.path).clean(timedelta(0)).removed)} files"

    def expire(self) -> str:
        return f"{self.java.expire(self.path)} snapshots"

    def check(self) -> None:
        """Java and we see the same, and with level 0 it is all that was written."""
        expected = list(self.rows.values())
        merged = alcid.paimon(self.path, merge_on_read=True)
        plain = alcid.paimon(self.path)
        assert as_text(merged.scan().to_arrow()) == as_text(expected)
        theirs = self.java.read(self.path).to_pylist()
        assert as_text(plain.scan().to_arrow()) == as_text(theirs)
        if "deletion-vectors.enabled" not in self.options:
            assert as_text(theirs) == as_text(expected)
        for _ in range(3):
            question = draw_question(self.source, self.columns)
            for table, rows in ((merged, expected), (plain, theirs)):
                found = as_text(question.among(rows))
                with every_index_is_asked():
                    assert as_text(table.scan(question.sql).to_arrow()) == found, question.sql
                assert table.count(question.sql) == len(found), question.sql
                left = table.scan(question.sql, use_indexes=False).to_arrow()
                assert as_text(left) == found, question.sql


@pytest.mark.parametrize("number", range(machine_count(1)))
@pytest.mark.parametrize("kind", KEYED)
def test_upserts_of_java_go_on_while_we_build_indexes(
    java_paimon: JavaPaimon, kind: str, number: int, seed: str, tmp_path: Path
) -> None:
    source = random.Random(f"{seed} {kind} {number}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not yet compacted", AlcidWarning)
        machine = KeyMachine(source, tmp_path / "t", java_paimon, KEYED[kind])
        machine.log.append(f"ALCID_SEED={seed}, {kind} {number}")
        with noted(machine.log):
            machine.run(STEPS)
