"""Types as text, as Arrow, as Spark; the indexes that take them; and the page on all this."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcid.errors import UnsupportedError
from alcid.types import (
    INDEX_TYPES,
    MAX_LENGTH,
    ROOTS,
    DataType,
    indexes_for,
    require_index,
)

PAGE = Path(__file__).parents[1] / "docs" / "questions" / "types.md"

NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
PLAIN = ("BOOLEAN", *NUMBERS, "DATE", "VARIANT", "BLOB")
STRING = DataType("VARCHAR", length=MAX_LENGTH)
BYTES = DataType("VARBINARY", length=MAX_LENGTH)
INT = DataType("INT")


def row(**fields: DataType) -> DataType:
    return DataType("ROW", names=tuple(fields), children=tuple(fields.values()))


# --- as Paimon's text


@pytest.mark.parametrize("root", PLAIN)
def test_plain_types_are_written_as_their_name(root: str) -> None:
    assert DataType.parse(root) == DataType(root)
    assert str(DataType(root)) == root


@pytest.mark.parametrize(
    ("text", "expected", "written"),
    [
        ("INTEGER", INT, "INT"),
        ("DOUBLE PRECISION", DataType("DOUBLE"), "DOUBLE"),
        ("STRING", STRING, "STRING"),
        ("BYTES", BYTES, "BYTES"),
        ("VARCHAR(2147483647)", STRING, "STRING"),
        ("VARBINARY(2147483647)", BYTES, "BYTES"),
        ("VARCHAR(20)", DataType("VARCHAR", length=20), "VARCHAR(20)"),
        ("CHAR(3)", DataType("CHAR", length=3), "CHAR(3)"),
        ("CHAR(2147483647)", DataType("CHAR", length=MAX_LENGTH), "CHAR(2147483647)"),
        ("CHAR", DataType("CHAR", length=1), "CHAR(1)"),
        ("VARCHAR", DataType("VARCHAR", length=1), "VARCHAR(1)"),
        ("BINARY", DataType("BINARY", length=1), "BINARY(1)"),
        ("VARBINARY", DataType("VARBINARY", length=1), "VARBINARY(1)"),
        ("DECIMAL", DataType("DECIMAL", precision=10), "DECIMAL(10, 0)"),
        ("DECIMAL(5)", DataType("DECIMAL", precision=5), "DECIMAL(5, 0)"),
        ("DEC(10,2)", DataType("DECIMAL", precision=10, scale=2), "DECIMAL(10, 2)"),
        ("NUMERIC(38, 38)", DataType("DECIMAL", precision=38, scale=38), "DECIMAL(38, 38)"),
        ("TIME", DataType("TIME"), "TIME(0)"),
        ("TIME(9) WITHOUT TIME ZONE", DataType("TIME", precision=9), "TIME(9)"),
        ("TIMESTAMP", DataType("TIMESTAMP", precision=6), "TIMESTAMP(6)"),
        ("TIMESTAMP(9) WITHOUT TIME ZONE", DataType("TIMESTAMP", precision=9), "TIMESTAMP(9)"),
        (
            "TIMESTAMP WITH LOCAL TIME ZONE",
            DataType("TIMESTAMP_LTZ", precision=6),
            "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        ),
        (
            "TIMESTAMP_LTZ(3)",
            DataType("TIMESTAMP_LTZ", precision=3),
            "TIMESTAMP(3) WITH LOCAL TIME ZONE",
        ),
        (
            "TIMESTAMP_LTZ",
            DataType("TIMESTAMP_LTZ", precision=6),
            "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        ),
        ("ARRAY<INT>", DataType("ARRAY", children=(INT,)), "ARRAY<INT>"),
        ("MULTISET<STRING>", DataType("MULTISET", children=(STRING,)), "MULTISET<STRING>"),
        ("MAP<STRING,INT>", DataType("MAP", children=(STRING, INT)), "MAP<STRING, INT>"),
        ("ROW<a INT, b STRING>", row(a=INT, b=STRING), "ROW<`a` INT, `b` STRING>"),
        ("ROW<`x``, y` INT COMMENT 'it''s, >'>", row(**{"x`, y": INT}), "ROW<`x``, y` INT>"),
        ("ROW<not INT NOT NULL, null INT>", row(**{"not": INT, "null": INT}), None),
        ("ROW<>", row(), "ROW<>"),
        (
            "VECTOR<FLOAT, 3>",
            DataType("VECTOR", length=3, children=(DataType("FLOAT"),)),
            "VECTOR<FLOAT, 3>",
        ),
    ],
)
def test_paimon_text(text: str, expected: DataType, written: str | None) -> None:
    assert DataType.parse(text) == expected
    if written is not None:
        assert str(expected) == written


@pytest.mark.parametrize(
    "text",
    [
        "decimal(10,2)",
        "  Decimal \t( 10 ,\n2 )  ",
        "DECIMAL(10, 2) NOT NULL",
        "DECIMAL(10, 2) null",
        "dec(010, 02) not  null",
    ],
)
def test_case_blanks_and_nullability_do_not_matter(text: str) -> None:
    assert DataType.parse(text) == DataType("DECIMAL", precision=10, scale=2)


def test_nullability_is_dropped_at_every_level() -> None:
    text = "MAP<STRING NOT NULL, ARRAY<INT NOT NULL> NULL> NOT NULL"
    assert str(DataType.parse(text)) == "MAP<STRING, ARRAY<INT>>"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "position 0: found the end, expected the name of a type"),
        ("  ", "position 2: found the end, expected the name of a type"),
        ("GEOMETRY", "position 0: found 'GEOMETRY', expected the name of a type"),
        ("`INT`", "position 0: found '`INT`', expected the name of a type"),
        ("INT(3)", "position 3: found '(', expected the end"),
        ("INT NOT", "position 7: found the end, expected 'NULL'"),
        ("INT NOT NULL NULL", "position 13: found 'NULL', expected the end"),
        ("CHAR(3", "position 6: found the end, expected ')'"),
        ("CHAR()", "position 5: found ')', expected a number"),
        ("CHAR(-1)", "position 5: found '-1', expected a number"),
        ("CHAR(\u0663)", "position 5: found '\u0663', expected a number"),
        ("CHAR(99999999999)", "position 5: found '99999999999', expected a number"),
        ("CHAR(1, 2)", "position 6: found ',', expected ')'"),
        ("CHAR(0)", "position 0: CHAR(0): length must be 1 to 2147483647"),
        ("VARCHAR(2147483648)", "position 0: VARCHAR(2147483648): length must be 1 to 2147483647"),
        ("DECIMAL(0)", "position 0: DECIMAL(0, 0): precision must be 1 to 38"),
        ("ARRAY<DECIMAL(39)>", "position 6: DECIMAL(39, 0): precision must be 1 to 38"),
        ("DECIMAL(2, 3)", "position 0: DECIMAL(2, 3): scale must be at most the precision, 2"),
        ("TIMESTAMP(10)", "position 0: TIMESTAMP(10): precision must be 0 to 9"),
        ("TIMESTAMP WITH TIME ZONE", "position 15: found 'TIME', expected 'LOCAL'"),
        ("TIMESTAMP_LTZ(3) WITHOUT TIME ZONE", "position 17: found 'WITHOUT', expected the end"),
        ("ARRAY", "position 5: found the end, expected '<'"),
        ("ARRAY<INT, INT>", "position 9: found ',', expected '>'"),
        ("MAP<STRING>", "position 10: found '>', expected ','"),
        ("ROW<a>", "position 5: found '>', expected the name of a type"),
        ("ROW<a INT b INT>", "position 10: found 'b', expected ','"),
        ("ROW<a INT, >", "position 11: found '>', expected the name of a field"),
        ("ROW<`a INT>", "position 4: found '`', expected the name of a field"),
        ("ROW<a INT COMMENT b>", "position 18: found 'b', expected a text in quotes"),
        ("ROW<a INT COMMENT 'b>", 'position 18: found "\'", expected a text in quotes'),
        ("VECTOR<FLOAT>", "position 12: found '>', expected ','"),
        (
            "VECTOR<STRING, 3>",
            f"position 0: VECTOR<STRING, 3>: elements must be one of BOOLEAN, {', '.join(NUMBERS)}",
        ),
    ],
)
def test_text_that_does_not_parse_is_an_error_with_its_position(text: str, problem: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        DataType.parse(text)
    assert str(error.value) == f"type {text!r} at {problem}"


def test_nesting_is_bounded() -> None:
    assert str(DataType.parse("ARRAY<" * 63 + "INT" + ">" * 63)).count("ARRAY") == 63
    problem = "at position 384: found 'ARRAY', expected at most 64 nested types$"
    with pytest.raises(UnsupportedError, match=problem):
        DataType.parse("ARRAY<" * 100_000)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: DataType("STRING"), "STRING: no such type"),
        (lambda: DataType("int"), "int: no such type"),
        (lambda: DataType("INT", precision=3), "INT: precision must be 0"),
        (lambda: DataType("DATE", length=3), "DATE: length must be 0"),
        (lambda: DataType("TIME", scale=1), "TIME(0): scale must be 0"),
        (lambda: DataType("ARRAY"), "ARRAY<>: must have 1 inner types, found 0"),
        (lambda: DataType("MAP", children=(INT,)), "MAP<INT>: must have 2 inner types, found 1"),
        (lambda: DataType("INT", children=(INT,)), "INT: must have 0 inner types, found 1"),
        (lambda: DataType("ROW", children=(INT,)), "ROW<>: must have 0 inner types, found 1"),
        (lambda: DataType("INT", names=("a",)), "INT: only ROW has names"),
    ],
)
def test_a_type_that_does_not_exist_cannot_be_made(
    make: Callable[[], DataType], problem: str
) -> None:
    with pytest.raises(UnsupportedError) as error:
        make()
    assert str(error.value) == problem


def scalars() -> st.SearchStrategy[DataType]:
    lengths = st.integers(1, MAX_LENGTH) | st.sampled_from([1, 3, MAX_LENGTH])
    sized = st.sampled_from(["CHAR", "VARCHAR", "BINARY", "VARBINARY"])
    timed = st.sampled_from(["TIME", "TIMESTAMP", "TIMESTAMP_LTZ"])
    decimals = st.integers(1, 38).flatmap(
        lambda precision: st.builds(
            DataType, st.just("DECIMAL"), st.just(precision), st.integers(0, precision)
        )
    )
    return st.one_of(
        st.sampled_from(PLAIN).map(DataType),
        st.builds(lambda root, length: DataType(root, length=length), sized, lengths),
        st.builds(DataType, timed, st.integers(0, 9)),
        decimals,
    )


def nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    names = st.text(max_size=5) | st.sampled_from(["a", "`", "a b", "x:y", "NULL", "'", "1"])
    return st.one_of(
        st.builds(lambda child: DataType("ARRAY", children=(child,)), inner),
        st.builds(lambda child: DataType("MULTISET", children=(child,)), inner),
        st.builds(lambda *children: DataType("MAP", children=children), inner, inner),
        st.lists(st.tuples(names, inner), max_size=3).map(
            lambda fields: DataType(
                "ROW",
                names=tuple(name for name, _ in fields),
                children=tuple(child for _, child in fields),
            )
        ),
        st.integers(1, 9).map(
            lambda length: DataType("VECTOR", length=length, children=(DataType("FLOAT"),))
        ),
    )


data_types = st.recursive(scalars(), nested, max_leaves=6)


@given(data_types)
def test_text_parses_back(data_type: DataType) -> None:
    assert DataType.parse(str(data_type)) == data_type
    assert DataType.parse(f" {data_type} NOT NULL ") == data_type


@given(data_types)
def test_types_survive_pickle_and_repr(data_type: DataType) -> None:
    assert pickle.loads(pickle.dumps(data_type)) == data_type
    assert eval(repr(data_type)) == data_type


@given(st.text("INTCHARROW<>(),:`' 12ab\\\n", max_size=30))
def test_any_text_is_a_type_or_an_error_of_ours(text: str) -> None:
    try:
        data_type = DataType.parse(text)
    except UnsupportedError:
        return
    assert DataType.parse(str(data_type)) == data_type


# --- as Arrow

ARROW: list[tuple[Any, str]] = [
    (pa.bool_(), "BOOLEAN"),
    (pa.int8(), "TINYINT"),
    (pa.int16(), "SMALLINT"),
    (pa.int32(), "INT"),
    (pa.int64(), "BIGINT"),
    (pa.uint8(), "SMALLINT"),
    (pa.uint16(), "INT"),
    (pa.uint32(), "BIGINT"),
    (pa.uint64(), "DECIMAL(20, 0)"),
    (pa.float16(), "FLOAT"),
    (pa.float32(), "FLOAT"),
    (pa.float64(), "DOUBLE"),
    (pa.decimal32(9, 2), "DECIMAL(9, 2)"),
    (pa.decimal64(18, 2), "DECIMAL(18, 2)"),
    (pa.decimal128(38, 2), "DECIMAL(38, 2)"),
    (pa.decimal256(38, 2), "DECIMAL(38, 2)"),
    (pa.string(), "STRING"),
    (pa.large_string(), "STRING"),
    (pa.string_view(), "STRING"),
    (pa.binary(), "BYTES"),
    (pa.large_binary(), "BYTES"),
    (pa.binary_view(), "BYTES"),
    (pa.binary(16), "BINARY(16)"),
    (pa.date32(), "DATE"),
    (pa.date64(), "DATE"),
    (pa.time32("s"), "TIME(0)"),
    (pa.time32("ms"), "TIME(3)"),
    (pa.time64("us"), "TIME(6)"),
    (pa.time64("ns"), "TIME(9)"),
    (pa.timestamp("s"), "TIMESTAMP(0)"),
    (pa.timestamp("ms"), "TIMESTAMP(3)"),
    (pa.timestamp("us"), "TIMESTAMP(6)"),
    (pa.timestamp("ns"), "TIMESTAMP(9)"),
    (pa.timestamp("s", "UTC"), "TIMESTAMP(0) WITH LOCAL TIME ZONE"),
    (pa.timestamp("ms", "+01:00"), "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    (pa.timestamp("us", "Asia/Tokyo"), "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    (pa.timestamp("ns", "UTC"), "TIMESTAMP(9) WITH LOCAL TIME ZONE"),
    (pa.list_(pa.int32()), "ARRAY<INT>"),
    (pa.large_list(pa.int32()), "ARRAY<INT>"),
    (pa.list_view(pa.int32()), "ARRAY<INT>"),
    (pa.large_list_view(pa.int32()), "ARRAY<INT>"),
    (pa.list_(pa.int32(), 3), "ARRAY<INT>"),
    (pa.map_(pa.string(), pa.int32()), "MAP<STRING, INT>"),
    (pa.struct([("a", pa.int32())]), "ROW<`a` INT>"),
    (pa.dictionary(pa.int8(), pa.large_string()), "STRING"),
    (pa.run_end_encoded(pa.int16(), pa.date32()), "DATE"),
    (pa.uuid(), "BINARY(16)"),
]


@pytest.mark.parametrize(("arrow_type", "expected"), ARROW, ids=str)
def test_from_arrow(arrow_type: Any, expected: str) -> None:
    assert DataType.from_arrow(arrow_type) == DataType.parse(expected)


def test_from_arrow_looks_into_nested_types() -> None:
    values = pa.dictionary(pa.int32(), pa.string_view())
    arrow_type = pa.struct([("a", pa.list_(values)), ("a", pa.map_(pa.uint8(), values))])
    expected = "ROW<`a` ARRAY<STRING>, `a` MAP<SMALLINT, STRING>>"
    assert str(DataType.from_arrow(arrow_type)) == expected


UNION = [pa.field("a", pa.int8())]


@pytest.mark.parametrize(
    ("arrow_type", "name"),
    [
        (pa.null(), "null"),
        (pa.duration("ms"), "duration[ms]"),
        (pa.month_day_nano_interval(), "month_day_nano_interval"),
        (pa.dense_union(UNION), "dense_union<a: int8=0>"),
        (pa.sparse_union(UNION), "sparse_union<a: int8=0>"),
        (pa.list_(pa.null()), "null"),
    ],
)
def test_arrow_types_without_a_counterpart_are_named(arrow_type: Any, name: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        DataType.from_arrow(arrow_type)
    assert str(error.value) == f"Arrow type {name} has no counterpart among Paimon's types"


@pytest.mark.parametrize(
    ("arrow_type", "problem"),
    [
        (pa.decimal256(39, 2), "DECIMAL(39, 2): precision must be 1 to 38"),
        (pa.decimal128(5, -2), "DECIMAL(5, -2): scale must be 0 to 38"),
        (pa.decimal128(2, 3), "DECIMAL(2, 3): scale must be at most the precision, 2"),
        (pa.binary(0), "BINARY(0): length must be 1 to 2147483647"),
    ],
)
def test_arrow_parameters_that_paimon_does_not_have(arrow_type: Any, problem: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        DataType.from_arrow(arrow_type)
    assert str(error.value) == problem


# Arrow has no place for the rest: lengths of strings are lost, digits go to the next unit, and
# MULTISET, VECTOR, VARIANT and BLOB come back as the type that stores them.
LOSSLESS = {"BOOLEAN", *NUMBERS, "DECIMAL", "BINARY", "DATE", "ARRAY", "MAP", "ROW"}


def roots(data_type: DataType) -> set[str]:
    return {data_type.root}.union(*map(roots, data_type.children))


@given(data_types.filter(lambda data_type: roots(data_type) <= LOSSLESS))
def test_arrow_round_trip(data_type: DataType) -> None:
    assert DataType.from_arrow(data_type.to_arrow()) == data_type


@given(scalars().filter(lambda data_type: data_type.root not in ("VARIANT", "BLOB")))
def test_the_canonical_arrow_type_is_a_fixed_point(data_type: DataType) -> None:
    arrow_type = data_type.to_arrow()
    assert DataType.from_arrow(arrow_type).to_arrow() == arrow_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TIME(0)", pa.time32("ms")),
        ("TIME(3)", pa.time32("ms")),
        ("TIME(4)", pa.time64("us")),
        ("TIME(7)", pa.time64("ns")),
        ("TIMESTAMP(0)", pa.timestamp("s")),
        ("TIMESTAMP(1)", pa.timestamp("ms")),
        ("TIMESTAMP(4)", pa.timestamp("us")),
        ("TIMESTAMP(7)", pa.timestamp("ns")),
        ("TIMESTAMP_LTZ(6)", pa.timestamp("us", "UTC")),
        ("DECIMAL(38, 2)", pa.decimal128(38, 2)),
        ("CHAR(3)", pa.string()),
        ("BINARY(3)", pa.binary(3)),
        ("VARBINARY(3)", pa.binary()),
        ("BLOB", pa.large_binary()),
        ("MULTISET<STRING>", pa.map_(pa.string(), pa.int32())),
        ("VECTOR<FLOAT, 3>", pa.list_(pa.float32(), 3)),
        ("ROW<a INT, b ARRAY<INT>>", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int32()))])),
    ],
)
def test_to_arrow(text: str, expected: Any) -> None:
    assert DataType.parse(text).to_arrow() == expected


# --- as Spark

SPARK = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "byte": "TINYINT",
    "smallint": "SMALLINT",
    "short": "SMALLINT",
    "int": "INT",
    "integer": "INT",
    "bigint": "BIGINT",
    "long": "BIGINT",
    "float": "FLOAT",
    "real": "FLOAT",
    "double": "DOUBLE",
    "decimal": "DECIMAL(10, 0)",
    "decimal(10,2)": "DECIMAL(10, 2)",
    "dec(10)": "DECIMAL(10, 0)",
    "numeric(10, 2)": "DECIMAL(10, 2)",
    "string": "STRING",
    "string collate UTF8_BINARY": "STRING",
    "char(3)": "CHAR(3)",
    "character(3)": "CHAR(3)",
    "varchar(20)": "VARCHAR(20)",
    "binary": "BYTES",
    "date": "DATE",
    "time": "TIME(6)",
    "time(3)": "TIME(3)",
    "timestamp": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "timestamp_ltz": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "timestamp_ntz": "TIMESTAMP(6)",
    "array<int>": "ARRAY<INT>",
    "map<string,int>": "MAP<STRING, INT>",
    "struct<a:int,b:string>": "ROW<`a` INT, `b` STRING>",
    "variant": "VARIANT",
}


@pytest.mark.parametrize(("text", "expected"), SPARK.items())
def test_from_spark(text: str, expected: str) -> None:
    assert str(DataType.from_spark(text)) == expected
    assert DataType.from_spark(text.upper()) == DataType.parse(expected.upper())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("STRUCT<a: INT NOT NULL COMMENT 'it\\'s', `b``c` STRING>", "ROW<`a` INT, `b``c` STRING>"),
        ("struct<a-b:int,c.d:int,1:int>", "ROW<`a-b` INT, `c.d` INT, `1` INT>"),
        ("struct<>", "ROW<>"),
    ],
)
def test_spark_structs_as_ddl_and_simple_string(text: str, expected: str) -> None:
    assert str(DataType.from_spark(text)) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("void", "position 0: found 'void', expected the name of a type"),
        ("interval day to second", "position 0: found 'interval', expected the name of a type"),
        ("geometry(4326)", "position 0: found 'geometry', expected the name of a type"),
        ("bytes", "position 0: found 'bytes', expected the name of a type"),
        ("char", "position 4: found the end, expected '('"),
        ("varchar", "position 7: found the end, expected '('"),
        ("binary(3)", "position 6: found '(', expected the end"),
        ("timestamp(3)", "position 9: found '(', expected the end"),
        (
            "array<string collate UNICODE_CI>",
            (
                "position 21: found 'UNICODE_CI', "
                "expected 'UTF8_BINARY': an index compares strings by their bytes"
            ),
        ),
        ("struct<a:int,... 3 more fields>", "position 17: found '3', expected the name of a type"),
    ],
)
def test_spark_text_that_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        DataType.from_spark(text)
    assert str(error.value) == f"Spark type {text!r} at {problem}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DECIMAL(10, 2)", "decimal(10,2)"),
        ("STRING", "string"),
        ("VARCHAR(20)", "varchar(20)"),
        ("CHAR(3)", "char(3)"),
        ("BINARY(3)", "binary"),
        ("BYTES", "binary"),
        ("BLOB", "binary"),
        ("TIME(6)", "time(6)"),
        ("TIMESTAMP(9)", "timestamp_ntz"),
        ("TIMESTAMP_LTZ(0)", "timestamp"),
        ("MULTISET<STRING>", "map<string,int>"),
        ("VECTOR<FLOAT, 3>", "array<float>"),
        ("ROW<a INT, `b c` ARRAY<STRING>, `1` INT>", "struct<a:int,`b c`:array<string>,`1`:int>"),
    ],
)
def test_to_spark(text: str, expected: str) -> None:
    assert DataType.parse(text).to_spark() == expected


def test_time_finer_than_spark_has_no_spark_type() -> None:
    with pytest.raises(
        UnsupportedError, match=r"^TIME\(7\) has no Spark type: time ends at time\(6\)$"
    ):
        DataType("TIME", precision=7).to_spark()


def holds(data_type: DataType) -> bool:
    """Whether Spark can say exactly this type."""
    match data_type.root:
        case "BINARY" | "BLOB" | "MULTISET" | "VECTOR":
            return False
        case "VARBINARY":
            return data_type.length == MAX_LENGTH
        case "TIME":
            return data_type.precision <= 6
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return data_type.precision == 6
    return all(map(holds, data_type.children))


@given(data_types.filter(holds))
def test_spark_round_trip(data_type: DataType) -> None:
    assert DataType.from_spark(data_type.to_spark()) == data_type


def test_what_spark_writes_is_read_and_written_the_same() -> None:
    # simpleString() of a struct of all these, as Spark 4.1.4 gave it.
    fields = {
        "boolean": "BOOLEAN",
        "tinyint": "TINYINT",
        "smallint": "SMALLINT",
        "int": "INT",
        "bigint": "BIGINT",
        "float": "FLOAT",
        "double": "DOUBLE",
        "decimal(10,2)": "DECIMAL(10, 2)",
        "string": "STRING",
        "char(3)": "CHAR(3)",
        "varchar(20)": "VARCHAR(20)",
        "binary": "BYTES",
        "date": "DATE",
        "time(3)": "TIME(3)",
        "timestamp": "TIMESTAMP_LTZ(6)",
        "timestamp_ntz": "TIMESTAMP(6)",
        "variant": "VARIANT",
        "array<int>": "ARRAY<INT>",
        "map<string,bigint>": "MAP<STRING, BIGINT>",
    }
    names = "abcdefghijklmnopqrs"
    written = ",".join(f"{name}:{text}" for name, text in zip(names, fields, strict=True))
    types = map(DataType.parse, fields.values())
    expected = row(**dict(zip(names, types, strict=True)))
    assert DataType.from_spark(f"struct<{written}>") == expected
    assert expected.to_spark() == f"struct<{written}>"


# --- which index


def indexes(text: str) -> tuple[str, ...]:
    return indexes_for(DataType.parse(text))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("TINYINT", "SMALLINT", "INT", "BIGINT", "DATE"), INDEX_TYPES),
        (("TIME(0)", "TIME(9)"), INDEX_TYPES),
        (("TIMESTAMP(0)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(0)", "TIMESTAMP_LTZ(6)"), INDEX_TYPES),
        (("TIMESTAMP(7)", "TIMESTAMP_LTZ(9)"), ("bloom-filter", "bitmap", "bsi")),
        (("FLOAT", "DOUBLE"), ("bloom-filter", "bitmap", "range-bitmap")),
        (("CHAR(3)", "VARCHAR(3)", "STRING"), ("bloom-filter", "bitmap", "range-bitmap")),
        (("BINARY(3)", "VARBINARY(3)", "BYTES"), ("bloom-filter",)),
        (("BOOLEAN",), ("bitmap", "range-bitmap")),
        (("DECIMAL(1)", "DECIMAL(18, 18)"), ("range-bitmap", "bsi")),
        (("DECIMAL(19)", "DECIMAL(38, 2)"), ("bsi",)),
        (("ARRAY<INT>", "MAP<STRING, INT>", "ROW<a INT>", "MULTISET<INT>"), ()),
        (("VECTOR<FLOAT, 3>", "VARIANT", "BLOB"), ()),
    ],
)
def test_index_types_of_a_column(texts: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert {text: indexes(text) for text in texts} == dict.fromkeys(texts, expected)


@given(st.sampled_from(INDEX_TYPES), data_types)
def test_an_index_is_required_exactly_where_it_is_offered(
    index_type: str, data_type: DataType
) -> None:
    if index_type in indexes_for(data_type):
        require_index(index_type, "c", data_type)
    else:
        with pytest.raises(UnsupportedError):
            require_index(index_type, "c", data_type)


@pytest.mark.parametrize(
    ("index_type", "text", "problem"),
    [
        (
            "bloom-filter",
            "BOOLEAN",
            "bloom-filter does not take BOOLEAN; use bitmap or range-bitmap",
        ),
        (
            "range-bitmap",
            "DECIMAL(19, 2)",
            "range-bitmap does not take DECIMAL(19, 2), only a precision up to 18; use bsi",
        ),
        (
            "range-bitmap",
            "TIMESTAMP(9)",
            (
                "range-bitmap does not take TIMESTAMP(9), only a precision up to 6; "
                "use bloom-filter or bitmap or bsi"
            ),
        ),
        ("bsi", "STRING", "bsi does not take STRING; use bloom-filter or bitmap or range-bitmap"),
        ("bitmap", "BYTES", "bitmap does not take BYTES; use bloom-filter"),
        ("bitmap", "VARIANT", "bitmap does not take VARIANT; no index does"),
        (
            "bitmap",
            "MAP<STRING, INT>",
            "bitmap does not take MAP<STRING, INT>; name a key of the map instead: c[key]",
        ),
        (
            "bloom",
            "INT",
            "found index type 'bloom', expected bloom-filter, bitmap, range-bitmap, bsi",
        ),
    ],
)
def test_refusal_says_why_and_what_else(index_type: str, text: str, problem: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        require_index(index_type, "c", DataType.parse(text))
    assert str(error.value) == f"column c: {problem}"


# --- the page


def precise(root: str, first: int, last: int) -> list[DataType]:
    return [DataType(root, precision) for precision in range(first, last + 1)]


def sized(root: str, *lengths: int) -> list[DataType]:
    return [DataType(root, length=length) for length in lengths]


SPANS = ((0, 0), (1, 3), (4, 6), (7, 9))
# The rows of the first table: types that only differ in their parameters.
MAIN = [
    *([DataType(root)] for root in ("BOOLEAN", *NUMBERS)),
    precise("DECIMAL", 1, 18),
    precise("DECIMAL", 19, 38),
    sized("CHAR", 1, 7, MAX_LENGTH),
    sized("VARCHAR", 1, 7, MAX_LENGTH - 1),
    [STRING],
    sized("BINARY", 1, 7, MAX_LENGTH),
    sized("VARBINARY", 1, 7, MAX_LENGTH - 1),
    [BYTES],
    [DataType("DATE")],
    *(precise("TIME", *span) for span in ((0, 3), (4, 6), (7, 9))),
    *(precise(root, *span) for root in ("TIMESTAMP", "TIMESTAMP_LTZ") for span in SPANS),
    [DataType("ARRAY", children=(INT,))],
    [DataType("MAP", children=(STRING, INT))],
    [DataType("MULTISET", children=(INT,))],
    [row(a=INT)],
    [DataType("VECTOR", length=7, children=(DataType("FLOAT"),))],
    [DataType("VARIANT")],
    [DataType("BLOB")],
]


def code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def cells(data_type: DataType) -> list[str]:
    """A row of the first table, with letters for the parameters."""
    try:
        spark = code(data_type.to_spark())
    except UnsupportedError:
        spark = "none"
    texts = [code(str(data_type)), spark, code(str(data_type.to_arrow()))]
    parameters = {"p": data_type.precision, "s": data_type.scale, "n": data_type.length}
    for letter, value in parameters.items():
        texts = [re.sub(rf"(?<=[(\[ ,]){value}(?=[)\], >])", letter, text) for text in texts]
    marks = ["yes" if name in indexes_for(data_type) else "" for name in INDEX_TYPES]
    return texts + marks


def main_row(alike: list[DataType]) -> list[str]:
    first, *others = [cells(data_type) for data_type in alike]
    assert others == [first] * len(others)
    least, most = alike[0].precision, alike[-1].precision
    span = f", p = {least} to {most}" if least < most else f", p = {least}"
    return [first[0] + (span if "(p" in first[0] else ""), *first[1:]]


def grouped(taken: list[tuple[str, str]]) -> list[list[str]]:
    groups: dict[str, list[str]] = {}
    for text, expected in taken:
        groups.setdefault(expected, []).append(code(text))
    return [[", ".join(texts), code(expected)] for expected, texts in groups.items()]


def table(*rows: list[str]) -> str:
    """A Markdown table; the first row is the head."""
    head, *body = [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])


def page_tables() -> list[str]:
    return [
        table(["Paimon", "Spark", "Arrow", *INDEX_TYPES], *map(main_row, MAIN)),
        table(["Spark", "is taken as"], *grouped(list(SPARK.items()))),
        table(["Arrow", "is taken as"], *grouped([(str(arrow), text) for arrow, text in ARROW])),
    ]


def test_the_page_has_the_tables_of_the_code() -> None:
    tables = re.findall(r"(?:^\|.*\n)+", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [text.strip() for text in tables] == page_tables()


def test_the_page_leaves_out_no_type() -> None:
    assert {data_type.root for alike in MAIN for data_type in alike} == set(ROOTS)
