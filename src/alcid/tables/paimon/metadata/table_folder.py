"""The folder of a Paimon table: its schemas, snapshots and branches, and the paths of data files.

Data files lie in `dt=20250801/bucket-0/data-....parquet`. Paths have the values of partitions as
text, which manifests do not repeat, so the text must be exactly what Paimon makes of a value.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from alcid.errors import (
    FileGoneError,
    NameTakenError,
    OptionError,
    StorageError,
    UnsupportedError,
)
from alcid.storage import Storage
from alcid.tables.paimon.metadata.schema import TableSchema, schema_path
from alcid.tables.paimon.metadata.snapshot import MAIN, SnapshotFolder, branch_folder
from alcid.tables.paimon.metadata.statistics import unpack_rows
from alcid.types import DataType

_SCHEMA = re.compile(r"schema/schema-(\d+)")
_BRANCH = re.compile(r"branch/branch-([^/]+)/schema/")
_CACHED_SCHEMAS = 64


def table_location(warehouse: str, table: str) -> str:
    """The location of a table in a warehouse: `db.name` is the folder `db.db/name`.

    >>> table_location("s3://lake/warehouse/", "sales.orders")
    's3://lake/warehouse/sales.db/orders'
    """
    database, _, name = table.rpartition(".")
    if not name or not set("$./").isdisjoint(name + database):
        raise OptionError(f"table: found {table!r}, expected db.name")
    return f"{warehouse.rstrip('/')}/{database or 'default'}.db/{name}"


class TableFolder:
    """The schemas, snapshots and branches of a table."""

    def __init__(self, storage: Storage, branch: str = MAIN) -> None:
        """Take the folder of the table."""
        self.storage, self.branch = storage, branch
        self._folder = branch_folder(branch)
        self.snapshots = SnapshotFolder(storage, branch)
        # A schema never changes: altering the table adds a new one.
        self._schema = lru_cache(_CACHED_SCHEMAS)(self._read_schema)

    def latest_schema(self) -> TableSchema:
        """The current schema of the table.

        Raises:
            StorageError: There is no Paimon table.
        """
        numbers = self._schema_numbers()
        if not numbers and self.branch != MAIN:
            branches = ", ".join([MAIN, *self.branches()])
            problem = f"no branch {self.branch}: there are {branches}"
            raise FileGoneError(problem, file=self.storage.location)
        if not numbers:
            raise StorageError("no Paimon table: no schema", file=self.storage.location)
        return self.schema(max(numbers))

    def options(self, schema: TableSchema) -> dict[str, str]:
        """The options of a schema, without `branch` where one was opened by name."""
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
        """Create the table; existing files stay.

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


# Characters that Paimon escapes in the names of folders.
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]}^]""")
_EPOCH = datetime.date(1970, 1, 1)
_MIN_PLAIN, _MAX_PLAIN = 1e-3, 1e7  # between which Java writes doubles without an exponent
_MICROS = 6
_KINDS = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"),
    *("CHAR", "VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"),
)


def partition_values(
    partitions: Sequence[bytes], names: Sequence[str], types: Sequence[DataType], *, file: str
) -> pa.Table:
    """The values of partitions, a row for each; without columns, a table without rows."""
    columns = unpack_rows(partitions, types, file=file)
    return pa.table(dict(zip(names, columns, strict=True)))


class Paths:
    """The paths of data files and indexes, below the folder of a table."""

    def __init__(
        self,
        partition_keys: Sequence[str],
        types: Sequence[DataType],
        *,
        default_name: str,
        legacy_name: bool,
        directory: str | None,
    ) -> None:
        """Take the partition columns, and the options of paths.

        Args:
            partition_keys: The partition columns.
            types: Their types.
            default_name: The text for null, and for blank text.
            legacy_name: Dates are written as their number of days.
            directory: A folder for all data files, below that of the table.

        Raises:
            UnsupportedError: A column of a type that is not written as text.
        """
        for key, data_type in zip(partition_keys, types, strict=True):
            is_too_fine = data_type.root.startswith("TIMESTAMP") and data_type.precision > _MICROS
            if data_type.root not in _KINDS or is_too_fine:
                raise UnsupportedError(f"column {key}: {data_type} is not for partitions")
        self._keys, self._types = tuple(partition_keys), tuple(types)
        self._default, self._legacy = default_name, legacy_name
        self._prefix = f"{directory}/" if directory else ""
        self._folders: dict[bytes, str] = {}

    def bucket(self, partition: bytes, bucket: int) -> str:
        """The folder of a bucket, which ends with `/`."""
        if partition not in self._folders:
            self.learn([partition])
        return f"{self._folders[partition]}bucket-{bucket}/"

    def learn(self, partitions: Iterable[bytes]) -> None:
        """Prepare the folders of many partitions at once, which is faster than one by one."""
        new = [packed for packed in dict.fromkeys(partitions) if packed not in self._folders]
        if not new:
            return
        columns = [
            [
                f"{_escape(key)}={_escape(self._text(value, data_type))}/"
                for value in values.to_pylist()
            ]
            for key, values, data_type in zip(
                self._keys,
                unpack_rows(new, self._types, file="<partition>"),
                self._types,
                strict=True,
            )
        ]
        names = map("".join, zip(*columns, strict=True)) if columns else [""] * len(new)
        self._folders.update(
            (packed, self._prefix + name) for packed, name in zip(new, names, strict=True)
        )

    def _text(self, value: Any, data_type: DataType) -> str:
        text = None if value is None else self._value_text(value, data_type)
        return self._default if text is None or not text.strip() else text

    def _value_text(self, value: Any, data_type: DataType) -> str:
        match value:
            case bool():
                return str(value).lower()
            case int() | str():
                return str(value)
            case Decimal():
                return f"{value:f}"
            case float():
                return _float_text(value, data_type)
            case datetime.datetime():
                return _timestamp_text(value, data_type, legacy=self._legacy)
            case datetime.date():
                return str((value - _EPOCH).days) if self._legacy else value.isoformat()
        raise TypeError(f"{data_type} is not for partitions")


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def _float_text(value: float, data_type: DataType) -> str:
    """As Java's `Double.toString`: with an exponent below 0.001 and from ten million on."""
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    shortest = np.float32(value) if data_type.root == "FLOAT" else np.float64(value)
    if value == 0 or _MIN_PLAIN <= abs(value) < _MAX_PLAIN:
        return np.format_float_positional(shortest, trim="0")
    text = np.format_float_scientific(shortest, trim="0")
    mantissa, exponent = text.split("e")
    return f"{mantissa}E{int(exponent)}"


def _timestamp_text(value: datetime.datetime, data_type: DataType, *, legacy: bool) -> str:
    """As Java's `LocalDateTime.toString`, which omits trailing zeros, or with all digits."""
    date, clock, parts = f"{value:%m-%d}", f"{value:%H:%M}", f"{value.microsecond:06d}"
    if not legacy:
        tail = f".{parts}"[: 1 + data_type.precision] if data_type.precision else ""
        return f"{value.year:04d}-{date} {clock}:{value:%S}{tail}"
    tail = "" if not value.microsecond else f".{parts.removesuffix('000')}"
    seconds = f":{value:%S}{tail}" if value.second or tail else ""
    return f"{value.year:04d}-{date}T{clock}{seconds}"
