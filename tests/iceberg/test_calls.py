"""How often Python calls Java: a call takes 0.1 ms, so there may be none for each file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import (
    ARRAY_TYPE,
    ITERATOR_TYPE,
    LIST_TYPE,
    MAP_TYPE,
    MEMORY_COMMAND_NAME,
    REFERENCE_TYPE,
    SET_TYPE,
    SUCCESS,
)

import alcid
from alcid.spark.iceberg import SparkCatalogTable
from alcid.spark.jvm.files import java_list
from alcid.tables.iceberg.metadata.table_metadata import StatisticsFile
from tests.iceberg.vectors import commit_of, data_entries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW, MANY = "lake.calls.few", "lake.calls.many"
FILES = {FEW: 1, MANY: 200}
OBJECTS = (ARRAY_TYPE, ITERATOR_TYPE, LIST_TYPE, MAP_TYPE, REFERENCE_TYPE, SET_TYPE)
BLOOM = {"file-index.bloom-filter.columns": "id"}


@pytest.fixture(scope="module")
def made(lake: SparkSession) -> Iterator[dict[str, int]]:
    """A table of one file and one of 200, and their snapshots."""
    for name, files in FILES.items():
        lake.sql(
            f"CREATE TABLE {name} (id BIGINT, part INT) USING iceberg PARTITIONED BY (part) "
            "TBLPROPERTIES ('format-version' = '3', 'write.distribution-mode' = 'hash')"
        )
        lake.sql(f"INSERT INTO {name} SELECT id, id % {files} FROM range(800)")
    current = (SparkCatalogTable(lake, name).load().current_snapshot_id for name in FILES)
    yield {name: number or 0 for name, number in zip(FILES, current, strict=True)}
    for name in FILES:
        lake.sql(f"DROP TABLE {name}")


@pytest.fixture
def tables(lake: SparkSession, made: dict[str, int]) -> Iterator[tuple[str, str]]:
    """The same tables; changes by a test are undone."""
    yield FEW, MANY
    for name, snapshot in made.items():
        lake.sql(f"CALL lake.system.rollback_to_snapshot('{name}', {snapshot})")


@pytest.fixture
def calls(lake: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many calls there were since the last time.

    An object that Java returns counts as one more: the later call that frees it.
    """
    client = lake.sparkContext._gateway._gateway_client
    send, made = client.send_command, []

    def counted(command: str, *rest: object, **named: object) -> str:
        answer: str = send(command, *rest, **named)
        if not command.startswith(MEMORY_COMMAND_NAME):
            made.append(command)
            made.extend([MEMORY_COMMAND_NAME] * (answer[:1] == SUCCESS and answer[1:2] in OBJECTS))
        return answer

    def count() -> int:
        names = len(made)
        made.clear()
        return names

    monkeypatch.setattr(client, "send_command", counted)
    return count


def test_the_catalog_is_asked_as_often_for_any_number_of_files(
    lake: SparkSession, tables: tuple[str, str], calls: Callable[[], int]
) -> None:
    def steps(name: str) -> dict[str, int]:
        table, files = SparkCatalogTable(lake, name), range(FILES[name])
        metadata = table.load()
        current = metadata.current_snapshot_id
        assert current is not None
        counts = {}

        def count(step: str, call: Callable[[], object]) -> None:
            calls()
            call()
            counts[step] = calls()

        statistics = StatisticsFile(current, "/a.stats", 9, 5)
        count("load", table.load)
        count("entries", lambda: table.entries(current))
        count("set", lambda: table.set_statistics(metadata, statistics))
        metadata = table.load()
        count("remove", lambda: table.remove_statistics(metadata, current))
        change = commit_of(table, {file: [1] for file in files})
        count("delete", lambda: table.commit_vectors(change))
        gone = data_entries(table, content=1)
        assert len(gone) == FILES[name]
        change = commit_of(table, {file: [1, 2] for file in files}, gone)
        count("replace", lambda: table.commit_vectors(change))
        return counts

    assert SparkCatalogTable(lake, FEW).load().snapshots  # looks classes up
    assert java_list(lake._jvm, ["a"])[0] == "a"  # and Java's reader of JSON
    assert lake.catalog
    few, many = (steps(name) for name in tables)
    assert many == few
    assert few["load"] < 15
    assert few["set"] == few["remove"] < 20
    assert few["delete"] < few["replace"] < 100


def test_reads_indexes_and_statistics_make_no_call_for_each_file(
    lake: SparkSession, tables: tuple[str, str], calls: Callable[[], int]
) -> None:
    def steps(name: str) -> dict[str, int]:
        counts = {}
        calls()
        table = alcid.iceberg(name, lake)
        counts["open"] = calls()
        assert table.count("id = 17") == 1
        counts["count"] = calls()
        assert table.scan("id < 100").to_arrow().num_rows == 100
        counts["scan"] = calls()
        table.build_indexes(BLOOM, progress=False)
        counts["build"] = calls()
        table.compute_stats(["id"], progress=False)
        counts["stats"] = calls()
        assert table.delete("id = 17").rows == 1
        counts["delete"] = calls()
        assert table.delete("id < 1000").rows == 799
        counts["delete all"] = calls()
        return counts

    few, many = (steps(name) for name in tables)
    for step, count in many.items():
        # A job of many files may take some calls that work in this process does not need.
        assert count < few[step] + FILES[MANY] / 2, (step, few, many)
