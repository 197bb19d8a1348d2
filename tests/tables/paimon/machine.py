"""A Paimon table that random steps are done to, beside a list of rows of which all is known."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import alcid
from alcid import PaimonTable
from alcid.errors import AlcidWarning, OptionError, UnsupportedError
from alcid.paimon_metadata.schema import Field, TableSchema, schema_path
from alcid.paimon_metadata.snapshot import snapshot_path
from alcid.plan import planner
from alcid.types import INDEX_TYPES, DataType, indexes_for
from tests.tables.paimon.random_predicates import (
    KINDS,
    WIDER,
    Question,
    Row,
    draw_question,
    draw_value,
    order_key,
)

__all__ = ["NOTHING", "Machine", "Rows", "as_text", "every_index_is_asked"]

NAMES = ("a", "b", "c", "d", "e", "f")
PARTITIONS: dict[str, Sequence[Any]] = {
    "STRING": ("x", "a/b=c d", None, "é"),
    "INT": (1, -7, None),
}
NOTHING = "nothing"
"""What a step tells that left the table as it was."""


@dataclass(frozen=True)
class Rows:
    """All rows of a table at some time, by the ids of its columns."""

    schema: TableSchema
    rows: Sequence[Mapping[int, Any]] = ()

    @property
    def columns(self) -> dict[str, str]:
        return {one.name: str(one.data_type) for one in self.schema.fields}

    def named(self) -> list[Row]:
        return [{one.name: row.get(one.id) for one in self.schema.fields} for row in self.rows]

    def without(self, gone: Question) -> Rows:
        pairs = zip(self.rows, self.named(), strict=True)
        return replace(self, rows=[row for row, named in pairs if not gone.matches(named)])

    def with_rows(self, more: Sequence[Row]) -> Rows:
        numbers = {one.name: one.id for one in self.schema.fields}
        added = [{numbers[name]: value for name, value in row.items()} for row in more]
        return replace(self, rows=[*self.rows, *added])


def as_text(rows: Sequence[Row] | pa.Table) -> list[str]:
    """Rows as text, sorted; so that NaN is NaN, and 0.0 is not -0.0."""
    listed = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    return sorted(repr(list(row.values())) for row in listed)


@contextmanager
def every_index_is_asked() -> Iterator[None]:
    """Let indexes be used as if files were large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            planner._Asker, "_scan_bytes", lambda self: np.full(len(self.table.sizes), 1 << 40)
        )
        yield


@dataclass
class Machine:
    """A table, what it should hold, and what can be done to it."""

    source: random.Random
    path: Path
    is_thorough: bool = False
    """Look at the table in every way after each step, and not in one of them; have more files."""
    engine: Any = None
    """A session of Spark, where there is one."""
    past: dict[int, Rows] = field(default_factory=dict)
    """What each snapshot holds that has not expired."""
    tags: dict[str, Rows] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = Rows(self._create())
        self.table = self._open()
        self.other = self._open()
        self._next_id = 0

    # -- the table -----------------------------------------------------------------------------

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
            "manifest.target-file-size": source.choice(["1 kb", "8 mb"]),
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
        """Those that no change of the schema may touch."""
        return {"id", *self.now.schema.partition_keys}

    def _index_options(self, columns: Mapping[str, str]) -> dict[str, str]:
        """Options for some indexes."""
        found: dict[str, list[str]] = {}
        for name in self.source.sample(list(columns), self.source.randint(1, len(columns))):
            index_type = self.source.choice(INDEX_TYPES)
            if index_type in indexes_for(DataType.parse(columns[name])):
                found.setdefault(f"file-index.{index_type}.columns", []).append(name)
        if not found:
            found["file-index.bloom-filter.columns"] = ["id"]
        return {key: ",".join(names) for key, names in found.items()}

    # -- steps ---------------------------------------------------------------------------------

    def steps(self) -> dict[Callable[[], str], int]:
        """What can be done, and how often."""
        return {
            self.append: 12,
            self.delete: 8,
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
        """Do something, and look at the table afterwards."""
        if self.source.random() < 0.5:  # one of them has not seen the last steps
            self.table, self.other = self.other, self.table
        steps = self.steps()
        (do,) = self.source.choices(list(steps), list(steps.values()))
        self.log.append(do.__name__)
        with warnings.catch_warnings():
            # The options of a table may name columns that are gone.
            warnings.filterwarnings("ignore", ".*not in the table|.*takes no", AlcidWarning)
            told = do()
        self.log[-1] = f"{len(self.log)}. {self.log[-1]} {told}"
        if told != NOTHING:
            self.table.refresh()
            self.remember()
            self.check()

    def remember(self) -> None:
        """Keep what a new snapshot should hold."""
        number = self.table.snapshot_id
        if number is not None:
            self.past.setdefault(number, self.now)

    def draw_rows(self) -> list[Row]:
        """Some rows, without some of the columns."""
        columns = self.now.columns
        optional = [name for name in columns if name not in self.fixed_columns]
        left_out = set(optional[:1]) if self.source.random() < 0.2 else set()
        count = self.source.choice((0, 1, 5, 20))
        partitions = self.now.schema.partition_keys
        places = {
            name: self.source.sample(PARTITIONS[columns[name]], self.source.choice((1, 1, 1, 2)))
            for name in partitions
        }
        rows = []
        for _ in range(count):
            self._next_id += 1
            row: dict[str, Any] = {"id": self._next_id}
            for name, kind in columns.items():
                if name in partitions:
                    row[name] = self.source.choice(places[name])
                elif name != "id" and name not in left_out:
                    row[name] = draw_value(self.source, kind)
            rows.append(row)
        return rows

    def arrow(self, rows: Sequence[Row], names: Collection[str]) -> pa.Table:
        """Rows in the types of the table; a column is of a narrower type now and then."""
        arrays = {}
        for name, kind in self.now.columns.items():
            if name in names:
                values = [row[name] for row in rows]
                arrays[name] = pa.array(values, DataType.parse(kind).to_arrow())
        return pa.table(arrays)

    def append(self) -> str:
        if self.table.files >= (8 if self.is_thorough else 3) and self.source.random() < 0.9:
            return NOTHING
        rows = self.draw_rows()
        names = rows[0].keys() if rows else self.now.columns.keys()
        options = None
        if self.source.random() < 0.4:
            options = {} if self.source.random() < 0.3 else self._index_options(self.now.columns)
        given = self.arrow(rows, names)
        report = self.table.append(self.given(given), options)
        assert report.rows == len(rows)
        self.now = self.now.with_rows(rows)
        return f"{len(rows)} rows of {list(names)}, options={options}"

    def given(self, rows: pa.Table) -> Any:
        """Rows as they are given to `append`."""
        return rows

    def draw_deletion(self) -> Question:
        """Of few rows, mostly."""
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
        if not self.has_vectors:
            with pytest.raises(UnsupportedError, match=r"set its option deletion-vectors\.enabled"):
                self.table.delete(gone.sql)
            return NOTHING
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
        told = f"{options}, rebuild={rebuild}"
        if options is None and not self._asked_by_table():
            with pytest.raises(OptionError, match="its options ask for no index"):
                self.table.build_indexes()
            return f"{told}: refused"
        report = self.table.build_indexes(options, rebuild=rebuild, progress=False)
        assert report.failed == 0, report
        return f"{told}: {report.indexed} files"

    def _asked_by_table(self) -> set[str]:
        """The columns that the options of the table name, and that it still has."""
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
            (one.column, one.index_type)
            for one in self.table.indexes()
            if (columns is None or one.column in columns)
            and (types is None or one.index_type in types)
        }
        assert left == set()
        return f"{columns}, {types}: {dropped} files"

    def change_columns(self) -> str:
        """A column is renamed, added, widened, dropped."""
        before = self.now.schema
        free = [name for name in NAMES if name not in before.names]
        some = [one for one in before.fields if one.name not in self.fixed_columns]
        ways: list[str] = ["add"] if free else []
        if some:
            ways += ["drop"] if len(some) > 1 else []
            ways += ["rename", "widen", "widen"] if free else ["widen"]
        way = self.source.choice(ways)
        if way == "add":
            name, kind = self.source.choice(free), self.source.choice(list(KINDS))
            self.add_column(name, kind)
            return f"add {name} {kind}"
        one = self.source.choice(some)
        if way == "rename":
            name = self.source.choice(free)
            self.rename_column(one, name)
            return f"rename {one.name} to {name}"
        if way == "drop":
            self.drop_column(one)
            return f"drop {one.name}"
        wider = WIDER.get(str(one.data_type))
        if wider is None:
            return NOTHING
        self.widen_column(one, wider)
        return f"widen {one.name} to {wider}"

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
        self.put_schema(fields=tuple(one for one in self.now.schema.fields if one != column))

    def _replace_column(self, before: Field, after: Field) -> None:
        fields = tuple(after if one == before else one for one in self.now.schema.fields)
        self.put_schema(fields=fields)

    def put_schema(self, **changes: Any) -> None:
        """Write a new schema, as ALTER TABLE does."""
        before = self.now.schema
        after = replace(before, id=before.id + 1, **changes)
        self.table.storage.create(schema_path(after.id), after.to_json())
        self.now = replace(self.now, schema=after)

    def change_options(self) -> str:
        """The table asks for other indexes, of columns that it has."""
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
        found = dict(zip(table["column"].to_pylist(), table["ndv"].to_pylist(), strict=True))
        assert found["id"] == len(self.now.rows)
        return ""

    def clean(self) -> str:
        report = self.table.clean(timedelta(0))
        self.check_past()
        return f"{len(report.removed)} files"

    def expire(self) -> str:
        """Forget old snapshots; the files that only they need are left to `clean`."""
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

    # -- checks --------------------------------------------------------------------------------

    def check(self) -> None:
        """The rows are those that there should be, whatever is asked, and in whatever way."""
        table, columns, rows = self.table, self.now.columns, self.now.named()
        assert table.schema.names == list(columns)
        questions = [draw_question(self.source, columns) for _ in range(3)]
        if not self.is_thorough:
            questions = questions[:1]
        pairs = [(one, as_text(one.among(rows))) for one in questions]
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
        """Questions, with all indexes that there are."""
        with every_index_is_asked():
            for question, expected in pairs:
                assert as_text(self.table.scan(question.sql).to_arrow()) == expected, question.sql

    def check_rows(self, table: PaimonTable, expected: Rows) -> None:
        """All rows of a table are these."""
        found = table.scan(use_indexes=self.source.random() < 0.5).to_arrow()
        assert found.column_names == list(expected.columns)
        assert as_text(found) == as_text(expected.named())

    def _check_plain(self, pairs: Sequence[tuple[Question, list[str]]]) -> None:
        """Questions, without indexes, and with those that are worth it."""
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

    def check_past(self) -> None:
        """What snapshots and tags hold is what they held."""
        numbers = list(self.past)
        if not self.is_thorough:
            numbers = self.source.sample(numbers, min(len(numbers), 2))
        for number in numbers:
            self.check_rows(self._open(snapshot_id=number), self.past[number])
        for name, rows in self.tags.items():
            self.check_rows(self._open(tag=name), rows)

    def finish(self) -> None:
        """What the table says of itself is true, to the last file."""
        report = self.table.verify(progress=False)
        assert report.ok, str(report)
        self.table.clean(timedelta(0))
        assert not self.table.verify(progress=False).leftovers
        self.check_past()
        self.check()
