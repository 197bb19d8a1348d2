"""Hypothesis profiles, and the line of the header that says how to run the same examples again.

HYPOTHESIS_PROFILE chooses one: `dev` (the default) draws new examples in every run, `ci` the same
ones in every run, `fuzz` draws many new ones.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from alcid.errors import UnsupportedError
from alcid.spark.session import session
from tests.iceberg.lake import lake_settings
from tests.interop.peers import unavailable
from tests.spark.gateway import close_gateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Scripts, not tests: they need a JVM or packages that the tests do without.
collect_ignore_glob = ["golden/make_*.py"]
if "ALCID_GOLDEN" not in os.environ:  # they read that folder only
    collect_ignore_glob += ["test_golden_reference.py", "test_golden_paimon_tables.py"]

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True, max_examples=60)
settings.register_profile(
    "fuzz",
    deadline=None,
    print_blob=True,
    max_examples=10_000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed here, before Hypothesis looks for one, so that the header can name it.

    The workers of xdist receive the options of the main process, and with them its seed.
    """
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.Random().getrandbits(32))


def pytest_report_header(config: pytest.Config) -> str:
    profile = settings()
    source = f"--hypothesis-seed={config.option.hypothesis_seed}"
    if profile.derandomize:
        source = "the same in every run"
    name = settings.get_current_profile_name()
    return f"hypothesis: profile {name}, {profile.max_examples} examples, {source}"


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks() -> Iterator[None]:
    """Leave it to the system when files reach the disk: no test takes its power away."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A Spark on two cores; tests are skipped, or fail in CI, where there is no Java.

    It has Iceberg, and its catalog `lake`, if the jar can be had: a process has one JVM.
    """
    config = {
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        **lake_settings(tmp_path_factory.mktemp("lake")),
    }
    try:
        found = session(master="local[2]", app_name="tests", config=config)
    except UnsupportedError as error:
        unavailable(str(error))
    yield found
    found.stop()
    close_gateway()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that share a Spark or a peer, as one process has to run them all."""
    items.sort(key=lambda item: _is_late(item.nodeid))
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or _spark_group(item.nodeid):
            # PySpark leaves the socket that each result came through to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give tests that share a Spark to one process, and those that share other peers.

    xdist 3.8 cannot group under pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _spark_group(nodeid) or _peers_group(nodeid) or nodeid

    return Scheduling(config, log)


def _spark_group(nodeid: str) -> str | None:
    """Which tests it shares a Spark with, if it needs one."""
    if nodeid.startswith("tests/iceberg/") or nodeid.endswith("[iceberg-tables.md]"):
        return "iceberg"
    pages = ("[README.md]", "[paimon-tables.md]", "[upserts.md]")
    return "spark" if "spark" in nodeid or nodeid.endswith(pages) else None


def _is_late(nodeid: str) -> int:
    """Tests that take long come first, so that no process waits for the other at the end."""
    if _spark_group(nodeid) is not None:
        return 0
    return 1 if nodeid.startswith("tests/interop/") else 2


def _peers_group(nodeid: str) -> str | None:
    """The tests that share the JVMs of `tests/interop/conftest.py`, which take long to get fast."""
    alone = "test_oldest_pyarrow.py"
    return "peers" if nodeid.startswith("tests/interop/") and alone not in nodeid else None
