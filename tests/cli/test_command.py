"""The command as it is installed, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

from alcid.cli import main

PROGRAM = "import sys; from alcid.cli import main; sys.exit(main())"


def alcid(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_console_script_is_main() -> None:
    (script,) = entry_points(group="console_scripts", name="alcid")
    assert script.load() is main


def test_version() -> None:
    run = alcid("--version")
    assert (run.returncode, run.stdout, run.stderr) == (0, f"alcid {version('alcid')}\n", "")


@pytest.mark.parametrize("command", [[], ["inspect"], ["probe"]])
def test_help_shows_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status = main([*command, "--help"])
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    assert f"alcid {' '.join(command) or 'inspect'} data-1.orc.index" in out


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr()
    assert main([]) == 0
    assert capsys.readouterr() == shown


def test_status_and_streams(sample: Path) -> None:
    good = alcid("probe", sample, "score > 60", "--type", "score=DOUBLE", "--json")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["positions"] == [1, 2, 3]
    missing = alcid("inspect", sample.with_name("none"), "--json")
    problem = f"alcid: {sample.with_name('none')}: No such file or directory\n"
    assert (missing.returncode, missing.stdout, missing.stderr) == (1, "", problem)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_closed_pipe_is_quiet(sample: Path, form: list[str]) -> None:
    command = [sys.executable, "-c", PROGRAM, "inspect", str(sample), *form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_output_that_cannot_show_a_name_is_no_error(tmp_path: Path) -> None:
    from alcid.formats.file_index.container import write_container

    path = tmp_path / "names.index"
    path.write_bytes(write_container({("🐧", "bitmap"): None}))
    command = [sys.executable, "-c", PROGRAM, "inspect", str(path)]
    run = subprocess.run(
        command, capture_output=True, check=False, env={"PYTHONIOENCODING": "ascii"}
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.splitlines()[-1].startswith(rb"\U0001f427")


def test_help_and_json_need_neither_tables_nor_sql(sample: Path) -> None:
    """Start-up counts where the command runs once for each file."""
    for arguments in (["--help"], ["inspect", str(sample), "--json"]):
        program = (
            "import sys; from alcid.cli import main; main(sys.argv[1:])\n"
            "print(*({'rich', 'sqlglot'} & set(sys.modules)), file=sys.stderr)"
        )
        command = [sys.executable, "-c", program, *arguments]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert run.stderr.split() == []
