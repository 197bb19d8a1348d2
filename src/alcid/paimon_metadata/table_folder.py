"""The folder of a Paimon table: its schemas and snapshots, and how a new one is made."""

from __future__ import annotations

import re
from functools import lru_cache

from alcid.errors import FileGoneError, NameTakenError, OptionError, StorageError
from alcid.paimon_metadata.schema import TableSchema, schema_path
from alcid.paimon_metadata.snapshot import SnapshotFolder
from alcid.storage import Storage

__all__ = ["TableFolder", "table_location"]

_SCHEMA = re.compile(r"schema/schema-(\d+)")
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

    def __init__(self, storage: Storage) -> None:
        """Read nothing yet."""
        self.storage = storage
        self.snapshots = SnapshotFolder(storage)
        # A schema never changes: a change of the table's makes a new one.
        self._schema = lru_cache(_KEPT)(self._read_schema)

    def latest_schema(self) -> TableSchema:
        """The schema that the table has now.

        Raises:
            StorageError: There is no Paimon table.
        """
        paths = self.storage.list("schema").paths.to_pylist()
        numbers = [int(found[1]) for path in paths if (found := _SCHEMA.fullmatch(path))]
        if not numbers:
            raise StorageError("no Paimon table: no schema", file=self.storage.location)
        return self.schema(max(numbers))

    def schema(self, number: int) -> TableSchema:
        """A schema by its id."""
        return self._schema(number)

    def create(self, schema: TableSchema) -> None:
        """Make the table; what is there already stays.

        Raises:
            NameTakenError: There is a table.
        """
        try:
            self.latest_schema()
        except FileGoneError:
            raise
        except StorageError:
            self.storage.create(schema_path(schema.id), schema.to_json())
            return
        raise NameTakenError("there is a table already", file=self.storage.location)

    def _read_schema(self, number: int) -> TableSchema:
        source = self.storage.source(schema_path(number))
        return TableSchema.parse(source.read(0, source.size), file=source.name)
