from __future__ import annotations

import math
from decimal import Decimal

import pytest

from alcid._text import printable
from alcid.formats.file_index.keys import Key, order_float
from alcid.inspect.byte_map.regions import Value, value_of, value_text
from alcid.types import DataType


@pytest.mark.parametrize(
    ("data_type", "key", "value", "text"),
    [
        ("BOOLEAN", 1, True, "true"),
        ("TINYINT", -128, -128, "-128"),
        ("BIGINT", 2**63 - 1, 2**63 - 1, "9223372036854775807"),
        ("FLOAT", order_float(0.1, 4), 0.1, "0.1"),
        ("DOUBLE", order_float(0.1), 0.1, "0.1"),
        ("DOUBLE", order_float(-math.inf), -math.inf, "-Infinity"),
        ("FLOAT", order_float(math.inf, 4), math.inf, "Infinity"),
        ("DECIMAL(9, 2)", -5, Decimal("-0.05"), "-0.05"),
        ("DECIMAL(18, 0)", 10**17, Decimal(10**17), "100000000000000000"),
        ("DECIMAL(18, 18)", 0, Decimal("0E-18"), "0.000000000000000000"),
        ("DATE", 0, "1970-01-01", "'1970-01-01'"),
        ("DATE", -719529, "-0001-12-31", "'-0001-12-31'"),
        ("DATE", 2**31 - 1, "5881580-07-11", "'5881580-07-11'"),
        ("TIME(3)", 86_399_999, "23:59:59.999", "'23:59:59.999'"),
        ("TIME(0)", 3_600_000, "01:00:00", "'01:00:00'"),
        ("TIMESTAMP(3)", -1, "1969-12-31 23:59:59.999", "'1969-12-31 23:59:59.999'"),
        ("TIMESTAMP(6)", 1_500_000, "1970-01-01 00:00:01.5", "'1970-01-01 00:00:01.5'"),
        ("TIMESTAMP_LTZ(0)", 1000, "1970-01-01 00:00:01Z", "'1970-01-01 00:00:01Z'"),
        ("STRING", b"it's", "it's", "'it''s'"),
        ("CHAR(2)", "ö".encode(), "ö", "'ö'"),
        ("STRING", b"\xff\0", b"\xff\0", "X'ff00'"),
        ("BYTES", b"abc", b"abc", "X'616263'"),
    ],
)
def test_key_as_value_and_text(data_type: str, key: Key, value: Value, text: str) -> None:
    value_read = value_of(key, DataType.parse(data_type))
    assert (type(value_read), value_read) == (type(value), value)
    assert value_text(value_read) == text


def test_nan_and_zeros_keep_their_nature() -> None:
    nan = value_of(order_float(math.nan), DataType("DOUBLE"))
    assert (value_text(nan), value_text(value_of(-1, DataType("DOUBLE")))) == ("NaN", "-0.0")


def test_earliest_timestamp_is_no_nat() -> None:
    earliest = value_of(-(2**63), DataType.parse("TIMESTAMP(6)"))
    assert earliest == "-290308-12-21 19:59:05.224192"


def test_printable_escapes_what_a_terminal_obeys_or_utf8_lacks() -> None:
    assert printable("a\x1b\r\n\u202e\ud800🐧") == r"a\x1b\r\n\u202e\ud800🐧"
