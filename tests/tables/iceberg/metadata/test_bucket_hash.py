"""Buckets, compared with pyiceberg and with the hashes that Iceberg publishes."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import UnsupportedError
from alcid.tables.iceberg.metadata.transforms import bucket_count, bucket_of, has_buckets
from alcid.types import DataType
from tests.tables.iceberg.metadata.peer import pyiceberg_transform

INT, BIGINT, DATE = DataType("INT"), DataType("BIGINT"), DataType("DATE")
STRING, BYTES = DataType.parse("STRING"), DataType.parse("BYTES")
TIMESTAMP = DataType("TIMESTAMP", precision=6)
TIMESTAMPTZ = DataType("TIMESTAMP_LTZ", precision=6)

longs = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
ALL = 2**31 - 1
KNOWN = [  # hashes from Iceberg's specification, appendix B
    (34, INT, 2017239379),
    (34, BIGINT, 2017239379),
    (Decimal("14.20"), DataType("DECIMAL", 9, 2), -500754589),
    (date(2017, 11, 16), DATE, -653330422),
    (datetime(2017, 11, 16, 22, 31, 8), TIMESTAMP, -2047944441),
    (datetime(2017, 11, 16, 22, 31, 8, 1), TIMESTAMP, -1207196810),
    (datetime(2017, 11, 16, 22, 31, 8), TIMESTAMPTZ, -2047944441),
    ("iceberg", STRING, 1210000089),
    (bytes([0, 1, 2, 3]), BYTES, -188683207),
]


@pytest.mark.parametrize(("value", "data_type", "expected"), KNOWN, ids=str)
def test_known_hashes(value: Any, data_type: DataType, expected: int) -> None:
    values = pa.array([value], data_type.to_arrow())
    assert has_buckets(data_type)
    # Modulo this many buckets, little of the hash is lost.
    assert bucket_of(values, data_type, ALL).tolist() == [(expected & ALL) % ALL]
    assert bucket_of(values, data_type, 16).tolist() == [(expected & ALL) % 16]


@given(st.lists(longs), st.integers(1, ALL))
def test_buckets_of_numbers_are_those_of_pyiceberg(values: list[int], count: int) -> None:
    expected = [pyiceberg_transform(f"bucket[{count}]", "long", value) for value in values]
    assert bucket_of(pa.array(values, pa.int64()), BIGINT, count).tolist() == expected
    narrow = [value >> 32 for value in values]
    expected = [pyiceberg_transform(f"bucket[{count}]", "int", value) for value in narrow]
    assert bucket_of(pa.array(narrow, pa.int32()), INT, count).tolist() == expected
    assert bucket_of(pa.array(narrow, pa.int32()), BIGINT, count).tolist() == expected


@given(st.lists(texts), st.integers(1, ALL))
def test_buckets_of_text_are_those_of_pyiceberg(values: list[str], count: int) -> None:
    expected = [pyiceberg_transform(f"bucket[{count}]", "string", value) for value in values]
    for kind in (pa.string(), pa.large_string()):
        assert (
            bucket_of(pa.array(["?", *values], kind).slice(1), STRING, count).tolist() == expected
        )


@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1)), st.integers(1, ALL))
def test_buckets_of_decimals_hash_as_few_bytes_as_hold_them(values: list[int], count: int) -> None:
    def least(number: int) -> bytes:
        size = (number if number >= 0 else ~number).bit_length() // 8 + 1
        return number.to_bytes(size, "big", signed=True)

    decimals = pa.array([Decimal(value) for value in values], pa.decimal128(38, 0))
    expected = [(mmh3.hash(least(value)) & ALL) % count for value in values]
    assert bucket_of(decimals, DataType("DECIMAL", 38), count).tolist() == expected


@pytest.mark.parametrize("text", ["BOOLEAN", "FLOAT", "DOUBLE", "ARRAY<INT>"])
def test_types_without_buckets(text: str) -> None:
    data_type = DataType.parse(text)
    assert not has_buckets(data_type)
    with pytest.raises(UnsupportedError, match=f"^{text} has no buckets"):
        bucket_of(pa.nulls(0, data_type.to_arrow()), data_type, 4)


def test_rows_without_a_bucket() -> None:
    with pytest.raises(UnsupportedError, match=r"^null is in no bucket$"):
        bucket_of(pa.array([1, None]), BIGINT, 4)
    with pytest.raises(UnsupportedError, match=r"^bucket of BIGINT: "):
        bucket_of(pa.array(["x"]), BIGINT, 4)


def test_the_number_of_buckets() -> None:
    assert bucket_count("bucket[16]") == 16
    assert bucket_count("bucket[0]") is None
    assert bucket_count("bucket[-1]") is None
    assert bucket_count("truncate[16]") is None
