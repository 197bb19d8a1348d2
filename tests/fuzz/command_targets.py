"""`alcid probe` and `alcid inspect`: a report or one line, and never a traceback."""

from __future__ import annotations

import io
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import typer.main

from alcid import FileIndex
from alcid.cli import commands, main
from tests.cli.samples import OPTIONS, TABLE, TYPES
from tests.fuzz import repair
from tests.fuzz.target import Target, small
from tests.golden_files import golden_files

_HTML = "page.html"
INSPECTIONS = (
    ("inspect",),
    ("inspect", "--json", *TYPES),
    ("inspect", "--html", _HTML, *TYPES),
    *(("inspect", *TYPES, "--column", name) for name in ("class_id", "name", "score", "day")),
)
PROBES = (
    ("probe", "score > 60 OR class_id = 1 OR name = 'ann'", *TYPES),
    ("probe", "name IN ('ann', 'bob') AND day < '2024-01-03'", "--json", *TYPES),
    ("probe", "--top-n", "2", "--order-by", "day", *TYPES),
    ("probe", "class_id IS NULL OR `tags[a]` = 1", *TYPES),
)


def command_targets() -> list[Target]:
    """The targets of this module."""
    return [
        Target("inspect", _inspect, _inspect_seeds, _repaired),
        Target("probe", _probe, _probe_seeds),
    ]


def _inspect(data: bytes) -> None:
    _run(INSPECTIONS, data)


def _probe(data: bytes) -> None:
    _run(PROBES, data)


def _run(chosen: tuple[tuple[str, ...], ...], data: bytes) -> None:
    """Run the command that the first byte chooses on a file of the others."""
    folder = _folder()
    path = folder / "index-1"
    path.write_bytes(data[1:])
    command, *options = chosen[data[0] % len(chosen) if data else 0]
    options = [str(folder / _HTML) if option == _HTML else option for option in options]
    built = patch.object(commands, "app", _built_app())
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err, built:
        status = main([command, str(path), *options])
    lines = err.getvalue().splitlines()
    errors = [line for line in lines if not line.startswith("alcid: warning: ")]
    assert status in (0, 1, 2)
    if errors:
        assert (len(errors), errors[0][:7], out.getvalue()) == (1, "alcid: ", "")
        assert status in (1, 2)
    else:
        assert out.getvalue()
        assert status in (0, 1)


@cache
def _built_app() -> Any:
    """The command, built once: typer rebuilds all commands in each call."""
    return typer.main.get_command(commands.app)


@cache
def _folder() -> Path:
    kept.append(tempfile.TemporaryDirectory(prefix="alcid-fuzz-"))
    return Path(kept[-1].name)


kept: list[tempfile.TemporaryDirectory[str]] = []
"""Removed when the process ends."""


def _probe_seeds() -> list[bytes]:
    index = FileIndex.build(TABLE, OPTIONS).to_bytes()
    return [bytes((number,)) + index for number in range(len(PROBES))]


def _inspect_seeds() -> list[bytes]:
    index = FileIndex.build(TABLE, OPTIONS).to_bytes()
    kinds = ("deletion_vector", "deletion_vector_file", "hash_index", "puffin", "theta", "bundle")
    others = [
        bytes((number % 3,)) + data
        for kind in kinds
        for number, data in enumerate(small([golden.data for golden in golden_files(kind)])[:6])
    ]
    return [*(bytes((number,)) + index for number in range(len(INSPECTIONS))), *others]


def _repaired(data: bytes) -> bytes:
    head, file = data[:1], data[1:]
    if file[:4] == b"PFA1":
        return head + repair.bundle(file)
    if file[4:8] in (b"\x5e\x43\xf2\xd0", b"\xd1\xd3\x39\x64"):
        return head + repair.vector(file)
    if file[:1] == b"\1" and file[1:3] == b"\0\0":
        return head + repair.vector_file(file)
    return data
