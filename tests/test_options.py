"""`file-index.*` options: what they request, and every way to get them wrong."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from alcid import FileIndex, config
from alcid import options as options_module
from alcid.errors import ColumnError, OptionError, UnsupportedError
from alcid.options import (
    BitmapOptions,
    BloomFilterOptions,
    BsiOptions,
    IndexSpec,
    RangeBitmapOptions,
    memory_size,
    parse_options,
)
from alcid.types import DataType

BLOCK = 16 * 1024


def problem(options: dict[str, Any]) -> str:
    with pytest.raises(OptionError) as error:
        parse_options(options)
    return str(error.value)


# --- memory sizes


@pytest.mark.parametrize(
    ("units", "factor"),
    [
        (("", "b", "bytes"), 1),
        (("k", "kb", "kibibytes"), 1024),
        (("m", "mb", "mebibytes"), 1024**2),
        (("g", "gb", "gibibytes"), 1024**3),
        (("t", "tb", "tebibytes"), 1024**4),
    ],
)
def test_units_of_a_memory_size(units: tuple[str, ...], factor: int) -> None:
    for unit in units:
        assert memory_size(f"3{unit}") == 3 * factor
        assert memory_size(f" 3\t{unit.upper()} ") == 3 * factor


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, 0), (500, 500), ("00", 0), ("0b", 0), ("007 kb", 7168), (f"{2**63 - 1}", 2**63 - 1)],
)
def test_memory_sizes(size: str | int, expected: int) -> None:
    assert memory_size(size) == expected


@pytest.mark.parametrize(
    "size",
    [
        *("", "kb", "-1", "+1", "1.5mb", "1e3", "1 k b", "1kib", "1_000", "16 kbs", "\u0663kb"),
        *(f"{2**63}", f"{2**53}kb", "9" * 30, -2, 1.0, True, None),
    ],
)
def test_not_a_memory_size(size: Any) -> None:
    with pytest.raises(OptionError) as error:
        memory_size(size)
    expected = f"a whole number of bytes from 0 to {2**63 - 1}, as 500, 16kb or 1 mb"
    assert str(error.value) == f"memory size: found {size!r}, expected {expected}"


# --- what is asked for


def test_every_type_with_its_defaults_sorted_by_column_and_type() -> None:
    assert parse_options(
        {
            "file-index.range-bitmap.columns": "price,id",
            "file-index.bitmap.columns": " id , name ",
            "file-index.bsi.columns": "price",
            "file-index.bloom-filter.columns": "name",
        }
    ) == (
        IndexSpec("id", "bitmap", BitmapOptions(version=2, index_block_size=BLOCK)),
        IndexSpec("id", "range-bitmap", RangeBitmapOptions(chunk_size=None)),
        IndexSpec("name", "bitmap", BitmapOptions()),
        IndexSpec("name", "bloom-filter", BloomFilterOptions(items=None, fpp=None)),
        IndexSpec("price", "bsi", BsiOptions()),
        IndexSpec("price", "range-bitmap", RangeBitmapOptions()),
    )


def test_options_belong_to_their_column_and_type() -> None:
    assert parse_options(
        {
            "file-index.bloom-filter.a.items": "200",
            "file-index.bloom-filter.a.fpp": "0.01",
            "file-index.bloom-filter.columns": "a,b",
            "file-index.bitmap.columns": "a,b",
            "file-index.bitmap.a.version": "1",
            "file-index.bitmap.b.index-block-size": "32 kb",
            "file-index.range-bitmap.columns": "a",
            "file-index.range-bitmap.a.chunk-size": "0b",
        }
    ) == (
        IndexSpec("a", "bitmap", BitmapOptions(version=1)),
        IndexSpec("a", "bloom-filter", BloomFilterOptions(items=200, fpp=0.01)),
        IndexSpec("a", "range-bitmap", RangeBitmapOptions(chunk_size=0)),
        IndexSpec("b", "bitmap", BitmapOptions(index_block_size=32 * 1024)),
        IndexSpec("b", "bloom-filter", BloomFilterOptions()),
    )


def test_numbers_may_be_given_as_numbers() -> None:
    assert parse_options(
        {
            "file-index.bloom-filter.columns": "a",
            "file-index.bloom-filter.a.items": 1e6,
            "file-index.bloom-filter.a.fpp": 1e-05,
            "file-index.bitmap.columns": "a",
            "file-index.bitmap.a.version": 1,
            "file-index.bitmap.a.index-block-size": 100,
        }
    ) == (
        IndexSpec("a", "bitmap", BitmapOptions(version=1, index_block_size=100)),
        IndexSpec("a", "bloom-filter", BloomFilterOptions(items=1_000_000, fpp=1e-05)),
    )


def test_options_of_a_map_apply_to_its_keys_and_a_key_has_the_last_word() -> None:
    assert parse_options(
        {
            "file-index.bloom-filter.columns": "m[a], m[b.c]",
            "file-index.bloom-filter.m[b.c].fpp": "0.5",
            "file-index.bloom-filter.m.items": "10",
            "file-index.bloom-filter.m.fpp": "0.25",
        }
    ) == (
        IndexSpec("m[a]", "bloom-filter", BloomFilterOptions(items=10, fpp=0.25)),
        IndexSpec("m[b.c]", "bloom-filter", BloomFilterOptions(items=10, fpp=0.5)),
    )


def test_columns_with_dots_take_options() -> None:
    assert parse_options(
        {
            "file-index.bitmap.columns": "a,a.b,a.b.version",
            "file-index.bitmap.a.b.version": "1",
            "file-index.bitmap.a.b.version.version": "1",
        }
    ) == (
        IndexSpec("a", "bitmap", BitmapOptions(version=2)),
        IndexSpec("a.b", "bitmap", BitmapOptions(version=1)),
        IndexSpec("a.b.version", "bitmap", BitmapOptions(version=1)),
    )


def test_other_keys_of_a_table_are_let_through() -> None:
    assert parse_options(
        {
            "bucket": 4,
            "file.format": "parquet",
            "file-index.read.enabled": "TRUE",
            "file-index.in-manifest-threshold": "500 B",
            "file-index.bsi.columns": "a",
            "fields.a.file-index.bitmap.version": "9",
        }
    ) == (IndexSpec("a", "bsi", BsiOptions()),)


def test_names_differ_in_case_only_where_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = {"file-index.bitmap.columns": "Id,m[K],m[k]", "file-index.bitmap.ID.version": "1"}
    assert parse_options(mixed) == (
        IndexSpec("Id", "bitmap", BitmapOptions(version=1)),
        IndexSpec("m[K]", "bitmap", BitmapOptions()),
        IndexSpec("m[k]", "bitmap", BitmapOptions()),
    )
    assert problem({"file-index.bitmap.columns": "Id,iD"}) == (
        "file-index.bitmap.columns: found 'Id,iD', which names Id twice"
    )
    monkeypatch.setattr(config, "case_sensitive", True)
    assert problem(mixed) == (
        "file-index.bitmap.ID.version: the column is not in file-index.bitmap.columns"
    )
    assert [spec.column for spec in parse_options({"file-index.bsi.columns": "iD,Id"})] == [
        "Id",
        "iD",
    ]


def test_settings_start_as_spark_does() -> None:
    assert (config.timezone, config.case_sensitive) == ("UTC", False)


# --- what is wrong

TYPES = "bloom-filter, bitmap, range-bitmap, bsi"


@pytest.mark.parametrize("options", [{}, {"file.format": "orc", "file-index.read.enabled": True}])
def test_no_columns_at_all(options: dict[str, Any]) -> None:
    assert problem(options) == (
        f"no index: name columns in file-index.<type>.columns, <type> of {TYPES}"
    )


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("bitmap.version", "use file-index.bitmap.<column>.version"),
        ("bloom-filter.items", "use file-index.bloom-filter.<column>.items"),
        (
            "bitmap.column",
            (
                "no such option, expected file-index.bitmap.columns or "
                "file-index.bitmap.<column>.version or file-index.bitmap.<column>.index-block-size"
            ),
        ),
        ("bsi.items", "no such option, expected file-index.bsi.columns"),
        ("bsi", "no such option, expected file-index.bsi.columns"),
        ("foo.bar", f"no such option, expected file-index.<type>.columns, <type> of {TYPES}"),
        ("bitmaps", "no such option; did you mean file-index.bitmap.columns?"),
        (
            "bloomfilter.columns",
            "no such option; did you mean file-index.bloom-filter.columns?",
        ),
        ("BITMAP.a.version", "no such option; did you mean file-index.bitmap.a.version?"),
        ("range.columns", "no such option; did you mean file-index.range-bitmap.columns?"),
        ("read.enable", "no such option; did you mean file-index.read.enabled?"),
        (
            "in-manifest-treshold",
            "no such option; did you mean file-index.in-manifest-threshold?",
        ),
        ("bitmap.b.version", "the column is not in file-index.bitmap.columns"),
        ("bitmap.a.b.version", "the column is not in file-index.bitmap.columns"),
        ("bitmap.a[k].version", "the column is not in file-index.bitmap.columns"),
        ("bloom-filter.a.items", "the column is not in file-index.bloom-filter.columns"),
        ("bitmap.a.items", "items is an option of bloom-filter, not of bitmap"),
        ("bsi.a.chunk-size", "chunk-size is an option of range-bitmap, not of bsi"),
        ("bsi.a.size", "bsi has no option 'size', expected none"),
        (
            "bitmap.a.versoin",
            "bitmap has no option 'versoin', expected version or index-block-size",
        ),
        (
            "bitmap.a.columns",
            "bitmap has no option 'columns', expected version or index-block-size",
        ),
    ],
)
def test_unknown_and_misplaced_keys(key: str, expected: str) -> None:
    options = {"file-index.bitmap.columns": "a", f"file-index.{key}": "1"}
    assert problem(options) == f"file-index.{key}: {expected}"
    assert problem(dict(reversed(options.items()))) == f"file-index.{key}: {expected}"


WHOLE = "a whole number from 1 to 2147483647"
SHARE = "a number above 0 and below 1"
SIZE = "a whole number of bytes from {} to {}, as 500, 16kb or 1 mb"


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        (
            "bitmap.a.version",
            ("3", 0, "", "2.0", "v2", 1.5, True, None),
            "a whole number from 1 to 2",
        ),
        (
            "bloom-filter.a.items",
            ("0", 0, -5, "1e6", "1_000", 2**31, "9" * 40, float("nan"), float("inf"), True),
            WHOLE,
        ),
        (
            "bloom-filter.a.fpp",
            ("0", 0, 1, "1.0", -0.1, "1..2", "0.1d", "0_1", "1e", "nan", float("nan"), 1e400, True),
            SHARE,
        ),
        ("bitmap.a.index-block-size", ("0", -1, "1.5kb", "2gb", "x"), SIZE.format(1, 2**31 - 1)),
        ("range-bitmap.a.chunk-size", ("-1", "2gb", "16 kbs"), SIZE.format(0, 2**31 - 1)),
        ("in-manifest-threshold", ("-1", "many"), SIZE.format(0, 2**63 - 1)),
        ("read.enabled", ("yes", 1, ""), "true or false"),
    ],
)
def test_bad_values_name_key_found_and_expected(
    key: str, values: tuple[Any, ...], expected: str
) -> None:
    declared = {
        f"file-index.{name}.columns": "a" for name in ("bitmap", "bloom-filter", "range-bitmap")
    }
    for value in values:
        assert problem(declared | {f"file-index.{key}": value}) == (
            f"file-index.{key}: found {value!r}, expected {expected}"
        )


@pytest.mark.parametrize("value", ["", " ", "a,", ",a", "a,,b", "[k]", 3, None, ["a"]])
def test_columns_must_be_named(value: Any) -> None:
    assert problem({"file-index.bitmap.columns": value}) == (
        f"file-index.bitmap.columns: found {value!r}, expected names of columns with commas between"
    )


@pytest.mark.parametrize("value", ["a,a", "a, b ,a", "m[k],m[k]"])
def test_columns_are_named_once(value: str) -> None:
    name = value.partition(",")[0]
    assert problem({"file-index.bitmap.columns": value}) == (
        f"file-index.bitmap.columns: found {value!r}, which names {name} twice"
    )


def test_an_option_is_given_once() -> None:
    keys = ("file-index.bitmap.a.version", "file-index.bitmap.A.version")
    options = {"file-index.bitmap.columns": "a", keys[0]: 1, keys[1]: 1}
    assert problem(options) == f"{keys[1]}: given twice, in another case"


# --- columns of a table

COLUMNS = {
    "Id": DataType("INT"),
    "m": DataType.parse("MAP<CHAR(3), DOUBLE>"),
    "n": DataType.parse("MAP<INT, INT>"),
    "r": DataType.parse("ROW<x INT>"),
    "a.b": DataType("INT"),
    "c": DataType("INT"),
    "C": DataType("BIGINT"),
}


def bitmap(column: str) -> IndexSpec:
    return IndexSpec(column, "bitmap", BitmapOptions(version=1))


@pytest.mark.parametrize(
    ("column", "top_level", "map_key"),
    [
        ("a", "a", None),
        ("a.b", "a.b", None),
        ("m[k]", "m", "k"),
        ("m[]", "m", ""),
        ("m[a[0]]", "m", "a[0]"),
        ("m[k", "m[k", None),
        ("m]", "m]", None),
        ("m[k]x", "m[k]x", None),
    ],
)
def test_map_keys_are_split_at_the_first_bracket(
    column: str, top_level: str, map_key: str | None
) -> None:
    spec = bitmap(column)
    assert (spec.top_level, spec.map_key) == (top_level, map_key)


@pytest.mark.parametrize(
    ("column", "spelt", "data_type"),
    [
        ("Id", "Id", "INT"),
        ("iD", "Id", "INT"),
        ("M[K]", "m[K]", "DOUBLE"),
        ("A.B", "a.b", "INT"),
    ],
)
def test_columns_are_found_and_spelt_as_the_table_does(
    column: str, spelt: str, data_type: str
) -> None:
    assert bitmap(column).resolve(COLUMNS) == (bitmap(spelt), DataType.parse(data_type))


def test_case_counts_where_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "case_sensitive", True)
    assert bitmap("C").resolve(COLUMNS) == (bitmap("C"), DataType("BIGINT"))
    with pytest.raises(ColumnError, match=r"^column ID: not in the table; did you mean Id\?$"):
        bitmap("ID").resolve(COLUMNS)


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        ("c", ColumnError, "column c: fits more than one column: c, C"),
        ("zzz", ColumnError, "column zzz: not in the table"),
        ("ids", ColumnError, "column ids: not in the table; did you mean Id?"),
        ("r.x", UnsupportedError, "column r.x: no index takes a field within a column"),
        ("r", UnsupportedError, "column r: bitmap does not take ROW<`x` INT>; no index does"),
        (
            "m",
            UnsupportedError,
            (
                "column m: bitmap does not take MAP<CHAR(3), DOUBLE>; "
                "name a key of the map instead: m[key]"
            ),
        ),
        ("Id[k]", UnsupportedError, "column Id[k]: found Id INT, expected a map of strings"),
        (
            "n[k]",
            UnsupportedError,
            "column n[k]: found n MAP<INT, INT>, expected a map of strings",
        ),
    ],
)
def test_columns_that_cannot_be_indexed(column: str, kind: type[Exception], expected: str) -> None:
    with pytest.raises(kind) as error:
        bitmap(column).resolve(COLUMNS)
    assert str(error.value) == expected


def test_the_type_of_the_values_of_a_map_decides() -> None:
    with pytest.raises(UnsupportedError, match=r"^column m\[k\]: bsi does not take DOUBLE; use "):
        IndexSpec("m[k]", "bsi", BsiOptions()).resolve(COLUMNS)


# --- in general

names = st.text("aB.[]-_ \u00e9", min_size=1, max_size=6).map(str.strip).filter(bool)


@given(st.dictionaries(names.map(str.lower), st.sampled_from([1, 2]), min_size=1, max_size=5))
def test_any_names_of_columns_come_back_with_their_options(versions: dict[str, int]) -> None:
    columns = [name for name in versions if not name.startswith("[") or not name.endswith("]")]
    if not columns:
        return
    options: dict[str, Any] = {"file-index.bitmap.columns": ", ".join(columns)}
    options |= {f"file-index.bitmap.{name}.version": versions[name] for name in columns}
    specs = parse_options(options)
    assert specs == tuple(
        IndexSpec(name, "bitmap", BitmapOptions(versions[name])) for name in sorted(columns)
    )
    assert pickle.loads(pickle.dumps(specs)) == specs


@given(
    st.dictionaries(
        st.lists(
            st.sampled_from(["bitmap", "bsi", "bloom", "columns", "a", "version", "items", ""]),
            max_size=4,
        ).map(lambda parts: ".".join(["file-index", *parts])),
        st.sampled_from(["", "a", "a,b", "1", 1, 0.5]),
        max_size=4,
    )
)
def test_any_options_are_specs_or_an_error_of_ours(options: dict[str, Any]) -> None:
    try:
        specs = parse_options(options)
    except OptionError:
        return
    assert specs


def test_names_are_folded_once_however_many_indexes_a_wide_table_gets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """200 bitmap columns of 2,000 took 800,600 foldings, one for each pair and name."""
    columns = [f"column_{number}" for number in range(2000)]
    table = pa.table(dict.fromkeys(columns, pa.array([1, 2])))
    options = {"file-index.bitmap.columns": ",".join(name.upper() for name in columns[::10])}
    calls, fold = [0], options_module._fold

    def counted(column: str, is_case_sensitive: bool) -> str:
        calls[0] += 1
        return fold(column, is_case_sensitive)

    monkeypatch.setattr(options_module, "_fold", counted)
    index = FileIndex.build(table, options)
    assert [entry.column for entry in index.entries] == sorted(columns[::10])
    assert calls[0] < 4000
    before = calls[0]
    for name in columns[::10]:
        assert index.evaluate(f"{name} = 2").rows == BitMap([1])
    assert calls[0] - before < 4000
