"""The peers of these tests: environments with pypaimon or another Python, and JVMs.

Each is a context manager, which raises one of `UNAVAILABLE` if something that it needs is missing:
the network, Java, Maven, a package.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import pyarrow as pa
import pytest

from tests.golden.iceberg_jvm import RUNTIME
from tests.golden.jvm import Package, fetch_jar, java_gateway, spark_jars
from tests.golden.paimon_jvm import BUNDLE, LOGGING
from tests.golden.paimon_tables_jvm import NEWEST
from tests.golden.values import Json

T = TypeVar("T")

UNAVAILABLE = (ImportError, OSError, subprocess.CalledProcessError)
ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".peer-venv"
# pypaimon holds pyarrow below 20, so it cannot live beside the newest one; and because it does, our
# own code is tested there with the oldest pyarrow that it allows.
PACKAGES = ("pypaimon==2.1.*", "pyarrow==19.*", "duckdb>=2", "hypothesis", "pytest>=9")
# The versions that pyproject.toml lists; the tests themselves run on one of them.
PYTHONS = ("3.11", "3.12", "3.13")
OTHER_PYTHONS = [
    version for version in PYTHONS if version != f"{sys.version_info[0]}.{sys.version_info[1]}"
]
TEST_PACKAGES = (
    "datasketches",
    "fsspec",
    "hypothesis",
    "pytest>=9",
    "pytest-randomly",
    f"-c{ROOT}/constraints.txt",
)


def unavailable(why: str) -> NoReturn:
    """Skip the test; if peers are required, as in CI, fail it."""
    if os.environ.get("ALCID_REQUIRE_PEERS") == "1":
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


@contextmanager
def started(peer: Callable[[], AbstractContextManager[T]], needs: str) -> Iterator[T]:
    """The peer, or `unavailable` with what it needs."""
    with ExitStack() as stack:
        try:
            started_peer = stack.enter_context(peer())
        except UNAVAILABLE as error:
            unavailable(f"{needs}: {error}")
        yield started_peer


# -- pypaimon ----------------------------------------------------------------------------------


def pypaimon_python() -> Path:
    """The Python of an environment with pypaimon, which is made if it does not exist."""
    return _environment(ENVIRONMENT, Path(sys.executable), PACKAGES)


def _environment(folder: Path, python: Path, packages: Sequence[str]) -> Path:
    """The Python of an environment with our own code and some packages; made if necessary."""
    inside = folder / "bin" / "python"
    done = folder / ".installed"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:  # one process makes it, the others wait
        fcntl.flock(lock, fcntl.LOCK_EX)
        requirements = "\n".join(packages)
        if not done.exists() or done.read_text() != requirements:
            _run(str(python), "-m", "venv", str(folder))
            (folder / ".gitignore").write_text("*\n")
            pip = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _run(*pip, "--editable", str(ROOT), *packages)
            done.write_text(requirements)
    return inside


def _run(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        lines = ended.stderr.strip().splitlines() or [f"{command[0]} ended with an error"]
        raise OSError(lines[-1])


# -- other versions of Python ------------------------------------------------------------------


def other_python(version: str) -> Path | None:
    """The Python of an environment with a version such as `3.12`; None if the machine has none.

    Looked for on the PATH, and among the versions of pyenv, whose `python3.12` on the PATH is only
    a script that may refuse.
    """
    named = [path] if (path := shutil.which(f"python{version}")) else []
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named += map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))
    for command in named:
        question = [command, "-c", "import sys; print(sys.executable, *sys.version_info[:2])"]
        answer = subprocess.run(question, capture_output=True, text=True, check=False)
        executable, *found_version = answer.stdout.split(" ")
        if answer.returncode == 0 and ".".join(found_version).strip() == version:
            folder = ROOT / f".py{version.replace('.', '')}-venv"
            return _environment(folder, Path(executable), TEST_PACKAGES)
    return None


class PyPaimon:
    """A process that serves the requests of `peer_pypaimon.py`."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._files = 0
        self._receive()

    def ask(self, request: str, **arguments: Any) -> Any:
        """Send a request, and return the answer."""
        assert self._process.stdin is not None
        print(json.dumps({"request": request, **arguments}), file=self._process.stdin, flush=True)
        return self._receive()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise OSError(f"pypaimon ended with code {self._process.wait()}")
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["answer"]

    def new_path(self) -> Path:
        """A path that does not exist yet."""
        self._files += 1
        return self._folder / f"file-{self._files}"

    def create(
        self,
        table: pa.Table,
        keys: Sequence[str],
        options: dict[str, str],
        partition_keys: Sequence[str] = (),
    ) -> str:
        """Make a table with these columns, without rows, and return its name."""
        name = f"t_{self.new_path().name}".replace("-", "_")
        arguments = {"table": name, "arrow": self.arrow_file(table), "keys": list(keys)}
        self.ask("create", **arguments, partition_keys=list(partition_keys), options=options)
        return name

    def location(self, name: str) -> Path:
        """The path of a table that it made."""
        return Path(self.ask("location", table=name).removeprefix("file:"))

    def write(self, name: str | Path, rows: pa.Table) -> None:
        """Append rows to a table of its own, or to the one at a path."""
        self.ask("write", table=str(name), arrow=self.arrow_file(rows))

    def read(
        self,
        name: str | Path,
        where: Json = None,
        columns: Sequence[str] | None = None,
        options: dict[str, str] | None = None,
    ) -> pa.Table:
        """The matching rows; the predicate is that of `JavaPaimon`, with plain literals."""
        path = str(self.new_path())
        arguments = {"where": where, "columns": columns, "options": options or {}}
        self.ask("read", table=str(name), arrow=path, **arguments)
        with pa.memory_map(path) as source:
            return pa.ipc.open_file(source).read_all()

    def snapshots(self, name: str | Path) -> list[tuple[int, str]]:
        """The id and the kind of every snapshot."""
        return [(number, kind) for number, kind in self.ask("snapshots", table=str(name))]

    def arrow_file(self, table: pa.Table) -> str:
        """A table as the file that a request names."""
        path = str(self.new_path())
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return path


@contextmanager
def pypaimon_process() -> Iterator[PyPaimon]:
    """pypaimon in a process of its own; it ends with the block."""
    script = Path(__file__).with_name("peer_pypaimon.py")
    with tempfile.TemporaryDirectory() as folder:
        command = [str(pypaimon_python()), "-W", "ignore", str(script), f"{folder}/warehouse"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with process:  # ends its input, and waits
            yield PyPaimon(process, Path(folder))


# -- Java --------------------------------------------------------------------------------------


class Jvm:
    """Java's classes behind one gateway."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self.java = Package(gateway.jvm.java)
        self.org = Package(gateway.jvm.org)

    def method(self, owner: str, name: str, *parameters: str) -> Any:
        """The handle of a public method, whose parameters are of these classes."""
        lang = self.java.lang
        primitives = {"int": lang.Integer, "long": lang.Long}
        types = self.gateway.new_array(lang.Class, len(parameters))
        for number, kind in enumerate(parameters):
            primitive = primitives.get(kind)
            types[number] = lang.Class.forName(kind) if primitive is None else primitive.TYPE
        java_method = lang.Class.forName(owner).getMethod(name, types)
        return lang.invoke.MethodHandles.publicLookup().unreflect(java_method)

    def function(self, interface: str, handle: Any) -> Any:
        """The handle as an interface of `java.util.function`, so that Java calls Java."""
        kind = self.java.lang.Class.forName(f"java.util.function.{interface}")
        return self.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(kind, handle)

    def texts(self, texts: Iterable[str]) -> Any:
        """A list of `String`, none of them empty or of several lines; sent as one text."""
        tokens = self.java.util.StringTokenizer("\n".join(texts), "\n")
        return self.java.util.Collections.list(tokens)

    def numbers(self, numbers: Iterable[int], kind: str = "Long") -> Any:
        """A list of `Long`, or `Integer`."""
        result = self.texts(map(str, numbers))
        parse = self.method(f"java.lang.{kind}", "valueOf", "java.lang.String")
        result.replaceAll(self.function("UnaryOperator", parse))
        return result


@contextmanager
def spark_jars_jvm() -> Iterator[Jvm]:
    """A JVM with the class path that PySpark gives to its own; it ends with the block."""
    with java_gateway(spark_jars()) as gateway:
        yield Jvm(gateway)


def main() -> None:
    """Download what takes long before the tests begin, which have a time limit each."""
    jars = (BUNDLE, LOGGING, RUNTIME, NEWEST)
    for get in (pypaimon_python, lambda: [fetch_jar(jar) for jar in jars]):
        try:
            get()
        except UNAVAILABLE as error:
            print(f"tests of a peer will be skipped: {error}")
    for version in OTHER_PYTHONS:
        try:
            if other_python(version) is None:
                print(f"tests on Python {version} will be skipped: the machine has none")
        except UNAVAILABLE as error:
            print(f"tests on Python {version} will be skipped: {error}")


if __name__ == "__main__":
    main()
