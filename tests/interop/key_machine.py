"""Steps on a table with a primary key that Java writes to, while we build the indexes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import alcid
from alcid.types import INDEX_TYPES, DataType
from tests.golden.paimon_tables_jvm import JavaPaimon
from tests.interop.java_machine import WRITE_ONLY
from tests.tables.paimon.known_rows import as_text
from tests.tables.paimon.machine_table import every_index_is_asked
from tests.tables.paimon.random_predicates import KINDS, Row, draw_question, draw_value

__all__ = ["KeyMachine"]

PARTITIONS = ["x", "y z"]  # with a slash, a compaction of Java's does not find its own files


@dataclass
class KeyMachine:
    """A table with a key that Java writes to, and whose indexes we build."""

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
        columns = {
            name: f"{kind} NOT NULL" if name in self.keys else kind
            for name, kind in self.columns.items()
        }
        self.log.append(f"{columns}, {options}, partitioned: {is_partitioned}")
        self.java.create(
            self.path,
            columns,
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
        rows = alcid.paimon(self.path).scan().to_arrow()
        assert as_text(rows) == as_text(list(self.rows.values()))

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
        """Java and we see the same rows, and with level 0 these are all that were written."""
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
                expected_rows = as_text(question.among(rows))
                with every_index_is_asked():
                    assert as_text(table.scan(question.sql).to_arrow()) == expected_rows, (
                        question.sql
                    )
                assert table.count(question.sql) == len(expected_rows), question.sql
                left = table.scan(question.sql, use_indexes=False).to_arrow()
                assert as_text(left) == expected_rows, question.sql
