"""The command as it is installed, in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid.cli import main
from tests.cli.examples import command_names

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


def test_help_lists_every_command_and_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--help"])
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    listed = re.findall(r"^  ([a-z]+)  +[A-Z]", out, re.MULTILINE)
    assert sorted(listed) == command_names()
    assert "Example: alcid query events --where" in out


def test_summaries_fit_a_terminal_and_usage_has_no_braces(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines()[1:] if "..." in line] == []
    assert main(["append", "--help"]) == 0
    assert capsys.readouterr().out.startswith("Usage: alcid append [OPTIONS] TABLE FILE...\n")
    for name in command_names():
        assert main([name, "--help"]) == 0
        assert "{" not in capsys.readouterr().out.splitlines()[0]


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
    """The start-up time counts if the command runs once for each file."""
    for arguments in (["--help"], ["inspect", str(sample), "--json"]):
        program = (
            "import sys; from alcid.cli import main; main(sys.argv[1:])\n"
            "print(*({'rich', 'sqlglot'} & set(sys.modules)), file=sys.stderr)"
        )
        command = [sys.executable, "-c", program, *arguments]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert run.stderr.split() == []


def test_interrupt_ends_with_130_and_one_line(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    program = (
        "import os, signal, sys, time\n"
        "from alcid.tables.parquet_table import ParquetTable\n"
        "interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "ParquetTable.scan = lambda *_, **__: (interrupt(), time.sleep(9))\n"
        "from alcid.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "query", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "alcid: interrupted\n")


def test_reading_commands_need_no_engine(tmp_path: Path) -> None:
    """A folder is opened without looking for Spark."""
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    program = (
        "import sys; from alcid.cli import main\n"
        "for name in ('query', 'explain', 'list', 'verify'): main([name, sys.argv[1]])\n"
        "print(*({'pyspark', 'py4j', 'pandas'} & set(sys.modules)), file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stderr.split() == []


@pytest.mark.parametrize("form", ["table", "jsonl", "csv", "parquet"])
def test_closed_pipe_of_rows_is_quiet(tmp_path: Path, form: str) -> None:
    pq.write_table(pa.table({"id": range(100_000)}), tmp_path / "a.parquet")
    command = [sys.executable, "-c", PROGRAM, "query", str(tmp_path), "--limit", "0"]
    with subprocess.Popen(
        [*command, "--format", form], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_held_back_lines_are_printed_only_after_a_failure() -> None:
    program = (
        "import subprocess, sys\n"
        "from alcid.cli.tables import stderr_buffered\n"
        "say = lambda text: subprocess.run(['sh', '-c', f'echo {text} >&2'], check=True)\n"
        "with stderr_buffered(): say('held')\n"
        "say('after')\n"
        "try:\n"
        "    with stderr_buffered(): say('why'); raise ValueError\n"
        "except ValueError: say('failed')\n"
    )
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stderr.split() == ["after", "why", "failed"]
