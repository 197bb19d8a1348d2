"""Where Spark looks for data sources: it makes `spark.read.format("alcid")` work in any session."""

from __future__ import annotations

from alcid.spark.source import AlcidSource

__all__ = ["DefaultSource"]


class DefaultSource(AlcidSource):
    """A folder of Parquet files."""
