"""A random Paimon table, its expected rows, and checks in every way of reading."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import alcid
from alcid import PaimonTable
from alcid.scan import planner
from alcid.tables.paimon.metadata.schema import TableSchema
from alcid.types import INDEX_TYPES, DataType, indexes_for
from tests.tables.paimon.known_rows import Rows, as_text
from tests.tables.paimon.random_predicates import (
    KINDS,
    Question,
    Row,
    draw_question,
    draw_value,
    order_key,
)

__all__ = ["NAMES", "MachineTable", "every_index_is_asked"]

NAMES = ("a", "b", "c", "d", "e", "f")
"""Few, so that a new column has the name of a dropped or renamed one."""
PARTITIONS: dict[str, Sequence[Any]] = {
    "STRING": ("x", "a/b=c d", None, "é"),
    "INT": (1, -7, None),
}


@contextmanager
def every_index_is_asked() -> Iterator[None]:
    """Use indexes as if files were large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            planner, "full_scan_bytes", lambda table, _: np.full(len(table.sizes), 1 << 40)
        )
        yield


@dataclass
class MachineTable:
    """A table, and its rows now and in the past."""

    source: random.Random
    path: Path
    is_thorough: bool = False
    """Check the table in every way after each step, not in one of them; have more files."""
    engine: Any = None
    """A session of Spark, if there is one."""
    past: dict[int, Rows] = field(default_factory=dict)
    """The rows of each snapshot that has not expired."""
    tags: dict[str, Rows] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = Rows(self._create())
        self.table = self._open()
        self.other = self._open()
        self._next_id = 0

    def _create(self) -> TableSchema:
        source = self.source
        columns = [("id", "BIGINT")]
        partitions = []
        if source.random() < 0.4:
            columns.append(("dt", source.choice(list(PARTITIONS))))
            partitions.append("dt")
        columns += [(name, source.choice(list(KINDS))) for name in NAMES[: source.randint(2, 4)]]
        options = self._draw_options()
        if source.random() < 0.5:
            options |= self._index_options(dict(columns))
        self.log.append(f"create {columns}, options={options}")
        return self._make(columns, partitions, options)

    def _make(
        self, columns: Sequence[tuple[str, str]], partitions: Sequence[str], options: dict[str, str]
    ) -> TableSchema:
        schema = pa.schema([(name, DataType.parse(kind).to_arrow()) for name, kind in columns])
        made = alcid.create_table(self.path, schema, partition_by=partitions, options=options)
        return made.snapshot.schema

    def _draw_options(self) -> dict[str, str]:
        source = self.source
        options = {
            "manifest.merge-min-count": source.choice(["2", "4", "30"]),
            # With 5 kb, manifests of few files are small, and those of more are not.
            "manifest.target-file-size": source.choice(["1 kb", "5 kb", "5 kb", "8 mb"]),
        }
        options |= source.choice(
            [
                {},
                {"deletion-vectors.enabled": "true"},
                {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"},
                {
                    "deletion-vectors.enabled": "true",
                    "deletion-vector.index-file.target-size": "50 b",
                },
            ]
        )
        options |= source.choice([{}, {}, {"bucket": "2", "bucket-key": "id"}])
        options |= source.choice(
            [{}, *({"file-index.in-manifest-threshold": size} for size in ("1 b", "1 mb"))]
        )
        options |= source.choice([{}, {}, {"index-file-in-data-file-dir": "true"}])
        options |= source.choice(
            [{}, {}, *({"metadata.stats-mode": mode} for mode in ("none", "counts", "full"))]
        )
        return options

    def _open(self, **when: Any) -> PaimonTable:
        return alcid.paimon(self.path, self.engine, **when)

    @property
    def has_vectors(self) -> bool:
        return "deletion-vectors.enabled" in self.now.schema.options

    @property
    def fixed_columns(self) -> set[str]:
        """Columns that no schema change may touch."""
        return {"id", *self.now.schema.partition_keys}

    def _index_options(self, columns: Mapping[str, str]) -> dict[str, str]:
        """Options for some indexes."""
        options: dict[str, list[str]] = {}
        for name in self.source.sample(list(columns), self.source.randint(1, len(columns))):
            index_type = self.source.choice(INDEX_TYPES)
            if index_type in indexes_for(DataType.parse(columns[name])):
                options.setdefault(f"file-index.{index_type}.columns", []).append(name)
        if not options:
            options["file-index.bloom-filter.columns"] = ["id"]
        return {key: ",".join(names) for key, names in options.items()}

    def draw_rows(self) -> list[Row]:
        """Some rows, without some of the columns."""
        columns = self.now.columns
        optional = [name for name in columns if name not in self.fixed_columns]
        left_out = set(optional[:1]) if self.source.random() < 0.2 else set()
        count = self.source.choice((0, 1, 5, 20))
        partitions = self.now.schema.partition_keys
        values = {
            name: self.source.sample(PARTITIONS[columns[name]], self.source.choice((1, 1, 1, 2)))
            for name in partitions
        }
        rows: list[Row] = []
        for _ in range(count):
            self._next_id += 1
            row: dict[str, Any] = {"id": self._next_id}
            for name, kind in columns.items():
                if name in partitions:
                    row[name] = self.source.choice(values[name])
                elif name != "id" and name not in left_out:
                    row[name] = draw_value(self.source, kind)
            rows.append(row)
        return rows

    def arrow(self, rows: Sequence[Row], names: Collection[str]) -> pa.Table:
        """Rows in the types of the table; now and then a column has a narrower type."""
        arrays = {}
        for name, kind in self.now.columns.items():
            if name in names:
                values = [row[name] for row in rows]
                arrays[name] = pa.array(values, DataType.parse(kind).to_arrow())
        return pa.table(arrays)

    # -- checks --------------------------------------------------------------------------------

    def check(self) -> None:
        """Check the rows, for every question and in every way of reading."""
        table, columns, rows = self.table, self.now.columns, self.now.named()
        assert table.schema.names == list(columns)
        questions = [draw_question(self.source, columns) for _ in range(3)]
        if not self.is_thorough:
            questions = questions[:1]
        pairs = [(question, as_text(question.among(rows))) for question in questions]
        checks: dict[Callable[[], None], int] = {
            lambda: self._check_indexes(pairs): 4,
            lambda: self.check_rows(table, self.now): 2,
            lambda: self._check_plain(pairs): 1,
            lambda: self._check_counts(*self.source.choice(pairs)): 1,
            lambda: self._check_top(rows): 1,
        }
        chosen = self.source.choices(list(checks), list(checks.values()))
        for check in checks if self.is_thorough else chosen:
            check()

    def _check_indexes(self, pairs: Sequence[tuple[Question, list[str]]]) -> None:
        """Questions, with all existing indexes."""
        with every_index_is_asked():
            for question, expected in pairs:
                assert as_text(self.table.scan(question.sql).to_arrow()) == expected, question.sql

    def check_rows(self, table: PaimonTable, expected: Rows) -> None:
        """Check that these are all rows of a table."""
        result = table.scan(use_indexes=self.source.random() < 0.5).to_arrow()
        assert result.column_names == list(expected.columns)
        assert as_text(result) == as_text(expected.named())

    def _check_plain(self, pairs: Sequence[tuple[Question, list[str]]]) -> None:
        """Questions, without indexes, and with those that pay off."""
        for question, expected in pairs:
            for use_indexes in (False, True):
                scan = self.table.scan(question.sql, use_indexes=use_indexes)
                assert as_text(scan.to_arrow()) == expected, question.sql

    def _check_counts(self, question: Question, expected: Sequence[str]) -> None:
        assert self.table.count() == len(self.now.rows)
        assert self.table.count(question.sql) == len(expected), question.sql
        with every_index_is_asked():
            assert self.table.count(question.sql) == len(expected), question.sql

    def _check_top(self, rows: list[Row]) -> None:
        column = self.source.choice(list(self.now.columns))
        descending = self.source.random() < 0.5
        limit = self.source.choice((1, 5))
        in_order = sorted(
            sorted(rows, key=lambda row: row["id"]),
            key=lambda row: order_key(row[column], descending=descending),
        )
        expected = [row["id"] for row in in_order[:limit]]
        by = [f"{column}{' DESC' if descending else ''}", *([] if column == "id" else ["id"])]
        with every_index_is_asked():
            scan = self.table.scan(columns=["id"], order_by=by, limit=limit)
            assert scan.to_arrow()["id"].to_pylist() == expected, by

    def check_index_names(self, options: Mapping[str, str]) -> None:
        """Each file that has a column has exactly its index, under the current name."""
        files = self.table.snapshot
        inside = [files.schemas[placed.file.schema_id].by_id for placed in files.placed]
        expected = set()
        for key, names in options.items():
            for name in names.split(",") if key.endswith(".columns") else ():
                number = self.now.schema.field(name).id
                if count := sum(number in ids for ids in inside):
                    expected.add((name, key.split(".")[1], count))
        assert {
            (index.column, index.index_type, index.fresh) for index in self.table.indexes()
        } == expected

    def check_past(self) -> None:
        """Snapshots and tags have the rows that they had."""
        numbers = list(self.past)
        if not self.is_thorough:
            numbers = self.source.sample(numbers, min(len(numbers), 2))
        for number in numbers:
            self.check_rows(self._open(snapshot_id=number), self.past[number])
        for name, rows in self.tags.items():
            self.check_rows(self._open(tag=name), rows)
