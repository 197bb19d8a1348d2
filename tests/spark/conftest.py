"""What the tests on Spark share beside Spark itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def other_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A second session; the first one is active again for the next test."""
    yield spark.newSession()
    spark.createDataFrame([(1,)], "x INT")  # makes it the active one
