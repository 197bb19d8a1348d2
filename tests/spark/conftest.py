"""What the tests on Spark share beside Spark itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from alcid.spark.jvm import active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def other_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A second session; the one that was active before it is so again for the next test."""
    with active(spark):
        yield spark.newSession()
