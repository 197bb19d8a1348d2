"""What the tests on Spark share beside Spark itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from alcid.errors import UnsupportedError
from alcid.spark.java import ensure_java
from tests.interop.peers import unavailable
from tests.spark.cluster import Cluster, Driver, cluster, driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def other_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A second session; the first one is active again for the next test."""
    yield spark.newSession()
    spark.createDataFrame([(1,)], "x INT")  # makes it the active one


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for the tests of a module, skipped, or failed in CI, where there is no Java."""
    try:
        ensure_java()
    except UnsupportedError as error:
        unavailable(str(error))
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def remote(machines: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A driver of that cluster."""
    folder = tmp_path_factory.mktemp("driver")
    with driver(folder, machines.settings(), machines.python) as found:
        yield found
