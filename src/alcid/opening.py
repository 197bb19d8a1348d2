"""How tables are opened and made.

`alcid.table`, `alcid.parquet`, `alcid.paimon`, `alcid.iceberg`, `alcid.create_table`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from alcid.errors import OptionError, UnsupportedError
from alcid.expressions.columns import ColumnTypes
from alcid.storage import Storage
from alcid.tables.iceberg_table import IcebergTable
from alcid.tables.paimon.metadata.snapshot import MAIN
from alcid.tables.paimon.metadata.table_folder import TableFolder, table_location
from alcid.tables.paimon.write.append import new_schema
from alcid.tables.paimon_table import PaimonTable
from alcid.tables.parquet_table import ParquetTable
from alcid.types import DataType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from alcid.tables.engine import Engine

_PART = r"(`[^`]+`|[^./\\:`]+)"
_NAME = re.compile(rf"{_PART}(\.{_PART}){{2,}}")


def table(
    location_or_name: str | os.PathLike[str],
    spark: SparkSession | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    index_path: str | os.PathLike[str] | None = None,
    snapshot_id: int | None = None,
    ref: str | None = None,
    merge_on_read: bool = False,
    strict: bool = False,
) -> ParquetTable | PaimonTable | IcebergTable:
    """Open a table of any kind; which it is, is the type of what is given back.

    A folder with Paimon's schemas is a Paimon table, any other one of Parquet files. A text such as
    `catalog.db.table`, if there is no folder of that name, is an Iceberg table of the session.
    `parquet`, `paimon` and `iceberg` have what only one kind has.

    Args:
        location_or_name: The folder, as a path or a URI; or the name of an Iceberg table.
        spark: The session that does the work on many files; an Iceberg table needs one.
        storage_options: Keys, endpoint and such; see `alcid.storage.Storage.open`.
        index_path: Where the indexes of a folder of Parquet files are, if not beside the data.
        snapshot_id: Read a Paimon or Iceberg table as it was at this snapshot.
        ref: Read a tag or a branch of a Paimon or Iceberg table; of a Paimon table, a tag if both
            have the name.
        merge_on_read: Read rows of a Paimon table that no compaction has taken in yet, too.
        strict: Raise where an index is damaged instead of a warning.

    Raises:
        StorageError: There is no such folder or table.
        OptionError: It is of a kind that has no such option.

    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> folder = tempfile.TemporaryDirectory()
    >>> pq.write_table(pa.table({"id": range(1000)}), f"{folder.name}/a.parquet")
    >>> table(folder.name)
    <ParquetTable ...>
    >>> made = create_table(f"{folder.name}/_paimon/events", pa.schema([("id", pa.int64())]))
    >>> table(f"{folder.name}/_paimon/events")
    <PaimonTable ...events>
    >>> folder.cleanup()
    """
    name = os.fspath(location_or_name)
    if is_name(location_or_name):
        if spark is None:
            raise UnsupportedError(
                f"{name}: no such folder, and as the name of an Iceberg table it needs a session:"
                " spark=alcid.session(...)"
            )
        _only_for_folders(name, index_path)
        _only_for_paimon(name, merge_on_read)
        return iceberg(
            name,
            spark,
            snapshot_id=snapshot_id,
            ref=ref,
            storage_options=storage_options,
            strict=strict,
        )
    storage = Storage.open(location_or_name, storage_options)
    is_file = not storage.remote and Path(storage.location).is_file()
    folder = TableFolder(storage)
    if not is_file and folder.exists():
        _only_for_folders(name, index_path)
        is_branch = (
            ref is not None and ref in folder.branches() and ref not in folder.snapshots.tags()
        )
        return PaimonTable(
            storage,
            snapshot_id=snapshot_id,
            tag=None if is_branch else ref,
            branch=ref if is_branch and ref is not None else MAIN,
            merge_on_read=merge_on_read,
            strict=strict,
            engine=_engine(spark, storage.location),
        )
    _only_for_paimon(name, merge_on_read)
    if snapshot_id is not None or ref is not None:
        raise OptionError(
            f"{name}: a folder of Parquet files, which has neither snapshots nor tags"
        )
    return parquet(
        location_or_name,
        spark,
        storage_options=storage_options,
        index_path=index_path,
        strict=strict,
    )


def is_name(text: str | os.PathLike[str]) -> bool:
    """Whether a text is the `catalog.db.table` of an Iceberg table, and not a folder.

    >>> is_name("lake.shop.orders"), is_name("./lake.shop.orders"), is_name("s3://lake/a.b.c")
    (True, False, False)
    """
    return isinstance(text, str) and bool(_NAME.fullmatch(text)) and not Path(text).exists()


def _only_for_folders(name: str, index_path: object) -> None:
    if index_path is not None:
        raise OptionError(
            f"index_path: {name} keeps its indexes itself; it is for folders of Parquet files"
        )


def _only_for_paimon(name: str, merge_on_read: bool) -> None:
    if merge_on_read:
        raise OptionError(f"merge_on_read: {name} is no Paimon table, and has nothing to merge")


def parquet(
    path: str | os.PathLike[str],
    spark: SparkSession | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    index_path: str | os.PathLike[str] | None = None,
    strict: bool = False,
    partition_types: ColumnTypes | None = None,
    create: bool = False,
) -> ParquetTable:
    """Open a folder of Parquet files as a table.

    Args:
        path: A folder: a path, or a URI of `file`, `s3` or what fsspec knows.
        spark: The session that does the work on many files, as `alcid.session()`; its time zone
            and case rule count for predicates. Without one, work is done in this process.
        storage_options: Keys, endpoint and such; see `alcid.storage.Storage.open`.
        index_path: A folder of its own for the indexes of this table, if they cannot lie in
            `_alcid/` beside the data.
        strict: Raise where an index is damaged instead of a warning.
        partition_types: Types of columns that stand in the paths (`dt=20250801/`), as
            `{"dt": "DATE"}`; those of others are inferred as Spark infers them.
        create: The folder need not exist: `append` makes it. By default that is an error.

    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> folder = tempfile.TemporaryDirectory()
    >>> pq.write_table(pa.table({"id": range(1000)}), f"{folder.name}/a.parquet")
    >>> table = parquet(folder.name)
    >>> table.scan("id < 3").to_arrow().to_pydict()
    {'id': [0, 1, 2]}
    >>> folder.cleanup()
    """
    return ParquetTable.open(
        path,
        storage_options=storage_options,
        index_path=index_path,
        strict=strict,
        partition_types=partition_types,
        create=create,
        engine=_engine(spark, path),
    )


def paimon(
    path: str | os.PathLike[str] | None = None,
    spark: SparkSession | None = None,
    *,
    warehouse: str | os.PathLike[str] | None = None,
    table: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    snapshot_id: int | None = None,
    tag: str | None = None,
    branch: str = MAIN,
    merge_on_read: bool = False,
    strict: bool = False,
) -> PaimonTable:
    """Open a Paimon table.

    Args:
        path: The folder of the table; or give `warehouse` and `table`.
        spark: The session that does the work on many files, as for `parquet`.
        warehouse: A folder of databases, without a server: `db.db/name/`.
        table: `"db.name"` in the warehouse; `"name"` is `"default.name"`.
        storage_options: Keys, endpoint and such; see `alcid.storage.Storage.open`.
        snapshot_id: Read the table as it was at this snapshot.
        tag: Read the table as a tag keeps it.
        branch: Read a branch: its schema, snapshots and tags. Nothing is written to one but main.
        merge_on_read: Read rows of a primary-key table that no compaction has taken in yet, too.
            Without, a table with deletion vectors is read as Paimon reads it: without them.
        strict: Raise where an index is damaged instead of a warning.

    Raises:
        StorageError: There is no Paimon table.
        UnsupportedError: It has an option or a type that would make rows wrong here.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> folder = tempfile.TemporaryDirectory()
    >>> schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    >>> table = create_table(f"{folder.name}/events", schema)
    >>> paimon(f"{folder.name}/events").count("id = 5")
    0
    >>> folder.cleanup()
    """
    location = _location(path, warehouse, table)
    return PaimonTable(
        Storage.open(location, storage_options),
        snapshot_id=snapshot_id,
        tag=tag,
        branch=branch,
        merge_on_read=merge_on_read,
        strict=strict,
        engine=_engine(spark, location),
    )


def iceberg(
    name: str,
    spark: SparkSession,
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    as_of: datetime | None = None,
    storage_options: Mapping[str, Any] | None = None,
    strict: bool = False,
) -> IcebergTable:
    """Open an Iceberg table of the catalogs of a session.

    The session has to have Iceberg's Spark runtime, and a catalog, as any that works with Iceberg:

    ```python
    spark = alcid.session(
        config={
            "spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": "/data/lake",
        }
    )
    orders = alcid.iceberg("lake.shop.orders", spark)
    ```

    Args:
        name: As in SQL: `"catalog.db.table"`; less where the session has a current catalog.
        spark: The session. Spark Connect has no Java to ask, so that it does not do.
        snapshot_id: Read the table as it was at this snapshot.
        ref: Read a branch or a tag.
        as_of: Read the table as it was at this time; without a time zone, in that of the session.
        storage_options: Keys, endpoint and such, by which files are read here; see
            `alcid.storage.Storage.open`. By default, for S3, those of the catalog: of the table's
            `FileIO`, with credentials that the catalog has given for it, or of Hadoop's s3a.
        strict: Raise where an index is damaged instead of a warning.

    Raises:
        StorageError: There is no such table.
        UnsupportedError: It is none of Iceberg, or the session has no Iceberg.
        OptionError: There is no such snapshot.
    """
    if spark is None:
        raise UnsupportedError(
            "spark: found None, expected a session, whose catalogs have the table: alcid.session()"
        )
    from alcid.spark.iceberg import SparkCatalogTable

    return IcebergTable(
        SparkCatalogTable(spark, name),
        snapshot_id=snapshot_id,
        ref=ref,
        as_of=as_of,
        storage_options=storage_options,
        strict=strict,
        engine=_engine(spark, name),
    )


def create_table(
    path: str | os.PathLike[str] | None,
    schema: pa.Schema | StructType,
    spark: SparkSession | None = None,
    *,
    primary_key: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    options: Mapping[str, object] | None = None,
    warehouse: str | os.PathLike[str] | None = None,
    table: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> PaimonTable:
    """Make a Paimon table without rows.

    Args:
        path: The folder of the table; None if `warehouse` and `table` are given.
        schema: Its columns, as an Arrow schema or one of Spark; columns of the primary key are not
            null.
        spark: The session that does the work on many files, as for `parquet`.
        primary_key: The columns that tell rows apart; none for a table that rows are appended to.
        partition_by: The columns whose values stand in the paths.
        options: Paimon's table options, as `{"bucket": "4", "deletion-vectors.enabled": "true"}`.
        warehouse: As for `paimon`.
        table: As for `paimon`.
        storage_options: As for `paimon`.

    Raises:
        NameTakenError: There is a table.
        OptionError: No such option, or a value that it cannot have.
        ColumnError: A key that is no column.
        UnsupportedError: A type or an option that is not supported.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> folder = tempfile.TemporaryDirectory()
    >>> columns = pa.schema([("id", pa.int64()), ("dt", pa.string())])
    >>> create_table(None, columns, partition_by=["dt"], warehouse=folder.name, table="shop.orders")
    <PaimonTable .../shop.db/orders>
    >>> folder.cleanup()
    """
    for what, names in (("primary_key", primary_key), ("partition_by", partition_by)):
        if isinstance(names, str):
            raise OptionError(f"{what}: found text, expected a list of names")
    chosen = {str(key): _option_text(value) for key, value in (options or {}).items()}
    made = new_schema(_columns(schema), primary_key, partition_by, chosen)
    storage = Storage.open(_location(path, warehouse, table), storage_options)
    TableFolder(storage).create(made)
    return PaimonTable(storage, engine=_engine(spark, storage.location))


def _engine(spark: SparkSession | None, location: str | os.PathLike[str]) -> Engine | None:
    """What does the work; in Spark's UI, a table is called as its folder is."""
    if spark is None:
        return None
    from alcid.spark.engine import SparkEngine

    return SparkEngine(spark, os.fspath(location).rstrip("/").rpartition("/")[2])


def _location(
    path: str | os.PathLike[str] | None, warehouse: str | os.PathLike[str] | None, table: str | None
) -> str | os.PathLike[str]:
    if path is not None and warehouse is None and table is None:
        return path
    if path is not None or warehouse is None or table is None:
        raise OptionError("expected a path, or warehouse= and table=")
    return table_location(os.fspath(warehouse), table)


def _columns(schema: pa.Schema | StructType) -> list[tuple[str, DataType, bool]]:
    """Names, types and whether null is allowed."""
    if not isinstance(schema, pa.Schema) and not hasattr(schema, "fields"):
        raise UnsupportedError(
            f"schema: found {type(schema).__name__}, expected a schema of Arrow or Spark"
        )
    if isinstance(schema, pa.Schema):
        return [(field.name, DataType.from_arrow(field.type), field.nullable) for field in schema]
    return [
        (field.name, DataType.from_spark(field.dataType.simpleString()), field.nullable)
        for field in schema.fields
    ]


def _option_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
