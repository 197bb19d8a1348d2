"""Tables of Paimon's Java through py4j; some of their classes are not public."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.golden.java_containers import java_predicate
from tests.golden.paimon_jvm import PaimonJvm
from tests.golden.values import Json


class JavaCalls:
    """How a table is opened, planned and committed."""

    def __init__(self, jvm: PaimonJvm, folder: Path) -> None:
        self.jvm = jvm
        self._folder = folder
        self._files = jvm.paimon.fs.local.LocalFileIO()
        self._parquet = jvm.paimon.format.FileFormat.fromIdentifier(
            "parquet", jvm.paimon.options.Options()
        )

    def call(self, interface: str, name: str, target: Any, *arguments: Any) -> Any:
        """Call a method through a public class, since that of the target may not be."""
        handle = self.jvm.method(f"org.apache.paimon.{interface}", name, len(arguments))
        return handle.bindTo(target).invokeWithArguments(self.items(arguments))

    def items(self, items: Iterable[Any]) -> Any:
        """A list that stays in Java."""
        made = self.jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def _map(self, items: Mapping[str, str]) -> Any:
        made = self.jvm.java.util.LinkedHashMap()
        for key, value in items.items():
            made.put(key, value)
        return made

    def _open(self, table: Path, options: Mapping[str, str] | None = None) -> Any:
        location = self.jvm.paimon.fs.Path(str(table))
        opened = self.jvm.paimon.table.FileStoreTableFactory.create(self._files, location)
        if options and "branch" in options:
            opened = self.call("table.FileStoreTable", "switchToBranch", opened, options["branch"])
        return opened.copy(self._map(options)) if options else opened

    def _store(self, opened: Any) -> Any:
        return self.call("table.FileStoreTable", "store", opened)

    def _commit(self, opened: Any, messages: Any) -> None:
        committer = opened.newCommit("golden")
        committer.commit(messages)
        committer.close()

    def _entries(self, opened: Any) -> Any:
        scan = self.call("FileStore", "newScan", self._store(opened))
        return self.call("operation.FileStoreScan$Plan", "files", scan.plan())

    def _io_manager(self) -> Any:
        return self.jvm.paimon.disk.IOManager.create(str(self._folder))

    def _read_builder(self, opened: Any, where: Json, columns: Sequence[str] | None) -> Any:
        builder = self.call("table.Table", "newReadBuilder", opened)
        row_type = self.call("table.Table", "rowType", opened)
        if where is not None:
            fields = row_type.getFields()
            types = {field.name(): field.type().copy(True).asSQLString() for field in fields}
            builder.withFilter(java_predicate(self.jvm, types, where))
        if columns is not None:
            builder.withReadType(row_type.project(self.items(columns)))
        return builder
