"""Statistics from footers: they bound the values, or they are unknown."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid import FormatError
from alcid.datafiles.parquet import open_scan, read_rows
from alcid.datafiles.parquet.columns import FileColumn, file_columns
from alcid.datafiles.parquet.statistics import FooterStatistics
from alcid.formats.source import BytesSource
from alcid.index.build import footer_statistics, value_statistics
from alcid.index.bundle import ColumnStatistics
from alcid.index.bundle.statistics import statistics_array
from alcid.testing.strategies import SampleColumn, columns
from alcid.types import DataType
from tests.datafiles.parquet.kit import COLUMNS, NESTED, NULLS, ROWS, with_nulls, written


def described(data: bytes) -> tuple[dict[str, FileColumn], FooterStatistics]:
    scan = open_scan(BytesSource(data, "a.parquet"))
    listed = file_columns(scan.metadata, "a.parquet")
    return {column.name: column for column in listed}, scan.statistics


def from_footer(data: bytes, name: str = "c") -> ColumnStatistics | None:
    columns, statistics = described(data)
    return footer_statistics(columns[name], statistics)


def array_statistics(array: pa.Array, **options: Any) -> ColumnStatistics:
    statistics = from_footer(written(pa.table({"c": array}), **options))
    assert statistics is not None
    return statistics


def stored(statistics: ColumnStatistics) -> dict[str, Any]:
    """What a bundle stores."""
    (fields,) = statistics_array("c", statistics.data_type, [statistics])
    return {name: None if not value.is_valid else value for name, value in fields.items()}


def plain(value: Any) -> Any:
    if not isinstance(value, pa.Scalar):
        return value
    if pa.types.is_temporal(value.type):
        width = pa.int32() if value.type.bit_width == 32 else pa.int64()
        return value.cast(width).as_py()
    return value.as_py()


def check_bounds(statistics: ColumnStatistics, values: pa.ChunkedArray) -> None:
    """Check that stored statistics hold for every value, and that exact bounds are values."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kept = stored(statistics)
    present = values.drop_null()
    if kept["nulls"] is not None:
        assert kept["nulls"].as_py() == values.null_count
    if pa.types.is_floating(values.type):
        present = present.cast(pa.float64())  # Arrow 19 cannot compare half floats
        is_nan = pc.is_nan(present)
        if kept["has_nan"] is not None:
            assert kept["has_nan"].as_py() == bool(pc.any(is_nan).as_py() or False)
        present = present.filter(pc.invert(is_nan))
    if statistics.data_type.root in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
        present = present.cast(pa.large_binary())
    for bound, exact, beyond in (
        (kept["min"], kept["min_exact"].as_py(), min),
        (kept["max"], kept["max_exact"].as_py(), max),
    ):
        if bound is not None and len(present):
            numbers = [plain(value) for value in present.cast(_comparable(bound, present))]
            assert beyond([plain(bound), *numbers]) == plain(bound)
            if exact:
                assert beyond(numbers) == plain(bound)


def _comparable(bound: pa.Scalar, values: pa.ChunkedArray) -> Any:
    return values.type if pa.types.is_large_binary(values.type) else bound.type


@pytest.mark.parametrize("nulls", sorted(NULLS))
@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_statistics_bound_the_values_of_every_type(name: str, nulls: str) -> None:
    data = written(pa.table({"c": with_nulls(COLUMNS[name], nulls)}), row_group_size=300)
    columns, statistics = described(data)
    values = read_rows(BytesSource(data)).column("c")
    for bounds in (
        footer_statistics(columns["c"], statistics),
        value_statistics(columns["c"], values),
    ):
        if name in ("null", "duration", "decimal256"):  # a type without statistics
            assert bounds is None
            continue
        assert bounds is not None
        check_bounds(bounds, values)
        has_values = values.null_count < ROWS
        assert (bounds.minimum is not None) == (bounds.maximum is not None)
        if name != "float16":  # whose footers are not used
            assert (bounds.minimum is not None) == has_values
        assert bounds.nulls == values.null_count


SAMPLED = (
    *("FLOAT", "DOUBLE", "STRING", "BYTES", "BINARY(3)", "BOOLEAN", "TINYINT", "BIGINT", "DATE"),
    *("DECIMAL(9, 2)", "DECIMAL(18, 0)", "DECIMAL(38, 10)", "TIME(3)", "TIME(6)"),
    *("TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(6)"),
)


@given(st.data(), st.sampled_from(SAMPLED), st.sampled_from((1, 3, 1000)))
def test_statistics_bound_any_values(data: st.DataObject, name: str, group: int) -> None:
    sample: SampleColumn = data.draw(columns(DataType.parse(name), large=False))
    file = written(
        pa.table({"c": sample.to_arrow()}),
        row_group_size=group,
        store_decimal_as_integer=data.draw(st.booleans()),
    )
    named, statistics = described(file)
    values = read_rows(BytesSource(file)).column("c")
    for bounds in (footer_statistics(named["c"], statistics), value_statistics(named["c"], values)):
        assert bounds is not None
        assert bounds.data_type == sample.data_type
        check_bounds(bounds, values)


@given(st.lists(st.none() | st.text(max_size=3).map(lambda text: text * 40), max_size=8))
def test_statistics_bound_text_over_64_bytes(texts: list[str | None]) -> None:
    data = written(pa.table({"c": pa.array(texts, pa.string())}), row_group_size=3)
    statistics = from_footer(data)
    assert statistics is not None
    check_bounds(statistics, pa.chunked_array([texts], pa.string()))


def test_footers_give_exact_bounds_of_numbers_and_moments() -> None:
    past = datetime(1969, 12, 31, 23, 59, 59, 999999)
    statistics = array_statistics(pa.array([past, datetime(1, 1, 1), None], pa.timestamp("us")))
    assert statistics.data_type == DataType.parse("TIMESTAMP(6)")
    assert (statistics.minimum.as_py(), statistics.maximum.as_py()) == (datetime(1, 1, 1), past)
    assert (statistics.nulls, statistics.minimum_exact, statistics.maximum_exact) == (1, True, True)
    huge = [Decimal("-" + "9" * 38), Decimal("9" * 38)]
    statistics = array_statistics(pa.array(huge, pa.decimal128(38, 0)))
    assert (statistics.minimum, statistics.maximum) == (huge[0], huge[1])
    statistics = array_statistics(pa.array([date(1582, 1, 1), date(9999, 12, 31)]))
    assert statistics.minimum.as_py() == date(1582, 1, 1)
    statistics = array_statistics(pa.array([3, 2**64 - 1], pa.uint64()))
    assert (statistics.minimum, statistics.maximum) == (3, 2**64 - 1)


def test_text_of_a_footer_may_be_cut_so_it_is_never_exact() -> None:
    statistics = array_statistics(pa.array(["fig", "pear"]))
    assert (statistics.minimum, statistics.maximum) == (b"fig", b"pear")
    assert not statistics.minimum_exact
    assert not statistics.maximum_exact


def test_whether_there_is_a_nan_is_not_known_from_a_footer() -> None:
    statistics = array_statistics(pa.array([1.5, math.nan, -0.0]))
    assert (statistics.minimum, statistics.maximum, statistics.has_nan) == (0.0, 1.5, None)
    kept = stored(statistics)
    assert (str(kept["min"]), str(kept["max"]), kept["has_nan"]) == ("-0.0", "1.5", None)
    statistics = array_statistics(pa.array([math.nan, None]))
    assert (statistics.minimum, statistics.maximum, statistics.nulls) == (None, None, 1)


def test_values_at_hand_give_exact_statistics() -> None:
    data = written(pa.table({"c": [1.5, math.nan, 0.0]}))
    columns, _ = described(data)
    statistics = value_statistics(columns["c"], pa.array([1.5, math.nan, 0.0]))
    assert statistics == ColumnStatistics.of(pa.array([1.5, math.nan, 0.0]))
    assert statistics.has_nan is True


def test_a_row_group_without_statistics_voids_those_of_the_others() -> None:
    statistics = array_statistics(pa.array([1, 2, 3]), write_statistics=False)
    assert statistics == ColumnStatistics(DataType.parse("BIGINT"))
    # One group has only NaN, about which a footer says nothing.
    statistics = array_statistics(pa.array([1.0, 2.0, math.nan, math.nan]), row_group_size=2)
    assert (statistics.minimum, statistics.maximum, statistics.nulls) == (None, None, 0)
    # One has only nulls: the bounds are those of the other.
    statistics = array_statistics(pa.array([1, 2, None, None], pa.int64()), row_group_size=2)
    assert (statistics.minimum, statistics.maximum, statistics.nulls) == (1, 2, 2)


def patched(data: bytes, old: bytes, new: bytes) -> bytes:
    assert len(old) == len(new)
    assert old in data
    return data.replace(old, new)


@pytest.mark.parametrize(
    ("array", "old", "new"),
    [
        pytest.param(
            pa.array([1234567.0, 2.0]),
            np.float64(1234567).tobytes(),
            np.float64(math.nan).tobytes(),
            id="a bound is NaN",
        ),
        pytest.param(
            pa.array([0x1122334455667788, 5]),
            (0x1122334455667788).to_bytes(8, "little"),
            (1).to_bytes(8, "little"),
            id="the least is above the greatest",
        ),
        pytest.param(
            pa.array([0x51, -5], pa.int8()),
            b"\x51\0\0\0",
            b"\x51\1\0\0",
            id="a bound is beyond the type",
        ),
    ],
)
def test_impossible_bounds_are_unknown(array: pa.Array, old: bytes, new: bytes) -> None:
    statistics = array_statistics(array)
    assert statistics.minimum is not None
    data = written(pa.table({"c": array}))
    read = from_footer(patched(data, old, new))
    assert read == ColumnStatistics(statistics.data_type, nulls=0)


def test_a_nan_in_the_bounds_of_one_row_group_voids_all() -> None:
    data = written(pa.table({"c": [5.0, 6.0, 1234567.0, 2.0]}), row_group_size=2)
    nan = patched(data, np.float64(1234567).tobytes(), np.float64(math.nan).tobytes())
    assert from_footer(nan) == ColumnStatistics(DataType.parse("DOUBLE"), nulls=0)


def test_int96_and_nested_columns_have_no_statistics() -> None:
    table = pa.table({"c": pa.array([0, 10**15], pa.timestamp("us")), "n": [[1], [2]]})
    data = written(table, use_deprecated_int96_timestamps=True)
    columns, statistics = described(data)
    assert columns["c"].data_type == DataType.parse("TIMESTAMP_LTZ(6)")  # as Spark reads it
    assert columns["c"].problem == ""  # an index is fine
    for name, column in columns.items():
        assert footer_statistics(column, statistics) is None
        assert value_statistics(column, table.column(name)) is None


def spark_file(fields: list[dict[str, Any]], table: pa.Table, **keys: str) -> bytes:
    """A file with the metadata that Spark writes into its own."""
    schema = json.dumps({"type": "struct", "fields": fields})
    metadata = {"org.apache.spark.sql.parquet.row.metadata": schema}
    metadata |= {f"org.apache.spark.{name}": value for name, value in keys.items()}
    return written(table.replace_schema_metadata(metadata))


def spark_field(name: str, metadata: dict[str, Any], kind: Any = "string") -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def test_char_and_varchar_are_taken_from_sparks_schema() -> None:
    fields = [
        spark_field("a", {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}),
        spark_field("b", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(7)"}),
        spark_field("c", {"comment": "plain"}),
    ]
    data = spark_file(fields, pa.table({"a": ["ab   "], "b": ["cd"], "c": ["ef"]}), version="4.1.4")
    columns, statistics = described(data)
    types = {name: str(column.data_type) for name, column in columns.items()}
    assert types == {"a": "CHAR(5)", "b": "VARCHAR(7)", "c": "STRING"}
    bounds = footer_statistics(columns["a"], statistics)
    assert bounds is not None
    assert (bounds.data_type, bounds.minimum) == (DataType.parse("CHAR(5)"), b"ab   ")


def test_a_collated_column_gets_no_statistics_and_the_reason() -> None:
    inner = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
    fields = [
        spark_field("c", {"__COLLATIONS": {"c": "spark.UTF8_LCASE"}}),
        spark_field("m", {"__COLLATIONS": {"m.value": "icu.UNICODE_CI"}}, inner),
        spark_field("d", {}),
    ]
    maps = pa.array([[("a", "B")]], pa.map_(pa.string(), pa.string()))
    data = spark_file(fields, pa.table({"c": ["Ef"], "m": maps, "d": ["x"]}))
    columns, statistics = described(data)
    assert {name: column.problem for name, column in columns.items()} == {
        "c": "collated by spark.UTF8_LCASE",
        "m": "collated by icu.UNICODE_CI",
        "d": "",
    }
    assert footer_statistics(columns["c"], statistics) is None
    assert value_statistics(columns["c"], pa.array(["Ef"])) is None
    assert footer_statistics(columns["d"], statistics) is not None


MOMENTS = pa.table(
    {
        "d": pa.array([date(1000, 1, 6)]),
        "t": pa.array([datetime(1000, 1, 6)], pa.timestamp("us", "UTC")),
        "n": pa.array([[date(1000, 1, 6)]]),
        "i": [1],
        "e": pa.array([5], pa.time64("us")),
    }
)


@pytest.mark.parametrize(
    ("keys", "old"),
    [
        pytest.param({"version": "4.1.4"}, "", id="new"),
        pytest.param({"version": "4.1.4", "legacyDateTime": ""}, "dtn", id="legacyDateTime"),
        pytest.param({"version": "4.1.4", "legacyINT96": ""}, "", id="legacyINT96"),
        pytest.param({"version": "2.4.8"}, "dtn", id="Spark 2"),
        pytest.param({"version": "3.0.0"}, "", id="Spark 3"),
    ],
)
def test_dates_of_the_old_calendar_get_no_statistics_and_the_reason(
    keys: dict[str, str], old: str
) -> None:
    columns, statistics = described(spark_file([], MOMENTS, **keys))
    for name, column in columns.items():
        reason = "dates of the old calendar (org.apache.spark.legacyDateTime)"
        assert column.problem == (reason if name in old else "")
        bounds = footer_statistics(column, statistics)
        assert (bounds is None) == (name in old or name == "n")


def test_int96_of_the_old_calendar_has_a_key_of_its_own() -> None:
    table = pa.table({"t": pa.array([0], pa.timestamp("us"))})
    for key, version, problem in (
        ("legacyINT96", "4.1.4", "dates of the old calendar (org.apache.spark.legacyINT96)"),
        ("legacyDateTime", "4.1.4", ""),
        ("other", "3.0.3", "dates of the old calendar (org.apache.spark.legacyINT96)"),
        ("other", "3.1.0", ""),
    ):
        metadata = {f"org.apache.spark.{key}": "", "org.apache.spark.version": version}
        data = written(
            table.replace_schema_metadata(metadata), use_deprecated_int96_timestamps=True
        )
        columns, _ = described(data)
        assert columns["t"].problem == problem


def test_a_damaged_spark_schema_may_hide_a_collation_so_it_is_an_error() -> None:
    table, key = pa.table({"a": ["x"]}), "org.apache.spark.sql.parquet.row.metadata"
    for text in ("{", "[]", '{"fields": [1]}', '{"fields": [{"name": "a", "metadata": []}]}'):
        data = written(table.replace_schema_metadata({key: text}))
        with pytest.raises(FormatError, match=r"a\.parquet: damaged Spark schema"):
            described(data)
    old = written(table.replace_schema_metadata({key: "StructType(List(StructField(a,Strin"}))
    columns, _ = described(old)
    assert str(columns["a"].data_type) == "STRING"


def test_columns_are_numbered_by_their_leaves() -> None:
    table = pa.table({"struct": NESTED["struct"], "c": COLUMNS["int32"]})
    statistics = from_footer(written(table))
    assert statistics is not None
    assert (statistics.minimum, statistics.maximum) == (-(2**31), 2**31 - 1)
