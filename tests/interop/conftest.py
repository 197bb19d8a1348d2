"""The peers that the tests of this folder hold us against, started once for each process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.golden.iceberg_jvm import IcebergJvm, iceberg_jvm
from tests.golden.paimon_jvm import PaimonJvm, paimon_jvm
from tests.interop.peers import Jvm, PyPaimon, pypaimon_process, spark_jars_jvm, started

collect_ignore = ["peer_pypaimon.py"]  # no doctests: only its own environment can import it


@pytest.fixture(scope="session")
def jvm() -> Iterator[PaimonJvm]:
    """A JVM with the released Paimon; tests are skipped, or fail in CI, where there is none."""
    needs = "Paimon's Java needs java, mvn, the network and py4j"
    with started(paimon_jvm, needs) as jvm:
        yield jvm


@pytest.fixture(scope="session")
def spark_jvm() -> Iterator[Jvm]:
    """A JVM with the jars of PySpark; a session of Spark is not needed to use them."""
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
    """A process with the released pypaimon; its environment is made when it is first asked for."""
    with started(pypaimon_process, "pypaimon needs the network, to be installed") as process:
        yield process
