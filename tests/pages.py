"""Which pages of the documents need Spark: `test_docs.py` gives it to them, in its own process."""

from __future__ import annotations

__all__ = ["ICEBERG_PAGES", "SPARK_PAGES"]

ICEBERG_PAGES = frozenset({"README.md", "iceberg-tables.md"})
"""By name, in the order of their tests: those that also need Iceberg's jar."""
SPARK_PAGES = ICEBERG_PAGES | {
    "paimon-tables.md",
    "sizing-spark-jobs.md",
    "spark.md",
    "upserts.md",
}
