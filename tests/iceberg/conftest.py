"""What the tests on Iceberg tables share: a session with Iceberg, and names for tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest

from alcid.spark import jvm
from alcid.spark.jvm.iceberg import RUNTIME_CLASS
from tests.iceberg.lake import LAKE, lake_session
from tests.interop.peers import unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def lake(spark: SparkSession) -> SparkSession:
    """A session of the Spark that all tests share; its catalog `lake` is a folder of tables."""
    if not jvm.has_class(spark, RUNTIME_CLASS):
        unavailable("Iceberg's Spark runtime needs mvn and the network")
    return lake_session(spark)


@pytest.fixture(autouse=True)
def _active(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make the session of the other tests the active one again after each test."""
    needs_lake = "lake" in request.fixturenames
    spark = request.getfixturevalue("spark") if needs_lake else None
    yield
    if spark is not None:
        spark.createDataFrame([(1,)], "x INT")


@pytest.fixture
def name(lake: SparkSession) -> Iterator[str]:
    """The name of a table that does not exist yet; the table is dropped after the test."""
    table_name = f"{LAKE}.db.t{next(_NUMBERS)}"
    yield table_name
    lake.sql(f"DROP TABLE IF EXISTS {table_name}")
