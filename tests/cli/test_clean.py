from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.samples import Alcid
from tests.cli.writing import paimon_table, parquet_folder, rows_of, same_numbers, state, text_of


def test_a_dry_run_says_what_then_is_removed(alcid: Alcid, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    paimon_table(folder).append(rows_of(0, 10))
    orphan = folder / "bucket-0" / "data-00000000-0000-0000-0000-000000000000-0.parquet"
    orphan.write_bytes(b"0123456789")
    before = state(folder)
    assert text_of(alcid("clean", folder)).startswith(
        "removed 0 leftovers (0 B) in T s; 1 too young"
    )
    dry = alcid("clean", folder, "--older-than", "0s", "--dry-run", "--json")
    assert state(folder) == before
    same = same_numbers(dry, alcid("clean", folder, "--older-than", "0s", "--json"))
    assert (same["bytes_removed"], len(same["removed"])) == (10, 1)
    assert not orphan.exists()


def test_bundles_of_a_folder_are_merged(alcid: Alcid, tmp_path: Path) -> None:
    folder = parquet_folder(tmp_path / "events")
    alcid("build", folder, "--bitmap", "name")
    alcid("build", folder, "--bsi", "id")
    before = state(folder)
    text = text_of(alcid("clean", folder, "--dry-run"))
    assert text == "would have merged 2 bundles and removed 0 leftovers (0 B)\n"
    assert state(folder) == before
    text = text_of(alcid("clean", folder))
    assert text.startswith("merged 2 bundles to 1 and removed 0 leftovers (0 B) in T s")


@pytest.mark.parametrize("age", ["1", "1y", "-1d", "", "999999999w"])
def test_an_age_that_cannot_be(alcid: Alcid, tmp_path: Path, age: str) -> None:
    run = alcid("clean", tmp_path, "--older-than", age)
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert run.err.startswith(f"alcid: --older-than: found {age!r}, expected ")
