"""Commands that let Spark write: a folder of Parquet files, and Paimon tables with --spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import alcid as library
from tests.cli.samples import Alcid, runner
from tests.cli.writing import ids_of, paimon_table, parquet_folder, rows_of, same_numbers, state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def alcid(capsys: pytest.CaptureFixture[str]) -> Alcid:
    return runner(capsys)


def test_a_folder_is_appended_to_by_spark(alcid: Alcid, tmp_path: Path) -> None:
    folder, file = parquet_folder(tmp_path / "events", files=1), tmp_path / "new.parquet"
    library.parquet(folder).build_indexes({"file-index.bitmap.columns": "name"})
    pq.write_table(rows_of(100, 130).drop_columns("score"), file)
    before = state(folder)
    dry = alcid("append", folder, file, "--dry-run", "--json")
    assert state(folder) == before
    assert (dry.json["columns"], dry.json["not_given"]) == (["id", "name"], ["score"])
    assert (dry.json["files"], dry.json["bytes_written"]) == (None, None)
    same = same_numbers(dry, alcid("append", folder, file, "--json"))
    assert (same["rows"], same["skipped"]) == (30, [])
    assert ids_of(folder) == list(range(130))
    (info,) = library.parquet(folder).indexes()
    assert (info.index_type, info.fresh) == ("bitmap", library.parquet(folder).files)


def test_rows_of_csv_go_to_a_folder_with_its_types(alcid: Alcid, tmp_path: Path) -> None:
    folder, file = parquet_folder(tmp_path / "events", files=1), tmp_path / "new.csv"
    file.write_text("id,name,score\n100,x,\n101,,2.5\n")
    assert alcid("append", folder, file).status == 0
    rows = library.parquet(folder).scan("id >= 100", order_by="id").to_arrow()
    assert rows.to_pydict() == {"id": [100, 101], "name": ["x", None], "score": [None, 2.5]}


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["real", "dry"])
def test_what_does_not_fit_a_folder_is_the_same_error_for_a_dry_run(
    alcid: Alcid, tmp_path: Path, dry: tuple[str, ...]
) -> None:
    folder, file = parquet_folder(tmp_path / "events", files=1), tmp_path / "new.csv"
    file.write_text("id,nane\n100,x\n")
    before = state(folder)
    run = alcid("append", folder, file, *dry)
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert "nane" in run.err
    assert state(folder) == before


def test_files_that_spark_cannot_read_are_one_line(alcid: Alcid, tmp_path: Path) -> None:
    folder, file = parquet_folder(tmp_path / "events", files=1), tmp_path / "new.parquet"
    run = alcid("append", folder, file)
    assert (run.status, run.out) == (1, "")
    assert run.err == f"alcid: {file}: No such file or directory\n"
    file.write_text("no parquet")
    run = alcid("append", folder, file)
    assert (run.status, run.out, run.err.count("\n")) == (1, "", 1)
    assert run.err.startswith(f"alcid: {file}: Parquet ")


def test_paimon_tables_are_written_by_spark_where_that_is_asked_for(
    alcid: Alcid, tmp_path: Path, spark: SparkSession
) -> None:
    file = tmp_path / "new.parquet"
    pq.write_table(rows_of(0, 30), file)
    plain, keyed = tmp_path / "plain", tmp_path / "keyed"
    paimon_table(plain)
    paimon_table(keyed, keyed=True)
    dry = alcid("append", plain, file, "--spark", "--dry-run", "--json")
    assert [dry.json[name] for name in ("files", "bytes_written", "index_bytes")] == [None] * 3
    real = alcid("append", plain, file, "--spark", "--json")
    assert same_numbers(dry, real)["rows"] == 30
    assert alcid("upsert", keyed, file, "--spark", "--json").json["rows"] == 30
    assert ids_of(plain) == ids_of(keyed) == list(range(30))
    dry = alcid("delete", keyed, "--where", "id < 5", "--spark", "--dry-run", "--json")
    real = alcid("delete", keyed, "--where", "id < 5", "--spark", "--json")
    assert same_numbers(dry, real)["rows"] == 5
    assert library.paimon(keyed, spark).count() == 25
