"""A standalone cluster of Spark on this machine: a master, two workers, and drivers.

All are processes of their own. The Python of the executors has all that `alcid` needs, but not
`alcid`, which is shipped to them in an archive, and not PySpark, which Spark brings.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alcid.spark.session import ensure_java
from tests.golden.jvm import QUICK_JAVA
from tests.spark.gates import Gate
from tests.spark.processes import below, command_of, is_running, kill, wait_for

ROOT = Path(__file__).resolve().parents[2]
PYTHON_PATH = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
"""Where drivers have `alcid` from: what is shipped to the executors."""
LOOPBACK = "127.0.0.1"
# One each: Spark starts no second attempt of a task on the host of the first.
WORKER_HOSTS = (LOOPBACK, "127.0.0.2")
JAVA_OPTIONS = " ".join(QUICK_JAVA)
_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c: %m%n%ex
"""
# Task and attempt: both tasks, and one of them once again.
ONE_KILLED = ({(0, 0), (1, 0), (0, 1)}, {(0, 0), (1, 0), (1, 1)})
_EXECUTOR = "CoarseGrainedExecutorBackend"


class DriverEndedError(AssertionError):
    """There is no answer because the process has ended."""


class Driver:
    """A process that serves the requests of `cluster_driver.py`."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process, self._log = process, log
        assert self._receive() == "ready"

    def ask(self, request: str, **arguments: Any) -> Any:
        """Send a request, and return what is answered."""
        self.send(request, **arguments)
        return self._receive()

    def send(self, request: str, **arguments: Any) -> None:
        """Send a request that is never answered, because the driver is killed."""
        assert self.process.stdin is not None
        print(json.dumps({"request": request, **arguments}), file=self.process.stdin, flush=True)

    def _receive(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise DriverEndedError(f"the driver has ended:\n{self._log.read_text()[-4000:]}")
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["answer"]


@contextmanager
def driver(
    folder: Path, settings: Mapping[str, str], python: str = sys.executable
) -> Iterator[Driver]:
    """A driver with a session of these settings; it ends with the block, and its JVM with it.

    Args:
        folder: Where it keeps what it needs.
        settings: Those of Spark; `spark.master` is one.
        python: That of the workers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "driver.log"
    variables = environment(folder) | {"PYSPARK_PYTHON": python, "PYTHONPATH": PYTHON_PATH}
    command = [sys.executable, "-m", "tests.spark.cluster_driver", json.dumps(dict(settings))]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=variables,
            cwd=folder,
            start_new_session=True,  # by which a kill finds everything that it has started
        )
    try:
        yield Driver(process, log)
    finally:
        _end(process)


@dataclass(frozen=True)
class Cluster:
    """A master and two workers, of one core each."""

    url: str
    workers: tuple[int, ...]
    """The processes of the workers."""
    python: str
    """The Python of the executors, which cannot import `alcid` by itself."""
    archive: Path
    """The package as it is shipped."""
    work: Path
    """The folder below which executors have theirs."""

    def executors(self) -> list[int]:
        """The processes of the running executors."""
        return [
            process
            for worker in self.workers
            for process in below(worker)
            if _EXECUTOR in command_of(process) and is_running(process)
        ]

    def settings(self) -> dict[str, str]:
        """The settings of a driver that ships the package."""
        return {
            "spark.master": self.url,
            "spark.cores.max": str(len(self.workers)),
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            "spark.driver.host": LOOPBACK,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": JAVA_OPTIONS,
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "90s",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.speculation": "true",
            "spark.speculation.interval": "100ms",
            "spark.speculation.minTaskRuntime": "500ms",
            "spark.speculation.multiplier": "1.0",
            "spark.speculation.quantile": "1.0",  # never, unless a request changes it
            # Several files in each task of an append.
            "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.submit.pyFiles": str(self.archive),
        }


@contextmanager
def cluster(folder: Path, memory: str = "1g") -> Iterator[Cluster]:
    """A cluster; it ends with the block.

    Raises:
        UnsupportedError: There is no Java.
    """
    ensure_java()
    with socket.socket() as unused:
        unused.bind((LOOPBACK, 0))
        port = unused.getsockname()[1]
    url = f"spark://{LOOPBACK}:{port}"
    processes = []
    try:
        master = ["Master", "--host", LOOPBACK, "--port", str(port), "--webui-port", "0"]
        processes.append(_daemon(folder / "master", master))
        python, archive = bare_python(folder / "python"), ship(folder / "alcid.zip")
        wait_for(lambda: _accepts(port), "the master of Spark")
        for number, host in enumerate(WORKER_HOSTS):
            directory = folder / f"worker-{number}"
            options = ["--host", host, "--webui-port", "0", "--cores", "1", "--memory", memory]
            work = ["--work-dir", str(folder / "work" / str(number))]
            processes.append(_daemon(directory, ["Worker", *options, *work, url]))
        workers = tuple(process.pid for process in processes[1:])
        yield Cluster(url, workers, python, archive, folder / "work")
    finally:
        for process in reversed(processes):
            _end(process)


def kill_one_executor(machines: Cluster, gate: Gate) -> None:
    """Kill one of two executors when each has a task that has written a file and not ended."""
    try:
        wait_for(lambda: gate.attempts() == {(0, 0), (1, 0)}, "a file of each task")
        assert gate.count() == 2
        executor, _ = machines.executors()
        workers = below(executor)
        assert workers
        kill([executor])
        # Its Python workers end with it: what they have not written by now is never written.
        wait_for(lambda: not any(map(is_running, workers)), "the end of the Python workers")
    finally:
        gate.open()


def ship(archive: Path) -> Path:
    """Put the package into an archive, as it is in `src`."""
    with zipfile.ZipFile(archive, "w") as file:
        for package in ("alcid", "pyspark_alcid"):
            for path in sorted((ROOT / "src" / package).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    file.write(path, path.relative_to(ROOT / "src"))
    return archive


def bare_python(folder: Path) -> str:
    """A Python with the packages of this one, but without `alcid`, its metadata and PySpark."""
    venv.create(folder, symlinks=True)
    inside = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not any(name in path.name for name in ("alcid", "py4j", "pyspark")):
            (inside / path.name).symlink_to(path)
    return str(folder / "bin" / "python")


def _daemon(folder: Path, arguments: list[str]) -> subprocess.Popen[str]:
    """Start the master or a worker with PySpark's script for it."""
    import pyspark

    name, *options = arguments
    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    kind = f"org.apache.spark.deploy.{name.lower()}.{name}"
    folder.mkdir(parents=True)
    with (folder / "log").open("w") as log:
        return subprocess.Popen(
            [str(script), kind, *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
            env=environment(folder),
            cwd=folder,
        )


def environment(folder: Path) -> dict[str, str]:
    """The environment of Spark's processes: without any other Spark or Python of this machine."""
    import pyspark

    others = ("PYSPARK_", "PYTHON", "SPARK_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    logging = folder / "conf" / "log4j2.properties"
    logging.parent.mkdir(parents=True, exist_ok=True)
    logging.write_text(_LOGGING)
    return kept | {
        "SPARK_CONF_DIR": str(logging.parent),
        "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LAUNCHER_OPTS": JAVA_OPTIONS,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_NO_DAEMONIZE": "1",
    }


def _accepts(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and all below it, by their ids."""
    others = below(process.pid)
    kill([process.pid, *others])
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    wait_for(lambda: not any(map(is_running, others)), f"the end of {others}")
