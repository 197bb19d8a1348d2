"""Every row of the table of trusted statistics, and the writers on both sides of each limit."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alcid.datafiles.parquet import open_scan
from alcid.datafiles.parquet.footer import parse_footer
from alcid.datafiles.parquet.statistics import ChunkStatistics, FooterStatistics, Writer
from alcid.errors import FormatError
from alcid.formats.source import BytesSource
from tests.datafiles.parquet.footers import (
    BINARY,
    BOOL,
    I32,
    I64,
    LIST,
    STRUCT,
    Node,
    chunks,
    edit_footer,
)
from tests.datafiles.parquet.kit import written

TYPE, TOTAL, INT96_ORDER = 1, 2, 3
ARROW = "parquet-cpp-arrow version 26.0.1"

SIGNED = pa.array([3, -7, None])
TEXT = pa.array(["b", "é", None])
UNSIGNED = pa.array([3, 2**63 + 5, None], pa.uint64())
DECIMAL = pa.array([Decimal("1.00"), Decimal("-24.00"), None], pa.decimal128(25, 2))
SMALL_DECIMAL = pa.array([Decimal("1.00"), Decimal("-24.00"), None], pa.decimal128(9, 2))
FLOAT = pa.array([1.5, -2.5, None], pa.float32())
DOUBLE = pa.array([1.5, -2.5, None])
BOOLEAN = pa.array([True, False, None])
MOMENT = pa.array([datetime(1969, 1, 1), datetime(2000, 1, 1), None], pa.timestamp("us"))

EXPECTED: dict[str, tuple[Any, Any]] = {
    "signed": (-7, 3),
    "text": (b"b", "é".encode()),
    "unsigned": (3, 2**63 + 5),
    "decimal": (-2400, 100),
    "small decimal": (-2400, 100),
    "float": (-2.5, 1.5),
    "double": (-2.5, 1.5),
    "boolean": (False, True),
    "moment": (-31_536_000_000_000, 946_684_800_000_000),
}
ARRAYS = {
    "signed": SIGNED,
    "text": TEXT,
    "unsigned": UNSIGNED,
    "decimal": DECIMAL,
    "small decimal": SMALL_DECIMAL,
    "float": FLOAT,
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "moment": MOMENT,
}
OLD, NEW = "min and max", "min_value and max_value"


def footer_of(
    array: pa.Array,
    created_by: str | None = ARROW,
    order: int | None = TYPE,
    pair: str = NEW,
    edit: Callable[[Node], None] | None = None,
    schema: Callable[[Node], None] | None = None,
    **options: Any,
) -> bytes:
    """A file of one column with Arrow's statistics, in the requested fields."""

    def change(footer: Node) -> None:
        footer.drop(6, 7)
        if created_by is not None:
            footer.set(6, BINARY, created_by.encode())
        if order is not None:
            footer.set(7, LIST, (STRUCT, [Node({order: (STRUCT, Node())})]))
        for chunk in chunks(footer):
            said = chunk[12]
            said.drop(1, 2, 7, 8)
            if pair == OLD:
                said.move(5, 1)
                said.move(6, 2)
            if edit is not None:
                edit(said)
        if schema is not None:
            schema(footer.structs(2)[1])

    data = written(pa.table({"c": array}), store_decimal_as_integer=True, **options)
    return edit_footer(data, change)


def chunk_of(*args: Any, **kwargs: Any) -> ChunkStatistics:
    (statistics,) = open_scan(BytesSource(footer_of(*args, **kwargs))).statistics.of_leaf(0)
    return statistics


def bounds(statistics: ChunkStatistics) -> tuple[Any, Any]:
    return statistics.minimum, statistics.maximum


UNKNOWN = (None, None)
MR, MR_OLD = "parquet-mr version 1.10.0 (build 031a6654)", "parquet-mr version 1.9.0 (build 3)"
TRINO = "parquet-mr-trino version 476 (build n/a)"
CPP, CPP_OLD = "parquet-cpp version 1.5.1-SNAPSHOT", "parquet-cpp version 1.2.0"
RUST, RUST_OLD = "parquet-rs version 53.0.0", "parquet-rs version 17.0.0 (build 1)"
DUCKDB, DUCKDB_OLD = "DuckDB version v1.5.0 (build 3a3967aa81)", "DuckDB version v1.4.2 (build 1)"
GO = "github.com/segmentio/parquet-go version 0.0.0-20230712180008-5d42db8f0d47 (build )"
FUSION, FUSION_OLD = "datafusion version 52.5.0", "datafusion version 34.0.0"
OTHER = "impala version 4.0.0-SNAPSHOT (build 0)"

CARELESS = (MR_OLD, CPP, "Polars", GO, FUSION_OLD, OTHER, None)

LINES = [
    # BOOLEAN, signed integers, and types stored as such
    *(
        (NEW, TYPE, writer, "signed", True)
        for writer in (MR, CPP, RUST, DUCKDB, "Polars", OTHER, None)
    ),
    *((NEW, TYPE, writer, "signed", False) for writer in (MR_OLD, CPP_OLD, RUST_OLD)),
    (NEW, TYPE, "fastparquet-python version 2024.2.0 (build 0)", "signed", False),
    *((pair, TYPE, "Parquet.Net version 4.25.0 (build 6)", "moment", False) for pair in (OLD, NEW)),
    *((NEW, TYPE, OTHER, kind, True) for kind in ("boolean", "moment", "small decimal")),
    *((NEW, order, ARROW, "signed", False) for order in (None, TOTAL, INT96_ORDER, 9)),
    *((OLD, order, OTHER, "signed", True) for order in (None, TYPE, TOTAL, 9)),
    *((OLD, None, writer, "signed", True) for writer in (MR_OLD, CPP_OLD, DUCKDB_OLD, None)),
    *((OLD, None, MR_OLD, kind, True) for kind in ("boolean", "moment", "small decimal")),
    (OLD, None, RUST_OLD, "signed", False),
    (OLD, None, "fastparquet-python version 0.8.1 (build 0)", "signed", False),
    # byte arrays
    *(
        (NEW, TYPE, writer, "text", True)
        for writer in (MR, TRINO, CPP, RUST, "Polars", OTHER, None)
    ),
    *((NEW, TYPE, writer, "text", False) for writer in (MR_OLD, CPP_OLD, RUST_OLD)),
    *((NEW, order, ARROW, "text", False) for order in (None, TOTAL, 9)),
    *(
        (OLD, order, writer, "text", False)
        for order in (None, TYPE)
        for writer in (MR_OLD, MR, ARROW)
    ),
    # unsigned integers
    *((NEW, TYPE, writer, "unsigned", True) for writer in (MR, TRINO, ARROW, RUST, DUCKDB, FUSION)),
    *((NEW, TYPE, writer, "unsigned", False) for writer in ("Polars", DUCKDB_OLD, GO, OTHER, None)),
    *(
        (OLD, order, writer, "unsigned", False)
        for order in (None, TYPE)
        for writer in (MR_OLD, ARROW)
    ),
    (NEW, None, ARROW, "unsigned", False),
    # decimals in byte arrays of one length
    *((NEW, TYPE, writer, "decimal", True) for writer in (MR, TRINO, ARROW, RUST, DUCKDB, FUSION)),
    *((NEW, TYPE, writer, "decimal", False) for writer in CARELESS),
    (NEW, TYPE, "parquet-cpp-arrow version 4.0.0", "decimal", True),
    (NEW, TYPE, "parquet-cpp-arrow version 3.0.0", "decimal", False),
    (NEW, TYPE, "parquet-cpp-arrow version 4.0.0-SNAPSHOT", "decimal", False),
    *(
        (OLD, order, writer, "decimal", False)
        for order in (None, TYPE)
        for writer in (MR_OLD, MR, ARROW)
    ),
    # floats
    *((NEW, TYPE, writer, "double", True) for writer in (MR, TRINO, ARROW, RUST, DUCKDB, FUSION)),
    *((NEW, TYPE, writer, "float", True) for writer in (MR, ARROW)),
    *((NEW, TYPE, writer, "double", False) for writer in CARELESS),
    *((NEW, order, ARROW, "double", False) for order in (None, TOTAL, 9)),
    *((OLD, order, MR, "double", True) for order in (None, TYPE)),
    *((OLD, None, writer, "double", False) for writer in (MR_OLD, CPP, OTHER, None)),
]


@pytest.mark.parametrize(("pair", "order", "created_by", "kind", "trusted"), LINES)
def test_bounds_are_trusted_by_writer_field_type_and_order(
    pair: str, order: int | None, created_by: str | None, kind: str, trusted: bool
) -> None:
    statistics = chunk_of(ARRAYS[kind], created_by, order, pair)
    assert bounds(statistics) == (EXPECTED[kind] if trusted else UNKNOWN)


@pytest.mark.parametrize("pair", [OLD, NEW])
@pytest.mark.parametrize("order", [None, TYPE, INT96_ORDER])
def test_int96_has_no_bounds(pair: str, order: int | None) -> None:
    def change(footer: Node) -> None:
        footer.drop(7)
        if order is not None:
            footer.set(7, LIST, (STRUCT, [Node({order: (STRUCT, Node())})]))
        numbers = (1, 2) if pair == OLD else (5, 6)
        (chunk,) = chunks(footer)
        chunk.set(12, STRUCT, Node({number: (BINARY, bytes(12)) for number in numbers}))

    data = written(pa.table({"c": MOMENT}), use_deprecated_int96_timestamps=True)
    (statistics,) = open_scan(BytesSource(edit_footer(data, change))).statistics.of_leaf(0)
    assert bounds(statistics) == UNKNOWN


TEN, TWELVE = "parquet-cpp-arrow version 10.0.1", "parquet-cpp-arrow version 12.0.0"


@pytest.mark.parametrize(
    ("array", "created_by", "options", "trusted"),
    [
        pytest.param(TEXT.dictionary_encode(), TWELVE, {}, True, id="dictionary"),
        pytest.param(TEXT.dictionary_encode(), TEN, {}, False, id="older dictionary"),
        pytest.param(TEXT.dictionary_encode(), CPP, {}, False, id="dictionary of parquet-cpp"),
        pytest.param(TEXT.dictionary_encode(), MR, {}, True, id="another writer"),
        pytest.param(TEXT, TEN, {}, True, id="no dictionary"),
        pytest.param(TEXT, TEN, {"store_schema": False}, False, id="not known"),
        pytest.param(TEXT, TWELVE, {"store_schema": False}, True, id="newer, not known"),
    ],
)
def test_byte_arrays_of_a_dictionary_are_doubtful_before_arrow_12(
    array: pa.Array, created_by: str, options: dict[str, Any], trusted: bool
) -> None:
    statistics = chunk_of(array, created_by, **options)
    assert (*bounds(statistics), statistics.nulls) == (
        (*EXPECTED["text"], 1) if trusted else (None, None, None)
    )


def test_numbers_of_a_dictionary_were_written_plainly() -> None:
    statistics = chunk_of(SIGNED.dictionary_encode(), TEN)
    assert (*bounds(statistics), statistics.nulls) == (*EXPECTED["signed"], 1)


def as_decimal(element: Node) -> None:
    element.drop(10)
    element.set(6, I32, 5)
    element.set(7, I32, 0)
    element.set(8, I32, 9)


@pytest.mark.parametrize(
    ("created_by", "expected"),
    [(MR, (-2, 256)), (TRINO, (-2, 256)), (ARROW, (-2, 256)), (RUST, UNKNOWN), (None, UNKNOWN)],
)
def test_decimals_in_byte_arrays_of_any_length(
    created_by: str | None, expected: tuple[Any, Any]
) -> None:
    array = pa.array([b"\xfe", b"\x01\x00"])

    def edit(said: Node) -> None:
        said.set(6, BINARY, b"\xfe")
        said.set(5, BINARY, b"\x01\x00")

    statistics = chunk_of(array, created_by, edit=edit, schema=as_decimal)
    assert bounds(statistics) == expected
    assert bounds(chunk_of(array, created_by, pair=OLD, schema=as_decimal)) == UNKNOWN


@pytest.mark.parametrize(
    ("logical", "converted"),
    [
        pytest.param(None, 21, id="INTERVAL"),
        pytest.param(15, None, id="FLOAT16"),
        pytest.param(16, None, id="VARIANT"),
        pytest.param(17, None, id="GEOMETRY"),
        pytest.param(18, None, id="GEOGRAPHY"),
        pytest.param(11, None, id="UNKNOWN"),
        pytest.param(40, None, id="of a later version"),
        pytest.param(6, None, id="DATE in a byte array"),
        pytest.param(1, 5, id="STRING and DECIMAL"),
    ],
)
def test_values_without_a_known_order_have_no_bounds(
    logical: int | None, converted: int | None
) -> None:
    def schema(element: Node) -> None:
        element.drop(6, 10)
        if logical is not None:
            element.set(10, STRUCT, Node({logical: (STRUCT, Node())}))
        if converted is not None:
            element.set(6, I32, converted)

    data = footer_of(pa.array([b"a", b"b"]), schema=schema)
    # Arrow refuses some of these schemas itself, but that cannot be relied on.
    (statistics,) = FooterStatistics(parse_footer(BytesSource(data), data), "a").of_leaf(0)
    assert (bounds(statistics), statistics.nulls) == (UNKNOWN, 0)


@pytest.mark.parametrize("logical", [1, 4, 12, 13])
def test_text_of_every_logical_type_has_bounds(logical: int) -> None:
    def schema(element: Node) -> None:
        element.drop(6)
        element.set(10, STRUCT, Node({logical: (STRUCT, Node())}))

    assert bounds(chunk_of(TEXT, OTHER, schema=schema)) == EXPECTED["text"]


@pytest.mark.parametrize("signed", [True, False])
def test_an_integer_is_signed_as_its_logical_type_says(signed: bool) -> None:
    def schema(element: Node) -> None:
        element.drop(6)
        inside = Node({1: (3, 64), 2: (BOOL, signed)})
        element.set(10, STRUCT, Node({10: (STRUCT, inside)}))

    statistics = chunk_of(pa.array([5, 6]), schema=schema)
    assert bounds(statistics) == (5, 6)
    statistics = chunk_of(pa.array([5, 6]), OTHER, schema=schema)
    assert bounds(statistics) == ((5, 6) if signed else UNKNOWN)


# NaN and zeros


def counting_nans(count: int, low: float = -2.5, high: float = 1.5) -> Callable[[Node], None]:
    def edit(said: Node) -> None:
        said.set(9, I64, count)
        said.set(6, BINARY, struct.pack("<d", low))
        said.set(5, BINARY, struct.pack("<d", high))

    return edit


WITH_NAN = pa.array([1.5, -2.5, math.nan, None])


@pytest.mark.parametrize("created_by", [ARROW, MR, OTHER, "Polars", None])
@pytest.mark.parametrize("order", [TYPE, TOTAL])
def test_bounds_with_a_count_of_nan_are_trusted(created_by: str | None, order: int) -> None:
    statistics = chunk_of(WITH_NAN, created_by, order, edit=counting_nans(1))
    if created_by == "Polars":  # whose counts are not trusted
        assert (*bounds(statistics), statistics.nans, statistics.nulls) == (None, None, None, None)
    else:
        assert (*bounds(statistics), statistics.nans, statistics.nulls) == (-2.5, 1.5, 1, 1)


def test_total_order_without_a_count_of_nan_is_not_trusted() -> None:
    assert bounds(chunk_of(WITH_NAN, ARROW, TOTAL)) == UNKNOWN


@pytest.mark.parametrize("order", [TYPE, TOTAL])
def test_a_bound_that_is_nan_is_no_bound(order: int) -> None:
    for nan in (math.nan, -math.nan):
        for pair in ((nan, 1.5), (1.5, nan), (nan, nan)):
            statistics = chunk_of(WITH_NAN, ARROW, order, edit=counting_nans(1, *pair))
            assert (*bounds(statistics), statistics.nans) == (None, None, 1)


def test_a_chunk_of_nan_and_null_has_no_value_to_be_a_bound() -> None:
    values = pa.array([math.nan, None, math.nan])
    statistics = chunk_of(values, ARROW, TOTAL, edit=counting_nans(2, math.nan, math.nan))
    assert (*bounds(statistics), statistics.nans, statistics.nulls, statistics.is_empty) == (
        None,
        None,
        2,
        1,
        True,
    )
    assert not chunk_of(values, ARROW, TYPE).is_empty  # nothing says that all values are NaN


# Counts


@pytest.mark.parametrize(
    ("created_by", "trusted"),
    [
        *(
            (writer, True)
            for writer in (ARROW, MR, TRINO, CPP, CPP_OLD, RUST, DUCKDB_OLD, OTHER, None)
        ),
        *((writer, False) for writer in (MR_OLD, RUST_OLD, "Polars", "parquet-go version latest")),
        ("Arrow2 - Native Rust implementation of Arrow", False),
    ],
)
def test_null_counts_are_trusted_by_writer(created_by: str | None, trusted: bool) -> None:
    assert chunk_of(SIGNED, created_by).nulls == (1 if trusted else None)


def test_a_null_count_that_is_not_said_is_not_zero() -> None:
    assert chunk_of(pa.array([1, 2]), edit=lambda said: said.drop(3)).nulls is None


def nulls(count: int) -> Callable[[Node], None]:
    return lambda said: said.set(3, I64, count)


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(nulls(3), id="all null, with bounds"),
        pytest.param(lambda said: (nulls(2)(said), said.set(9, I64, 2)), id="too many in all"),
    ],
)
def test_a_chunk_that_contradicts_itself_says_nothing(edit: Callable[[Node], Any]) -> None:
    assert chunk_of(DOUBLE, edit=edit) == ChunkStatistics(3)


@pytest.mark.parametrize("count", [-1, 4, 1 << 40])
def test_an_impossible_count_is_unknown(count: int) -> None:
    statistics = chunk_of(SIGNED, edit=nulls(count))
    assert (statistics.nulls, *bounds(statistics)) == (None, -7, 3)


# Impossible bounds


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda said: said.set(6, BINARY, b"\x04" + bytes(7)), id="above the other"),
        pytest.param(lambda said: said.set(6, BINARY, bytes(4)), id="of another width"),
        pytest.param(lambda said: said.set(6, BINARY, b""), id="empty"),
        pytest.param(lambda said: said.drop(6), id="only one"),
        pytest.param(lambda said: said.set(6, I64, 5), id="no bytes"),
    ],
)
def test_impossible_bounds_are_unknown(edit: Callable[[Node], None]) -> None:
    statistics = chunk_of(SIGNED, edit=edit)
    assert (*bounds(statistics), statistics.nulls) == (None, None, 1)


@pytest.mark.parametrize("stored", [b"\x01", bytes(12)])
def test_a_decimal_of_another_length_than_its_column_is_not_known(stored: bytes) -> None:
    statistics = chunk_of(DECIMAL, MR, edit=lambda said: said.set(5, BINARY, stored))
    assert bounds(statistics) == UNKNOWN


def test_the_new_pair_is_preferred_and_a_damaged_one_is_not_replaced_by_the_old() -> None:
    def both(said: Node) -> None:
        said.set(2, BINARY, (-9).to_bytes(8, "little", signed=True))
        said.set(1, BINARY, (9).to_bytes(8, "little"))

    def damaged(said: Node) -> None:
        both(said)
        said.set(6, BINARY, b"")

    assert bounds(chunk_of(SIGNED, edit=both)) == (-7, 3)
    assert bounds(chunk_of(SIGNED, order=None, edit=both)) == (-9, 9)
    assert bounds(chunk_of(SIGNED, edit=damaged)) == UNKNOWN


def test_the_writer_says_whether_a_bound_is_a_value() -> None:
    def edit(said: Node) -> None:
        said.set(7, BOOL, False)
        said.set(8, BOOL, True)

    statistics = chunk_of(TEXT, edit=edit)
    assert (statistics.minimum_exact, statistics.maximum_exact) == (True, False)


@pytest.mark.parametrize(("count", "trusted"), [(1, False), (2, True), (3, False)])
def test_column_orders_must_be_as_many_as_leaf_columns(count: int, trusted: bool) -> None:
    order = Node({TYPE: (STRUCT, Node())})
    data = edit_footer(
        written(pa.table({"a": ["x"], "b": ["y"]})),
        lambda footer: footer.set(7, LIST, (STRUCT, [order] * count)),
    )
    # Arrow refuses other numbers, but that cannot be relied on.
    (statistics,) = FooterStatistics(parse_footer(BytesSource(data), data), "a").of_leaf(1)
    assert statistics.minimum == (b"y" if trusted else None)


def test_a_chunk_of_another_number_of_values_than_rows_says_nothing() -> None:
    def change(footer: Node) -> None:
        for chunk in chunks(footer):
            chunk.set(5, I64, 4)

    data = edit_footer(written(pa.table({"c": SIGNED})), change)
    assert open_scan(BytesSource(data)).statistics.of_leaf(0) == [ChunkStatistics(3)]


def test_each_row_group_has_its_statistics_and_empty_ones_none() -> None:
    sink = pa.BufferOutputStream()
    schema = pa.schema({"c": pa.int64()})
    with pq.ParquetWriter(sink, schema) as writer:
        for values in ([1, 2], [], [5]):
            writer.write_table(pa.table({"c": values}, schema))
    scan = open_scan(BytesSource(sink.getvalue().to_pybytes()))
    groups = [(group.rows, group.minimum, group.maximum) for group in scan.statistics.of_leaf(0)]
    assert groups == [(2, 1, 2), (0, None, None), (1, 5, 5)]
    with pytest.raises(FormatError, match="no such leaf column"):
        scan.statistics.of_leaf(1)


def test_a_group_without_fields_is_no_leaf_column() -> None:
    """As in files of parquet-go: a struct without fields has no column chunk."""

    def change(footer: Node) -> None:
        elements = footer.structs(2)
        elements[0].set(5, I32, 3)
        empty = Node({3: (I32, 1), 4: (BINARY, b"empty"), 5: (I32, 0)})
        footer.set(2, LIST, (STRUCT, [elements[0], elements[1], empty, elements[2]]))
        footer.fields.pop(5, None)

    data = edit_footer(written(pa.table({"a": ["x"], "b": ["y"]})), change)
    (statistics,) = FooterStatistics(parse_footer(BytesSource(data), data), "a").of_leaf(1)
    assert bounds(statistics) == (b"y", b"y")


@pytest.mark.parametrize(
    ("created_by", "application", "version"),
    [
        ("parquet-mr version 1.8.2 (build c652)", "parquet-mr", (1, 8, 2, 1)),
        ("parquet-mr version 1.10.1-databricks3", "parquet-mr", (1, 10, 1, 0)),
        ("parquet-mr version 1.10.99.7.1.8.0-801 (build x)", "parquet-mr", (1, 10, 99, 1)),
        ("parquet-mr", "parquet-mr", None),
        ("parquet-mr (build 32c46643845ea8a705c35d4ec8fc654cc8ff816d)", "parquet-mr", None),
        ("parquet-mr compatible Photon version 0.3", "parquet-mr compatible photon", (0, 3, 0, 1)),
        ("DuckDB version v1.5.0 (build 1)", "duckdb", (1, 5, 0, 1)),
        ("Polars", "polars", None),
        ("Arrow2 - Native Rust implementation of Arrow", "arrow2", None),
        ("parquet-rs version 4.0.0-SNAPSHOT (build abc)", "parquet-rs", (4, 0, 0, 0)),
        ("impala version 2.11.0rc1", "impala", (2, 11, 0, 0)),
        ("", "", None),
        (" " * 100_000, "", None),
        ("x" * 300 + " version 1.0.0", "x" * 256, None),
    ],
)
def test_writers_and_their_versions(
    created_by: str, application: str, version: tuple[int, int, int, int] | None
) -> None:
    assert Writer.parse(created_by.encode()) == Writer(application, version)
