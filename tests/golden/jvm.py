"""A JVM over py4j, and the released jars that it is given."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Later versions also want the parents of the artifact's description, which a mirror may lack.
MAVEN_GET = "org.apache.maven.plugins:maven-dependency-plugin:2.10:get"
JARS = Path(__file__).resolve().parents[2] / ".jars"
# For JVMs that run for minutes: no compiler for hours, and classes of released jars are trusted.
QUICK_JAVA = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)


def fetch_jar(artifact: str) -> Path:
    """A jar of Maven Central, `group:name:version`, kept in the folder `.jars`."""
    import fcntl

    _, name, version = artifact.split(":")
    jar = JARS / f"{name}-{version}.jar"
    JARS.mkdir(exist_ok=True)
    with (JARS / "lock").open("w") as lock:  # one process downloads, the others wait
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jar.exists():
            command = ["mvn", "--quiet", "--batch-mode", MAVEN_GET, f"-Dartifact={artifact}"]
            subprocess.run([*command, "-Dtransitive=false", f"-Ddest={jar}"], check=True)
    return jar


def find_java() -> str:
    """The java of JAVA_HOME, otherwise of PATH; without one py4j would leave files open."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=home and str(Path(home, "bin")))
    if java is None:
        raise FileNotFoundError("no java in JAVA_HOME or the path")
    return java


def spark_jars() -> Path:
    """The jars that PySpark brings along, as a class path names them."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars" / "*"


@contextmanager
def java_gateway(*class_path: Path) -> Iterator[Any]:
    """Start a JVM with these jars, and connect to it; it ends with the block."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    port, token, process = launch_gateway(
        classpath=os.pathsep.join(map(str, class_path)),
        javaopts=[*QUICK_JAVA, "-Xmx512m"],  # small: tests start several
        java_path=find_java(),
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    gateway = JavaGateway(gateway_parameters=parameters)
    try:
        yield gateway
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait()


class Package:
    """A package of Java that asks the JVM for each of its names once."""

    def __init__(self, package: Any) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        from py4j.java_gateway import JavaPackage

        value = getattr(self._package, name)
        value = Package(value) if isinstance(value, JavaPackage) else value
        setattr(self, name, value)
        return value
