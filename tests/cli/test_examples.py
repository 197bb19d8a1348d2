"""Each command has examples in its help, and all of them run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.examples import command_names, examples_of, make_folder, needs_more
from tests.cli.samples import Alcid

NEED_SPARK = ("demo", "sql")  # tests/spark has those


@pytest.mark.parametrize("name", sorted(set(command_names()) - set(NEED_SPARK)))
def test_examples_of_the_help_run(
    name: str,
    alcid: Alcid,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    ran = 0
    for arguments in examples_of(name, capsys):
        if not needs_more(arguments):
            run = alcid(*arguments)
            assert (run.status, run.err) == (0, ""), arguments
            assert run.out or "--output" in arguments, arguments
            ran += 1
    assert ran


@pytest.mark.parametrize("name", NEED_SPARK)
def test_other_commands_have_examples_too(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert examples_of(name, capsys)
