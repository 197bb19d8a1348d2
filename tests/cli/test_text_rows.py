"""CSV and JSON lines in the types of a table."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from alcid.cli.row_input import read_csv, read_json_lines
from alcid.config import Settings, using
from alcid.errors import UnsupportedError

NOON = datetime(2025, 8, 1, 12, tzinfo=UTC)
MOMENT = pa.timestamp("ms", "UTC")


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        (pa.int8(), ["-3", ""], [-3, None]),
        (pa.float64(), ["1e3", "nan", ""], [1000.0, "nan", None]),
        (pa.decimal128(9, 2), ["1.5", "-2"], [Decimal("1.50"), Decimal("-2.00")]),
        (pa.date32(), ["2025-08-01"], [date(2025, 8, 1)]),
        (
            pa.time32("ms"),
            ["10:11:12.5", "10:11:12"],
            [time(10, 11, 12, 500_000), time(10, 11, 12)],
        ),
        (pa.timestamp("us"), ["2025-08-01 12:00:00"], [NOON.replace(tzinfo=None)]),
        (
            MOMENT,
            ["2025-08-01T12:00:00Z", "2025-08-01 14:00:00+02:00", "2025-08-01 07:00:00", ""],
            [NOON, NOON, NOON, None],
        ),
        (pa.timestamp("us", "UTC"), ["2025-08-01"], [datetime(2025, 8, 1, 5, tzinfo=UTC)]),
        (pa.bool_(), ["true", "false"], [True, False]),
        (pa.string(), ["007", "NA", "null", "", '""'], ["007", "NA", "null", None, ""]),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_csv(kind: pa.DataType, texts: list[str], values: list[Any]) -> None:
    content = "\n".join(["n,A", *(f"{row},{text}" for row, text in enumerate(texts))])
    with using(Settings("-05:00", case_sensitive=False)):
        table = read_csv(content.encode(), pa.schema([("a", kind)]))
    assert table.schema.field("A").type == kind
    assert [_shown(value) for value in table["A"].to_pylist()] == values
    assert table["n"].type == pa.int64()


def _shown(value: Any) -> Any:
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def test_json_lines_have_all_types() -> None:
    table = pa.schema(
        [
            ("id", pa.int64()),
            ("price", pa.decimal128(9, 2)),
            ("day", pa.date32()),
            ("at", MOMENT),
            ("clock", pa.time32("ms")),
            ("tags", pa.map_(pa.string(), pa.list_(pa.int32()))),
            ("who", pa.struct([("name", pa.string()), ("facts", pa.map_(pa.string(), pa.int8()))])),
            ("absent", pa.int32()),
        ]
    )
    lines = (
        '{"id": 1, "price": 2.25, "day": "2025-08-01", "at": "2025-08-01T12:00:00Z",'
        ' "clock": "10:11:12", "tags": {"a": [1, 2]}, "who": {"name": "ann", "facts": {"x": 1}}}\n'
        '\n{"id": 2, "extra": "x"}\n'
    )
    rows = read_json_lines(lines.encode(), table)
    assert rows.to_pylist() == [
        {
            "id": 1,
            "price": Decimal("2.25"),
            "day": date(2025, 8, 1),
            "at": NOON,
            "clock": time(10, 11, 12),
            "tags": [("a", [1, 2])],
            "who": {"name": "ann", "facts": [("x", 1)]},
            "extra": None,
        },
        {
            **dict.fromkeys(["price", "day", "at", "clock", "tags", "who"]),
            "id": 2,
            "extra": "x",
        },
    ]


def test_a_text_that_is_no_moment_names_its_column() -> None:
    with pytest.raises(UnsupportedError, match=r"column at: .*'monday'"):
        read_csv(b"at\nmonday\n", pa.schema([("at", MOMENT)]))
    with pytest.raises(UnsupportedError, match="column tags: CSV cannot contain list<"):
        read_csv(b"tags\nx\n", pa.schema([("tags", pa.list_(pa.int8()))]))
