"""Random steps by us and by Iceberg on a table, and on the rows that it should have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from alcid.errors import UnsupportedError
from alcid.types import INDEX_TYPES
from tests.iceberg.machine_table import (
    ICEBERG_KINDS,
    Column,
    IcebergMachineTable,
    spark_type,
)
from tests.tables.paimon.machine import NOTHING
from tests.tables.paimon.machine_runs import noted
from tests.tables.paimon.machine_table import NAMES
from tests.tables.paimon.random_predicates import WIDER, Question, draw_question

__all__ = ["IcebergMachine"]

MANY_FILES = 12


class IcebergMachine(IcebergMachineTable):
    """The possible steps on a table."""

    def run(self, steps: int) -> None:
        """Do this many steps; an error names all that were done."""
        with noted(self.log):
            for _ in range(steps):
                self.step()
            self.finish()

    def steps(self) -> dict[Callable[[], str], int]:
        """The possible steps, and their weights."""
        if not self.now.rows:
            return {self.append: 1, self.insert: 1}
        is_full = self.table.files >= MANY_FILES
        return {
            self.append: 1 if is_full else 6,
            self.insert: 1 if is_full else 4,
            self.delete: 8 if self.version == 3 else 1,
            self.iceberg_delete: 5,
            self.build: 6,
            self.drop: 2,
            self.compute_stats: 3,
            self.iceberg_stats: 2,
            self.rewrite: 8 if is_full else 2,
            self.rewrite_deletes: 1,
            self.expire: 2,
            self.change_columns: 4,
            self.change_partitions: 1,
            self.clean: 1,
            self.travel: 2,
        }

    def step(self) -> None:
        """Do something, and check the table afterwards."""
        if self.source.random() < 0.5:  # one of them has not seen the last steps
            self.table, self.other = self.other, self.table
        steps = self.steps()
        (do,) = self.source.choices(list(steps), list(steps.values()))
        self.log.append(do.__name__)
        result = do()
        self.log[-1] = f"{len(self.log)}. {self.log[-1]} {result}"
        if result != NOTHING:
            self.table.refresh()
            self.remember()
            self.check()

    def remember(self) -> None:
        """Remember what a new snapshot should have."""
        number = self.table.snapshot_id
        if number is not None:
            self.past.setdefault(number, self.now)

    def finish(self) -> None:
        """What the table says about itself is true, for every file."""
        self.table.refresh()
        report = self.table.verify(progress=False)
        assert report.ok, str(report)
        self.clean()
        self.check_past()
        self.is_thorough = True
        self.check()

    # -- rows ----------------------------------------------------------------------------------

    def append(self) -> str:
        rows = self.draw_rows()
        options = None
        if self.source.random() < 0.4:
            options = {} if self.source.random() < 0.3 else self.index_options()
        has_seen_all = self.table.snapshot_id == next(reversed(self.past), None)
        report = self.table.append(self.frame(rows), options)
        if has_seen_all:
            assert report.rows == len(rows)
        self.now = self.now.with_rows(rows)
        return f"{len(rows)} rows of {list(rows[0])}, {options=}"

    def insert(self) -> str:
        rows = [{**dict.fromkeys(self.now.kinds), **row} for row in self.draw_rows()]
        self.frame(rows).createOrReplaceTempView("given")
        self.lake.sql(f"INSERT INTO {self.name} BY NAME SELECT * FROM given")
        self.now = self.now.with_rows(rows)
        return f"{len(rows)} rows"

    def delete(self) -> str:
        gone = self._among_ids(draw_question(self.source, self.now.kinds, 1))
        if self.version == 2:
            with pytest.raises(UnsupportedError, match="format version 2 has no deletion vectors"):
                self.table.delete(gone.sql)
            return NOTHING
        left = self.now.without(gone)
        count = len(self.now.rows) - len(left.rows)
        assert self.table.delete(gone.sql).rows == count, gone.sql
        self.now = left
        return f"{count} rows: {gone.sql}"

    def iceberg_delete(self) -> str:
        gone = self._among_ids(Question("true", lambda _: True))
        self.lake.sql(f"DELETE FROM {self.name} WHERE {gone.sql}")
        self.now = self.now.without(gone)
        return gone.sql

    def _among_ids(self, question: Question) -> Question:
        """A deletion of a few rows, mostly."""
        if self.source.random() < 0.05:
            return question
        first = self.source.randrange(self.next_id + 1)
        last = first + self.source.choice((0, 4, 30))
        return Question(
            f"id BETWEEN {first} AND {last} AND ({question.sql})",
            lambda row: first <= row["id"] <= last and question.matches(row),
        )

    # -- indexes and statistics ----------------------------------------------------------------

    def build(self) -> str:
        options = self.index_options()
        rebuild = self.source.random() < 0.3
        report = self.table.build_indexes(options, rebuild=rebuild, progress=False)
        assert report.failed == 0, report
        asked = {
            (name, key.split(".")[1]) for key, names in options.items() for name in names.split(",")
        }
        absent = {(index.column, index.index_type): index.absent for index in self.table.indexes()}
        if not report.skipped:
            assert {key: absent.get(key) for key in asked} == dict.fromkeys(asked, 0)
        return f"{options}, {rebuild=}: {report.indexed} files"

    def drop(self) -> str:
        columns = self.source.choice([None, [self.source.choice(list(self.now.kinds))]])
        types = self.source.choice([None, [self.source.choice(INDEX_TYPES)]])
        dropped = self.table.drop_indexes(columns, types)
        left = {
            (index.column, index.index_type)
            for index in self.table.indexes()
            if (columns is None or index.column in columns)
            and (types is None or index.index_type in types)
        }
        assert left == set()
        return f"{columns}, {types}: {dropped} files"

    def compute_stats(self) -> str:
        self.table.refresh()
        table = self.table.compute_stats(progress=False)
        ndv = dict(zip(table["column"].to_pylist(), table["ndv"].to_pylist(), strict=True))
        assert ndv["id"] == len(self.now.rows)
        return str(ndv)

    def iceberg_stats(self) -> str:
        self._call("compute_table_stats")
        return ""

    # -- what Iceberg does to files and snapshots ----------------------------------------------

    def _call(self, procedure: str, **arguments: str) -> None:
        catalog, table = self.name.split(".", 1)
        named_arguments = "".join(f", {key} => {value}" for key, value in arguments.items())
        self.lake.sql(f"CALL {catalog}.system.{procedure}(table => '{table}'{named_arguments})")

    def rewrite(self) -> str:
        self._call("rewrite_data_files", options="map('rewrite-all', 'true')")
        return ""

    def rewrite_deletes(self) -> str:
        self._call("rewrite_position_delete_files", options="map('rewrite-all', 'true')")
        return ""

    def expire(self) -> str:
        count = self.source.choice((1, 3))
        self._call("expire_snapshots", older_than="now()", retain_last=str(count))
        self.table.refresh()
        left = self.table.metadata.snapshots.keys()
        assert len(left) <= count
        self.past = {number: rows for number, rows in self.past.items() if number in left}
        self.check_past()
        return f"all but {len(left)}"

    def clean(self) -> str:
        report = self.table.clean(timedelta(0))
        self.check_past()
        return f"{len(report.removed)} files"

    def travel(self) -> str:
        self.check_past()
        return ""

    # -- columns -------------------------------------------------------------------------------

    def change_columns(self) -> str:
        """A column is renamed, added, widened or dropped."""
        free = [name for name in NAMES if name not in self.now.kinds]
        some = [column for column in self.now.columns if column.name not in self.fixed_columns]
        ways: list[str] = ["add"] if free else []
        if some:
            ways += ["drop"] if len(some) > 1 else []
            ways += ["rename", "widen", "widen"] if free else ["widen"]
        way = self.source.choice(ways)
        if way == "add":
            kind = self.source.choice(ICEBERG_KINDS)
            added = Column(self.next_number, self.source.choice(free), kind)
            self.next_number += 1
            self.now = replace(self.now, columns=(*self.now.columns, added))
            return self._alter(f"ADD COLUMN {added.name} {spark_type(kind)}")
        column = self.source.choice(some)
        if way == "drop":
            left = tuple(other for other in self.now.columns if other != column)
            self.now = replace(self.now, columns=left)
            return self._alter(f"DROP COLUMN {column.name}")
        if way == "rename":
            after = replace(column, name=self.source.choice(free))
            change = f"RENAME COLUMN {column.name} TO {after.name}"
        elif column.kind in WIDER:
            after = replace(column, kind=WIDER[column.kind])
            change = f"ALTER COLUMN {column.name} TYPE {after.kind}"
        else:
            return NOTHING
        columns = tuple(after if other == column else other for other in self.now.columns)
        self.now = replace(self.now, columns=columns)
        return self._alter(change)

    def change_partitions(self) -> str:
        """New files are partitioned differently from the existing ones."""
        specs = self.open().metadata
        names = [field.name for field in specs.specs[specs.default_spec_id].fields]
        if names and names[-1].startswith("more_"):
            return self._alter(f"DROP PARTITION FIELD {names[-1]}")
        # Iceberg's metadata tables cannot be read if two of them have the same name.
        count = self.source.choice((3, 5))
        return self._alter(f"ADD PARTITION FIELD bucket({count}, id) AS more_{count}")

    def _alter(self, change: str) -> str:
        self.lake.sql(f"ALTER TABLE {self.name} {change}")
        return change
