"""An Iceberg table of a session's catalogs: what `IcebergTable` asks of Spark.

Where the catalogs do not have a table, the error says whether the name is that of a view, or like
that of another table. Delete files go to Java as JSON: many of them at once, as the deletes of one
scan task.
"""

from __future__ import annotations

import json
import math
import re
import weakref
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa

from alcid.errors import ConflictError, FileGoneError, StorageError, UnsupportedError
from alcid.expressions.render import quote_literal
from alcid.options import did_you_mean
from alcid.spark import jvm
from alcid.spark.errors import job_errors
from alcid.spark.jobs import job_description
from alcid.spark.jvm import spark_exceptions
from alcid.spark.jvm.iceberg import RUNTIME_CLASS, JavaTable, java_errors
from alcid.spark.jvm.threads import described
from alcid.spark.schema import quoted
from alcid.tables.iceberg.catalog import OwnQuery, RemovedDeletes, VectorCommit, VectorFile
from alcid.tables.iceberg.deletes.plan import PATH_FIELD
from alcid.tables.iceberg.file_io import s3_options
from alcid.tables.iceberg.metadata.entries import METRICS
from alcid.tables.iceberg.metadata.table_metadata import StatisticsFile, TableMetadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_CATALOG = re.compile(r"spark\.sql\.catalog\.([^.]+)")


def is_view(session: SparkSession, name: str) -> bool:
    """Whether a name is that of a view, temporary or of a catalog."""
    try:
        return session.catalog.getTable(name).tableType in ("TEMPORARY", "VIEW")
    except spark_exceptions():  # there is nothing of that name, or it may not be looked up
        return False


def near_names(session: SparkSession, name: str) -> str:
    """A hint for the end of an error: catalogs, databases or tables with names like these.

    It is empty where nothing is like it, or the catalog cannot be asked.
    """
    parts = [part[1].replace("``", "`") if part[1] else part[2] for part in _PART.finditer(name)]
    catalogs = {key[1] for key in map(_CATALOG.fullmatch, session.conf.getAll) if key}
    if len(parts) > 2 and parts[0] not in catalogs | {"spark_catalog"}:
        names = ", ".join(sorted(catalogs)) or "none but spark_catalog"
        hint = did_you_mean(parts[0], catalogs) or f"; the session has {names}"
        return f": no catalog {parts[0]}{hint}"
    inside = ".".join(map(quoted, parts[:-1]))
    try:
        tables = session.sql(f"SHOW TABLES IN {inside}" if inside else "SHOW TABLES").collect()
    except spark_exceptions():  # no such database, or one that may not be listed
        return ""
    return did_you_mean(parts[-1], [row["tableName"] for row in tables])


_UNBOUND = "any"  # the data file of the task, which nobody looks at


def scan_tasks(
    metadata: Mapping[str, Any], files: Sequence[VectorFile | RemovedDeletes]
) -> list[str]:
    """Delete files as the JSON of scan tasks, one for each partition spec.

    Raises:
        UnsupportedError: A partition that cannot be expressed: one of a dropped column, or a value
            that JSON has no word for.
    """
    specs = {spec["spec-id"]: spec for spec in metadata["partition-specs"]}
    [schema] = [
        schema
        for schema in metadata["schemas"]
        if schema["schema-id"] == metadata["current-schema-id"]
    ]
    by_spec = defaultdict[int, list[dict[str, Any]]](list)
    for file in files:
        by_spec[file.spec_id].append(_delete_file(file))
    return [json.dumps(_task(schema, specs[spec], files)) for spec, files in by_spec.items()]


def _task(
    schema: Mapping[str, Any], spec: Mapping[str, Any], deletes: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    _check(schema, spec)
    data_file = {
        "spec-id": spec["spec-id"],
        "content": "data",
        "file-path": _UNBOUND,
        "file-format": "parquet",
        "partition": deletes[0]["partition"],
        "file-size-in-bytes": 1,
        "record-count": 1,
    }
    return {
        "task-type": "file-scan-task",
        "schema": schema,
        "spec": spec,
        "data-file": data_file,
        "start": 0,
        "length": 1,
        "delete-files": deletes,
        "residual-filter": True,
    }


def _check(schema: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
    field_ids = set(_ids(schema))
    for field in spec["fields"]:
        # Iceberg does not show values of such a field any more, but compares them.
        if not field_ids.issuperset(field.get("source-ids") or [field["source-id"]]):
            raise UnsupportedError(
                f"partition field {field['name']}: its column is dropped, so that no rows can be "
                "deleted from these files: rewrite them first, as with rewrite_data_files"
            )


def _delete_file(file: VectorFile | RemovedDeletes) -> dict[str, Any]:
    kind = "PUFFIN" if isinstance(file, VectorFile) else file.file_format
    content_file = {
        "spec-id": file.spec_id,
        "content": "position-deletes",
        "file-path": file.path,
        "file-format": kind.lower(),
        "partition": [_single_value(value) for value in file.partition],
        "file-size-in-bytes": file.size,
        "record-count": file.cardinality,
        "referenced-data-file": file.data_file,
        "content-offset": file.offset,
        "content-size-in-bytes": file.length,
    }
    return {key: value for key, value in content_file.items() if value is not None}


def _single_value(value: Any) -> Any:
    """A value as Iceberg's JSON has it."""
    match value:
        case float() if not math.isfinite(value):
            raise UnsupportedError(f"partition value {value}: DELETE of Spark can do this")
        case Decimal():
            return format(value, "f")
        case datetime(tzinfo=None):
            return value.isoformat()
        case datetime():
            return value.astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case bytes():
            return value.hex().upper()
        case _:
            return value


def _ids(type_: Any) -> Iterator[int]:
    """The ids of the columns of a schema, and of those within them."""
    if isinstance(type_, Mapping):
        for field in type_.get("fields", ()):
            yield field["id"]
            yield from _ids(field["type"])


_NOT_NEEDED = "column_sizes, split_offsets"  # long, and every runtime has them
_KEY_IN = "map_filter(data_file.{0}, (k, v) -> k IN ({1})) AS {0}"


def _metrics(field_ids: Collection[int]) -> str:
    """The metrics of some columns, in SQL."""
    numbers = ", ".join(map(str, sorted(field_ids))) or "NULL"
    return ", ".join(_KEY_IN.format(name, numbers) for name in METRICS)


_EXPLAINED_ERROR = "Error occurred during query planning"  # EXPLAIN does not raise, it tells
RUNTIME_PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"


class SparkCatalogTable:
    """A table of a session's catalogs, whichever kind of catalog they are."""

    def __init__(self, session: SparkSession, name: str) -> None:
        """Look it up by its name, as in SQL.

        Raises:
            StorageError: There is none.
            UnsupportedError: It is none of Iceberg, the session has no Iceberg, or no JVM.
        """
        if not hasattr(session, "conf"):
            raise UnsupportedError(
                f"spark: found {_class_name(session)}, expected a Spark session with Iceberg's "
                "runtime, whose catalogs have the table: alcid.session(config=...)"
            )
        if not jvm.has_jvm(session):
            raise UnsupportedError(
                "Iceberg tables need a session with a JVM of its own, found Spark Connect: "
                "alcid.session() or SparkSession.builder starts one"
            )
        if jvm.is_stopped(session):
            raise UnsupportedError("the session is stopped: start another, as alcid.session() does")
        if not jvm.has_class(session, RUNTIME_CLASS):
            raise UnsupportedError(
                "the session has no Iceberg: start it with spark.jars.packages set to "
                f"{RUNTIME_PACKAGE}, or the build for your Spark"
            )
        self.session = session
        try:
            self._java = JavaTable(session, name)
        except StorageError as error:
            if not error.problem.startswith("no such table"):
                raise
            if is_view(session, name):
                raise UnsupportedError(
                    f"{name}: a view, expected an Iceberg table: open the table that it selects "
                    "from, or ask the view itself with spark.sql"
                ) from None
            raise StorageError(error.problem + near_names(session, name), file=name) from None
        self.name, self._sql_name = self._java.name, self._java.sql_name
        # The file of each metadata that were given out, so that a commit is against just these.
        self._files: dict[int, tuple[weakref.ref[TableMetadata], str]] = {}

    def load(self) -> TableMetadata:
        """The metadata as they are now."""
        file, text = self._java.metadata()
        metadata = TableMetadata.from_json(text, name=self.name)
        key, files = id(metadata), self._files
        files[key] = weakref.ref(metadata, lambda _: files.pop(key, None)), file
        return metadata

    def entries(self, snapshot_id: int, *, metrics: bool = True) -> pa.Table:
        """The live data and delete files of a snapshot: one Spark job.

        Args:
            snapshot_id: The snapshot.
            metrics: Whether those of all columns are listed; if not, only those of the paths in
                delete files are, and the table does not grow with the columns.

        Raises:
            FileGoneError: The snapshot is expired.
            UnsupportedError: Iceberg's metadata tables do not read this table.
        """
        if metrics:
            wanted = f"data_file.* EXCEPT ({_NOT_NEEDED})"
        else:
            names = ", ".join(METRICS)
            wanted = f"data_file.* EXCEPT ({_NOT_NEEDED}, {names}), {_metrics([PATH_FIELD])}"
        return self._entries(snapshot_id, f"sequence_number, {wanted}")

    def metrics(self, snapshot_id: int, field_ids: Collection[int]) -> pa.Table:
        """The metrics of some columns of the live data files of a snapshot: one Spark job.

        Raises:
            FileGoneError: The snapshot is expired.
            UnsupportedError: Iceberg's metadata tables do not read this table.
        """
        wanted = f"data_file.file_path, {_metrics(field_ids)}"
        return self._entries(snapshot_id, wanted, "data_file.content = 0")

    def _entries(self, snapshot_id: int, wanted: str, where: str = "true") -> pa.Table:
        version = f"{self._sql_name}.entries VERSION AS OF {snapshot_id}"
        query = f"SELECT {wanted} FROM {version} WHERE status < 2 AND {where}"
        try:
            with java_errors(self.name), self._described("listing files"):
                entries = self.session.sql(query).toArrow()
        except ConflictError as error:  # of the names or ids of partition fields, not of commits
            raise UnsupportedError(f"metadata table entries: {error}") from None
        # One that is not there has no entries, as Iceberg sees it; snapshots never come back.
        if not len(entries) and not self._java.has_snapshot(snapshot_id):
            raise FileGoneError(f"no snapshot {snapshot_id} any more", file=self.name)
        return entries

    def storage_options(self, location: str) -> dict[str, str]:
        """The options by which the table's own `FileIO` reads files of S3 below a location."""
        if urlsplit(location).scheme not in ("s3", "s3a", "s3n"):
            return {}
        return s3_options(location, *self._java.file_settings())

    def working_folder(self) -> str:
        """What paths without a root are below: the folder in which the driver's Java was started.

        With a file system of Hadoop that is not local, it is the user's folder there.
        """
        return self._java.working_folder()

    def data_location(self, name: str) -> str:
        """Where the table wants a data or delete file of a name."""
        return self._java.data_location(name)

    def metadata_location(self, name: str) -> str:
        """Where the table wants a file of a name beside its metadata."""
        return self._java.metadata_location(name)

    def set_statistics(self, base: TableMetadata, statistics: StatisticsFile) -> None:
        """Register the statistics file of a snapshot.

        Raises:
            ConflictError: The metadata are not those of `base` any more.
        """
        update = {"snapshot-id": statistics.snapshot_id, "statistics": statistics.to_json()}
        self._update(base, {"action": "set-statistics", **update})

    def remove_statistics(self, base: TableMetadata, snapshot_id: int) -> None:
        """Let a snapshot have no statistics file.

        Raises:
            ConflictError: The metadata are not those of `base` any more.
        """
        self._update(base, {"action": "remove-statistics", "snapshot-id": snapshot_id})

    def set_property(self, base: TableMetadata, name: str, value: str | None) -> None:
        """Set a table property; None removes it.

        Raises:
            ConflictError: The metadata are not those of `base` any more.
        """
        if value is None:
            self._update(base, {"action": "remove-properties", "removals": [name]})
        else:
            self._update(base, {"action": "set-properties", "updates": {name: value}})

    def _update(self, base: TableMetadata, change: dict[str, Any]) -> None:
        listed = self._files.get(id(base))
        if listed is None or listed[0]() is not base:
            raise ConflictError(f"{self.name}: metadata that were not loaded here: load them again")
        self._java.update(listed[1], json.dumps(change))

    def commit_vectors(self, change: VectorCommit) -> int:
        """Commit deletion vectors, and return the new snapshot.

        Raises:
            ConflictError: A data file is gone, or has got another vector, since the snapshot.
        """
        metadata = json.loads(self._java.metadata()[1])
        return self._java.commit_deletes(
            change.snapshot_id,
            [file.data_file for file in change.added],
            scan_tasks(metadata, change.added),
            scan_tasks(metadata, change.removed),
        )

    def append(self, rows: DataFrame) -> None:
        """Append the rows of a DataFrame, by Iceberg's own writer.

        Columns go by their names; those that are missing get their defaults, or null.
        """
        with java_errors(self.name), self._described("writing rows"), job_errors():
            rows.sparkSession.sql(f"INSERT INTO {self._sql_name} BY NAME TABLE {{rows}}", rows=rows)

    def _described(self, work: str) -> AbstractContextManager[None]:
        return described(self.session, job_description(self.name, work))

    def check_append(self, rows: DataFrame) -> None:
        """See that the columns of a DataFrame can be appended, as Iceberg's own writer sees it."""
        with java_errors(self.name):
            insert = f"EXPLAIN INSERT INTO {self._sql_name} BY NAME TABLE {{rows}}"
            explained = rows.sparkSession.sql(insert, rows=rows).collect()
        head, *problem = "\n".join(str(row[0]) for row in explained).splitlines() or [""]
        if head.startswith(_EXPLAINED_ERROR):
            raise UnsupportedError(f"{self.name}: {next(filter(None, problem), head)}")

    def rows(self, query: OwnQuery) -> DataFrame:
        """The rows of a query as a DataFrame, by Iceberg's own scan."""
        version = (
            f" VERSION AS OF {quote_literal(query.version)}" if query.version is not None else ""
        )
        source = f"{self._sql_name}{version}"
        if query.is_filtered_above:  # no filter goes down past one that is not deterministic
            source = f"(SELECT * FROM {source} WHERE monotonically_increasing_id() >= 0)"
        where = f" WHERE {query.where}" if query.where is not None else ""
        order = f" ORDER BY {', '.join(query.order_by)}" if query.order_by else ""
        limit = f" LIMIT {query.limit}" if query.limit is not None else ""
        columns = ", ".join(map(quoted, query.columns)) or "1"
        from pyspark.errors import UnsupportedOperationException

        try:
            return self.session.sql(f"SELECT {columns} FROM {source}{where}{order}{limit}")
        except UnsupportedOperationException as error:  # as of a column of a type of Iceberg alone
            raise UnsupportedError(f"{self.name}: Iceberg's own scan: {error}") from error


def _class_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
