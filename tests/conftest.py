"""Hypothesis profiles, and the line of the header that says how to run the same examples again.

HYPOTHESIS_PROFILE chooses one: `dev` (the default) draws new examples in every run, `ci` the same
ones in every run, `few` fewer of these, `fuzz` draws many new ones.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Collection, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests import covering  # noqa: F401  # it sees only what is imported after it

# isort: split
from alcid.errors import UnsupportedError
from alcid.spark.session import session
from tests.golden.jvm import QUICK_JAVA
from tests.iceberg.lake import lake_settings
from tests.interop.peers import unavailable
from tests.pages import SPARK_PAGES
from tests.spark.gateway import close_gateway
from tests.tables.paimon.machine_runs import IS_SOAK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Scripts, not tests: they need a JVM or packages that the tests do without.
collect_ignore_glob = ["golden/make_*.py"]
if "ALCID_GOLDEN" not in os.environ:  # they read that folder only
    collect_ignore_glob += ["test_golden_reference.py", "test_golden_paimon_tables.py"]

# The time does not matter: the machine may have other work.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
PATIENT = settings.get_profile("patient")
settings.register_profile("dev", PATIENT)
settings.register_profile("ci", PATIENT, derandomize=True, print_blob=True, max_examples=25)
settings.register_profile("few", settings.get_profile("ci"), max_examples=15)
settings.register_profile("fuzz", PATIENT, print_blob=True, max_examples=10_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# For every Spark that the tests or their processes start, and for the process that starts its JVM.
for _variable in ("SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS"):
    os.environ.setdefault(_variable, " ".join(QUICK_JAVA))


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

    It has Iceberg, and its catalog `lake`, if the jar is available: a process has one JVM.
    """
    config = {
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        **lake_settings(tmp_path_factory.mktemp("lake")),
    }
    try:
        started = session(master="local[2]", app_name="tests", config=config)
    except UnsupportedError as error:
        unavailable(str(error))
    yield started
    started.stop()
    close_gateway()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only `make soak` runs, and put first what must run in one process."""
    if not IS_SOAK and settings.get_current_profile_name() == "ci":
        collected = {item.nodeid for item in items}
        left_out = {
            item
            for item in items
            if item.get_closest_marker("soak") or _has_twin(item.nodeid, collected)
        }
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: _GROUPS.index(_group(item.nodeid)))
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or _group(item.nodeid) in _WITH_SPARK:
            # PySpark leaves the socket that each result came through to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the tests of a group to one process, and others to whichever has time.

    xdist 3.8 cannot group under pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            group = _group(nodeid)
            return nodeid if group in _SHARED else group

    config.option.loadscopereorder = False  # the order of `pytest_collection_modifyitems` stays
    return Scheduling(config, log)


_TWINS = (("java", "newest"), ("fixed", "dynamic"))
"""Two released versions of Java, and the two kinds of buckets."""


def _has_twin(nodeid: str, collected: Collection[str]) -> bool:
    """Whether it is one of two tests that differ in one parameter, of which the other one runs.

    Which of the two it is depends on the test and its other parameters, so that each version and
    kind has about half of them; `make soak` runs all.

    >>> pair = [f"tests/interop/test_a.py::test_b[{java}-x]" for java in ("java", "newest")]
    >>> [_has_twin(test, pair) for test in pair].count(True), _has_twin(pair[0], pair[:1])
    (1, False)
    """
    name, bracket, parameters = nodeid.rstrip("]").partition("[")
    if not bracket or not name.startswith(("tests/interop/", "tests/spark/")):
        return False
    parts = parameters.split("-")
    for twins, (number, part) in product(_TWINS, enumerate(parts)):
        if part not in twins:
            continue
        before, after = parts[:number], parts[number + 1 :]
        chosen = twins[zlib.crc32("-".join([name, *before, *after]).encode()) % 2]
        other = f"{name}[{'-'.join([*before, chosen, *after])}]"
        if chosen != part and other in collected:
            return True
    return False


# In the order in which they begin. Those of `long` and `other` are shared out one by one.
_GROUPS = ("spark", "iceberg", "peers", "cluster", "browser", "long", "other")
_SHARED = ("long", "other")
_WITH_SPARK = ("spark", "iceberg", "cluster")
_LONG = (
    "test_oldest_pyarrow.py",
    "test_other_pythons.py",
    "test_benchmarks.py",
    "_machine.py",
    "::test_example_runs[",
)


def _group(nodeid: str) -> str:
    """Which tests share a Spark, a cluster, other peers or a browser with it."""
    page = nodeid.rpartition("[")[2].removesuffix("]")
    if nodeid.startswith("tests/browser/"):
        return "browser"
    if nodeid.startswith("tests/iceberg/") or page == "iceberg-tables.md":
        return "iceberg"
    if nodeid.startswith("tests/spark/") or page in SPARK_PAGES:
        return "cluster" if "_cluster.py" in nodeid or "bounded" in nodeid else "spark"
    if any(part in nodeid for part in _LONG):
        return "long"
    return "peers" if nodeid.startswith("tests/interop/") else "other"
