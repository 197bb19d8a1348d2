"""Rows of Iceberg tables, against Iceberg's own scan in the same session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import alcid
from alcid.spark import reading, ways
from alcid.spark.ways import Way, choose_way
from alcid.tables.iceberg.table import IcebergTable
from tests.iceberg.read_tables import KINDS, Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def as_text(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))


def own(lake: SparkSession, name: str, where: str | None = None) -> list[str]:
    """The rows by Iceberg's own scan."""
    rows: DataFrame = lake.table(name)
    return as_text((rows if where is None else rows.where(where)).toArrow())


def files_left(table: IcebergTable, where: str, stage: str) -> int:
    return next(one.after.files for one in table.explain(where).stages if one.name == stage)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_rows_are_those_of_iceberg_with_and_without_indexes(
    lake: SparkSession, name: str, kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind.make(lake, name, tmp_path)
    expected = {where: own(lake, name, where) for where in (None, *kind.questions)}
    table = alcid.iceberg(name, lake)

    def same(way: str) -> None:
        for where, rows in expected.items():
            # What only Spark evaluates, Spark has to read.
            is_known = where is None or not any(text in where for text in ("s.x", "m['k'].v"))
            found = table.scan(where).to_arrow() if is_known else table.read(where).toArrow()
            assert as_text(found) == rows, (way, where)
            assert table.count(where) == len(rows), (way, where)

    same("without indexes")
    table.build_indexes(kind.indexes, progress=False)
    same("with indexes")

    def choose(draft: Any, *, has_s3a: bool) -> Way:
        obstacle = ways._obstacle(draft, has_s3a)
        return choose_way(draft, has_s3a=has_s3a) if obstacle and way == "Spark" else Way(way, "")

    monkeypatch.setattr(reading, "choose_way", choose)
    for way in ("driver", "tasks", "Spark"):
        for where in (None, kind.questions[0]):
            assert as_text(table.read(where).toArrow()) == expected[where], (way, where)
