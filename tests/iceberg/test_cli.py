"""The command on Iceberg tables; the session is that of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import alcid as library
from alcid.errors import UnsupportedError
from alcid.spark.iceberg import near_names
from tests.cli.samples import Alcid, runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def alcid(lake: SparkSession, capsys: pytest.CaptureFixture[str]) -> Alcid:
    lake.createDataFrame([(1,)], "x INT")  # makes it the active one, which the command takes
    return runner(capsys)


def test_table_is_asked_by_its_name(alcid: Alcid, lake: SparkSession, name: str) -> None:
    lake.sql(f"CREATE TABLE {name} (id BIGINT, item STRING) USING iceberg")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'book'), (2, 'pen')")
    first = library.iceberg(name, lake).snapshot_id
    lake.sql(f"INSERT INTO {name} VALUES (3, 'lamp')")
    assert alcid("query", name, "--where", "id > 1", "--order-by", "id", "--json").json == {
        "rows": [{"id": 2, "item": "pen"}, {"id": 3, "item": "lamp"}],
        "count": 2,
    }
    assert alcid("query", name, "--count", "--snapshot", first).out == "2\n"
    listed = alcid("list", name).out.splitlines()
    assert listed[0].startswith("IcebergTable ")
    assert listed[0].endswith(f": {library.iceberg(name, lake).files} files")
    assert alcid("verify", name, "--json").json["ok"] is True


def test_mistyped_names_get_a_hint(alcid: Alcid, lake: SparkSession, name: str) -> None:
    lake.sql(f"CREATE TABLE {name}_orders (id BIGINT) USING iceberg")
    try:
        catalog, database, table = name.split(".")
        for mistyped, hint in (
            (
                f"{catalog}x.{database}.{table}_orders",
                f": no catalog {catalog}x; did you mean {catalog}?",
            ),
            (f"{catalog}.{database}.{table}_ordres", f"; did you mean {table}_orders?"),
        ):
            run = alcid("query", mistyped)
            assert (run.status, run.out, run.err.count("\n")) == (1, "", 1)
            assert run.err.startswith(f"alcid: {mistyped}: no such table")
            assert run.err.endswith(f"{hint}\n")
        assert near_names(lake, f"{catalog}.nowhere.at_all") == ""
    finally:
        lake.sql(f"DROP TABLE {name}_orders")


def test_index_path_is_refused(alcid: Alcid, lake: SparkSession, name: str) -> None:
    lake.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")
    run = alcid("list", name, "--index-path", "somewhere")
    problem = f"index_path: {name} keeps its indexes itself; it is for folders of Parquet files"
    assert (run.status, run.out, run.err) == (2, "", f"alcid: {problem}\n")


def test_name_needs_a_session() -> None:
    with pytest.raises(UnsupportedError, match=r"^lake\.a\.b: no such folder, and as the name"):
        library.table("lake.a.b")
