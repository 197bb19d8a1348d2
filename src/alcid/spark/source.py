"""`spark.read.format("alcid")`: a folder of Parquet files as a data source of Spark.

Spark calls it in processes of its own: one asks for the schema, one for the slices that tasks read,
and the workers read a slice each.

No filters are taken from Spark, though its interface has a way. Spark 4.1 keeps what a source
planned with the filters of one use of a DataFrame, and reads the same for every other use of it:
after `rows.where("a = 1").count()`, `rows.count()` would count those rows only. What is to go to
the indexes is an option, `where`, which holds for every use.

Needs PySpark when it is loaded, as its classes have bases there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from alcid.errors import ColumnError, PredicateError, UnsupportedError
from alcid.options import Settings, current_settings, using
from alcid.plan import Draft
from alcid.spark.reading import ReadTask
from alcid.spark.schema import spark_schema
from alcid.spark.shares import make_shares
from alcid.spark.source_options import SourceOptions
from alcid.spark.ways import only_for_spark
from alcid.tables import ParquetTable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["AlcidSource", "source_for"]


class AlcidSource(DataSource):  # type: ignore[misc]  # PySpark is not looked into
    """A folder of Parquet files.

    Options: `path`; `index_path` and `strict` as `alcid.parquet` has them; `where`, the rows that
    there are; `timezone`, where that or the paths have timestamps; all others are storage options.
    """

    cores: int | None = None
    """How many tasks run at a time; by default, as many as this machine has cores."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "alcid"

    def schema(self) -> StructType:
        """The columns of the table."""
        options = SourceOptions.parse(self.options)
        with using(_settings(options)):
            table = options.open()
            if not table.schema.names:
                raise UnsupportedError(f"{table.location}: no files, so that no columns are known")
            schema = spark_schema(table.schema)
        return options.keep_in(schema) if "provider" in self.options else schema

    def reader(self, schema: StructType) -> FolderReader:
        """What reads some or all columns of the table.

        Raises:
            ColumnError: The user gave a schema with a column that is not there.
            UnsupportedError: The user gave another type.
        """
        options = SourceOptions.parse(self.options, schema)
        settings = _settings(options)
        with using(settings):
            table = options.open()
            _check_columns(table, schema)
        cores = self.cores or os.cpu_count() or 1
        return FolderReader(table, schema.names, options, cores, settings)

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """Nothing is written this way."""
        del schema, overwrite
        raise UnsupportedError(
            'format("alcid") only reads: alcid.parquet(path, spark).append(rows) writes'
        )


def source_for(cores: int) -> type[AlcidSource]:
    """The source for a session that runs so many tasks at a time."""
    # A class that no module has goes to the other processes with its attributes.
    return type("SessionSource", (AlcidSource,), {"cores": cores})


class Slice(InputPartition):  # type: ignore[misc]
    """The rows that one task reads."""

    def __init__(self, task: ReadTask) -> None:
        """Take a task of one share."""
        super().__init__(None)
        self.task = task


class FolderReader(DataSourceReader):  # type: ignore[misc]
    """Reads columns of a table."""

    def __init__(
        self,
        table: ParquetTable,
        columns: Sequence[str],
        options: SourceOptions,
        cores: int,
        settings: Settings,
    ) -> None:
        """Prepare to read; nothing is planned before `partitions`.

        Args:
            table: The table.
            columns: Those that are read.
            options: Which rows there are, and in what time zone.
            cores: How many tasks run at a time.
            settings: For all that is done.
        """
        self._table, self._columns, self._options = table, columns, options
        self._cores, self._settings = cores, settings

    def __getstate__(self) -> dict[str, Any]:
        """Workers are given their slice, and need nothing else."""
        return {}

    def partitions(self) -> list[Slice]:
        """The rows, in slices of about the same number of bytes."""
        with using(self._settings):
            draft, is_whole = self._table.scan(self._options.where, columns=self._columns).draft()
            if not is_whole:
                raise PredicateError(
                    f"option where: {self._options.where}: has a part that only Spark can "
                    "evaluate, which belongs in a filter of the DataFrame"
                )
            special = only_for_spark(draft)
            if special:
                raise UnsupportedError(f"{special}: read the files with spark.read.parquet")
            if self._options.timezone is None:
                _check_zones(draft)
            shares = make_shares(draft.sizes, self._cores) if len(draft.sizes) else []
            return [Slice(_task(draft, share)) for share in shares]

    def read(self, partition: Slice | None) -> Iterator[pa.RecordBatch]:
        """The rows of a slice; Spark asks for one even where there is none."""
        return iter(()) if partition is None else partition.task.read(0)


def _settings(options: SourceOptions) -> Settings:
    given = current_settings()
    return given if options.timezone is None else replace(given, timezone=options.timezone)


def _check_zones(draft: Draft) -> None:
    """See that no column that is compared, or in the paths, depends on the time zone.

    Raises:
        UnsupportedError: One does.
    """
    for name in [*draft.table.columns.partitions, *draft.where_columns]:
        if getattr(draft.table.columns.columns[name].arrow_type, "tz", None) is not None:
            raise UnsupportedError(
                f"column {name}: a timestamp in the paths or in the option where, and Spark does "
                'not tell a data source its time zone: give it as .option("timezone", ...)'
            )


def _task(draft: Draft, share: np.ndarray[Any, np.dtype[np.int64]]) -> ReadTask:
    """One task for some candidates, that holds nothing of the others."""
    part = replace(draft, candidates=draft.candidates.take(share)).part()
    return ReadTask(part, [np.arange(len(share))], current_settings())


def _check_columns(table: ParquetTable, wanted: StructType) -> None:
    known = {field.name: field for field in spark_schema(table.schema)}
    for field in wanted:
        if field.name not in known:
            raise ColumnError(
                f"column {field.name}: not in {table.location}; there are {', '.join(known)}"
            )
        found = known[field.name]
        if (field.dataType, field.nullable) != (found.dataType, found.nullable):
            raise UnsupportedError(
                f"column {field.name}: found {_type_text(found)}, expected {_type_text(field)}"
            )


def _type_text(field: Any) -> str:
    return f"{field.dataType.simpleString()}{'' if field.nullable else ' NOT NULL'}"
