"""Every golden file: the bytes that we write, and the answers that we read from the writer's bytes.

An answer must have every matching row (by brute force) and no row that the writer's own reader
does not return. It may be smaller than the reader's, which keeps null rows for `<>` in a bitmap; it
is compared with brute force alone where the reader is wrong or fails: see `trusted`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from alcid import (
    FileIndex,
    OptionError,
    Predicate,
    Selection,
    UnsupportedError,
    col,
)
from alcid.expressions import Unknown
from alcid.formats.file_index import BUILDERS, bloom_filter
from alcid.formats.file_index.bitmap import open_bitmap
from alcid.formats.file_index.bloom_filter import hash_column
from alcid.formats.file_index.container import Container, write_container
from alcid.formats.file_index.keys import key_type, map_key_column, read_column
from alcid.formats.roaring import serialize_rows
from alcid.formats.source import BytesSource, Section
from alcid.options import parse_options
from alcid.testing.oracle import matching_rows, top_rows, values_of
from alcid.types import DataType, indexes_for
from tests.golden_files import (
    Golden,
    Json,
    arrow_array,
    golden_files,
    golden_id,
    index_of,
    literal,
    predicate,
    rows_of,
    tree,
)

PAIMON_ITEMS = 1_000_000


def payload_type(golden: Golden) -> DataType:
    return DataType.parse(golden.json["data_type"])


def build(index_type: str, data_type: DataType, values: Sequence[Json], options: Json) -> bytes:
    """Our payload, with Paimon's default of `items` if none is given."""
    settings = {f"file-index.{index_type}.c.{key}": value for key, value in options.items()}
    if index_type == "bloom-filter":
        settings.setdefault("file-index.bloom-filter.c.items", PAIMON_ITEMS)
    (spec,) = parse_options({f"file-index.{index_type}.columns": "c", **settings})
    column = read_column(arrow_array(values, data_type), data_type)
    return BUILDERS[index_type](column, **asdict(spec.options))


def assert_same_bytes(index_type: str, data_type: DataType, ours: bytes, theirs: bytes) -> None:
    """Equal bytes; for a bitmap, whose writers order its bitmaps by hash, equal parts."""
    if index_type != "bitmap":
        assert ours == theirs
        return
    assert len(ours) == len(theirs)
    parts = []
    for data in (ours, theirs):
        reader = open_bitmap(Section(BytesSource(data)), key_type(data_type))
        entries = {key: rows.serialize() for key, rows in reader.items()}
        parts.append((reader.head.version, reader.row_count, reader.nulls.serialize(), entries))
    assert parts[0] == parts[1]
    assert ours[:10] == theirs[:10]


@pytest.mark.parametrize("golden", golden_files("payload"), ids=golden_id)
def test_a_payload_has_the_bytes_of_its_writer(golden: Golden) -> None:
    index_type, data_type = golden.json["index_type"], payload_type(golden)
    ours = build(index_type, data_type, golden.values, golden.json["options"])
    assert_same_bytes(index_type, data_type, ours, golden.data)


def is_zero(value: Json) -> bool:
    match value:
        case {"f32": bits} | {"f64": bits}:
            return int(bits, 16) << 1 & (1 << 4 * len(bits)) - 1 == 0
    return False


def trusted(question: Json) -> bool:
    """Whether the writer's own answer can be required.

    Not if it is marked as wrong, and not for what it means otherwise than Spark: null literals,
    which it fails at or takes for null rows, the two zeros, which it distinguishes, and NOT IN of
    nothing, which is true for nulls too.
    """
    literals = question["literals"]
    otherwise = None in literals or any(is_zero(value) for value in literals)
    return not (
        question.get("wrong") or otherwise or (question.get("op") == "not_in" and not literals)
    )


def is_loose(data_type: DataType) -> bool:
    """Whether an answer may hold rows that do not match.

    So it is where keys drop a part of the value, and for CHAR, which Spark compares padded.
    """
    return key_type(data_type).truncated or data_type.root == "CHAR"


def check(selection: Selection, truth: BitMap, question: Json, *, exact: bool, loose: bool) -> None:
    """Compare an answer with brute force and, if it is usable, with the writer's own answer."""
    rows, result = selection.rows, question["result"]
    if rows is not None:
        assert truth <= rows
        if exact or selection.exact:
            assert rows == truth
        assert selection.exact or not exact
    if result in ("REMAIN", "null"):
        return
    if isinstance(result, dict) and "error" in result:
        assert rows is not None
        return
    theirs = rows_of(() if result == "SKIP" else result["ranges"])
    if trusted(question) and not loose:
        assert rows is not None
        assert rows <= theirs


@pytest.mark.parametrize("golden", golden_files("payload"), ids=golden_id)
def test_a_payload_answers_as_its_reader(golden: Golden) -> None:
    index_type, data_type = golden.json["index_type"], payload_type(golden)
    index = index_of(index_type, golden.data, data_type, golden_id(golden))
    array = arrow_array(golden.values, data_type)
    loose = is_loose(data_type)
    exact = index_type != "bloom-filter" and not loose
    asked = 0
    for question in filter(trusted, golden.json.get("predicates_cardinality", ())):
        literals = [literal(value, data_type) for value in question["literals"]]
        rows = index.evaluate(predicate("c", question["op"], literals)).rows
        assert rows is not None
        nulls = array.null_count if question["op"] in ("neq", "not_in") else 0
        kept_nulls = nulls if index_type == "bitmap" else 0
        assert len(rows) == question["cardinality"] - kept_nulls
        asked += 1
    values = values_of(array)
    for question in golden.json.get("predicates", ()):
        literals = [literal(value, data_type) for value in question["literals"]]
        asking = predicate("c", question["op"], literals)
        if not isinstance(asking, Unknown):
            truth = BitMap(matching_rows({"c": values}, {"c": data_type}, asking))
            check(index.evaluate(asking), truth, question, exact=exact, loose=loose)
        else:
            assert (index.evaluate(asking).rows, question["result"]) == (None, "REMAIN")
        asked += 1
    for question in golden.json.get("topn", ()):
        check_top_n(index, "c", values, data_type, question)
        asked += 1
    assert asked > 0


def check_top_n(
    index: FileIndex, column: str, values: Sequence[Any], data_type: DataType, question: Json
) -> None:
    """Ties are kept unless the column is the only sort column, which Paimon calls strict."""
    chosen = question.get("found_set", question.get("selection"))
    among = None if chosen is None else rows_of(chosen["ranges"])
    k, strict = question["k"], question["strict"]
    descending = question["direction"] == "DESC"
    nulls = "first" if question["nulls"] == "NULLS FIRST" else "last"
    rows = index.top_n(column, k, descending, nulls, among, ties=not strict).rows  # type: ignore[arg-type]
    if question["result"] == "REMAIN":
        assert rows == among
        return
    if data_type.root == "CHAR":  # which Spark orders padded, but the index does not
        assert rows == among
        return
    theirs = rows_of(question["result"]["ranges"]) if question["result"] != "SKIP" else BitMap()
    if not any(
        entry.index_type == "range-bitmap" for entry in index.entries if entry.column == column
    ):
        assert rows == theirs == among
        return
    truth = BitMap(
        top_rows(values, data_type, k, descending=descending, nulls=nulls, among=among)  # type: ignore[arg-type]
    )
    only_nulls = all(value is None for value in values)  # Paimon gives all rows then
    none_asked = k == 0 and not strict  # Paimon gives the null rows
    zeros = data_type.root in ("FLOAT", "DOUBLE") and 0.0 in values  # Paimon: -0.0 is below 0.0
    assert rows is not None
    if not strict:
        assert rows == truth
    else:
        assert rows <= truth
        assert len(rows) == min(k, len(values) if among is None else len(among))
    if not (question.get("wrong") or only_nulls or none_asked or (zeros and not strict)):
        assert rows == theirs


def container_columns(golden: Golden) -> tuple[pa.Table, dict[str, DataType]]:
    """The rows of a container as a table, and the types of its columns."""
    fields = [(field["name"], DataType.parse(field["type"])) for field in golden.json["fields"]]
    arrays = {
        name: arrow_array([row[position] for row in golden.json["rows"]], data_type)
        for position, (name, data_type) in enumerate(fields)
    }
    return pa.table(arrays), dict(fields)


def asked_columns(
    golden: Golden, table: pa.Table, types: Mapping[str, DataType]
) -> tuple[dict[str, list[Any]], dict[str, DataType]]:
    """Values and types of every column that a predicate may name, keys of maps included."""
    values, asked = {}, {}
    names = (
        {entry["column"] for entry in golden.json["head"]["entries"]} | set(types) | {"m[other]"}
    )
    for name in names:
        whole, _, key = name.partition("[")
        if key and whole in types:
            asked[name] = types[whole].children[1]
            values[name] = values_of(map_key_column(table[whole], key[:-1]))
        elif name in types and types[name].root != "MAP":
            asked[name], values[name] = types[name], values_of(table[name])
    return values, asked


@pytest.mark.parametrize("golden", golden_files("container", "container_raw"), ids=golden_id)
def test_a_container_has_the_head_of_its_writer(golden: Golden) -> None:
    head = golden.json["head"]
    container = Container.open(BytesSource(golden.data, golden_id(golden)))
    assert container.head_length == head["head_length"]
    assert container.redundant == head["redundant_length"]
    entries = [(e.column, e.index_type, e.start, e.length) for e in container.entries]
    listed = ("column", "index_type", "start", "length")
    assert entries == [tuple(entry[key] for key in listed) for entry in head["entries"]]


@pytest.mark.parametrize("golden", golden_files("container_raw"), ids=golden_id)
def test_a_container_comes_back_sorted(golden: Golden) -> None:
    container = Container.open(BytesSource(golden.data))
    payloads = {
        (entry.column, entry.index_type): None
        if entry.is_empty
        else container.section(entry).read(0, entry.length)
        for entry in container.entries
    }
    for payload in golden.json.get("payloads", ()):
        data = payload["hex"]
        expected = None if data is None else bytes.fromhex(data)
        assert payloads[payload["column"], payload["index_type"]] == expected
    again = Container.open(BytesSource(write_container(payloads)))
    assert [(e.column, e.index_type) for e in again.entries] == sorted(payloads)
    assert again.source.size <= len(golden.data)  # a column without indexes is not written again


@pytest.mark.parametrize("golden", golden_files("container"), ids=golden_id)
def test_a_container_is_built_with_the_payloads_of_its_writer(golden: Golden) -> None:
    table, types = container_columns(golden)
    options = dict(golden.json["table_options"])
    for name in options.get("file-index.bloom-filter.columns", "").split(","):
        whole = name.strip().partition("[")[0]
        keys = (f"file-index.bloom-filter.{key}.items" for key in (name.strip(), whole))
        if name and not any(key in options for key in keys):
            options[f"file-index.bloom-filter.{name.strip()}.items"] = PAIMON_ITEMS
    ours = FileIndex.build(table, options)
    theirs = FileIndex.from_bytes(golden.data, types)
    payloads = []
    for index in (ours, theirs):
        sections = {e: index.container.section(e) for e in index.entries if not e.is_empty}
        payloads.append(
            {
                (e.column, e.index_type): sections[e].read(0, e.length) if e in sections else None
                for e in index.entries
            }
        )
    assert payloads[0].keys() == payloads[1].keys()
    _, column_types = asked_columns(golden, table, types)
    for (column, index_type), payload in payloads[0].items():
        their_payload = payloads[1][column, index_type]
        if payload is None or their_payload is None:
            assert payload is their_payload
        else:
            assert_same_bytes(index_type, column_types[column], payload, their_payload)


def parts_of(question: Json) -> list[Json]:
    inner = question.get("and", question.get("or"))
    return [question] if inner is None else [leaf for part in inner for leaf in parts_of(part)]


@pytest.mark.parametrize("golden", golden_files("container"), ids=golden_id)
def test_a_container_answers_as_its_reader(golden: Golden) -> None:
    table, types = container_columns(golden)
    index = FileIndex.from_bytes(golden.data, types, strict=True)
    values, asked_types = asked_columns(golden, table, types)
    for question in golden.json["predicates"]:
        asking = tree(question["predicate"], asked_types)
        leaves = parts_of(question["predicate"])
        literals = [value for leaf in leaves for value in leaf["literals"]]
        unknown = any(isinstance(node, Unknown) for node in asking.walk())
        is_known = {leaf["column"] for leaf in leaves} <= values.keys()
        if unknown or not is_known:
            assert index.evaluate(asking).rows is None
            continue
        truth = BitMap(matching_rows(values, asked_types, asking))
        asked = {**question, "literals": literals}
        loose = any(is_loose(asked_types[leaf["column"]]) for leaf in leaves)
        check(index.evaluate(asking), truth, asked, exact=False, loose=loose)
    for question in golden.json["topn"]:
        column = question["column"]
        check_top_n(index, column, values[column], asked_types[column], question)


def questions(column: str, values: Sequence[Any]) -> list[Predicate]:
    """Equality, inequality and ranges with every distinct value."""
    it = col(column)
    asked = [it.is_null(), it.is_not_null()]
    for value in values:
        asked += [it == value, it != value, it < value, it <= value, it > value, it >= value]
    return asked


@pytest.mark.parametrize("golden", golden_files("container"), ids=golden_id)
def test_a_container_answers_every_value_of_its_rows(golden: Golden) -> None:
    table, types = container_columns(golden)
    index = FileIndex.from_bytes(golden.data, types, strict=True)
    values, asked_types = asked_columns(golden, table, types)
    indexed: dict[str, set[str]] = {}
    for entry in index.entries:
        indexed.setdefault(entry.column, set()).add(entry.index_type)
    for column, index_types in indexed.items():
        data_type = asked_types[column]
        position = table.schema.get_field_index(column)
        raw = [row[position] for row in golden.json["rows"]] if position >= 0 else []
        literals = [literal(value, data_type) for value in raw if value is not None][:20]
        exact = index_types != {"bloom-filter"} and not is_loose(data_type)
        for asking in questions(column, literals):
            truth = BitMap(matching_rows(values, asked_types, asking))
            rows = index.evaluate(asking).rows
            assert rows is None or (rows == truth if exact else truth <= rows)


@pytest.mark.parametrize("golden", golden_files("vectors"), ids=golden_id)
def test_vectors(golden: Golden) -> None:
    for vector in golden.json.get("hashes", ()):
        data_type = DataType.parse(vector["type"])
        column = read_column(arrow_array([vector["value"]], data_type), data_type)
        assert f"{int(hash_column(column)[0]):016x}" == vector["hash"].lower()
    for vector in golden.json.get("sizing", ()):
        bits, functions = bloom_filter.sizing(vector["items"], float(vector["fpp"]))
        assert (bits, functions) == (vector["num_bits"], min(vector["k"], 127))
    for vector in golden.json.get("types", ()):
        takes = "bloom-filter" in indexes_for(DataType.parse(vector["type"]))
        assert takes == vector["supported"]
    for vector in golden.json.get("vectors", ()):
        rows = np.array(rows_of(vector["ranges"]), np.uint32)
        data = serialize_rows(rows, np.array([0, len(rows)]))[0]
        assert len(data) == vector["length"]
        assert hashlib.sha1(data).hexdigest() == vector["sha1"]


@pytest.mark.parametrize("golden", golden_files("errors"), ids=golden_id)
def test_what_the_writer_refuses(golden: Golden) -> None:
    """Types are refused alike; but what fails in Java for a single value does not fail here."""
    index_type = next(
        name
        for prefix, name in (
            ("bloom", "bloom-filter"),
            ("bitmap", "bitmap"),
            ("bsi", "bsi"),
            ("range", "range-bitmap"),
        )
        if golden.path.stem.startswith(prefix)
    )
    for vector in golden.json.get("types", ()):
        takes = index_type in indexes_for(DataType.parse(vector["type"]))
        assert takes == (vector["outcome"] == "ok"), vector
    string = DataType.parse("STRING")
    for vector in golden.json.get("v2_long_string", ()):
        value = "x" * vector["string_length"]
        payload = build("bitmap", string, [value, "a", value], {})
        rows = index_of("bitmap", payload, string, "built").evaluate(col("c") == value).rows
        assert rows == BitMap([0, 2])
    if "version_3" in golden.json:
        with pytest.raises(OptionError, match="version"):
            build("bitmap", DataType("INT"), [1], {"version": "3"})
    if "long_min" in golden.json:
        with pytest.raises(UnsupportedError, match="cannot hold -9223372036854775808"):
            build("bsi", DataType("BIGINT"), [-(2**63)], {})
