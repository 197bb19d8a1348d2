"""A table as the session's catalogs know it, over Iceberg's Java API.

As few calls as possible are made, and none for each file: JSON takes many things over at once, and
where Java wants one call for each of them, Java makes these calls. What Java raises becomes an
error of this library, of one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from alcid.errors import AlcidError, ConflictError, StorageError, UnsupportedError
from alcid.spark.jvm import active
from alcid.spark.jvm.files import java_list
from alcid.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONFLICTS = ("CommitFailedException", "ValidationException")
_GONE = ("NoSuchTableException", "NoSuchNamespaceException", "NoSuchIcebergTableException")
_UNKNOWN_NAME = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "REQUIRES_SINGLE_PART_NAMESPACE",
    "PARSE_SYNTAX_ERROR",
)
_LOST_HISTORY = "is not an ancestor of"  # rolled back, or expired, since it was looked at


@contextmanager
def java_errors(name: str) -> Iterator[None]:
    """Raise what Java raises within as errors about a table."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except Py4JJavaError as error:
        raise _of_iceberg(name, _cause(error.java_exception)) from error
    except PySparkException as error:
        raise _of_spark(name, error) from error


def _cause(exception: Any) -> Any:
    """What Spark has wrapped, if it has."""
    while exception.getClass().getSimpleName() == "SparkException" and exception.getCause():
        exception = exception.getCause()
    return exception


def _of_iceberg(name: str, exception: Any) -> AlcidError:
    kind = str(exception.getClass().getSimpleName())
    message = _first_line(exception.getMessage())
    if kind in _GONE:
        return StorageError("no such table", file=name)
    if kind == "CommitStateUnknownException":
        return StorageError(
            f"the commit may have happened or not, so that no file of it is removed: {message}",
            file=name,
        )
    if kind in _CONFLICTS:
        return ConflictError(f"{name}: {message}")
    return StorageError(f"{kind}: {message}", file=name)


def _of_spark(name: str, error: Any) -> AlcidError:
    from pyspark.errors import AnalysisException

    message = _first_line(error)
    if "not an Iceberg table" in message:
        return UnsupportedError(
            f"{name}: not an Iceberg table: alcid.parquet and alcid.paimon open others"
        )
    if (error.getCondition() or "").split(".")[0] in _UNKNOWN_NAME:
        return StorageError("no such table in the catalogs of the session", file=name)
    if _LOST_HISTORY in message:  # before anything is committed
        return ConflictError(f"{name}: {message}")
    if isinstance(error, AnalysisException):
        return UnsupportedError(f"{name}: {message}")
    return StorageError(message, file=name)


def _first_line(message: object) -> str:
    return (str(message).strip().splitlines() or [""])[0]


RUNTIME_CLASS = "org.apache.iceberg.spark.Spark3Util"
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_SELECTORS = ("branch_", "tag_", "snapshot_id_", "at_timestamp_")


class JavaTable:
    """A table of the session's catalogs."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        """Look a table up by the name that the session has for it.

        Raises:
            StorageError: There is none.
            UnsupportedError: It is none of Iceberg, or a metadata table.
        """
        self._spark, self._java = spark, _Java.of(spark._jvm)
        # A catalog that was not used yet is loaded by the settings of the session that is active.
        with java_errors(name), active(spark):
            resolved = self._java.resolve(spark._jsparkSession, name)
            identifier = resolved.identifier()
            last = str(identifier.name())
            parts = [str(resolved.catalog().name()), *map(str, identifier.namespace()), last]
        self.name = ".".join(part if _WORD.fullmatch(part) else quoted(part) for part in parts)
        """As the session calls it, whatever its current catalog is."""
        self.sql_name = ".".join(map(quoted, parts))
        """The same for SQL, where a word may be a keyword."""
        table = self._load()
        if last.startswith(_SELECTORS) and not str(table.name()).endswith(last):
            raise UnsupportedError(
                f"{name}: expected the name of a table; ref=, snapshot_id= and as_of= choose what "
                "is read of it"
            )
        self._operations(table)

    def _load(self) -> Any:
        # The catalog caches tables: this is the object that SELECT uses, too.
        with java_errors(self.name):
            return self._java.load(self._spark._jsparkSession, self.sql_name)

    def _operations(self, table: Any) -> Any:
        from py4j.protocol import Py4JError, Py4JJavaError

        try:
            return table.operations()
        except Py4JJavaError:
            raise
        except Py4JError:  # it has no such method
            raise UnsupportedError(f"{self.name}: a metadata table, expected a table") from None

    def metadata(self) -> tuple[str, str]:
        """The newest metadata: where their file is, which names this state, and the JSON in it."""
        operations = self._operations(self._load())
        with java_errors(self.name):
            metadata = operations.refresh()
            file = str(metadata.metadataFileLocation())
            if int(metadata.formatVersion()) == 1:
                # To write JSON of version 1 lets snapshots without a manifest list forget how
                # their manifests are read: the catalog's own, which every query has, must not.
                metadata = self._java.read_metadata(operations.io(), file)
            return file, str(self._java.to_json(metadata))

    def has_snapshot(self, snapshot_id: int) -> bool:
        """Whether the newest metadata have a snapshot."""
        operations = self._operations(self._load())
        with java_errors(self.name):
            return operations.refresh().snapshot(snapshot_id) is not None

    def update(self, file: str, change: str) -> None:
        """Commit one change of the metadata in a file.

        The change is that of the REST catalog: `{"action": "set-statistics", ...}`.

        Raises:
            ConflictError: The metadata are not these any more.
        """
        operations = self._operations(self._load())
        with java_errors(self.name):
            base = operations.refresh()
            if base.metadataFileLocation() != file:
                raise ConflictError(f"{self.name}: another has committed since {file}")
            builder = self._java.build_from(base)
            self._java.read_update(change).applyTo(builder)
            operations.commit(base, builder.build())

    def commit_deletes(
        self, snapshot_id: int, data_files: Sequence[str], added: Sequence[str], gone: Sequence[str]
    ) -> int:
        """Commit delete files in place of others, and return the new snapshot.

        The rows of `snapshot_id` were looked at, and the data files must still be there. Delete
        files come as JSON of scan tasks, so that the calls are as many for any number of files.

        Raises:
            ConflictError: A data file is gone, or has got other deletes meanwhile.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        table, java = self._load(), self._java
        with java_errors(self.name):
            table.refresh()
            delta = table.newRowDelta()
            for tasks, method in ((added, "addDeletes"), (gone, "removeDeletes")):
                each = java.consumer(delta, method) if tasks else None
                for task in tasks:
                    java.read_task(task, True).deletes().forEach(each)
            delta.validateFromSnapshot(snapshot_id)
            delta.validateDataFilesExist(java_list(self._spark._jvm, data_files))
            delta.validateDeletedFiles()
            delta.commit()
            number = int(delta.updateEvent().snapshotId())
        with suppress(PySparkException, Py4JError):  # it is committed, whatever happens here
            self._spark.catalog.refreshTable(self.sql_name)  # rows of it in the cache of Spark
        return number

    def file_settings(self) -> tuple[dict[str, str], list[tuple[str, dict[str, str]]]]:
        """What the table's own reads of files are set up with.

        First the properties of its `FileIO`, with those of Hadoop's S3 as `fs.s3a.*`; then the
        credentials that the catalog has given for prefixes, the longest prefix last.
        """
        from py4j.protocol import Py4JError

        operations = self._operations(self._load())
        with java_errors(self.name):
            io = operations.io()
            settings = self._java.texts_of(io.properties())
            hadoop = self._spark._jsc.hadoopConfiguration()
            with suppress(Py4JError):  # only Hadoop's own has one
                hadoop = io.getConf()
            prefix = "fs.s3a."
            s3a = self._java.texts_of(hadoop.getPropsWithPrefix(prefix))
            settings |= {prefix + name: value for name, value in s3a.items()}
            credentials: list[tuple[str, dict[str, str]]] = []
            with suppress(Py4JError):  # only some catalogs give them
                credentials = [
                    (str(credential.prefix()), self._java.texts_of(credential.config()))
                    for credential in io.credentials()
                ]
        return settings, sorted(credentials, key=lambda credential: len(credential[0]))

    def working_folder(self) -> str:
        """What Hadoop takes paths without a root to be below."""
        with java_errors(self.name):
            hadoop = self._spark._jsc.hadoopConfiguration()
            files = self._spark._jvm.org.apache.hadoop.fs.FileSystem.get(hadoop)
            return str(files.getWorkingDirectory().toString())

    def data_location(self, name: str) -> str:
        """Where a data or delete file of a name belongs."""
        table = self._load()
        with java_errors(self.name):
            return str(table.locationProvider().newDataLocation(name))

    def metadata_location(self, name: str) -> str:
        """Where a file of a name beside the metadata belongs."""
        operations = self._operations(self._load())
        with java_errors(self.name):
            return str(operations.metadataFileLocation(name))


class _Java:
    """Classes and methods of Iceberg: each step to one, from package to package, is a call."""

    def __init__(self, jvm: Any) -> None:
        iceberg = jvm.org.apache.iceberg
        spark3 = iceberg.spark.Spark3Util
        self.resolve, self.load = spark3.catalogAndIdentifier, spark3.loadIcebergTable
        self.to_json = iceberg.TableMetadataParser.toJson
        self.read_metadata = iceberg.TableMetadataParser.read
        self.read_update = iceberg.MetadataUpdateParser.fromJson
        self.build_from = iceberg.TableMetadata.buildFrom
        self.read_task = iceberg.ScanTaskParser.fromJson
        mapper = iceberg.util.JsonUtil.mapper()
        self._write_json = mapper.writeValueAsString
        lang = jvm.java.lang
        self._class, self._kinds = lang.Class, lang.reflect.Array.newInstance
        self._lookup = lang.invoke.MethodHandles.publicLookup().unreflect
        self._as_instance = lang.invoke.MethodHandleProxies.asInterfaceInstance

    @staticmethod
    @lru_cache(maxsize=1)
    def of(jvm: Any) -> _Java:
        """Those of a JVM, looked up once."""
        return _Java(jvm)

    def texts_of(self, java_map: Any) -> dict[str, str]:
        """A map of Java, in one call."""
        texts: dict[str, str] = json.loads(self._write_json(java_map))
        return texts

    def consumer(self, delta: Any, method: str) -> Any:
        """A method that takes a delete file, so that `forEach` of Java can call it."""
        # Spark has a loader of its own for jars, which `forName` does not ask.
        loader = delta.getClass().getClassLoader()
        kinds = self._kinds(self._class.forName("java.lang.Class"), 1)
        kinds[0] = loader.loadClass("org.apache.iceberg.DeleteFile")
        java_method = loader.loadClass("org.apache.iceberg.RowDelta").getMethod(method, kinds)
        handle = self._lookup(java_method).bindTo(delta)
        return self._as_instance(self._class.forName("java.util.function.Consumer"), handle)
