"""From a Parquet file to its entry in a bundle, and back."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Mapping
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from alcid import FileIndex, FormatError, UnsupportedError
from alcid.datafiles.parquet import (
    FileRows,
    read_layout,
    read_many,
    read_rows,
)
from alcid.errors import FileGoneError
from alcid.expressions import normalize, parse, probe_for
from alcid.expressions.probes import probe_index
from alcid.formats.file_index.keys import key_type
from alcid.formats.source import BytesSource
from alcid.index.build import IndexedFile, footer_crc, index_file
from alcid.index.bundle import (
    Bundle,
    BundleWriter,
    ColumnStatistics,
    PayloadKind,
)
from alcid.index.bundle.columns import unpack_pages
from alcid.options import parse_options
from alcid.testing import flips
from alcid.types import DataType
from tests.datafiles.parquet.kit import PAGED, assert_same, counted, plain_read, written

OPTIONS: dict[str, str | int | float] = {
    "file-index.bitmap.columns": "class_id, tags[color]",
    "file-index.bloom-filter.columns": "name,id",
    "file-index.bloom-filter.name.items": 1000,
    "file-index.range-bitmap.columns": "score,at",
    "file-index.bsi.columns": "id",
}


def indexed(
    data: bytes, options: Mapping[str, str | int | float], path: str = "a.parquet"
) -> IndexedFile:
    specs = parse_options(options)
    return index_file(BytesSource(data, path), specs, path=path, size=len(data), version="v1")


def rows_of(seed: int, count: int = 500) -> pa.Table:
    rng = np.random.default_rng(seed)
    score = rng.random(count)
    score[::50] = np.nan
    score[1::50] = -0.0
    return pa.table(
        {
            "id": np.arange(100 * seed, 100 * seed + count),
            "class_id": pa.array(rng.integers(0, 5, count), pa.int32()),
            "name": pa.array([f"name {number}" for number in rng.integers(0, 300, count)]),
            "score": pa.array(score, mask=rng.random(count) < 0.1),
            "at": pa.array(rng.integers(-(10**8), 10**8, count), pa.timestamp("us")),
            "tags": pa.array(
                [[("color", ("red", "blue")[row % 2])] if row % 3 else [] for row in range(count)],
                pa.map_(pa.string(), pa.string()),
            ),
        }
    )


@pytest.fixture(scope="module")
def tables() -> list[pa.Table]:
    return [rows_of(1), rows_of(2), rows_of(3).slice(0, 0)]


@pytest.fixture(scope="module")
def files(tables: list[pa.Table]) -> list[bytes]:
    return [written(table, row_group_size=200, **PAGED) for table in tables]


@pytest.fixture(scope="module")
def bundle(files: list[bytes]) -> Bundle:
    data = io.BytesIO()
    with BundleWriter(data) as writer:
        for number, file in enumerate(files):
            indexed_file = indexed(file, OPTIONS, f"part-{number}.parquet")
            assert indexed_file.skipped == {}
            assert indexed_file.add_to(writer) == number
    return Bundle.open(BytesSource(data.getvalue(), "x.bundle"))


def test_the_indexes_in_a_bundle_are_those_that_file_index_builds(
    bundle: Bundle, tables: list[pa.Table]
) -> None:
    indexes = parse_options(OPTIONS)
    for row, table in enumerate(tables):
        container = FileIndex.build(table, OPTIONS).container
        assert len(container.entries) == len(indexes)
        for entry in container.entries:
            kind = PayloadKind.index(entry.column, entry.index_type)
            expected = b"" if entry.is_empty else container.section(entry).read(0, entry.length)
            assert bundle.read(kind, row) == expected
    assert len(bundle.kinds) == len(indexes) + len(tables[0].column_names)


def test_questions_to_the_bundle_are_answered_as_by_file_index(
    bundle: Bundle, tables: list[pa.Table]
) -> None:
    types = {"id": "BIGINT", "class_id": "INT", "name": "STRING", "score": "DOUBLE"}
    for row, table in enumerate(tables):
        built = FileIndex.build(table, OPTIONS)
        for column, index_type, text in (
            ("class_id", "bitmap", "class_id = 3"),
            ("name", "bloom-filter", "name = 'nobody'"),
            ("id", "bsi", "id < 250"),
            ("score", "range-bitmap", "score > 0.5"),
            ("score", "range-bitmap", "score IS NULL"),
        ):
            data_type = DataType.parse(types[column])
            reader = bundle.index(row, column, index_type, key_type(data_type))
            assert reader is not None
            probe = probe_for(normalize(parse(text)), column, data_type)
            assert probe_index(reader, probe) == built.evaluate(text)


def test_rows_are_read_by_the_layout_in_the_bundle_without_a_footer(
    bundle: Bundle, files: list[bytes]
) -> None:
    positions = [0, 199, 200, 433, 499]
    columns = ["score", "tags", "name"]
    file_rows, sources = [], []
    for row, file in enumerate(files[:2]):
        payloads = {name: bundle.read(PayloadKind.pages(name), row) or b"" for name in columns}
        layout = unpack_pages(payloads, file=f"part-{row}.parquet")
        sources.append(counted(file, f"part-{row}.parquet"))
        file_rows.append(FileRows(sources[-1], layout, positions))
        end = layout.end
        rows = read_rows(sources[-1], positions, columns, layout=layout)
        assert_same(rows, plain_read(file, positions).select(columns))
        assert max(offset + length for offset, length in sources[-1].reads) <= end
    expected = pa.concat_tables(plain_read(file, positions) for file in files[:2])
    assert_same(read_many(file_rows, columns), expected.select(columns))


def test_the_files_and_their_statistics_are_in_the_bundle(
    bundle: Bundle, files: list[bytes], tables: list[pa.Table]
) -> None:
    table = bundle.files
    assert table.paths.to_pylist() == ["part-0.parquet", "part-1.parquet", "part-2.parquet"]
    assert table.sizes.tolist() == list(map(len, files))
    assert table.rows.tolist() == [500, 500, 0]
    assert table.footer_crcs.to_pylist() == [
        zlib.crc32(file[-8 - int.from_bytes(file[-8:-4], "little") :]) for file in files
    ]
    values_by_column = {column.column: column.values for column in table.statistics}
    assert sorted(values_by_column) == ["at", "class_id", "id", "name", "score"]
    ids = values_by_column["id"].to_pylist()
    assert [(row["min"], row["max"], row["nulls"]) for row in ids] == [
        (100, 599, 0),
        (200, 699, 0),
        (None, None, 0),
    ]
    scores = values_by_column["score"]
    assert scores.field("has_nan").to_pylist() == [True, True, False]
    assert scores.field("nulls").to_pylist() == [t["score"].null_count for t in tables]
    assert scores.field("min")[0].as_py() == 0.0


def test_columns_without_an_index_have_statistics_from_the_footer() -> None:
    table = pa.table({"a": [1, 2], "b": ["x", "y"], "c": [0.5, float("nan")], "d": [[1], [2]]})
    file = indexed(written(table), {"file-index.bitmap.columns": "a"})
    statistics = file.entry.statistics
    assert list(statistics) == ["a", "b", "c"]
    assert statistics["a"] == ColumnStatistics.of(table["a"])
    assert (statistics["b"].minimum, statistics["b"].minimum_exact) == (b"x", False)
    assert (statistics["c"].maximum, statistics["c"].has_nan) == (0.5, None)
    assert {name: str(kind) for name, kind in file.types.items()} == {
        "a": "BIGINT",
        "b": "STRING",
        "c": "DOUBLE",
        "d": "ARRAY<BIGINT>",
    }


def test_only_the_end_of_the_file_and_the_columns_to_index_are_read_each_once() -> None:
    rng = np.random.default_rng(1)
    data = written(pa.table({name: rng.random(30_000) for name in "abc"}), compression="none")
    source = counted(data)
    specs = parse_options(
        {"file-index.bitmap.columns": "b", "file-index.range-bitmap.columns": "a,b"}
    )
    index_file(source, specs, path="a", size=len(data), version="v1")
    ends = [read_layout(BytesSource(data), [name]).end for name in "ab"]
    end = len(data) - (64 << 10)
    assert source.reads == [(end, 64 << 10), (4, ends[0] - 4), (ends[0], ends[1] - ends[0])]


def test_without_specs_only_the_end_of_the_file_is_read() -> None:
    data = written(pa.table({"a": np.random.default_rng(1).random(50_000)}))
    source = counted(data)
    file = index_file(source, (), path="a", size=len(data), version="v1")
    assert source.reads == [(len(data) - (64 << 10), 64 << 10)]
    assert list(file.payloads) == [PayloadKind.pages("a")]


def test_what_cannot_be_indexed_is_left_out_with_the_reason() -> None:
    fields = [
        {"name": name, "type": "string", "nullable": True, "metadata": metadata}
        for name, metadata in (
            ("text", {"__COLLATIONS": {"text": "spark.UTF8_LCASE"}}),
            ("at", {}),
        )
    ]
    metadata = {
        "org.apache.spark.sql.parquet.row.metadata": json.dumps({"fields": fields}),
        "org.apache.spark.legacyDateTime": "",
    }
    table = pa.table(
        {
            "text": ["a", "B"],
            "at": pa.array([datetime(1000, 1, 1)] * 2, pa.timestamp("us")),
            "price": pa.array([1, 2], pa.decimal128(9, 2)),
            "least": pa.array([-(2**63), 1]),
            "none": pa.nulls(2),
            "ID": [1, 2],
            "id": [1, 2],
            "good": [1, 2],
        }
    ).replace_schema_metadata(metadata)
    names = "text,at,price,least,none,id,absent,GOOD"
    file = indexed(
        written(table),
        {"file-index.bsi.columns": names, "file-index.bloom-filter.columns": "price"},
    )
    assert {(kind.column, kind.index_type): why for kind, why in file.skipped.items()} == {
        ("text", "bsi"): "column text: collated by spark.UTF8_LCASE",
        ("at", "bsi"): "column at: dates of the old calendar (org.apache.spark.legacyDateTime)",
        ("price", "bloom-filter"): (
            "column price: bloom-filter does not take DECIMAL(9, 2); use range-bitmap or bsi"
        ),
        ("least", "bsi"): file.skipped[PayloadKind.index("least", "bsi")],
        ("none", "bsi"): ("column none: Arrow type null has no counterpart among Paimon's types"),
        ("id", "bsi"): "column id: fits more than one column: ID, id",
        ("absent", "bsi"): file.skipped[PayloadKind.index("absent", "bsi")],
    }
    assert file.skipped[PayloadKind.index("absent", "bsi")].startswith(
        "column absent: not in the table"
    )
    assert "-9223372036854775808" in file.skipped[PayloadKind.index("least", "bsi")]
    built = [kind for kind in file.payloads if kind.index_type]
    assert built == [PayloadKind.index("price", "bsi"), PayloadKind.index("good", "bsi")]
    assert sorted(file.entry.statistics) == ["ID", "good", "id", "least", "price"]


def test_columns_of_one_name_get_nothing() -> None:
    table = pa.table([[1, 2], [3, 4], [5, 6]], ["a", "a", "b"])
    file = indexed(written(table), {"file-index.bitmap.columns": "a,b"})
    assert list(file.payloads) == [PayloadKind.index("b", "bitmap"), PayloadKind.pages("b")]
    assert list(file.entry.statistics) == ["b"]
    assert file.skipped == {
        PayloadKind.index("a", "bitmap"): "column a: fits more than one column: a, a",
        PayloadKind.pages("a"): "column a: fits more than one column",
    }


def test_a_key_of_a_map_in_a_file_without_rows_has_an_empty_index() -> None:
    table = rows_of(1).slice(0, 0)
    file = indexed(written(table), {"file-index.bitmap.columns": "tags[color],class_id"})
    assert file.payloads[PayloadKind.index("tags[color]", "bitmap")] is None
    assert file.payloads[PayloadKind.index("class_id", "bitmap")]


def test_a_file_that_is_not_as_it_was_listed_is_refused() -> None:
    data = written(pa.table({"a": [1]}))
    problem = f"a: not as it was listed: found {len(data)} bytes, expected 7"
    with pytest.raises(FileGoneError, match=problem):
        index_file(BytesSource(data, "a"), (), path="a", size=7, version="v1")


def test_a_file_with_an_encrypted_footer_is_said_to_be_so() -> None:
    data = written(pa.table({"a": [1]}))[:-4] + b"PARE"
    with pytest.raises(UnsupportedError, match=r"a\.parquet: its footer is encrypted"):
        indexed(data, {"file-index.bitmap.columns": "a"})


def test_the_footer_crc_changes_with_every_byte_of_the_footer() -> None:
    data = written(pa.table({"a": [1]}))
    right = footer_crc(BytesSource(data))
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for damage in flips(data[begin:-8]):
        assert footer_crc(BytesSource(data[:begin] + damage.data + data[-8:])) != right
    for short in (b"", b"PAR1", b"PAR1" + b"\xff" * 4 + b"PAR1"):
        with pytest.raises(FormatError):
            footer_crc(BytesSource(short))


def test_a_damaged_file_gives_an_error_that_names_it() -> None:
    data = written(pa.table({"a": [1, 2]}), compression="none", write_page_checksum=True)
    specs = {"file-index.bitmap.columns": "a"}
    errors = []
    for damage in flips(data):
        try:
            indexed(damage.data, specs)
        except FormatError as error:
            errors.append(str(error))
    assert [error for error in errors if not error.startswith("a.parquet: ")] == []
    assert len(errors) > len(data) // 2  # names and statistics are not checked
