"""All that needs the JVM of the driver, which Spark Connect does not show.

Each function says what it gives without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "active",
    "has_class",
    "has_jvm",
    "is_stopped",
    "map_in_arrow",
    "parallelism",
    "plan_size",
    "progress_counter",
    "silence",
    "spark_exceptions",
    "streaming_query",
]

_UNKNOWN_CORES = 8
_QUERY_ID = "sql.streaming.queryId"  # a property of the thread that Spark runs a batch in


def has_jvm(spark: SparkSession) -> bool:
    """Whether the driver's JVM can be asked."""
    return hasattr(spark, "_jsparkSession")


def is_stopped(spark: SparkSession) -> bool:
    """Whether the session was stopped; without a JVM, it is taken not to be."""
    return has_jvm(spark) and spark.sparkContext._jsc is None


@contextmanager
def active(spark: SparkSession, java_session: Any = None) -> Iterator[None]:
    """Let Spark's parser and rules go by the settings of a session, in this thread.

    They take those of the session that is active, which may be another: Spark itself makes the
    right one active in `spark.sql`. `java_session` may be a copy of the session in Java. Without a
    JVM, nothing is done.
    """
    if not has_jvm(spark):
        yield
        return
    sessions = spark._get_j_spark_session_class(spark._jvm)
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession if java_session is None else java_session)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at a time; without a JVM, a guess."""
    return int(spark.sparkContext.defaultParallelism) if has_jvm(spark) else _UNKNOWN_CORES


_UNLIKELY_BYTES = (
    1 << 50
)  # Spark multiplies the sizes of what is joined, and takes 2^63 for unknown


def plan_size(rows: DataFrame) -> tuple[int, int | None] | None:
    """How many bytes and rows the optimizer expects of a DataFrame; None without a JVM.

    It is also None where Spark does not know, for what comes from an RDD, say, or cannot, as for
    many a join. Rows are only known of few plans.
    """
    if not has_jvm(rows.sparkSession):
        return None
    statistics = rows._jdf.queryExecution().optimizedPlan().stats()
    size = int(str(statistics.sizeInBytes()))
    if size >= _UNLIKELY_BYTES:
        return None
    count = statistics.rowCount()
    return size, int(str(count.get())) if count.isDefined() else None


def streaming_query(spark: SparkSession) -> str | None:
    """The id of the streaming query whose batch this thread does; without a JVM, not known."""
    query_id = spark.sparkContext.getLocalProperty(_QUERY_ID) if has_jvm(spark) else None
    return None if query_id is None else str(query_id)


def spark_exceptions() -> tuple[type[Exception], ...]:
    """What Spark raises of its own, and for what its JVM raises."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def silence(spark: SparkSession) -> None:
    """Let the JVM log nothing of errors, which are raised, too; without a JVM, nothing is done."""
    if has_jvm(spark):
        spark.sparkContext.setLogLevel("FATAL")


def has_class(spark: SparkSession, name: str) -> bool:
    """Whether the driver has a class of Java; without a JVM, it is taken not to have it."""
    if not has_jvm(spark):
        return False
    from py4j.protocol import Py4JError

    try:
        spark._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    except Py4JError:
        return False
    return True


def map_in_arrow(rows: DataFrame, function: Any, schema: StructType | str) -> DataFrame:
    """`DataFrame.mapInArrow`, which asks for pandas though it does not use it."""
    if not has_jvm(rows.sparkSession):
        return rows.mapInArrow(function, schema)
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.functions import vectorized_udf  # type: ignore[attr-defined]
    from pyspark.util import PythonEvalType

    mapped = vectorized_udf(function, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = mapped(*(rows[name] for name in rows.columns))
    return DataFrame(rows._jdf.mapInArrow(column._jc, False, None), rows.sparkSession)


def progress_counter(spark: SparkSession) -> Any:
    """A number that tasks add to, and of which the driver sees what ended tasks have added.

    It has `add` and `value`; without a JVM it is None.
    """
    return spark.sparkContext.accumulator(0) if has_jvm(spark) else None
