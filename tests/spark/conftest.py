"""What the tests on Spark share, apart from Spark itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from alcid.errors import UnsupportedError
from alcid.spark.session import ensure_java
from tests.interop.peers import unavailable
from tests.spark.cluster import Cluster, Driver, cluster, driver
from tests.spark.lost_attempts import LostAttempts, lost_attempts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def other_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A second session; the first one is active again for the next test."""
    yield spark.newSession()
    spark.createDataFrame([(1,)], "x INT")  # makes it the active one


@pytest.fixture(scope="session")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for the tests of a process, skipped, or failed in CI, where there is no Java."""
    try:
        ensure_java()
    except UnsupportedError as error:
        unavailable(str(error))
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def remote(machines: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A driver of that cluster."""
    folder = tmp_path_factory.mktemp("driver")
    with driver(folder, machines.settings(), machines.python) as remote_driver:
        yield remote_driver


@pytest.fixture(scope="session")
def attempts(
    spark: SparkSession,  # noqa: ARG001 - there is a Java
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LostAttempts]:
    """A session in which each writing task fails once."""
    with lost_attempts(tmp_path_factory.mktemp("attempts")) as running:
        yield running
