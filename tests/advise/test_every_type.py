"""Columns of every type, judged without queries and with some."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.advise import QueryInput

ROWS = 3_000


def every_type(number: int) -> pa.Table:
    rng = np.random.default_rng(number)
    days, numbers = rng.integers(0, 20_000, ROWS), rng.integers(0, 10**6, ROWS)
    moments = 1_700_000_000_000_000_000 + rng.integers(0, 10**15, ROWS)
    return pa.table(
        {
            "flag": rng.random(ROWS) < 0.5,
            "tiny": pa.array(numbers % 100, pa.int8()),
            "single": pa.array(rng.random(ROWS), pa.float32()),
            "price": pa.array([Decimal(int(key)) / 100 for key in numbers], pa.decimal128(12, 2)),
            "digits": pa.array([Decimal(int(key)) for key in numbers], pa.decimal128(30, 0)),
            "day": pa.array(days, pa.int32()).cast(pa.date32()),
            "time": pa.array(numbers * 80, pa.int64()).cast(pa.time64("us")),
            "moment": pa.array(moments, pa.timestamp("ns")),
            "instant": pa.array(moments // 1000, pa.timestamp("us", "UTC")),
            "text": [f"t{key}" for key in numbers],
            "bytes": [str(key).encode() for key in numbers],
            "list": [[int(day)] for day in days],
            "struct": [{"a": int(day)} for day in days],
            "dictionary": pa.array([f"d{key % 50}" for key in numbers]).dictionary_encode(),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table")
    for number in range(3):
        pq.write_table(every_type(number), path / f"{number}.parquet")
    return path


def test_every_column_gets_advice(folder: Path) -> None:
    advice = alcid.parquet(folder).advise(progress=False)
    assert [column.column for column in advice.columns] == every_type(0).schema.names
    assert all(column.reason for column in advice.columns)
    judged = {column.column: {c.index for c in column.candidates} for column in advice.columns}
    assert judged["bytes"] == {"bloom-filter"}
    assert judged["digits"] == {"bsi"}
    assert judged["flag"] == {"bitmap", "range-bitmap"}
    assert judged["list"] == judged["struct"] == set()
    assert all(column.skip is not None for column in advice.columns if column.candidates)


def test_columns_are_judged_a_few_at_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = alcid.parquet(folder).advise(progress=False)
    states: list[tuple[int, int, int]] = []
    monkeypatch.setattr("alcid.tables.advise._VALUES", 1)
    single = alcid.parquet(folder).advise(progress=lambda *state: states.append(state))
    assert single.columns == whole.columns
    assert states[-1] == (3 * 12, 3 * 12, 3 * 12 * ROWS)


def test_literals_of_every_type_are_asked(folder: Path) -> None:
    queries: list[QueryInput] = [
        alcid.col("price") > Decimal("9999.5"),
        alcid.col("day") == date(1999, 12, 31),
        alcid.col("moment") < datetime(2023, 11, 14, 22, 14),
        alcid.col("bytes") == b"12345",
        "instant >= timestamp '2023-11-14 22:14:00'",
        "text LIKE 't9999%'",
        "dictionary = 'd7' AND NOT flag",
        "tiny IS NULL",
    ]
    advice = alcid.parquet(folder).advise(queries, progress=False)
    asked = {column.column for column in advice.columns if column.skip is not None}
    named = {"price", "day", "moment", "bytes", "instant", "text", "dictionary", "flag", "tiny"}
    assert asked == named
