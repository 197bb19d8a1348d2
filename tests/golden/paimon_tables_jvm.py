"""Whole tables under a released Paimon: its Java writes, deletes, compacts and reads.

Paimon's connectors hand rows to these classes, and commit what they return; there is no engine
here, so that a JVM with the bundle is enough. PySpark lends its Hadoop, without which Paimon has no
Parquet. Rows cross as Parquet files, which Paimon's own format reads and writes.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.golden.jvm import fetch_jar, java_gateway, spark_jars
from tests.golden.paimon_jvm import BUNDLE, PaimonJvm
from tests.golden.paimon_reading import JavaReading
from tests.golden.paimon_upkeep import JavaUpkeep
from tests.golden.paimon_writing import JavaWriting
from tests.golden.values import Json

# The newest release has no bundle; its connector for Flink holds the same classes.
NEWEST_VERSION = "2.0.0"
NEWEST = f"org.apache.paimon:paimon-flink-2.0:{NEWEST_VERSION}"


@contextmanager
def java_paimon(artifact: str = BUNDLE) -> Iterator[JavaPaimon]:
    """Start a JVM for tables; it ends with the block."""
    with (
        tempfile.TemporaryDirectory() as folder,
        java_gateway(fetch_jar(artifact), spark_jars()) as gateway,
    ):
        yield JavaPaimon(PaimonJvm(gateway), Path(folder))


class JavaPaimon(JavaWriting, JavaReading, JavaUpkeep):
    """Tables, each named by its folder. Each change is one commit, like a statement.

    A column's type is SQL text, or the object that Paimon's schema file has for a nested type:
    `{"type": "ARRAY", "element": "INT"}`. A predicate is `{"column", "function", "literals"}`, or
    `{"and": [...]}` or `{"or": [...]}` of such, with literals in their JSON form.
    """

    def create(
        self,
        table: Path,
        columns: Mapping[str, Json],
        *,
        partition_keys: Sequence[str] = (),
        primary_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> Path:
        """Make a table without rows."""
        fields = [
            {"id": number, "name": name, "type": kind}
            for number, (name, kind) in enumerate(columns.items())
        ]
        keys = {"partitionKeys": list(partition_keys), "primaryKeys": list(primary_keys)}
        text = json.dumps({"fields": fields, **keys, "options": options or {}, "comment": None})
        kind = self.jvm.java.lang.Class.forName("org.apache.paimon.schema.Schema")
        schema = self.jvm.paimon.utils.JsonSerdeUtil.fromJson(text, kind)
        self._schemas(table).createTable(schema)
        return table

    def _schemas(self, table: Path, branch: str = "main") -> Any:
        return self.jvm.paimon.schema.SchemaManager(
            self._files, self.jvm.paimon.fs.Path(str(table)), branch
        )

    def alter(self, table: Path, change: str, *arguments: str, branch: str = "main") -> None:
        """Make one `SchemaChange`: `renameColumn`, `addColumn`, `updateColumnType`, ...

        The second argument of the last two is an SQL type.
        """
        java_arguments: list[Any] = list(arguments)
        if change in ("addColumn", "updateColumnType"):
            java_arguments[1] = self.jvm.data_type(java_arguments[1])
        made = getattr(self.jvm.paimon.schema.SchemaChange, change)(*java_arguments)
        self._schemas(table, branch).commitChanges(self.items([made]))

    def alter_within(self, table: Path, change: str, path: Sequence[str], *arguments: str) -> None:
        """Make a `SchemaChange` of a field within a column."""
        gateway = self.jvm.gateway
        names = gateway.new_array(gateway.jvm.java.lang.String, len(path))
        for number, name in enumerate(path):
            names[number] = name
        java_arguments: list[Any] = list(arguments)
        if change == "addColumn":
            java_arguments = [self.jvm.data_type(java_arguments[0]), None, None]
        made = getattr(self.jvm.paimon.schema.SchemaChange, change)(names, *java_arguments)
        self._schemas(table).commitChanges(self.items([made]))
