"""The peers that the tests of this folder compare us with, started once for each process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.golden.iceberg_jvm import IcebergJvm, iceberg_jvm
from tests.golden.paimon_jvm import PaimonJvm, paimon_jvm
from tests.golden.paimon_tables_jvm import NEWEST, JavaPaimon
from tests.golden.paimon_tables_jvm import java_paimon as java_paimon_jvm
from tests.interop.peers import Jvm, PyPaimon, pypaimon_process, spark_jars_jvm, started

collect_ignore = ["peer_pypaimon.py"]  # no doctests: only its own environment can import it


@pytest.fixture(scope="session")
def jvm() -> Iterator[PaimonJvm]:
    """A JVM with the released Paimon; tests are skipped, or fail in CI, where there is none."""
    needs = "Paimon's Java needs java, mvn, the network and py4j"
    with started(paimon_jvm, needs) as jvm:
        yield jvm


@pytest.fixture(scope="session")
def java_paimon() -> Iterator[JavaPaimon]:
    """Whole tables under the released Paimon, in a JVM with PySpark's jars."""
    needs = "Paimon's Java needs java, mvn, the network, py4j and pyspark"
    with started(java_paimon_jvm, needs) as java:
        yield java


@pytest.fixture(scope="session")
def newest_paimon() -> Iterator[JavaPaimon]:
    """The same with the newest release, for which there is no bundle."""
    needs = "Paimon's Java needs java, mvn, the network, py4j and pyspark"
    with started(partial(java_paimon_jvm, NEWEST), needs) as java:
        yield java


@pytest.fixture(scope="session")
def spark_jvm() -> Iterator[Jvm]:
    """A JVM with the jars of PySpark; they can be used without a session of Spark."""
    with started(spark_jars_jvm, "PySpark's jars need java and pyspark") as jvm:
        yield jvm


@pytest.fixture(scope="session")
def iceberg_java() -> Iterator[IcebergJvm]:
    """A JVM with the released Iceberg."""
    needs = "Iceberg's Java needs java, mvn, the network, py4j and pyspark"
    with started(iceberg_jvm, needs) as jvm:
        yield jvm


@pytest.fixture(scope="session")
def pypaimon() -> Iterator[PyPaimon]:
    """A process with the released pypaimon; its environment is made on the first use."""
    with started(pypaimon_process, "pypaimon needs the network, to be installed") as process:
        yield process
