from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid as library
from tests.cli.samples import Alcid
from tests.cli.writing import parquet_folder, same_numbers, state, text_of

COLUMNS = "id BIGINT NOT NULL, name VARCHAR(10), day DATE, at TIMESTAMP_LTZ(3)"


def test_a_table_is_made_as_a_dry_run_says(alcid: Alcid, tmp_path: Path) -> None:
    folder = tmp_path / "shop.db" / "orders"
    keys = ("--primary-key", "id,day", "--partition-by", "day")
    command = ("create", folder, "--schema", COLUMNS, *keys, "--option", "bucket=2")
    report = (
        f"created {folder}: 4 columns, primary key id, day, partitioned by day\n"
        "id BIGINT NOT NULL\nname VARCHAR(10)\nday DATE NOT NULL\n"
        "at TIMESTAMP(3) WITH LOCAL TIME ZONE\n"
    )
    assert text_of(alcid(*command, "--dry-run")) == f"would have {report}"
    assert list(tmp_path.iterdir()) == []
    assert text_of(alcid(*command)) == report
    schema = library.paimon(folder).snapshot.schema
    assert (schema.primary_keys, schema.partition_keys) == (("id", "day"), ("day",))
    assert [str(field.data_type) for field in schema.fields] == [
        "BIGINT",
        "VARCHAR(10)",
        "DATE",
        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    ]
    assert schema.options["bucket"] == "2"


def test_a_file_gives_the_columns(alcid: Alcid, tmp_path: Path) -> None:
    file, folder = tmp_path / "a.parquet", tmp_path / "t"
    rows = pa.table({"id": pa.array([1], pa.int32()), "tags": pa.array([["a"]])})
    pq.write_table(rows, file)
    command = ("create", folder, "--like", file, "--json")
    same = same_numbers(alcid(*command, "--dry-run"), alcid(*command))
    assert same == {
        "location": str(folder),
        "columns": [
            {"name": "id", "type": "INT", "nullable": True},
            {"name": "tags", "type": "ARRAY<STRING>", "nullable": True},
        ],
        "primary_key": [],
        "partition_by": [],
        "options": {},
    }
    assert library.paimon(folder).append(rows).rows == 1


FAR = datetime(9999, 12, 31, tzinfo=UTC)
NEAR = datetime(2024, 2, 29, 12, 30, 0, 123_456, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "unit", "kind"),
    [
        ([NEAR, None, FAR], "us", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ([1, None], "ns", "TIMESTAMP(9) WITH LOCAL TIME ZONE"),
        ([-1_000, None], "ns", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ([[NEAR]], "list", "ARRAY<TIMESTAMP(6) WITH LOCAL TIME ZONE>"),
    ],
    ids=["far", "nanoseconds", "before 1970", "within an array"],
)
def test_int96_is_a_moment_of_the_world(
    alcid: Alcid, tmp_path: Path, values: list[Any], unit: str, kind: str
) -> None:
    """As in Spark, whose files do not say so; Arrow sees no zone."""
    file, folder = tmp_path / "a.parquet", tmp_path / "t"
    stored = pa.list_(pa.timestamp("us")) if unit == "list" else pa.timestamp(unit)
    plain = [
        value if value is None or isinstance(value, int) else _without_zone(value)
        for value in values
    ]
    rows = pa.table({"id": range(len(values)), "at": pa.array(plain, stored)})
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True, store_schema=False)
    columns = alcid("create", folder, "--like", file, "--json").json["columns"]
    assert [column["type"] for column in columns] == ["BIGINT", kind]
    assert alcid("append", folder, file).status == 0
    (at,) = library.paimon(folder).scan(columns=["at"]).to_arrow().columns
    assert "UTC" in str(at.type)
    assert at.cast(stored).combine_chunks().equals(rows["at"].combine_chunks())


def _without_zone(value: Any) -> Any:
    if isinstance(value, list):
        return [moment.replace(tzinfo=None) for moment in value]
    return value.replace(tzinfo=None)


def test_int96_keeps_no_zone_in_a_column_without_one(alcid: Alcid, tmp_path: Path) -> None:
    file, folder = tmp_path / "a.parquet", tmp_path / "t"
    rows = pa.table({"at": pa.array([NEAR.replace(tzinfo=None)], pa.timestamp("us"))})
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True, store_schema=False)
    alcid("create", folder, "--schema", "at TIMESTAMP_NTZ")
    assert alcid("append", folder, file).status == 0
    assert library.paimon(folder).scan().to_arrow().cast(rows.schema).equals(rows)


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["real", "dry"])
def test_a_table_that_is_there_stays(alcid: Alcid, tmp_path: Path, dry: tuple[str, ...]) -> None:
    folder = tmp_path / "t"
    alcid("create", folder, "--schema", "id INT")
    before = state(folder)
    run = alcid("create", folder, "--schema", "id INT", *dry)
    assert (run.status, run.out) == (1, "")
    assert run.err == f"alcid: {folder}: there is a table already\n"
    assert state(folder) == before


@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["real", "dry"])
def test_folder_of_parquet_files_is_left_as_it_is(
    alcid: Alcid, tmp_path: Path, dry: tuple[str, ...]
) -> None:
    folder = parquet_folder(tmp_path / "events", files=1)
    before = state(folder)
    run = alcid("create", folder, "--schema", "id INT", *dry)
    assert (run.status, run.out) == (1, "")
    assert run.err == f"alcid: {folder}: a folder with Parquet files already\n"
    assert state(folder) == before


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "expected --schema or --like, and not both"),
        (
            ("--schema", "id INT", "--like", "a.parquet"),
            "expected --schema or --like, and not both",
        ),
        (("--schema", "id"), "--schema: found 'id', expected NAME TYPE"),
        (("--schema", "id INT,"), "--schema: found 'id INT,', expected NAME TYPE"),
        (
            ("--schema", "id INTT"),
            (
                "--schema: column id: type 'INTT' at position 0: found 'INTT', expected the name of"
                " a type; did you mean INT?"
            ),
        ),
        (("--schema", "id ARRAY<STRNG>"), "the name of a type; did you mean STRING?"),
        (("--schema", "id ROW<`BIGNT`>"), "expected the name of a type\n"),
        (("--schema", "id INT", "--primary-key", "key"), "key"),
        (("--schema", "id INT", "--option", "bukcet=2"), "bukcet"),
        (("--schema", "id INT", "--option", "bucket"), "found 'bucket', expected KEY=VALUE"),
        (("--like", "rows.txt"), "rows.txt: expected a file that ends with one of .parquet, .pq"),
    ],
)
def test_impossible_options_are_a_wrong_command_line(
    alcid: Alcid, tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    run = alcid("create", tmp_path / "t", *arguments)
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert problem in run.err
    assert list(tmp_path.iterdir()) == []
