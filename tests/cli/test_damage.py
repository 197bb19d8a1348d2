"""Whatever bytes a file has, the command ends with a report or one line, never with a traceback."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.cli import main
from tests.cli.samples import TYPES, Run, write_sample

COMMANDS = [
    ["inspect"],
    ["inspect", "--json"],
    ["inspect", "--json", *TYPES],
    *(["inspect", "--json", *TYPES, "--column", name] for name in ("class_id", "name", "score")),
    ["probe", "score > 60 OR class_id = 1 OR name = 'ann'", "--json", *TYPES],
    ["probe", "--top-n", "2", "--order-by", "day", "--json", *TYPES],
]


def run(*arguments: str) -> Run:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        status = main(arguments)
    return Run(status, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("damage"))


@given(data=st.data())
def test_damaged_bytes_end_in_one_line_or_a_report(good: Path, data: st.DataObject) -> None:
    content = bytearray(good.read_bytes())
    offset = data.draw(st.integers(0, len(content) - 1), "offset")
    piece = data.draw(st.sampled_from([b"\0", b"\1", b"\x7f", b"\xff", b"\0" * 4, b"\xff" * 4]))
    content[offset : offset + len(piece)] = piece
    kept = data.draw(st.just(len(content)) | st.integers(0, len(content)), "kept")
    path = good.with_name("damaged.index")
    path.write_bytes(content[:kept])
    command, *options = data.draw(st.sampled_from(COMMANDS), "command")
    finished = run(command, str(path), *options)
    if finished.err:
        # If the name of a column is damaged, the column is missing, and the command line is wrong.
        assert finished.status in (1, 2)
        assert (finished.out, finished.err.count("\n")) == ("", 1)
    elif "--json" in options:
        states = {index["state"] for index in json.loads(finished.out).get("indexes", ())}
        assert finished.status == int("damaged" in states)
    else:
        assert finished.status in (0, 1)
