"""Hostile files: each is refused with its reason, within a second and 200 MB."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from alcid import AlcidError
from tests.bad.bombs import BOMBS, puffin_file, zstd_zeros
from tests.bad.measuring import Measured, measure
from tests.bad.opening import OPENERS, ending

FILES = Path(__file__).parent / "files"
SECONDS = 1.0
MEMORY = 200 << 20
ANSWERED = "answered"


class Kept(NamedTuple):
    """A row of the table in files/README.md."""

    name: str
    what: str
    error: str


def kept_files() -> list[Kept]:
    lines = (FILES / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    head, rule, *rows = [[cell.strip() for cell in row] for row in rows]
    assert head == ["name", "what is wrong", "expected error"]
    assert all(set(cell) == {"-"} for cell in rule)
    return [Kept(name.strip("`"), what, error.strip("`")) for name, what, error in rows]


KEPT = kept_files()


@cache
def measured_bombs(folder: Path) -> dict[str, Measured]:
    """All in one process, because most of the time goes into starting it."""
    paths = [folder / name for name in BOMBS]
    for path, bomb in zip(paths, BOMBS.values(), strict=True):
        path.write_bytes(bomb.data)
    return dict(zip(BOMBS, measure(paths), strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bombs")


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_little_time_and_memory(name: str, folder: Path) -> None:
    outcome = measured_bombs(folder)[name]
    assert outcome.error[: len(BOMBS[name].error)] == BOMBS[name].error
    assert outcome.seconds < SECONDS
    assert outcome.memory < MEMORY


def test_what_is_measured_is_what_is_taken(tmp_path: Path) -> None:
    """A blob that may be read takes its size in memory, and the time to decompress it."""
    path = tmp_path / "allowed.puffin"
    path.write_bytes(puffin_file(zstd_zeros(100 << 20), "zstd"))
    (outcome,) = measure([path])
    assert outcome.error == ANSWERED
    assert 100 << 20 <= outcome.memory < MEMORY
    assert outcome.seconds > 0


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.name)
def test_a_file_that_was_found_is_answered_or_refused_as_the_list_says(kept: Kept) -> None:
    data, outcome = (FILES / kept.name).read_bytes(), ANSWERED
    try:
        OPENERS[ending(kept.name)](data)
    except AlcidError as error:
        outcome = f"{type(error).__name__}: {error}"
    assert outcome == kept.error
    assert kept.what


def test_every_file_is_in_the_list() -> None:
    names = {path.name for path in FILES.iterdir()} - {"README.md"}
    assert names == {kept.name for kept in KEPT}
