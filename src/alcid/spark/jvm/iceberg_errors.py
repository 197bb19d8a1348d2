"""What Iceberg's Java raises, as errors of this library: one line each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alcid.errors import AlcidError, ConflictError, StorageError, UnsupportedError

__all__ = ["java_errors"]

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
    said = _first_line(exception.getMessage())
    if kind in _GONE:
        return StorageError("no such table", file=name)
    if kind == "CommitStateUnknownException":
        return StorageError(
            f"the commit may have happened or not, so that no file of it is removed: {said}",
            file=name,
        )
    if kind in _CONFLICTS:
        return ConflictError(f"{name}: {said}")
    return StorageError(f"{kind}: {said}", file=name)


def _of_spark(name: str, error: Any) -> AlcidError:
    from pyspark.errors import AnalysisException

    said = _first_line(error)
    if "not an Iceberg table" in said:
        return UnsupportedError(
            f"{name}: not an Iceberg table: alcid.parquet and alcid.paimon open others"
        )
    if (error.getCondition() or "").split(".")[0] in _UNKNOWN_NAME:
        return StorageError("no such table in the catalogs of the session", file=name)
    if _LOST_HISTORY in said:  # before anything is committed
        return ConflictError(f"{name}: {said}")
    if isinstance(error, AnalysisException):
        return UnsupportedError(f"{name}: {said}")
    return StorageError(said, file=name)


def _first_line(said: object) -> str:
    return (str(said).strip().splitlines() or [""])[0]
