"""Keys of all types: we and Paimon's Java hash, sort and compare them alike."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.interop.keyed_tables import VECTORS, KeyedTable, Peers, levels, peers

__all__ = ["peers"]

# -- several files on a level ------------------------------------------------------------------

LONG = "the name of a bird that many birds have "
ROLLED: dict[str, list[Any]] = {
    "STRING": [LONG + "é" * count + end for count, end in product(range(8), ("", "a", "z", "ß"))],
    "DECIMAL(10, 2)": [Decimal(number).scaleb(-2) for number in range(-160, 160, 10)],
    "DECIMAL(30, 3)": [Decimal(number * 10**26).scaleb(-3) for number in range(-16, 16)],
    "TIMESTAMP(3)": [datetime(1970, 1, 1) + timedelta(milliseconds=n) for n in range(-16, 16)],
    "TIMESTAMP(6)": [datetime(1970, 1, 1) + timedelta(microseconds=n) for n in range(-16, 16)],
    "INT": list(range(-160, 160, 10)),
}  # Paimon 1.4.2 does not find bytes where it has to look for a key


@pytest.mark.parametrize("kind", ROLLED)
def test_an_upsert_of_several_files_is_one_run(
    peers: Peers, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("parquet_writer", "paimon.keyed.key_files"):
        monkeypatch.setattr(f"alcid.tables.{module}.GROUP_ROWS", 4)
    options = VECTORS | {"bucket": "1", "target-file-size": "1 b"}
    table = KeyedTable(tmp_path / "t", peers, {"k": kind, "v": "STRING"}, ["k"], options)
    keys = ROLLED[kind]
    assert len(set(keys)) == 32
    table.put("we", *((key, "a") for key in reversed(keys)))
    assert levels(table.path) == [5] * 8
    table.put("we", *((key, "b") for key in keys[3:15]))
    assert levels(table.path) == [4] * 3 + [5] * 8
    table.check()
    table.put("java", *((key, "c") for key in keys[13:18]))
    table.remove("newest", (keys[0], None), (keys[31], None))
    table.check()
    table.put("we", *((key, "d") for key in keys[::5]))
    table.remove("we", (keys[16], None))
    table.compact("we")
    table.check()
    table.put("newest", (keys[8], "e"))
    table.compact("newest")
    table.check()


# -- keys --------------------------------------------------------------------------------------

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678_000)
Y = (1, 1969, 1970, 2026, 9999)
KEYS: dict[str, tuple[dict[str, str], list[tuple[Any, ...]]]] = {
    "string": ({"k": "STRING"}, [("",), ("a",), ("é",), ("a" * 40,), ("\U0001f426",), ("b\0c",)]),
    "varchar": ({"k": "VARCHAR(10)"}, [("",), ("a",), ("seven b",), ("sevenbyt",), ("ninebytes",)]),
    "tinyint": ({"k": "TINYINT"}, [(-128,), (-1,), (0,), (1,), (127,)]),
    "smallint": ({"k": "SMALLINT"}, [(-(1 << 15),), (-1,), (0,), (1,), ((1 << 15) - 1,)]),
    "bigint": ({"k": "BIGINT"}, [(-(1 << 63),), (-1,), (0,), (1,), ((1 << 63) - 1,)]),
    "boolean and int": (
        {"flag": "BOOLEAN", "id": "INT"},
        [(flag, number) for flag in (False, True) for number in (-1, 0, 7)],
    ),
    "decimal": (
        {"k": "DECIMAL(10, 2)"},
        [(Decimal(text),) for text in ("-99999999.99", "-0.01", "0.00", "0.01", "12345678.90")],
    ),
    "wide decimal": (
        {"k": "DECIMAL(30, 3)"},
        [(Decimal(text),) for text in (f"-{'9' * 27}.999", "-0.001", "0.000", "1.000", "9" * 20)],
    ),
    "timestamp 0": ({"k": "TIMESTAMP(0)"}, [(MOMENT.replace(microsecond=0, year=y),) for y in Y]),
    "timestamp 3": ({"k": "TIMESTAMP(3)"}, [(MOMENT.replace(year=y),) for y in Y]),
    "timestamp 6": ({"k": "TIMESTAMP(6)"}, [(MOMENT.replace(year=y, microsecond=y),) for y in Y]),
    "local timestamp": (
        {"k": "TIMESTAMP(6) WITH LOCAL TIME ZONE"},
        [(MOMENT.replace(year=y, microsecond=y, tzinfo=UTC),) for y in Y],
    ),
    "date": ({"k": "DATE"}, [(date(y, 1, 2),) for y in Y]),
    "bytes": ({"k": "BYTES"}, [(b"",), (b"\0",), (b"\xff" * 9,), (b"abc",), (b"\x80",)]),
}


@pytest.mark.parametrize("bucket", ["3", "-1"], ids=["fixed", "dynamic"])
@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type(peers: Peers, tmp_path: Path, kind: str, bucket: str) -> None:
    columns, keys = KEYS[kind]
    options = VECTORS | {"bucket": bucket, "dynamic-bucket.target-row-num": "3"}
    table = KeyedTable(tmp_path / "t", peers, columns | {"v": "STRING"}, list(columns), options)
    table.put("java", *((*key, "a") for key in keys[:3]))
    table.put("we", *((*key, "b") for key in keys[1:]))
    table.check()
    table.put("newest", *((*key, "c") for key in keys[2:]))
    table.remove("we", (*keys[3], None))
    table.check()
    table.put("we", *((*key, "d") for key in keys))
    table.remove("java", (*keys[0], None))
    table.check()
    table.compact("we")
    table.check()
