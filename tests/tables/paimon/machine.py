"""Random steps on a Paimon table, and on the rows that it should have."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from alcid.errors import AlcidWarning, OptionError
from alcid.tables.paimon.metadata.schema import Field, schema_path
from alcid.tables.paimon.metadata.snapshot import snapshot_path
from alcid.types import INDEX_TYPES, DataType
from tests.tables.paimon.machine_runs import noted
from tests.tables.paimon.machine_table import NAMES, MachineTable
from tests.tables.paimon.random_predicates import KINDS, WIDER, Question, draw_question

__all__ = ["NOTHING", "Machine"]

NOTHING = "nothing"
"""What a step returns if it left the table unchanged."""


class Machine(MachineTable):
    """The possible steps on a table."""

    def run(self, steps: int) -> None:
        """Do this many steps; an error names all that were done."""
        with noted(self.log):
            for _ in range(steps):
                self.step()
            self.finish()

    def steps(self) -> dict[Callable[[], str], int]:
        """The possible steps, and their weights."""
        return {
            self.append: self._append_weight(),
            self.delete: 8 if self.has_vectors else 4,
            self.build: 8,
            self.drop: 4,
            self.change_columns: 5,
            self.change_options: 2,
            self.compute_stats: 1,
            self.clean: 2,
            self.expire: 1,
            self.tag: 1,
            self.travel: 3,
        }

    def step(self) -> None:
        """Do something, and check the table afterwards."""
        if self.source.random() < 0.5:  # one of them has not seen the last steps
            self.table, self.other = self.other, self.table
        steps = self.steps()
        (do,) = self.source.choices(list(steps), list(steps.values()))
        self.log.append(do.__name__)
        with warnings.catch_warnings():
            # The options of a table may name dropped columns.
            warnings.filterwarnings("ignore", ".*not in the table|.*takes no", AlcidWarning)
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

    def _append_weight(self) -> int:
        """Begin with rows, and stop at few files: each of them slows down every scan."""
        if not self.table.files:
            return 60
        return 12 if self.table.files < (8 if self.is_thorough else 3) else 1

    def append(self) -> str:
        rows = self.draw_rows()
        names = rows[0].keys() if rows else self.now.columns.keys()
        options = None
        if self.source.random() < 0.4:
            options = {} if self.source.random() < 0.3 else self._index_options(self.now.columns)
        appended = self.arrow(rows, names)
        report = self.table.append(self.as_input(appended), options)
        assert report.rows == len(rows)
        self.now = self.now.with_rows(rows)
        return f"{len(rows)} rows of {list(names)}, options={options}"

    def as_input(self, rows: pa.Table) -> Any:
        """Rows as `append` takes them."""
        return rows

    def draw_deletion(self) -> Question:
        """A deletion of a few rows, mostly."""
        question = draw_question(self.source, self.now.columns, 1)
        if self.source.random() < 0.2:
            return question
        first = self.source.randrange(self._next_id + 1)
        last = first + self.source.choice((0, 4, 30))
        return Question(
            f"id BETWEEN {first} AND {last} AND ({question.sql})",
            lambda row: first <= row["id"] <= last and question.matches(row),
        )

    def delete(self) -> str:
        gone = self.draw_deletion()
        left = self.now.without(gone)
        report = self.table.delete(gone.sql)
        count = len(self.now.rows) - len(left.rows)
        assert report.rows == count, gone.sql
        self.now = left
        return f"{count} rows: {gone.sql}"

    def build(self) -> str:
        rebuild = self.source.random() < 0.3
        options = None
        if self.source.random() < 0.7:
            options = self._index_options(self.now.columns)
            if self.source.random() < 0.2:
                options["file-index.in-manifest-threshold"] = self.source.choice(["1 b", "1 mb"])
        command = f"{options}, rebuild={rebuild}"
        if options is None and not self._asked_by_table():
            with pytest.raises(OptionError, match="its options ask for no index"):
                self.table.build_indexes()
            return f"{command}: refused"
        report = self.table.build_indexes(options, rebuild=rebuild, progress=False)
        assert report.failed == 0, report
        if options is not None and not report.skipped:
            self.check_index_names(options)
        return f"{command}: {report.indexed} files"

    def _asked_by_table(self) -> set[str]:
        """The existing columns that the options of the table name."""
        listed = (
            value.split(",")
            for key, value in self.now.schema.options.items()
            if key.endswith(".columns")
        )
        return {name for names in listed for name in names} & self.now.columns.keys()

    def drop(self) -> str:
        columns = self.source.choice([None, [self.source.choice(list(self.now.columns))]])
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

    def change_columns(self) -> str:
        """A column is renamed, added, widened or dropped."""
        before = self.now.schema
        free = [name for name in NAMES if name not in before.names]
        some = [field for field in before.fields if field.name not in self.fixed_columns]
        ways: list[str] = ["add"] if free else []
        if some:
            ways += ["drop"] if len(some) > 1 else []
            ways += ["rename", "widen", "widen"] if free else ["widen"]
        way = self.source.choice(ways)
        if way == "add":
            name, kind = self.source.choice(free), self.source.choice(list(KINDS))
            self.add_column(name, kind)
            return f"add {name} {kind}"
        column = self.source.choice(some)
        if way == "rename":
            name = self.source.choice(free)
            self.rename_column(column, name)
            return f"rename {column.name} to {name}"
        if way == "drop":
            self.drop_column(column)
            return f"drop {column.name}"
        wider = WIDER.get(str(column.data_type))
        if wider is None:
            return NOTHING
        self.widen_column(column, wider)
        return f"widen {column.name} to {wider}"

    def add_column(self, name: str, kind: str) -> None:
        before = self.now.schema
        number = before.highest_field_id + 1
        added = Field(number, name, DataType.parse(kind))
        self.put_schema(fields=(*before.fields, added), highest_field_id=number)

    def rename_column(self, column: Field, name: str) -> None:
        self._replace_column(column, replace(column, name=name))

    def widen_column(self, column: Field, kind: str) -> None:
        self._replace_column(column, replace(column, data_type=DataType.parse(kind)))

    def drop_column(self, column: Field) -> None:
        self.put_schema(fields=tuple(field for field in self.now.schema.fields if field != column))

    def _replace_column(self, before: Field, after: Field) -> None:
        fields = tuple(after if field == before else field for field in self.now.schema.fields)
        self.put_schema(fields=fields)

    def put_schema(self, **changes: Any) -> None:
        """Write a new schema, as ALTER TABLE does."""
        before = self.now.schema
        after = replace(before, id=before.id + 1, **changes)
        self.table.storage.create(schema_path(after.id), after.to_json())
        self.now = replace(self.now, schema=after)

    def change_options(self) -> str:
        """The table requests other indexes, on existing columns."""
        kept = {
            key: value
            for key, value in self.now.schema.options.items()
            if not key.endswith(".columns")
        }
        options = self._index_options(self.now.columns)
        self.put_schema(options=kept | options)
        return str(options)

    def compute_stats(self) -> str:
        table = self.table.compute_stats(progress=False)
        ndv = dict(zip(table["column"].to_pylist(), table["ndv"].to_pylist(), strict=True))
        assert ndv["id"] == len(self.now.rows)
        return ""

    def clean(self) -> str:
        report = self.table.clean(timedelta(0))
        self.check_past()
        return f"{len(report.removed)} files"

    def expire(self) -> str:
        """Expire old snapshots; the files that only they need are left to `clean`."""
        numbers = sorted(self.past)
        if not numbers:
            return NOTHING
        first = self.source.choice(numbers[-3:])
        storage = self.table.storage
        storage.replace("snapshot/EARLIEST", str(first).encode())
        storage.delete(snapshot_path(number) for number in numbers if number < first)
        self.past = {number: rows for number, rows in self.past.items() if number >= first}
        return f"before {first}; {self.clean()}"

    def tag(self) -> str:
        if not self.past:
            return NOTHING
        number = self.source.choice(list(self.past))
        name = f"of-{number}"
        if name not in self.tags:
            source = self.table.storage.source(snapshot_path(number))
            self.table.storage.create(f"tag/tag-{name}", source.read(0, source.size))
            self.tags[name] = self.past[number]
        return name

    def travel(self) -> str:
        self.check_past()
        return ""

    def finish(self) -> None:
        """What the table says about itself is true, for every file."""
        self.table.refresh()
        report = self.table.verify(progress=False)
        assert report.ok, str(report)
        self.table.clean(timedelta(0))
        assert not self.table.clean(timedelta(0), dry_run=True).removed
        self.check_past()
        self.check()
