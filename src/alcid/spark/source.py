"""`spark.read.format("alcid")`: a folder of Parquet files as a data source of Spark.

Spark calls it in processes of its own: one asks for the schema, one for the slices that tasks read,
and the workers read a slice each.

No filters are taken from Spark, though its interface allows it. Spark 4.1 keeps what a source
planned with the filters of one use of a DataFrame, and reads the same for every other use of it:
after `rows.where("a = 1").count()`, `rows.count()` would count those rows only. The predicate for
the indexes is an option, `where`, which holds for every use.

For a table of a catalog, Spark gives the options to a Python data source once, when the table is
created. For each query it gives the columns only, as the catalog keeps them. So the options are
kept there: in the metadata of the first column.

The module needs PySpark when it is loaded, as its classes have bases there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from alcid.config import Settings, current_settings, using
from alcid.errors import ColumnError, OptionError, PredicateError, UnsupportedError
from alcid.scan import ReadPlan, ScanPlan
from alcid.spark.reading import ReadTasks, only_for_spark, split_plan
from alcid.spark.schema import spark_schema
from alcid.tables.parquet_table import ParquetTable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_METADATA = "alcid"
# What a catalog adds of its own.
_OF_CATALOG = ("comment", "external", "is_managed_location", "location", "owner", "provider")
_NAMES = ("index_path", "strict", "timezone", "where")
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where a table is, and how it is read."""

    path: str
    index_path: str | None = None
    strict: bool = False
    timezone: str | None = None
    where: str | None = None
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, options: Mapping[str, str], schema: StructType | None = None) -> SourceOptions:
        """Read options; without any, those that the schema keeps.

        Raises:
            OptionError: There is no path, a flag that is none, or a name that is misspelt.

        >>> SourceOptions.parse({"path": "data/events", "strict": "true", "region": "eu-west-1"})
        SourceOptions(path='data/events', index_path=None, strict=True, timezone=None, where=None)
        """
        if not options and schema is not None and schema.fields:
            options = schema.fields[0].metadata.get(_METADATA, {})
        own = {
            name: value
            for name, value in options.items()
            if name not in _OF_CATALOG and not name.startswith("option.")
        }
        path = own.pop("path", None)
        if path is None:
            raise OptionError(
                "path: found none, or several, expected that of one folder; "
                "CREATE TABLE keeps it if no columns are given"
            )
        for name in own.keys() - set(_NAMES):
            if near := get_close_matches(name, _NAMES, 1):
                raise OptionError(f"option {name}: not known, did you mean {near[0]}?")
        return cls(
            path,
            own.pop("index_path", None),
            _flag("strict", own.pop("strict", "false")),
            own.pop("timezone", None),
            own.pop("where", None),
            own,
        )

    def open(self) -> ParquetTable:
        """Open the table."""
        return ParquetTable.open(
            self.path, storage_options=self.storage, index_path=self.index_path, strict=self.strict
        )

    def keep_in(self, schema: StructType) -> StructType:
        """Columns for a catalog, from which `parse` has the options again.

        Raises:
            OptionError: There are storage options, which may be secret.
        """
        from pyspark.sql.types import StructField, StructType

        if self.storage:
            raise OptionError(
                f"{', '.join(sorted(self.storage))}: not kept in a catalog, as storage options may "
                "be secret; CREATE TEMPORARY VIEW takes them"
            )
        texts = {
            "path": self.path,
            "index_path": self.index_path,
            "strict": str(self.strict).lower(),
            "timezone": self.timezone,
            "where": self.where,
        }
        kept = {name: value for name, value in texts.items() if value is not None}
        first, *others = schema.fields
        metadata = {**first.metadata, _METADATA: kept}
        return StructType(
            [StructField(first.name, first.dataType, first.nullable, metadata), *others]
        )


def _flag(name: str, text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise OptionError(f"{name}: found {text!r}, expected true or false")
    return _FLAGS[text.lower()]


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

    def __init__(self, plan: ReadPlan, settings: Settings) -> None:
        """Take what is read, and the settings to read it with."""
        super().__init__(None)
        self.plan, self.settings = plan, settings


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
        """Prepare to read some columns; nothing is planned before `partitions`."""
        self._table, self._columns, self._options = table, columns, options
        self._cores, self._settings = cores, settings

    def __getstate__(self) -> dict[str, Any]:
        """Workers are given their slice, and need nothing else."""
        return {}

    def partitions(self) -> list[Slice]:
        """The rows, in slices of about the same number of bytes."""
        with using(self._settings):
            plan, is_whole = self._table.scan(self._options.where, columns=self._columns).plan()
            if not is_whole:
                raise PredicateError(
                    f"option where: {self._options.where}: has a part that only Spark can "
                    "evaluate, which belongs in a filter of the DataFrame"
                )
            special = only_for_spark(plan)
            if special:
                raise UnsupportedError(f"{special}: read the files with spark.read.parquet")
            if self._options.timezone is None:
                _check_zones(plan)
            parts = split_plan(plan, self._cores) if len(plan.sizes) else []
            return [Slice(part, current_settings()) for part in parts]

    def read(self, partition: Slice | None) -> Iterator[pa.RecordBatch]:
        """The rows of a slice; Spark asks for one even where there is none."""
        if partition is None:
            return iter(())
        return ReadTasks(partition.settings).read(partition.plan)


def _settings(options: SourceOptions) -> Settings:
    settings = current_settings()
    return settings if options.timezone is None else replace(settings, timezone=options.timezone)


def _check_zones(plan: ScanPlan) -> None:
    """See that no column that is compared, or in the paths, depends on the time zone.

    Raises:
        UnsupportedError: One does.
    """
    for name in [*plan.table.columns.partitions, *plan.where_columns]:
        if getattr(plan.table.columns.columns[name].arrow_type, "tz", None) is not None:
            raise UnsupportedError(
                f"column {name}: a timestamp in the paths or in the option where, and Spark does "
                'not tell a data source its time zone: give it as .option("timezone", ...)'
            )


def _check_columns(table: ParquetTable, wanted: StructType) -> None:
    columns = {column.name: column for column in spark_schema(table.schema)}
    for column in wanted:
        if column.name not in columns:
            raise ColumnError(
                f"column {column.name}: not in {table.location}; there are {', '.join(columns)}"
            )
        own = columns[column.name]
        if (column.dataType, column.nullable) != (own.dataType, own.nullable):
            raise UnsupportedError(
                f"column {column.name}: found {_type_text(own)}, expected {_type_text(column)}"
            )


def _type_text(field: Any) -> str:
    return f"{field.dataType.simpleString()}{'' if field.nullable else ' NOT NULL'}"
