"""The folder of a Paimon table: its schemas and snapshots, and how a new one is made."""

from __future__ import annotations

import re
from functools import lru_cache

from alcid.errors import FileGoneError, NameTakenError, OptionError, StorageError
from alcid.paimon_metadata.schema import TableSchema, schema_path
from alcid.paimon_metadata.snapshot import MAIN, SnapshotFolder, branch_folder
from alcid.storage import Storage

__all__ = ["TableFolder", "table_location"]

_SCHEMA = re.compile(r"schema/schema-(\d+)")
_BRANCH = re.compile(r"branch/branch-([^/]+)/schema/")
_KEPT = 64


def table_location(warehouse: str, table: str) -> str:
    """Where a table of a warehouse lies: `db.name` is the folder `db.db/name`.

    >>> table_location("s3://lake/warehouse/", "sales.orders")
    's3://lake/warehouse/sales.db/orders'
    """
    database, _, name = table.rpartition(".")
    if not name or not set("$./").isdisjoint(name + database):
        raise OptionError(f"table: found {table!r}, expected db.name")
    return f"{warehouse.rstrip('/')}/{database or 'default'}.db/{name}"


class TableFolder:
    """What lies in the folder of a table, beside data and indexes."""

    def __init__(self, storage: Storage, branch: str = MAIN) -> None:
        """Read nothing yet."""
        self.storage, self.branch = storage, branch
        self._folder = branch_folder(branch)
        self.snapshots = SnapshotFolder(storage, branch)
        # A schema never changes: a change of the table's makes a new one.
        self._schema = lru_cache(_KEPT)(self._read_schema)

    def latest_schema(self) -> TableSchema:
        """The schema that the table has now.

        Raises:
            StorageError: There is no Paimon table.
        """
        numbers = self._schema_numbers()
        if not numbers and self.branch != MAIN:
            known = ", ".join([MAIN, *self.branches()])
            problem = f"no branch {self.branch}: there are {known}"
            raise FileGoneError(problem, file=self.storage.location)
        if not numbers:
            raise StorageError("no Paimon table: no schema", file=self.storage.location)
        return self.schema(max(numbers))

    def options(self, schema: TableSchema) -> dict[str, str]:
        """The options of a schema; the branch is the one that is opened, whatever they say."""
        opened = {} if self.branch == MAIN else {"branch": MAIN}
        return {**schema.options, **opened}

    def exists(self) -> bool:
        """Whether there is a Paimon table."""
        return bool(self._schema_numbers())

    def schema(self, number: int) -> TableSchema:
        """A schema by its id."""
        return self._schema(number)

    def branches(self) -> list[str]:
        """The names of all branches that were made."""
        paths = self.storage.list("branch").paths.to_pylist()
        return sorted({found[1] for path in paths if (found := _BRANCH.match(path))})

    def create(self, schema: TableSchema) -> None:
        """Make the table; what is there already stays.

        Raises:
            NameTakenError: There is a table, or Parquet files of another, which it would hide.
        """
        if self.exists():
            raise NameTakenError("there is a table already", file=self.storage.location)
        if len(self.storage.list(suffix=".parquet")):
            raise NameTakenError("a folder with Parquet files already", file=self.storage.location)
        self.storage.create(schema_path(schema.id), schema.to_json())

    def _schema_numbers(self) -> list[int]:
        paths = self.storage.list(f"{self._folder}schema").paths.to_pylist()
        names = (path.removeprefix(self._folder) for path in paths)
        return [int(found[1]) for name in names if (found := _SCHEMA.fullmatch(name))]

    def _read_schema(self, number: int) -> TableSchema:
        source = self.storage.source(self._folder + schema_path(number))
        return TableSchema.parse(source.read(0, source.size), file=source.name)
