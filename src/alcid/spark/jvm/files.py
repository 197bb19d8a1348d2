"""Spark's own Parquet reader, for any number of files that are named one by one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from alcid.spark.jvm import has_jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_LOCAL_PATHS = 10_000
"""Files on a disk, up to which the driver looks at them itself: a job would take longer."""


def java_list(jvm: Any, texts: Sequence[str]) -> Any:
    """Texts as a list of Java, in one call whatever their number."""
    read_json, array_list = _json_reader(jvm)
    return read_json(json.dumps(list(texts)), array_list)


@lru_cache(maxsize=1)
def _json_reader(jvm: Any) -> tuple[Any, Any]:
    """What reads JSON in Java, and the class of a list: each step to them is a call."""
    mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper()
    return mapper.readValue, jvm.java.lang.Class.forName("java.util.ArrayList")


def read_parquet(
    spark: SparkSession, paths: Sequence[str], schema: StructType, base_path: str | None = None
) -> DataFrame:
    """The rows of some files.

    Args:
        spark: The session.
        paths: The files. PySpark would hand each to Java in a call of its own.
        schema: Their columns, and those in their paths.
        base_path: The folder below which folders are partitions; None if no column is in the paths.
    """
    if not has_jvm(spark):
        reader = spark.read.schema(schema)
        if base_path is not None:
            reader = reader.option("basePath", base_path)
        return reader.parquet(*paths)
    from pyspark.sql import DataFrame

    own, java_schema = spark._jsparkSession, spark._jsparkSession.parseDataType(schema.json())
    java_paths = spark._jvm.PythonUtils.toSeq(java_list(spark._jvm, paths))

    def read_in(session: Any) -> Any:
        reader = session.read().schema(java_schema)
        if base_path is not None:
            reader = reader.option("basePath", base_path)
        return reader.parquet(java_paths)

    session = _looking_itself(own) if paths and paths[0].startswith("file:") else own
    rows = read_in(session)
    if session is own:
        return DataFrame(rows, spark)
    plan = rows.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "LogicalRelation":  # the user has chosen another reader
        return DataFrame(read_in(own), spark)
    # The files as the copy has listed them, in the user's session, whose settings count later.
    relation = plan.relation()
    parts = (
        relation.location(),
        relation.partitionSchema(),
        relation.dataSchema(),
        relation.bucketSpec(),
        relation.fileFormat(),
        relation.options(),
    )
    return DataFrame(own.baseRelationToDataFrame(relation.copy(*parts, own)), spark)


def _looking_itself(own: Any) -> Any:
    """A copy of a session, in which the driver looks at files on a disk without a job.

    There is no option of a reader for that, and the setting of the user's session stays as it is.
    """
    if int(own.conf().get(_THRESHOLD)) >= _LOCAL_PATHS:
        return own
    session = own.cloneSession()
    session.conf().set(_THRESHOLD, str(_LOCAL_PATHS))
    return session
