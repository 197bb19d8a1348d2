"""How tables are opened: `alcid.parquet`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from alcid.columns import ColumnTypes
from alcid.tables import ParquetTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["parquet"]


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
        strict: Raise where an index is damaged, in place of a warning.
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
    engine = None
    if spark is not None:
        from alcid.spark.engine import SparkEngine

        engine = SparkEngine(spark)
    return ParquetTable.open(
        path,
        storage_options=storage_options,
        index_path=index_path,
        strict=strict,
        partition_types=partition_types,
        create=create,
        engine=engine,
    )
