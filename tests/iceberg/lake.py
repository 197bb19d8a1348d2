"""The catalog `lake`: Iceberg tables in a folder, for the Spark that the tests share."""

from __future__ import annotations

from pathlib import Path

from tests.golden.iceberg_jvm import RUNTIME
from tests.golden.jvm import fetch_jar
from tests.interop.peers import UNAVAILABLE

__all__ = ["LAKE", "lake_settings"]

LAKE = "lake"


def lake_settings(warehouse: Path) -> dict[str, str]:
    """What a session has to be started with; nothing if the jar cannot be had."""
    try:
        jar = fetch_jar(RUNTIME)
    except UNAVAILABLE:
        return {}
    return {
        "spark.driver.extraClassPath": str(jar),
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        f"spark.sql.catalog.{LAKE}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{LAKE}.type": "hadoop",
        f"spark.sql.catalog.{LAKE}.warehouse": str(warehouse),
    }
