"""Unusual tables: few rows, many columns, odd names, files that differ or disappear."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alcid
from alcid.errors import EvaluationError, SparkNeededError
from alcid.storage import Storage
from alcid.tables.parquet.indexes import FolderIndexes
from tests.scan.answers import check_explanation

ALL_TYPES = ("bloom-filter", "bitmap", "range-bitmap", "bsi")


def write(folder: Path, files: Mapping[str, Mapping[str, Any] | pa.Table], **options: Any) -> None:
    for path, columns in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            columns if isinstance(columns, pa.Table) else pa.table(columns), file, **options
        )


def with_indexes(folder: Path, *columns: str, **arguments: Any) -> Any:
    """The table with bitmaps and range-bitmaps."""
    table = alcid.parquet(str(folder), **arguments)
    listed = ",".join(columns)
    table.build_indexes(
        {f"file-index.{kind}.columns": listed for kind in ("bitmap", "range-bitmap")}
    )
    return table


def rows(table: Any, where: Any = None, **arguments: Any) -> list[dict[str, Any]]:
    """The answer, after checks of its count and its explanation."""
    scan = table.scan(where, **arguments)
    listed: list[dict[str, Any]] = scan.to_arrow().to_pylist()
    check_explanation(scan.explain(), table.files)
    assert table.scan(where, **arguments).count() == len(listed)
    assert table.scan(where, use_indexes=False, **arguments).to_arrow().to_pylist() == listed
    return listed


def numbers(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


class TestFewRows:
    def test_files_without_rows_give_none(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.parquet": {"x": numbers()}, "b.parquet": {"x": numbers()}})
        table = with_indexes(tmp_path, "x")
        assert table.files == 2
        assert table.schema == pa.schema([("x", pa.int64())])
        for where in (None, "x = 1", "x IS NULL"):
            assert rows(table, where) == []
            assert table.scan(where).to_arrow().schema == table.schema
        assert rows(table, order_by="x", limit=3) == []

    def test_one_row_between_files_without_rows(self, tmp_path: Path) -> None:
        files = {"a.parquet": numbers(), "b.parquet": numbers(7), "c.parquet": numbers()}
        write(tmp_path, {path: {"x": column} for path, column in files.items()})
        table = with_indexes(tmp_path, "x")
        assert rows(table) == rows(table, "x = 7") == rows(table, "x > 6") == [{"x": 7}]
        assert rows(table, "x <> 7") == rows(table, "x IS NULL") == []
        assert rows(table, order_by="x DESC", limit=1) == [{"x": 7}]

    def test_one_null_row(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.parquet": {"x": numbers(None)}})
        table = with_indexes(tmp_path, "x")
        assert rows(table, "x IS NULL") == rows(table, "x <=> NULL") == [{"x": None}]
        assert rows(table, "x = 7") == rows(table, "NOT x = 7") == []
        assert rows(table, order_by="x", limit=1) == [{"x": None}]

    def test_folder_with_one_file(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.parquet": {"x": numbers(1, 2), "y": ["a", "b"]}})
        table = alcid.parquet(str(tmp_path))
        assert table.files == 1
        assert rows(table, "y = 'b'") == [{"x": 2, "y": "b"}]

    def test_limits(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.parquet": {"x": numbers(1, 2)}, "b.parquet": {"x": numbers(3)}})
        table = alcid.parquet(str(tmp_path))
        assert rows(table, limit=0) == rows(table, order_by="x", limit=0) == []
        assert rows(table, order_by="x DESC", limit=9) == [{"x": 3}, {"x": 2}, {"x": 1}]
        with pytest.raises(alcid.AlcidError, match="limit"):
            table.scan(limit=-1)


class TestEmptyFolder:
    @pytest.mark.parametrize("other", [None, "_SUCCESS", "notes.txt", "_alcid/x.parquet"])
    def test_gives_no_rows(self, tmp_path: Path, other: str | None) -> None:
        if other is not None:
            (tmp_path / other).parent.mkdir(exist_ok=True)
            (tmp_path / other).write_text("not a data file")
        table = alcid.parquet(str(tmp_path))
        assert table.files == 0
        assert table.schema == pa.schema([])
        assert table.scan().count() == 0
        assert table.scan().to_arrow().num_rows == 0
        with pytest.raises(alcid.ColumnError, match="column x: not in the table"):
            table.scan("x = 1")

    def test_is_seen_filled_after_refresh(self, tmp_path: Path) -> None:
        table = alcid.parquet(str(tmp_path))
        write(tmp_path, {"a.parquet": {"x": numbers(1)}})
        assert table.files == 0
        table.refresh()
        assert rows(table, "x = 1") == [{"x": 1}]

    def test_folder_that_is_not_there_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(alcid.StorageError, match="missing"):
            alcid.parquet(str(tmp_path / "missing"))


class TestNames:
    NAMES = (
        "a/b", "a=b", "50%", "%41", "a.b", "größe", "Ы", "\U0001f427", "two words", " x ", "it's",
        'say "x"', "back`tick", "select", "1st", "new\nline", "tab\t", "semi;colon", "(", "*", "-",
    )  # fmt: skip

    @pytest.mark.parametrize("name", NAMES)
    def test_of_columns(self, tmp_path: Path, name: str) -> None:
        write(tmp_path, {"a.parquet": {name: numbers(3, None, 1), "other": numbers(1, 2, 3)}})
        table = alcid.parquet(str(tmp_path))
        if name == name.strip():  # options are split at commas, with spaces around
            table = with_indexes(tmp_path, name)
        quoted = f"`{name.replace('`', '``')}`"
        assert rows(table, f"{quoted} = 3") == [{name: 3, "other": 1}]
        assert rows(table, alcid.col(name) < 3, columns=["other"]) == [{"other": 3}]
        assert rows(table, f"{quoted} IS NULL", columns=[name]) == [{name: None}]
        ordered = rows(table, order_by=f"{quoted} DESC NULLS LAST", columns=[name], limit=2)
        assert ordered == [{name: 3}, {name: 1}]

    def test_of_columns_in_any_case(self, tmp_path: Path) -> None:
        write(tmp_path, {"a.parquet": {"Größe": numbers(1)}, "b.parquet": {"größe": numbers(2)}})
        table = with_indexes(tmp_path, "größe")
        (name,) = table.schema.names
        assert rows(table, "`GRÖßE` = 2") == [{name: 2}]

    @pytest.mark.parametrize("name", ["p", "a=b", "a/b", "50%", "%41", "two words", "größe", "a.b"])
    def test_of_partition_columns(self, tmp_path: Path, name: str) -> None:
        folder = "".join(f"%{ord(c):02X}" if c in "%/=" else c for c in name)
        files = {f"{folder}={value}/f.parquet": {"x": numbers(value)} for value in (1, 2)}
        write(tmp_path, files)
        table = with_indexes(tmp_path, "x")
        assert table.schema == pa.schema([("x", pa.int64()), (name, pa.int32())])
        assert rows(table, f"`{name}` = 2") == [{"x": 2, name: 2}]
        assert rows(table, order_by=f"`{name}` DESC", limit=1, columns=[name]) == [{name: 2}]

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("a%2Fb", "a/b"),
            ("a%3Db", "a=b"),
            ("%2541", "%41"),
            ("50%", "50%"),
            ("größe", "größe"),
            ("two words", "two words"),
            ("it's", "it's"),
            ("a=b=c", "a=b=c"),
        ],
    )
    def test_in_partition_values(self, tmp_path: Path, text: str, value: str) -> None:
        write(tmp_path, {f"p={t}/f.parquet": {"x": numbers(n)} for n, t in enumerate((text, "z"))})
        table = with_indexes(tmp_path, "x")
        assert rows(table, alcid.col("p") == value) == [{"x": 0, "p": value}]
        assert rows(table, alcid.col("p") != value) == [{"x": 1, "p": "z"}]
        assert rows(table, (alcid.col("p") == value) & (alcid.col("x") == 1)) == []

    @pytest.mark.parametrize(
        "name", ["a b.parquet", "größe.parquet", "50%25.parquet", "a=b.parquet"]
    )
    def test_of_files(self, tmp_path: Path, name: str) -> None:
        write(tmp_path, {name: {"x": numbers(1, 2)}})
        table = with_indexes(tmp_path, "x")
        assert rows(table, "x = 2") == [{"x": 2}]


class TestManyColumns:
    COUNT = 2_000

    def test_only_those_asked_for_are_read(self, tmp_path: Path) -> None:
        names = [f"c{number}" for number in range(self.COUNT)]
        for part in range(2):
            columns = {name: numbers(part, number) for number, name in enumerate(names)}
            write(tmp_path, {f"{part}.parquet": columns})
        table = with_indexes(tmp_path, "c1999", "c7")
        assert table.schema.names == names
        assert rows(table, "c1999 = 1", columns=["c3"]) == [{"c3": 1}]
        assert rows(table, "c1999 = 1 AND c7 = 0", columns=["c3"]) == []
        assert rows(table, "c1998 = 1998", columns=["c1998"]) == [{"c1998": 1998}] * 2
        best = rows(table, order_by=["c7 DESC", "c1999 DESC"], columns=["c7", "c9"], limit=1)
        assert best == [{"c7": 7, "c9": 9}]
        whole = table.scan("c1999 = 1").to_arrow()
        assert whole.to_pylist() == [dict.fromkeys(names, 1)]
        several = " OR ".join(f"{name} = -1" for name in names[::20])
        assert table.scan(several, columns=["c0"]).count() == 0


class TestFilesThatDiffer:
    def test_missing_column_is_null(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            {
                "a.parquet": {"x": numbers(1, 2)},
                "b.parquet": {"x": numbers(3), "y": ["b"]},
                "c.parquet": {"y": ["c"]},
            },
        )
        table = with_indexes(tmp_path, "x", "y")
        everything = [
            {"x": 1, "y": None},
            {"x": 2, "y": None},
            {"x": 3, "y": "b"},
            {"x": None, "y": "c"},
        ]
        assert rows(table) == everything
        assert rows(table, "y IS NULL") == everything[:2]
        assert rows(table, "x IS NULL OR x = 1") == [everything[0], everything[3]]
        assert rows(table, "y <> 'b'") == everything[3:]
        assert rows(table, "NOT y <=> 'b'") == [*everything[:2], everything[3]]
        assert rows(table, order_by="y DESC NULLS FIRST, x DESC", limit=3) == [
            everything[1],
            everything[0],
            everything[3],
        ]

    @pytest.mark.parametrize(
        ("narrow", "wide"),
        [
            (pa.int32(), pa.int64()),
            (pa.int8(), pa.int32()),
            (pa.float32(), pa.float64()),
            (pa.timestamp("ms"), pa.timestamp("us")),
            (pa.decimal128(5, 2), pa.decimal128(9, 2)),
            (pa.decimal128(5, 1), pa.decimal128(9, 2)),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("names", ["ab", "ba"])
    def test_narrower_column_is_widened(
        self, tmp_path: Path, narrow: pa.DataType, wide: pa.DataType, names: str
    ) -> None:
        column = numbers(1, 3, None, 2)
        if pa.types.is_decimal(narrow):  # Arrow casts integers to decimals of 19 digits or more
            column = column.cast(pa.decimal128(21, narrow.scale))
        wide_column = column.cast(narrow).cast(wide)
        columns = {names[0]: column.cast(narrow), names[1]: wide_column}
        write(tmp_path, {f"{name}.parquet": {"x": column} for name, column in columns.items()})
        table = with_indexes(tmp_path, "x")
        assert table.schema == pa.schema([("x", wide)])
        values = wide_column.to_pylist()
        assert rows(table) == [{"x": value} for value in values * 2]
        assert rows(table, alcid.col("x") == values[1]) == [{"x": values[1]}] * 2
        assert rows(table, alcid.col("x") < values[1]) == [{"x": values[0]}, {"x": values[3]}] * 2
        assert rows(table, "x IS NULL") == [{"x": None}] * 2
        assert rows(table, order_by="x DESC", limit=3) == [
            {"x": values[1]},
            {"x": values[1]},
            {"x": values[3]},
        ]

    @pytest.mark.parametrize("names", ["ab", "ba"])
    @pytest.mark.parametrize(
        ("first", "other"),
        [("int64", "string"), ("double", "int64"), ("date32[day]", "timestamp[us]")],
    )
    def test_types_that_do_not_go_together_are_named_with_file_and_column(
        self, tmp_path: Path, names: str, first: str, other: str
    ) -> None:
        types = {str(kind): kind for kind in (pa.int64(), pa.string(), pa.float64(), pa.date32())}
        types["timestamp[us]"] = pa.timestamp("us")
        for name, kind in zip(names, (first, other), strict=True):
            write(tmp_path, {f"{name}.parquet": {"some": pa.nulls(1, types[kind])}})
        with pytest.raises(alcid.UnsupportedError) as error:
            alcid.parquet(str(tmp_path)).scan().to_arrow()
        for word in ("b.parquet", "some", first, other):
            assert word in str(error.value)

    def test_partition_column_within_the_file_gives_way_to_the_path(self, tmp_path: Path) -> None:
        inside = {"p": numbers(8, 9), "x": numbers(1, 2)}
        write(tmp_path, {"p=1/f.parquet": inside, "p=2/f.parquet": inside})
        table = with_indexes(tmp_path, "x")
        assert dict(zip(table.schema.names, table.schema.types, strict=True)) == {
            "p": pa.int32(),
            "x": pa.int64(),
        }
        assert rows(table, "p = 2 AND x = 1", columns=["x", "p"]) == [{"x": 1, "p": 2}]
        assert rows(table, "p = 8") == []
        assert table.scan("p = 1").count() == 2

    def test_partition_column_within_the_file_has_no_say_in_an_index(self, tmp_path: Path) -> None:
        inside = {"p": numbers(8, 9), "x": numbers(1, 2)}
        write(tmp_path, {"p=1/f.parquet": inside, "p=2/f.parquet": inside})
        FolderIndexes(Storage.open(tmp_path)).build({"file-index.bitmap.columns": "p,x"})
        table = alcid.parquet(str(tmp_path))
        assert rows(table, "p = 2", columns=["x"]) == [{"x": 1}, {"x": 2}]
        assert rows(table, "p = 9") == []


class TestFloats:
    @pytest.fixture(params=[pa.float32(), pa.float64()], ids=str)
    def kind(self, request: pytest.FixtureRequest) -> Any:
        return request.param

    def table_of(self, folder: Path, kind: Any, *files: list[float | None]) -> Any:
        """Each file with its values, and `n`, which numbers all rows."""
        first = 0
        for number, values in enumerate(files):
            count = numbers(*range(first, first + len(values)))
            write(folder, {f"{number}.parquet": {"x": pa.array(values, kind), "n": count}})
            first += len(values)
        return with_indexes(folder, "x")

    @pytest.mark.parametrize("zeros", [[[-0.0], [0.0]], [[0.0], [-0.0]]], ids=str)
    @pytest.mark.parametrize("way", ["ASC", "DESC"])
    def test_zeros_are_ties(
        self, tmp_path: Path, kind: Any, zeros: list[list[float | None]], way: str
    ) -> None:
        table = self.table_of(tmp_path, kind, *zeros)
        best = rows(table, order_by=f"x {way}", limit=1, columns=["n"])
        assert best == [{"n": 0}]
        for where in ("x = 0", "x <= 0 AND x >= 0", "x IN (-0.0D)", "NOT x <> 0", "x <=> -0.0D"):
            assert rows(table, where, columns=["n"]) == [{"n": 0}, {"n": 1}]
        assert rows(table, "x < 0") == rows(table, "x > 0") == []

    def test_nan_is_above_all_and_hidden_by_no_bound(self, tmp_path: Path, kind: Any) -> None:
        nan, inf = math.nan, math.inf
        table = self.table_of(tmp_path, kind, [1.0, nan], [nan], [2.0, None], [inf, nan, -inf])
        nans = [{"n": 1}, {"n": 2}, {"n": 6}]
        for where in (
            "x = CAST('NaN' AS DOUBLE)",
            "x >= CAST('NaN' AS DOUBLE)",
            "x > CAST('Infinity' AS DOUBLE)",
            "NOT x <= 1e308D",
            "x BETWEEN CAST('NaN' AS DOUBLE) AND CAST('NaN' AS DOUBLE)",
            "isnan(x)",
        ):
            result = rows(table, where, columns=["n"])
            assert [row for row in result if row != {"n": 5}] == nans, where
        assert rows(table, "x < CAST('NaN' AS DOUBLE)", columns=["n"]) == [
            {"n": 0},
            {"n": 3},
            {"n": 5},
            {"n": 7},
        ]
        assert rows(table, order_by="x DESC", limit=2, columns=["n"]) == nans[:2]
        assert rows(table, order_by="x NULLS LAST", limit=3, columns=["n"]) == [
            {"n": 7},
            {"n": 0},
            {"n": 3},
        ]

    def test_numbers_at_the_ends_of_the_range(self, tmp_path: Path, kind: Any) -> None:
        most = float(np.finfo(f"f{kind.bit_width // 8}").max)
        table = self.table_of(tmp_path, kind, [-most, most], [most, 0.0])
        assert rows(table, alcid.col("x") == most, columns=["n"]) == [{"n": 1}, {"n": 2}]
        assert rows(table, alcid.col("x") < 5e-324, columns=["n"]) == [{"n": 0}, {"n": 3}]
        assert rows(table, alcid.col("x").isin([0.0, -most]), columns=["n"]) == [
            {"n": 0},
            {"n": 3},
        ]


class TestFilesThatChange:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for part in range(3):
            write(tmp_path, {f"{part}.parquet": {"x": numbers(part, part + 10)}})
        return tmp_path

    QUESTIONS: tuple[dict[str, Any], ...] = (
        {},
        {"where": "x >= 0"},
        {"where": "x = 1 OR x = 11 OR x = 2"},
        {"order_by": "x DESC", "limit": 3},
    )

    @pytest.mark.parametrize("question", QUESTIONS, ids=str)
    def test_file_that_is_gone_is_planned_around_once(
        self, folder: Path, question: dict[str, Any]
    ) -> None:
        table = with_indexes(folder, "x")
        scan = table.scan(**question)
        scan.explain()
        (folder / "1.parquet").unlink()
        fresh = alcid.parquet(str(folder))
        assert scan.to_arrow().equals(fresh.scan(**question).to_arrow())

    @pytest.mark.parametrize("question", QUESTIONS, ids=str)
    def test_file_that_is_gone_again_is_named(
        self, folder: Path, question: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = with_indexes(folder, "x")
        scan = table.scan(**question)
        keep_listing(monkeypatch, folder)
        (folder / "1.parquet").unlink()
        with pytest.raises(alcid.FileGoneError, match=r"1\.parquet"):
            scan.to_arrow()

    @pytest.mark.parametrize("question", QUESTIONS, ids=str)
    @pytest.mark.parametrize("use_indexes", [True, False])
    def test_file_that_is_replaced_is_read_as_it_is(
        self, folder: Path, question: dict[str, Any], use_indexes: bool
    ) -> None:
        table = with_indexes(folder, "x")
        scan = table.scan(**question, use_indexes=use_indexes)
        write(folder, {"1.parquet": {"x": numbers(*range(500), 1, 2, 3)}})
        expected = alcid.parquet(str(folder)).scan(**question, use_indexes=False).to_arrow()
        assert scan.to_arrow().equals(expected)

    def test_file_of_the_same_size_that_is_replaced_is_read_as_it_is(self, folder: Path) -> None:
        table = with_indexes(folder, "x")
        size = (folder / "1.parquet").stat().st_size
        write(folder, {"1.parquet": {"x": numbers(7, 17)}})
        assert (folder / "1.parquet").stat().st_size == size
        table.refresh()
        assert rows(table, "x = 7 OR x = 11") == [{"x": 7}]
        assert rows(table, order_by="x DESC", limit=1) == [{"x": 17}]

    def test_new_file_is_seen_after_refresh(self, folder: Path) -> None:
        table = with_indexes(folder, "x")
        write(folder, {"3.parquet": {"x": numbers(3)}})
        assert rows(table, "x = 3") == []
        table.refresh()
        assert rows(table, "x = 3") == [{"x": 3}]

    def test_index_folder_that_is_removed_does_no_harm(self, folder: Path) -> None:
        table = with_indexes(folder, "x")
        scan = table.scan("x = 11")
        for file in (folder / "_alcid").iterdir():
            file.unlink()
        (folder / "_alcid").rmdir()
        assert scan.to_arrow().to_pylist() == [{"x": 11}]
        assert rows(alcid.parquet(str(folder)), "x = 11") == [{"x": 11}]


def keep_listing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """From now on, removed files are still listed."""
    listed: Callable[..., Any] = Storage.list
    kept = listed(Storage.open(str(folder)), "")
    names = {"under", "suffix", "hidden"}

    def list_as_before(storage: Storage, under: str = "", **arguments: Any) -> Any:
        assert set(arguments) <= names
        return kept if under == "" else listed(storage, under, **arguments)

    monkeypatch.setattr(Storage, "list", list_as_before)


class TestArguments:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Any:
        write(tmp_path, {"a.parquet": {"x": numbers(1, 2), "y": ["a", "b"]}})
        return alcid.parquet(str(tmp_path))

    @pytest.mark.parametrize(
        "arguments",
        [{"where": "z = 1"}, {"columns": ["x", "z"]}, {"order_by": "z"}, {"order_by": ["x", "z"]}],
        ids=str,
    )
    def test_unknown_column_is_named(self, table: Any, arguments: dict[str, Any]) -> None:
        with pytest.raises(alcid.ColumnError, match="column z"):
            table.scan(**arguments)

    @pytest.mark.parametrize("order_by", ["x UP", "x NULLS", "x DESC NULLS MIDDLE", "", "x,,y"])
    def test_order_that_cannot_be_read_is_shown(self, table: Any, order_by: str) -> None:
        with pytest.raises(alcid.PredicateError, match="order_by"):
            table.scan(order_by=order_by)

    def test_no_columns_give_rows_without_values(self, table: Any) -> None:
        result = table.scan("x = 2", columns=[]).to_arrow()
        assert (result.num_columns, result.num_rows) == (0, 1)

    def test_column_twice(self, table: Any) -> None:
        result = table.scan("x = 2", columns=["x", "x"]).to_arrow()
        assert [column.to_pylist() for column in result.columns] == [[2], [2]]

    def test_what_only_spark_can_evaluate_is_an_error(self, table: Any) -> None:
        """`scan` says it, whether or not a row depends on it."""
        for where in (
            "soundex(y) = 'A000'",
            "soundex(y) = 'A000' AND x > 5",
            "x < 0 AND abs(x) = 1",
        ):
            with pytest.raises(SparkNeededError, match=r"only Spark can evaluate (soundex|abs)"):
                table.scan(where)

    def test_expressions_are_evaluated_without_spark(self, table: Any) -> None:
        first, second = {"x": 1, "y": "a"}, {"x": 2, "y": "b"}
        for where, expected in {
            "x + 1 = 3": [second],
            "x % 2 = 1 AND x > 0": [first],
            "x = 1 AND upper(y) = 'A'": [first],
            "x = 5 AND upper(y) = 'A'": [],
            "CAST(x AS STRING) = '2' OR concat(y, y) = 'aa'": [first, second],
            "NOT length(y) = 1": [],
        }.items():
            assert rows(table, where) == expected
            assert table.scan(where).count() == len(expected)

    def test_a_row_without_a_value_is_an_error_where_it_is_looked_at(self, table: Any) -> None:
        assert rows(table, "x > 5 AND 1 / (x - 2) > 0") == []
        assert rows(table, "x = 1 AND 1 / (x - 2) = -1") == [{"x": 1, "y": "a"}]
        with pytest.raises(EvaluationError, match="a division by zero, as Spark with ANSI rules"):
            table.scan("1 / (x - 2) = -1").to_arrow()
        with pytest.raises(EvaluationError, match="the text 'a' is no INT"):
            table.scan("CAST(y AS INT) = 1").count()


def test_fields_of_structs_are_looked_into(tmp_path: Path) -> None:
    structs: list[Any] = [{"country": "AT"}, None, {"country": "de"}, {"country": None}]
    pq.write_table(pa.table({"id": [1, 2, 3, 4], "geo": structs}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [5]}), tmp_path / "b.parquet")
    table = with_indexes(tmp_path, "id")
    for where, expected in {
        "geo.country = 'AT'": [1],
        "upper(geo.country) IN ('DE', 'AT') AND id > 1": [3],
        "geo.country IS NULL": [2, 4, 5],
        "GEO.Country <> 'AT' OR id = 5": [3, 5],
    }.items():
        assert [row["id"] for row in rows(table, where, columns=["id"])] == expected
    with pytest.raises(SparkNeededError, match="geo has no field contry; did you mean country"):
        table.scan("geo.contry = 'AT'")
    with pytest.raises(alcid.ColumnError, match="column go"):
        table.scan("go.country = 'AT'")


def test_sizes_are_those_of_the_listing(tmp_path: Path) -> None:
    """A file that is half written when it is listed is not confused with the finished one."""
    write(tmp_path, {"a.parquet": {"x": numbers(1)}})
    table = with_indexes(tmp_path, "x")
    before = (tmp_path / "a.parquet").stat()
    write(tmp_path, {"a.parquet": {"x": numbers(*range(100))}})
    os.utime(tmp_path / "a.parquet", ns=(before.st_atime_ns, before.st_mtime_ns))
    table.refresh()
    assert table.scan("x = 55").to_arrow().to_pylist() == [{"x": 55}]
