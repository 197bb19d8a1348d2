from __future__ import annotations

from pathlib import Path

from alcid import DeletionVector
from tests.cli.samples import Alcid
from tests.cli.writing import (
    ids_of,
    paimon_table,
    parquet_folder,
    rows_of,
    same_numbers,
    state,
    text_of,
)
from tests.tables.maintenance.forging import flip, one_file, put_vectors, state_of

NEW = "index/index-99999999-0000-0000-0000-000000000000-0"


def damaged_table(folder: Path) -> str:
    """A table with two vectors for its only data file; returns the name of the file."""
    table = paimon_table(folder)
    table.append(rows_of(0, 10))
    table.delete("id = 1")
    (entry,) = state_of(folder).entries
    put_vectors(folder, {entry.file.name: DeletionVector([3]), "gone": DeletionVector([0])})
    return entry.file.name


def test_a_dry_run_says_what_then_is_repaired(alcid: Alcid, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    name = damaged_table(folder)
    assert alcid("query", folder).status == 1
    assert alcid("verify", folder).status == 1
    before = state(folder)
    dry = alcid("repair", folder, "--dry-run", "--json")
    assert (dry.status, state(folder)) == (0, before)
    text = text_of(alcid("repair", folder, "--dry-run"))
    assert text.startswith(
        "would have repaired 2 problems in 1 commit: snapshot 3; would have removed 0 leftovers"
    )
    same = same_numbers(dry, alcid("repair", folder, "--json"))
    assert [(repair["file"], repair["done"]) for repair in same["mended"]] == [
        (NEW, "dropped"),
        (name, "merged to one, of 2 rows"),
    ]
    assert (same["ok"], same["commits"], same["snapshot_id"]) == (True, 1, 3)
    assert ids_of(folder) == [0, 2, *range(4, 10)]
    assert alcid("verify", folder).status == 0
    text = text_of(alcid("repair", folder))
    assert text.startswith("nothing to repair; removed 0 leftovers (0 B)")


def test_it_ends_with_1_where_something_cannot_be_repaired(alcid: Alcid, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    name = damaged_table(folder)
    (path,) = (path for path in (folder / "index").iterdir() if path.name != Path(NEW).name)
    flip(path, -1)
    run = alcid("repair", folder)
    assert (run.status, run.err) == (1, "")
    first, *others = run.out.splitlines()
    assert first.startswith("repaired 1 problem in 1 commit: snapshot 3; ")
    assert "; 2 NOT repaired; " in first
    assert any(
        line.startswith(f"not repaired: index/{path.name}: deletion vector of {name}: ")
        and line.endswith("restore the file, or roll the table back to a snapshot before it")
        for line in others
    )


def test_indexes_of_a_folder_of_parquet_files_are_built_again(alcid: Alcid, tmp_path: Path) -> None:
    folder = parquet_folder(tmp_path / "events")
    alcid("build", folder, "--bitmap", "name")
    flip(one_file(folder, "_alcid/*.puffin"), 10)
    assert alcid("verify", folder).status == 1
    dry = alcid("repair", folder, "--dry-run", "--json")
    same = same_numbers(dry, alcid("repair", folder, "--json"))
    assert [(repair["file"], repair["what"], repair["done"]) for repair in same["mended"]] == [
        ("part-0.parquet", "bitmap of 'name'", "built anew")
    ]
    assert alcid("verify", folder).status == 0


def test_an_age_that_cannot_be(alcid: Alcid, tmp_path: Path) -> None:
    run = alcid("repair", tmp_path, "--older-than", "1y")
    problem = "alcid: --older-than: found '1y', expected a number and a unit, as 12h\n"
    assert (run.status, run.out, run.err) == (2, "", problem)
