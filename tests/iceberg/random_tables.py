"""Random Iceberg tables, changed by random SQL, and random questions for them.

Iceberg's own read of all rows is taken as correct; Spark answers the questions from a copy of
these rows, so that no bounds are used.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import alcid
from alcid.errors import UnsupportedError
from alcid.tables.iceberg_table import IcebergTable
from alcid.types import INDEX_TYPES, DataType, indexes_for
from tests.iceberg.random_sql import (
    INNER,
    NAMES,
    NESTED,
    TRANSFORMS,
    VALUES,
    WIDER,
    draw_predicate,
    quoted,
)
from tests.tables.paimon.known_rows import as_text
from tests.tables.paimon.machine_runs import noted
from tests.tables.paimon.machine_table import every_index_is_asked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["RandomTable"]

_REFUSED = ("format version", "partition field", "partition value")
"""Literals for our deletes."""


@dataclass
class RandomTable:
    """A table that is changed at random."""

    source: random.Random
    lake: SparkSession
    name: str
    columns: dict[str, str] = field(default_factory=dict)
    """The types of all columns except `id`."""
    log: list[str] = field(default_factory=list)
    next_id: int = 0
    left_out: set[str] = field(default_factory=set)
    """Nested columns whose type was changed; they are null in new rows."""
    partitions: int = 0

    def __post_init__(self) -> None:
        source = self.source
        self.version = source.choice((1, 2, 3, 3))
        kinds = [kind for kind in VALUES if not kind.startswith("DECIMAL(18")]
        self.columns = {
            name: source.choice(kinds) for name in source.sample(NAMES, source.randint(2, 4))
        }
        mode = source.choice(("merge-on-read", "merge-on-read", "copy-on-write"))
        properties = {
            "format-version": str(self.version),
            **{f"write.{command}.mode": mode for command in ("delete", "update", "merge")},
            "write.delete.granularity": source.choice(("file", "partition")),
            "write.spark.fanout.enabled": "true",
            "write.metadata.metrics.default": source.choice(
                ("truncate(16)", "truncate(1)", "full", "counts", "none")
            ),
        }
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in self.columns.items())
        parted = self._transform() if source.random() < 0.5 else None
        by = f" PARTITIONED BY ({parted})" if parted is not None else ""
        self._sql(
            f"CREATE TABLE {self.name} (id BIGINT, {columns}) USING iceberg{by}"
            f" TBLPROPERTIES ({listed})"
        )
        self.table = self.open()

    def open(self, **when: Any) -> IcebergTable:
        return alcid.iceberg(self.name, self.lake, **when)

    def run(self, steps: int) -> None:
        """Do this many steps; an error names all that were done."""
        with noted(self.log):
            for _ in range(steps):
                self.step()
            self.table.refresh()
            report = self.table.verify(progress=False)
            assert report.ok, str(report)

    def step(self) -> None:
        """Do something, and check the table afterwards."""
        steps: dict[Callable[[], None], int] = {
            self.insert: 8,
            self.delete: 5,
            self.delete_by_sql: 3,
            self.update: 2,
            self.change_columns: 5,
            self.change_partitions: 4,
            self.build: 5,
            self.rewrite: 2,
            self.travel: 2,
            self.branch: 2,
            self.upgrade: 1,
            self.others: 2,
        }
        (do,) = self.source.choices(list(steps), list(steps.values()))
        if not self.next_id:
            do = self.insert
        do()
        self.check()

    # -- steps ---------------------------------------------------------------------------------

    def _sql(self, text: str) -> DataFrame:
        self.log.append(text)
        return self.lake.sql(text)

    def _try(self, text: str) -> bool:
        """Steps that Iceberg may refuse."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            self._sql(text)
        except (PySparkException, Py4JJavaError) as error:
            self.log.append(f"-- refused: {' '.join(str(error).split())[:150]}")
            return False
        return True

    def _call(self, procedure: str, arguments: str = "") -> bool:
        catalog, table = self.name.split(".", 1)
        return self._try(f"CALL {catalog}.system.{procedure}(table => '{table}'{arguments})")

    def _value(self, kind: str) -> str:
        """SQL that draws a value for each id."""
        values = [*VALUES[kind], "NULL"]
        listed = ", ".join(self.source.choices(values, k=self.source.randint(1, 6)))
        return (
            f"CAST(element_at(array({listed}), CAST(pmod(hash(id, {self.source.randrange(99)}),"
            f" size(array({listed}))) + 1 AS INT)) AS {kind})"
        )

    def _rows(self, count: int) -> str:
        """Rows for an insert by name."""
        first, self.next_id = self.next_id, self.next_id + count
        columns = "".join(
            f", {self._value(kind)} AS {quoted(name)}"
            for name, kind in self.columns.items()
            if name not in self.left_out
        )
        files = self.source.choice((1, 2))
        return f"SELECT id{columns} FROM range({first}, {self.next_id}, 1, {files})"

    def insert(self) -> None:
        self._sql(f"INSERT INTO {self.name} BY NAME {self._rows(self.source.choice((1, 8, 30)))}")

    def delete(self) -> None:
        where = self._some_rows()
        self.log.append(f"-- our delete: {where}")
        try:
            self.table.delete(where)
        except UnsupportedError as error:
            self.log.append(f"-- refused: {error}")
            if not any(text in str(error) for text in _REFUSED):
                raise

    def delete_by_sql(self) -> None:
        self._try(f"DELETE FROM {self.name} WHERE {self._some_rows()}")

    def update(self) -> None:
        where = self._some_rows()
        name = self.source.choice(list(self.columns))
        if name in self.left_out:
            name = "id"
        if self.source.random() < 0.5:
            self._try(
                f"UPDATE {self.name} SET {quoted(name)} = {self._constant(name)} WHERE {where}"
            )
        else:
            self._try(
                f"MERGE INTO {self.name} t USING (SELECT id FROM {self.name} WHERE {where}) s ON"
                " t.id = s.id WHEN MATCHED AND t.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE"
                f" SET {quoted(name)} = {self._constant(name)}"
            )

    def _constant(self, name: str) -> str:
        kind = self.columns.get(name, "BIGINT")
        return f"CAST({self.source.choice([*VALUES[kind], 'NULL'])} AS {kind})"

    def _some_rows(self) -> str:
        if self.source.random() < 0.2:
            return draw_predicate(self.source, self.columns, self.next_id)
        first = self.source.randrange(self.next_id + 1)
        return f"id BETWEEN {first} AND {first + self.source.choice((0, 3, 12))}"

    def change_columns(self) -> None:
        free = [name for name in NAMES if name not in self.columns]
        name = self.source.choice(list(self.columns))
        kind, column, alter = self.columns[name], quoted(name), f"ALTER TABLE {self.name}"
        way = self.source.choice(("add", "add", "drop", "rename", "widen", "move"))
        if kind.startswith(NESTED) and self.source.random() < 0.6:
            if self._try(f"{alter} {self.source.choice(INNER[kind]).format(column)}"):
                self.left_out.add(name)
        elif way == "add" and free:
            new, kind = self.source.choice(free), self.source.choice(list(VALUES))
            position = self.source.choice(("", " FIRST", " AFTER id"))
            if self._try(f"{alter} ADD COLUMN {quoted(new)} {kind}{position}"):
                self.columns[new] = kind
        elif way == "drop" and len(self.columns) > 2:
            if self._try(f"{alter} DROP COLUMN {column}"):
                del self.columns[name]
                self.left_out.discard(name)
        elif way == "rename" and free:
            new = self.source.choice(free)
            if self._try(f"{alter} RENAME COLUMN {column} TO {quoted(new)}"):
                self.columns[new] = self.columns.pop(name)
                self.left_out ^= {name, new} if name in self.left_out else set()
        elif way == "widen" and kind in WIDER:
            if self._try(f"{alter} ALTER COLUMN {column} TYPE {WIDER[kind]}"):
                self.columns[name] = WIDER[kind]
        elif way == "move":
            self._try(f"{alter} ALTER COLUMN {column} FIRST")

    def _transform(self) -> str | None:
        name, kind = self.source.choice([("id", "BIGINT"), *self.columns.items()])
        transforms = TRANSFORMS.get(kind)
        return self.source.choice(transforms).format(quoted(name)) if transforms else None

    def change_partitions(self) -> None:
        metadata = self.open().metadata
        fields = [
            field.name
            for field in metadata.specs[metadata.default_spec_id].fields
            if field.transform != "void"
        ]
        self.partitions += 1
        new = f"p{self.partitions}"
        transform = self._transform()
        if fields and self.source.random() < 0.4:
            self._try(
                f"ALTER TABLE {self.name} DROP PARTITION FIELD {quoted(self.source.choice(fields))}"
            )
        elif fields and self.source.random() < 0.4:
            old = self.source.choice(fields)
            if self.source.random() < 0.5 or transform is None:
                self._rename_partition(old, new)
            else:
                self._try(
                    f"ALTER TABLE {self.name} REPLACE PARTITION FIELD {quoted(old)} WITH"
                    f" {transform} AS {new}"
                )
        elif transform is not None and len(fields) < 3:
            self._try(f"ALTER TABLE {self.name} ADD PARTITION FIELD {transform} AS {new}")

    def _rename_partition(self, old: str, new: str) -> None:
        jvm: Any = self.lake._jvm
        load = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
        load(self.lake._jsparkSession, self.name).updateSpec().renameField(old, new).commit()
        self.log.append(f"-- partition field {old} is renamed to {new}")

    def build(self) -> None:
        options: dict[str, list[str]] = {}
        kinds = {"id": "BIGINT", **self.columns}
        for name in self.source.sample(list(kinds), self.source.randint(1, len(kinds))):
            kind = kinds[name].replace("TIMESTAMP_NTZ", "TIMESTAMP(6)").replace("BINARY", "BYTES")
            if kind.startswith(NESTED):
                continue
            index_type = self.source.choice(INDEX_TYPES)
            if index_type in indexes_for(DataType.parse(kind)):
                options.setdefault(f"file-index.{index_type}.columns", []).append(name)
        if options:
            self.log.append(f"-- build {options}")
            self.table.build_indexes(
                {key: ",".join(names) for key, names in options.items()}, progress=False
            )

    def rewrite(self) -> None:
        if self.source.random() < 0.6:
            self._call("rewrite_data_files", ", options => map('rewrite-all', 'true')")
        else:
            self._call("rewrite_position_delete_files", ", options => map('rewrite-all', 'true')")

    def travel(self) -> None:
        snapshots = list(self.open().metadata.snapshots)
        if len(snapshots) < 2:
            return
        number = self.source.choice(snapshots)
        way = self.source.randrange(3)
        if way == 0:
            self._call("rollback_to_snapshot", f", snapshot_id => {number}")
        elif way == 1:
            self._call(
                "expire_snapshots",
                f", older_than => now(), retain_last => {self.source.randint(1, 3)}",
            )
        else:
            self._try(f"ALTER TABLE {self.name} CREATE OR REPLACE TAG tag1 AS OF VERSION {number}")

    def branch(self) -> None:
        self._try(f"ALTER TABLE {self.name} CREATE BRANCH IF NOT EXISTS br")
        if self.source.random() < 0.7:
            self._try(f"INSERT INTO {self.name}.branch_br BY NAME {self._rows(5)}")
        if self.source.random() < 0.5:
            self._try(f"DELETE FROM {self.name}.branch_br WHERE {self._some_rows()}")
        if self.source.random() < 0.3:
            catalog, table = self.name.split(".", 1)
            self._try(f"CALL {catalog}.system.fast_forward('{table}', 'main', 'br')")
        elif self.source.random() < 0.3:
            refs = self.open().metadata.refs
            if "br" in refs:
                self._call("cherrypick_snapshot", f", snapshot_id => {refs['br']}")

    def upgrade(self) -> None:
        if self.version < 3:
            self.version += 1
            self._sql(
                f"ALTER TABLE {self.name} SET TBLPROPERTIES ('format-version' = '{self.version}')"
            )

    def others(self) -> None:
        way = self.source.randrange(4)
        if way == 0:
            self.log.append("-- our compute_stats")
            self.table.compute_stats(progress=False)
        elif way == 1:
            self._call("compute_table_stats")
        elif way == 2:
            self.log.append("-- drop")
            self.table.drop_indexes()
        else:
            self.log.append("-- clean")
            self.table.clean(timedelta(0))

    # -- checks --------------------------------------------------------------------------------

    def check(self) -> None:
        """Now, and at some earlier time."""
        if self.source.random() < 0.5:
            self.table = self.open()
        else:
            self.table.refresh()
        self._compare(self.table, self.lake.table(self.name), 3)
        if self.source.random() < 0.3:
            metadata = self.table.metadata
            way = self.source.choice(["snapshot", *metadata.refs])
            if way == "snapshot":
                number = self.source.choice(list(metadata.snapshots))
                every = self.lake.sql(f"SELECT * FROM {self.name} VERSION AS OF {number}")
                self._compare(self.open(snapshot_id=number), every, 0)
            else:
                every = self.lake.sql(f"SELECT * FROM {self.name} VERSION AS OF '{way}'")
                self._compare(self.open(ref=way), every, 0)

    def _compare(self, table: IcebergTable, every: DataFrame, questions: int) -> None:
        rows = every.toArrow()
        table_rows = table.scan().to_arrow()
        assert table_rows.column_names == rows.column_names
        assert as_text(table_rows) == as_text(rows), "all rows"
        assert table.count() == len(rows)
        copy = self.lake.createDataFrame(rows, every.schema)
        for _ in range(questions):
            where = draw_predicate(self.source, self.columns, self.next_id)
            self.log.append(f"-- asked {where}")
            expected = as_text(copy.where(where).toArrow())
            with every_index_is_asked():
                assert as_text(table.scan(where).to_arrow()) == expected, where
                assert table.count(where) == len(expected), where
            if self.source.random() < 0.3:
                assert as_text(table.read(where).toArrow()) == expected, where
            self.log.pop()
