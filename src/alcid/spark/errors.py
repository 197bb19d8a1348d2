"""What Spark raises, as errors of this library: one line each, for the command line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from alcid.errors import AlcidError, PredicateError, UnsupportedError
from alcid.options import did_you_mean
from alcid.spark.jvm import spark_exceptions

_NO_TABLE = re.compile(r"^The table or view `([^`]+)` cannot be found")
_STATE = re.compile(r"[. ]*SQLSTATE: \w+")
_CALL = "An error occurred while calling"  # of a method of Java, by Py4J
_CLASS = re.compile(r"^: (?:[\w$]+\.)+[\w$]+: ")
_CONDITION = re.compile(r"^\[([A-Z_.0-9]+)\] ")
_NO_PACKAGE = re.compile(r"ModuleNotFoundError: No module named '(alcid|pyspark_alcid)\b")
# A result that comes through a socket has the cause of its end far below in what Java raises.
_CANCELLED = re.compile(
    r"(?<=\[SPARK_JOB_CANCELLED\] )Job \d+ cancelled[^\n]*?(?= SQLSTATE|\n|$)"
    r"|(?<=\[OPERATION_CANCELED\] )Operation has been canceled"  # over Spark Connect
)
_TOO_LARGE = re.compile(
    r"Total size of serialized results of [^\n]*? is bigger than spark\.driver\.maxResultSize[^\n]*"
)
_MISSING_PACKAGE = (
    "the Python of Spark's executors has no alcid: install it there, or ship it with the job: "
    "spark-submit --py-files alcid.zip, or spark.addArtifacts('alcid.zip', pyfile=True) "
    "over Spark Connect"
)


@contextmanager
def spark_errors(tables: Collection[str] = ()) -> Iterator[None]:
    """Raise what Spark raises within as one line; a query may have mistyped one of the tables.

    Raises:
        PredicateError: Spark does not understand the query.
        AlcidError: It failed while it ran.
    """
    try:
        yield
    except Exception as error:
        ours = spark_error(error, tables)
        if ours is None:
            raise
        raise ours from error


@contextmanager
def job_errors() -> Iterator[None]:
    """Say in one line why a job was ended, where it was not for what a task has done.

    Raises:
        UnsupportedError: The Python that runs the tasks cannot import Alcid.
        AlcidError: The job was cancelled, or what it gives is more than the driver takes.
    """
    try:
        yield
    except spark_exceptions() as error:
        ours = _job_error(str(error))
        if ours is None:
            raise
        raise ours from error


def _job_error(message: str) -> AlcidError | None:
    if _NO_PACKAGE.search(message):
        return UnsupportedError(_MISSING_PACKAGE)
    if cancelled := _CANCELLED.search(message):
        return AlcidError(f"Spark: {cancelled[0]}")
    if too_large := _TOO_LARGE.search(message):
        return AlcidError(f"Spark: {too_large[0]}: raise it, or work on fewer files at a time")
    return None


def spark_error(error: Exception, tables: Collection[str] = ()) -> AlcidError | None:
    """What Spark raised as an error of this library; None if it is not Spark's."""
    from pyspark.errors import AnalysisException

    if isinstance(error, spark_exceptions()) and (ours := _job_error(str(error))):
        return ours
    if isinstance(error, AnalysisException):
        return PredicateError(_line(error, tables))
    if isinstance(error, spark_exceptions()):
        return AlcidError(_line(error, tables))
    return None


def _line(error: Exception, tables: Collection[str]) -> str:
    """The first sentence that says something, without Spark's name for it."""
    lines = [line.strip() for line in str(error).strip().splitlines()]
    first, *others = [line for line in lines if line] or [type(error).__name__]
    if first.startswith(_CALL) and others:  # then comes what Java raised
        first = _CLASS.sub("", others[0])
    message = _STATE.sub("", _CONDITION.sub("", first)).rstrip(";")
    missing = _NO_TABLE.match(message)
    if missing is None:
        return f"Spark: {message}"
    names = ", ".join(tables) or "none"
    hint = did_you_mean(missing[1], tables) or f"; --table gave {names}"
    return f"no such table: {missing[1]}{hint}"
