from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import config
from alcid.errors import (
    AlcidError,
    ColumnError,
    FormatError,
    LiteralError,
    OptionError,
    UnsupportedError,
)
from alcid.expressions.evaluate import matching
from alcid.tables.parquet.partitions import (
    NULL,
    Partitions,
    infer,
    read_value,
    unescape,
)
from alcid.types import DataType

# The inferred types, and the common type of values, were observed in Spark 4.1.4.
ESCAPED_BY_SPARK = {*map(chr, range(1, 0x20)), *"\"#%'*/:=?\\\x7f{[]^"}


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    before = config.timezone, config.case_sensitive
    yield
    config.timezone, config.case_sensitive = before


def read_column(*values: str, given_type: str | None = None) -> tuple[str, list[Any]]:
    paths = [f"c={value}/{number}.parquet" for number, value in enumerate(values)]
    (column,) = Partitions.of(paths, None if given_type is None else {"c": given_type}).columns
    assert column.values.type == column.data_type.to_arrow()
    return str(column.data_type), column.values.to_pylist()


@pytest.mark.parametrize(
    ("text", "data_type", "value"),
    [
        ("20250801", "INT", 20250801),
        ("007", "INT", 7),
        ("+7", "INT", 7),
        ("-0", "INT", 0),
        ("٣", "INT", 3),
        ("2147483647", "INT", 2147483647),
        ("-2147483648", "INT", -2147483648),
        ("0" * 49 + "1", "INT", 1),
        ("2147483648", "BIGINT", 2147483648),
        ("-9223372036854775808", "BIGINT", -9223372036854775808),
        ("9223372036854775808", "DECIMAL(19, 0)", Decimal(9223372036854775808)),
        ("9" * 38, "DECIMAL(38, 0)", Decimal("9" * 38)),
        ("9" * 39, "DOUBLE", 1e39),
        ("1.", "DECIMAL(1, 0)", Decimal(1)),
        ("1e3", "DECIMAL(4, 0)", Decimal(1000)),
        ("1.0e3", "DECIMAL(4, 0)", Decimal(1000)),
        ("0E5", "DECIMAL(6, 0)", Decimal(0)),
        ("1e37", "DECIMAL(38, 0)", Decimal(10**37)),
        ("1e38", "DOUBLE", 1e38),
        ("1e99999999999", "DOUBLE", math.inf),
        ("100e-2", "DOUBLE", 1.0),
        ("1.5", "DOUBLE", 1.5),
        (" 1", "DOUBLE", 1.0),
        ("1d", "DOUBLE", 1.0),
        ("0x1p3", "DOUBLE", 8.0),
        ("-Infinity", "DOUBLE", -math.inf),
        ("2025-08-01", "DATE", datetime.date(2025, 8, 1)),
        ("10%3A00%3A00", "TIME(6)", datetime.time(10)),
        ("10:00:00.123456", "TIME(6)", datetime.time(10, 0, 0, 123456)),
        *(
            (text, "STRING", text)
            for text in (
                *(
                    "1_000",
                    "1,000",
                    "nan",
                    "inf",
                    "true",
                    "null",
                    "1L",
                    "0x10",
                    "\U0001d7d1",
                    "1e",
                    "+",
                ),
                *(
                    "2025-8-1",
                    "2025-08",
                    "2025-02-29",
                    "02025-08-01",
                    "2025-08-01x",
                    "2025-08-01T00",
                ),
                *("2025-08-01 10:00", "2025-08-01 10:00:00.50", "2025-08-01T10:00:00"),
                *("2025-08-01 10:00:00Z", "10:00", "1:00:00", "24:00:00", "10:00:00.1234567"),
                *("__hive_default_partition__", "ä", "a=b", "100%", "%4g", "%+1a"),
            )
        ),
        ("a%2Fb", "STRING", "a/b"),
        ("%32", "STRING", "2"),
        ("%C3%A4", "STRING", "Ã¤"),
        ("__HIVE_DEFAULT_PARTITION%5F_", "STRING", "__HIVE_DEFAULT_PARTITION__"),
        (NULL, "STRING", None),
    ],
)
def test_one_value_is_inferred_as_spark_does(text: str, data_type: str, value: object) -> None:
    assert read_column(text) == (data_type, [value])


def test_thousands_of_digits_are_no_trouble() -> None:
    assert read_column("0" * 5000 + "1") == ("INT", [1])
    assert read_column("9" * 5000) == ("DOUBLE", [math.inf])
    assert read_column("1e-" + "0" * 5000 + "1") == ("DOUBLE", [0.1])


def test_nan_is_inferred_in_javas_spelling_only() -> None:
    data_type, (value,) = read_column("NaN")
    assert data_type == "DOUBLE"
    assert math.isnan(value)


def test_timestamps_are_in_the_zone_of_the_session() -> None:
    texts = "2025-08-01 10%3A00%3A00", "2025-03-30 02:30:00", "2025-10-26 02:30:00", "2025-08-01"
    config.timezone = "Europe/Vienna"
    data_type, values = read_column(*texts)
    assert data_type == "TIMESTAMP(6) WITH LOCAL TIME ZONE"
    micros = [round(value.timestamp() * 1_000_000) for value in values]
    assert micros == [1754035200000000, 1743298200000000, 1761438600000000, 1753999200000000]


def test_an_unknown_zone_is_named() -> None:
    config.timezone = "Mars"
    with pytest.raises(OptionError, match="found 'Mars', expected a zone"):
        read_column("2025-08-01 10:00:00")


@pytest.mark.parametrize(
    ("texts", "data_type", "values"),
    [
        ((NULL, "007"), "INT", [None, 7]),
        (("007", "2147483648"), "BIGINT", [7, 2147483648]),
        (("007", "1e0"), "DECIMAL(10, 0)", [Decimal(7), Decimal(1)]),
        (("2147483648", "1e0"), "DECIMAL(20, 0)", [Decimal(2147483648), Decimal(1)]),
        (("1e0", "1e11"), "DECIMAL(12, 0)", [Decimal(1), Decimal(10**11)]),
        (("007", "1.5"), "DOUBLE", [7.0, 1.5]),
        (("2147483648", "1.5"), "STRING", ["2147483648", "1.5"]),
        (("1e0", "1.5"), "STRING", ["1e0", "1.5"]),
        (("007", "2025-08-01"), "STRING", ["007", "2025-08-01"]),
        (("2025-08-01", "10%3A00%3A00"), "STRING", ["2025-08-01", "10:00:00"]),
        (("007", "a%41"), "STRING", ["007", "aA"]),
        (("1", "1.5", "2147483648"), "STRING", ["1", "1.5", "2147483648"]),
    ],
)
def test_values_come_to_one_type_in_any_order(
    texts: tuple[str, ...], data_type: str, values: list[object]
) -> None:
    assert read_column(*texts) == (data_type, values)
    assert read_column(*reversed(texts)) == (data_type, values[::-1])


@pytest.mark.parametrize(
    ("given_type", "text", "value"),
    [
        ("STRING", "007", "007"),
        ("STRING", NULL, None),
        ("BYTES", "a%41ä", "a%41ä".encode()),
        ("INT", "٣", 3),
        ("TINYINT", "-128", -128),
        ("SMALLINT", "7", 7),
        ("BIGINT", "7", 7),
        ("FLOAT", "1e39", math.inf),
        ("DOUBLE", "1", 1.0),
        ("DECIMAL(4, 2)", "100.00e-1", Decimal("10.00")),
        ("DECIMAL(4, 2)", "-1", Decimal("-1.00")),
        ("DECIMAL(4, 2)", "0e99", Decimal("0.00")),
        ("DATE", "2025-8", datetime.date(2025, 8, 1)),
        ("TIMESTAMP(6)", "2025-08-01T10:00:00Z", datetime.datetime(2025, 8, 1, 10)),
        ("TIMESTAMP(0)", "2025-08-01 10%3A00", datetime.datetime(2025, 8, 1, 10)),
        ("TIME(3)", "10:00", datetime.time(10)),
        ("BOOLEAN", "TRUE", True),
        ("BOOLEAN", "false", False),
    ],
)
def test_a_given_type_reads_the_text(given_type: str, text: str, value: object) -> None:
    assert read_column(text, given_type=given_type)[1] == [value]


def test_a_given_timestamp_may_name_its_zone() -> None:
    _, (value,) = read_column("2025-08-01 10:00:00 Europe%2FVienna", given_type="TIMESTAMP_LTZ(6)")
    assert value.timestamp() == 1754035200


@pytest.mark.parametrize(
    ("given_type", "text"),
    [
        *(("INT", text) for text in ("abc", " 7", "7 ", "1.5", "1e3", "2147483648", "%37", "")),
        *(("TINYINT", text) for text in ("128", "-129")),
        *(("DECIMAL(4, 2)", text) for text in ("1.555", "100", "abc", " 1", "1e99", "1e-99")),
        *(("DOUBLE", text) for text in ("nan", "inf", "abc")),
        *(("DATE", text) for text in ("20250801", "2025-08-01x", "2025%2D08-01")),
        *(("TIMESTAMP_LTZ(6)", text) for text in ("10:00", "abc", "2025-08-01 10:00:00 Mars")),
        ("TIMESTAMP(9)", "9999-01-01"),
        *(("BOOLEAN", text) for text in ("t", "1", "yes")),
        ("TIME(6)", "25:00"),
    ],
)
def test_text_that_a_type_does_not_take_is_refused(given_type: str, text: str) -> None:
    assert read_value(text, DataType.parse(given_type)) is None


def test_an_error_names_the_path_of_the_value() -> None:
    paths = ["c=1/x=1/0", "c=1/x=b/1", "c=1/x=b/2"]
    expected = "c=1/x=b/1: partition column x of type INT does not take 'b'"
    with pytest.raises(LiteralError, match=f"^{re.escape(expected)}$"):
        Partitions.of(paths, {"X": "INT"})


@pytest.mark.parametrize(
    "given_type", ["CHAR(3)", "VARCHAR(3)", "BINARY(3)", "ARRAY<INT>", "VARIANT"]
)
def test_types_that_no_path_holds(given_type: str) -> None:
    with pytest.raises(UnsupportedError, match="partition_types: column c: a partition column can"):
        read_column("1", given_type=given_type)


def test_a_type_for_no_partition_column_is_an_error() -> None:
    with pytest.raises(ColumnError, match="no partition column d, found c"):
        Partitions.of(["c=1/f"], {"d": "INT"})


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (
            ["a=1/f", "b=1/f"],
            "b=1/f: partition folders differ: found partition columns b, expected partition",
        ),
        (
            ["a=1/f", "a=2/b=3/f"],
            "a=2/b=3/f: partition folders differ: found partition columns a, b",
        ),
        (["a=1/b=2/f", "b=2/a=1/f"], "b=2/a=1/f: partition folders differ"),
        (
            ["x/a=1/f", "y/a=2/f"],
            "y/a=2/f: partition folders differ: found partition columns a below y",
        ),
        (["a=1/f", "x/a=1/f"], "x/a=1/f: partition folders differ"),
        (
            ["f", "a=1/f"],
            "a=1/f: partition folders differ: found partition columns a, expected no partition",
        ),
        (["a=1/f", "f"], "f: partition folders differ: found no partition"),
        (["x/f", "a=1/f"], "a=1/f: partition folders differ"),
        (["a=1/x/b=2/f"], "a=1/x/b=2/f: folder between partition folders: found 'x'"),
        (["a=1//b=2/f"], "a=1//b=2/f: folder between partition folders: found ''"),
        (["a=1/A=2/f"], "a=1/A=2/f: partition column given twice: found a, a"),
        (["a=1/f", "a=1/b=/f"], "a=1/b=/f: partition folder: found b=, expected name=value"),
        (["=1/f"], "=1/f: partition folder: found =1, expected name=value"),
    ],
)
def test_folders_that_disagree(paths: list[str], message: str) -> None:
    with pytest.raises(FormatError, match=f"^{re.escape(message)}"):
        Partitions.of(paths)


@pytest.mark.parametrize(
    ("paths", "columns"),
    [
        (["f", "g"], {}),
        (["x/f", "y/z/f", "f"], {}),
        (["a=1.parquet"], {}),
        (["a=1/b=2.parquet"], {"a": [1]}),
        (["x/a=1/f", "x/a=2/f"], {"a": [1, 2]}),
        (["a=1/x/f", "a=2/f", "a=3/y/z/f"], {"a": [1, 2, 3]}),
        (["A=1/f", "a=2/f"], {"A": [1, 2]}),
        (["Ä=1/f", "ä=2/f"], {"Ä": [1, 2]}),
        (["a=1/f", "%61=2/f", "a=01/f"], {"a": [1, 2, 1]}),
        (
            ["a%2Fb=1/a%3Db=2/a%25b=3/a.b=4/%=5/f"],
            {"a/b": [1], "a=b": [2], "a%b": [3], "a.b": [4], "%": [5]},
        ),
        (["a%2Fb=1/f", "a%2fb=2/f"], {"a/b": [1, 2]}),
        (["_a=1/f"], {"_a": [1]}),
        (["a=b=c/f"], {"a": ["b=c"]}),
        (["a\n=1/f\n"], {"a\n": [1]}),
    ],
)
def test_folders_and_their_columns(paths: list[str], columns: dict[str, list[object]]) -> None:
    partitions = Partitions.of(paths)
    assert {column.name: column.values.to_pylist() for column in partitions.columns} == columns
    assert partitions.file_count == len(paths)


def test_case_makes_two_columns_where_it_counts() -> None:
    config.case_sensitive = True
    assert list(Partitions.of(["a=1/A=2/f"]).types) == ["a", "A"]
    with pytest.raises(
        FormatError, match="found partition columns a, expected partition columns A"
    ):
        Partitions.of(["A=1/f", "a=2/f"])
    with pytest.raises(ColumnError, match="no partition column A, found a"):
        Partitions.of(["a=1/f"], {"A": "INT"})


def test_a_given_name_is_the_name_of_the_column() -> None:
    assert Partitions.of(["Dt=1/f"], {"dT": "STRING"}).types == {"dT": DataType.parse("STRING")}


def test_without_files_the_given_types_are_the_columns() -> None:
    partitions = Partitions.of([], {"dt": "DATE"})
    assert partitions.file_count == 0
    assert partitions.to_table() == pa.table({"dt": pa.array([], pa.date32())})
    assert Partitions.of(pa.array([], pa.string())).columns == ()


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_paths_as_arrow_arrays(arrow_type: Any) -> None:
    array = pa.array(["c=1/f", "c=2/f", "c=1/g"], arrow_type)
    chunked = pa.chunked_array([array[1:], array[:1]])
    assert Partitions.of(array[1:]).to_table().to_pydict() == {"c": [2, 1]}
    assert Partitions.of(chunked).to_table().to_pydict() == {"c": [2, 1, 1]}


@pytest.mark.parametrize("paths", [[1], ["c=1/f", None], ["c=\ud800/f"], [b"\xff"]], ids=repr)
def test_paths_that_are_not_text(paths: list[Any]) -> None:
    with pytest.raises(UnsupportedError, match=r"^paths: "):
        Partitions.of(paths)


def test_a_predicate_is_asked_of_all_files_at_once() -> None:
    parts = Partitions.of([f"dt={day}/{n}" for day in (20250801, 20250802, NULL) for n in range(2)])
    assert matching("dt > 20250801", parts.to_table(), parts.types).tolist() == [0, 0, 1, 1, 0, 0]
    assert matching("dt IS NULL", parts.to_table(), parts.types).tolist() == [0, 0, 0, 0, 1, 1]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_spark_escapes_is_unescaped(text: str) -> None:
    escaped = "".join(f"%{ord(c):02X}" if c in ESCAPED_BY_SPARK else c for c in text)
    assert unescape(escaped) == text


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_text_goes_through_a_path(values: list[str]) -> None:
    paths = [
        "c=" + "".join(f"%{ord(c):02x}" if c in ESCAPED_BY_SPARK else c for c in value) + "/f"
        for value in values
    ]
    (column,) = Partitions.of(paths, {"c": "STRING"}).columns
    assert column.values.to_pylist() == [None if value == NULL else value for value in values]


@given(st.lists(st.text("0123456789+-.eEdfxNa:T %", max_size=12), min_size=1))
def test_what_is_inferred_can_be_read(values: list[str]) -> None:
    data_type = infer(values)
    assert None not in [read_value(value, data_type) for value in values]


@given(st.lists(st.text("ab=/%2\n", max_size=12)))
def test_any_paths_give_columns_or_one_clear_error(paths: list[str]) -> None:
    try:
        partitions = Partitions.of(paths)
    except AlcidError as error:
        assert str(error)  # noqa: PT017 - either outcome is right
    else:
        assert [len(column.values) for column in partitions.columns] == [len(paths)] * len(
            partitions.columns
        )
