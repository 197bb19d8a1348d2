"""The catalog `lake`: Iceberg tables in a folder, for the Spark that the tests share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.golden.iceberg_jvm import RUNTIME
from tests.golden.jvm import fetch_jar
from tests.interop.peers import UNAVAILABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LAKE", "lake_session", "lake_settings"]

LAKE = "lake"
_EXTENSIONS = "spark.sql.extensions"
_ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


def lake_settings(warehouse: Path) -> dict[str, str]:
    """The settings with which Spark must be started; none if the jar is not available."""
    try:
        jar = fetch_jar(RUNTIME)
    except UNAVAILABLE:
        return {}
    return {
        "spark.jars": str(jar),
        f"spark.sql.catalog.{LAKE}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{LAKE}.type": "hadoop",
        f"spark.sql.catalog.{LAKE}.warehouse": str(warehouse),
    }


def lake_session(spark: SparkSession) -> SparkSession:
    """A session of the same Spark that knows Iceberg's own commands, as ADD PARTITION FIELD.

    The other tests do without it: its parser cannot read everything that Spark's can.
    """
    from pyspark.sql import SparkSession

    sessions = spark._get_j_spark_session_class(spark._jvm)
    settings = spark._jsc.sc().conf()
    settings.set(_EXTENSIONS, _ICEBERG_EXTENSIONS)
    try:
        made = spark._jvm.org.apache.spark.sql.classic.SparkSession.builder().create()
    finally:
        settings.remove(_EXTENSIONS)
        sessions.setDefaultSession(spark._jsparkSession)
        sessions.setActiveSession(spark._jsparkSession)
    return SparkSession(spark.sparkContext, made)
