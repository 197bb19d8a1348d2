from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid as library
from tests.cli.samples import Alcid
from tests.cli.writing import paimon_table, parquet_folder, rows_of, same_numbers, state, text_of


def test_a_folder_gets_indexes_and_a_second_build_finds_them_fresh(
    alcid: Alcid, tmp_path: Path
) -> None:
    folder = parquet_folder(tmp_path / "events")
    first = text_of(alcid("build", folder, "--bloom-filter", "id,name", "--bitmap", "name"))
    size = sum(path.stat().st_size for path in (folder / "_alcid").iterdir())
    assert first == f"indexed 3 of 3 files (300 rows) in T s, {size / 1000:.1f} kB in 1 bundle\n"
    kinds = [(info.column, info.index_type) for info in library.parquet(folder).indexes()]
    assert kinds == [("id", "bloom-filter"), ("name", "bitmap"), ("name", "bloom-filter")]
    again = text_of(alcid("build", folder))
    assert again == "indexed 0 of 3 files (0 rows) in T s, 0 B in 0 bundles; 3 were fresh\n"


def test_a_dry_run_says_what_files_lack_and_writes_nothing(alcid: Alcid, tmp_path: Path) -> None:
    folder = parquet_folder(tmp_path / "events")
    alcid("build", folder, "--bitmap", "name")
    pq.write_table(rows_of(300, 310), folder / "part-3.parquet")
    size = (folder / "part-3.parquet").stat().st_size
    every = sum((folder / f"part-{number}.parquet").stat().st_size for number in range(4))
    before = state(folder)
    command = ("build", folder, "--bitmap", "name", "--bsi", "id")
    assert text_of(alcid(*command[:4], "--dry-run")) == (
        f"would have indexed 1 of 4 files (10 rows, {size / 1000:.1f} kB of data); 3 are fresh\n"
        f"missing: bitmap of 'name': 1 file (10 rows, {size / 1000:.1f} kB of data)\n"
    )
    dry = alcid(*command, "--dry-run", "--json")
    assert state(folder) == before
    assert dry.json["missing"] == [
        {"column": "id", "index_type": "bsi", "files": 4, "rows": 310, "bytes": every},
        {"column": "name", "index_type": "bitmap", "files": 1, "rows": 10, "bytes": size},
    ]
    same = same_numbers(dry, alcid(*command, "--json"))
    assert {key: same[key] for key in ("files", "indexed", "fresh", "failed", "rows")} == {
        "files": 4,
        "indexed": 4,
        "fresh": 0,
        "failed": 0,
        "rows": 310,
    }


def test_a_dry_run_tells_what_files_cannot_have(alcid: Alcid, tmp_path: Path) -> None:
    folder = parquet_folder(tmp_path / "events", files=1)
    pq.write_table(pa.table({"id": [1, 2]}), folder / "narrow.parquet")
    command = ("build", folder, "--bitmap", "name", "--json")
    same = same_numbers(alcid(*command, "--dry-run"), alcid(*command))
    assert same["skipped"] == [
        {
            "what": "bitmap of 'name'",
            "reason": same["skipped"][0]["reason"],
            "files": 1,
            "example": "narrow.parquet",
        }
    ]
    assert (same["indexed"], same["rows"]) == (2, 102)
    again = same_numbers(alcid(*command, "--dry-run"), alcid(*command))
    assert (again["indexed"], again["fresh"], again["skipped"]) == (0, 2, same["skipped"])


def test_a_rebuild_is_of_all_files(alcid: Alcid, tmp_path: Path) -> None:
    folder = parquet_folder(tmp_path / "events")
    alcid("build", folder, "--bitmap", "name")
    command = ("build", folder, "--rebuild", "--json")
    same = same_numbers(alcid(*command, "--dry-run"), alcid(*command))
    assert (same["indexed"], same["fresh"], same["rows"]) == (3, 0, 300)


def test_a_paimon_table_loses_what_is_not_asked_for(alcid: Alcid, tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    table = paimon_table(folder, options={"file-index.bitmap.columns": "name"})
    table.append(rows_of(0, 10))
    table.append(rows_of(10, 30))
    before = state(folder)
    command = ("build", folder, "--range-bitmap", "score", "--json")
    warning = (
        "alcid: warning: range-bitmap of 'score' is not in the options of the table: new files"
        " will not have it, and a build without columns drops it\n"
    )
    dry = alcid(*command, "--dry-run")
    assert (dry.err, state(folder)) == (warning, before)
    dry = replace(dry, err="")
    size = int(table.snapshot.sizes.sum())
    of_all = {"files": 2, "rows": 30, "bytes": size}
    assert dry.json["missing"] == [{"column": "score", "index_type": "range-bitmap", **of_all}]
    assert dry.json["dropped"] == [{"column": "name", "index_type": "bitmap", **of_all}]
    real = alcid(*command)
    assert real.err == warning
    same = same_numbers(dry, replace(real, err=""))
    assert (same["files"], same["indexed"], same["rows"]) == (2, 2, 30)
    assert same["dropped"] == dry.json["dropped"]
    kinds = [(info.column, info.index_type) for info in library.paimon(folder).indexes()]
    assert kinds == [("score", "range-bitmap")]


def test_a_paimon_table_tells_what_it_has_lost(alcid: Alcid, tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    table = paimon_table(folder, options={"file-index.bitmap.columns": "name"})
    table.append(rows_of(0, 10))
    table.build_indexes({"file-index.bsi.columns": "id"}, progress=False)
    size = int(table.snapshot.sizes.sum())
    lines = text_of(alcid("build", folder)).splitlines()
    assert lines[1:] == [f"dropped: bsi of 'id': 1 file (10 rows, {size} B of data)"]
    assert text_of(alcid("build", folder)).count("\n") == 1


def test_a_build_that_no_type_allows_is_refused_before_anything_is_written(
    alcid: Alcid, tmp_path: Path
) -> None:
    folder = parquet_folder(tmp_path / "events")
    paimon_table(tmp_path / "orders").append(rows_of(0, 10))
    for path in (folder, tmp_path / "orders"):
        before = state(path)
        for more in ((), ("--dry-run",), ("--json",)):
            run = alcid("build", path, "--bsi", "name", "--bloom-filter", "name[a]", *more)
            assert (run.status, run.out) == (2, "")
            problem, others = "alcid: nothing to build: column name", " (and 1 more)\n"
            assert run.err.startswith(problem), run.err
            assert run.err.endswith(others), run.err
        assert state(path) == before
    partly = alcid("build", folder, "--bsi", "name,id", "--json").json
    assert (partly["indexed"], partly["skipped"][0]["what"]) == (3, "bsi of 'name'")


def test_a_paimon_table_says_by_its_options_what_it_wants(alcid: Alcid, tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    table = paimon_table(folder, options={"file-index.bitmap.columns": "name"})
    table.append(rows_of(0, 10), {})
    assert alcid("build", folder, "--json").json["indexed"] == 1
    assert [info.index_type for info in library.paimon(folder).indexes()] == ["bitmap"]


def test_options_go_by_paimons_names(alcid: Alcid, tmp_path: Path) -> None:
    folder = parquet_folder(tmp_path / "events", files=1)
    key = "file-index.bloom-filter"
    options = ("--option", f"{key}.columns=id", "--option", f"{key}.id.items=5000")
    assert alcid("build", folder, *options).status == 0
    built = library.FileIndex.build(
        rows_of(0, 100), {f"{key}.columns": "id", f"{key}.id.items": 5000}
    )
    (info,) = library.parquet(folder).indexes()
    assert info.bytes == built.entries[0].length


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "the table has no index: name one to build, as --bloom-filter id"),
        (("--bitmap", "name", "--option", "file-index.bitmap.columns=id"), "is given too"),
        (("--bitmap", "nam"), "nam"),
        (("--bitmap", ","), "expected names, separated by commas"),
        (("--option", "file-index.bitmap.colums=id"), "no such option"),
    ],
)
def test_what_cannot_be_built_is_a_wrong_command_line(
    alcid: Alcid, tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    folder = parquet_folder(tmp_path / "events", files=1)
    before = state(folder)
    run = alcid("build", folder, *arguments)
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert problem in run.err
    assert state(folder) == before
