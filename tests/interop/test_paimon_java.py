"""Paimon's released Java reads what we write; and random columns in both directions.

Golden files show that we read what Paimon writes. Here Paimon's own reader opens our containers,
with our order of columns and bitmaps and our sizes of bloom filters, and its answers are compared
with those for its own bytes, or with brute force.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from pyroaring import BitMap

from alcid import FileIndex, col
from alcid.expressions import Unknown
from alcid.formats.file_index.container import write_container
from alcid.testing.oracle import matching_rows, values_of
from alcid.types import DataType
from tests.golden.container_cases import RAW, TABLES, Table
from tests.golden.java_containers import ask_container, java_row_type, top_n_of_container
from tests.golden.make_paimon_java import ORDERS, answered, questions, top_n
from tests.golden.paimon_jvm import VERSION, PaimonJvm
from tests.golden.payload_columns import KINDS, Column, columns, slug
from tests.golden.payload_reader import PayloadReader
from tests.golden.values import Json, binary, distinct, f32, f64, timestamp
from tests.golden_files import (
    Golden,
    arrow_array,
    golden_files,
    golden_id,
    index_of,
    literal,
    predicate,
)
from tests.interop.java_index import BruteForce, JavaReader, build, check_answers, paimon_type
from tests.test_golden import PAIMON_ITEMS, check, check_top_n, container_columns, is_loose

WRITER = f"paimon-java-{VERSION}"
PAYLOADS = [  # without the long ones, for which only the number of rows is known
    golden
    for golden in golden_files("payload")
    if golden.path.parent.name == WRITER and "values" in golden.json
]
CONTAINERS = {golden.path.stem: golden for golden in golden_files("container")}
_TYPE_NAMES = {f"{kind}_{slug(name)}" for kind, (*_, names) in KINDS.items() for name in names}
TYPE_COLUMNS = [column for column in columns() if column.name in _TYPE_NAMES]


def name_of(column: Column | Table) -> str:
    return column.name


@pytest.mark.parametrize("golden", PAYLOADS, ids=golden_id)
def test_paimon_answers_from_our_index_as_from_its_own(jvm: PaimonJvm, golden: Golden) -> None:
    index_type, sql = golden.json["index_type"], golden.json["data_type"]
    options = dict(golden.json["options"])
    if index_type == "bloom-filter":
        options.setdefault("items", PAIMON_ITEMS)
    index = build(index_type, sql, {"c": golden.values}, options)
    reader = JavaReader(jvm, index, sql, "c")
    for question in golden.json["predicates"]:
        assert reader.ask(question["op"], question["literals"]) == question["result"], question
    for question in golden.json.get("topn", ()):
        order = f"{question['direction']}ENDING", question["nulls"].replace(" ", "_")
        answer = reader.top_n(question["k"], order, question["strict"], question["found_set"])
        assert answer == question["result"], question


@pytest.mark.parametrize("column", TYPE_COLUMNS, ids=name_of)
def test_paimon_reads_every_type_with_some_no_and_only_nulls(
    jvm: PaimonJvm, column: Column
) -> None:
    index_type, sql, values = column.index_type, column.data_type, distinct(column.values)
    tables = [
        {
            "some": column.values,
            "none": [values[0] if value is None else value for value in column.values],
            "only": [None] * len(column.values),
        },
        {"value": values[:1]},
        {"no_rows": []},
    ]
    for table in tables:
        index = build(index_type, sql, table, own_options(index_type, column.options))
        for name, rows in table.items():
            reader = JavaReader(jvm, index, sql, name)
            asked = replace(column, values=rows, absent=column.absent[:1], present=2)
            check_answers(reader, index, name, asked, BruteForce(sql, rows))
            if index_type == "range-bitmap":
                plain = values_of(arrow_array(rows, paimon_type(sql)))
                for question in top_n(asked, reader):
                    assert question["result"] != "REMAIN"
                    check_top_n(index, name, plain, paimon_type(sql), question)


def own_options(index_type: str, options: dict[str, str]) -> dict[str, str]:
    """The options, except for our defaults of a bloom filter: it fits the distinct values."""
    return {} if index_type == "bloom-filter" else options


def mixed_numbers() -> list[Json]:
    """70,000 rows, so two containers of a bitmap: runs, every second row, few rows, nulls."""
    rows = np.arange(70_000)
    spread = np.random.default_rng(5).integers(100, 1100, len(rows))
    numbers = np.select([rows < 20_000, rows < 66_000], [rows // 5000, 50 + rows % 2], spread)
    return [None if row % 97 == 0 else number for row, number in enumerate(numbers.tolist())]


def many_texts() -> list[Json]:
    """Keys for many blocks or chunks of 16 kB."""
    numbers = np.random.default_rng(6).integers(0, 5000, 6000).tolist()
    texts = [f"auk-{number} {'x' * (number % 60)}" for number in numbers]
    return [None if row % 50 == 0 else text for row, text in enumerate(texts)]


def many_numbers() -> list[Json]:
    return [None if text is None else int(text[4:].split()[0]) for text in many_texts()]


def long_texts() -> list[Json]:
    """Keys at, above and far above the size of a block, which Paimon itself does not write."""
    return [None if size is None else "x" * size for size in (16_368, 0, None, 16_369, 70_000, 0)]


LONG_COLUMNS = [
    (mixed_numbers, "INT", [7, 20_000]),
    (many_numbers, "BIGINT", [-1, 9999]),
    (many_texts, "STRING", ["auk-1", "z"]),
    (long_texts, "STRING", ["x" * 16_367, "x" * 16_370, "y"]),
]
LONG_CASES = [
    pytest.param(kind, make, sql, absent, id=f"{kind}_{make.__name__}")
    for kind, (*_, taken) in KINDS.items()
    for make, sql, absent in LONG_COLUMNS
    if sql in taken
]


@pytest.mark.parametrize(("kind", "make", "sql", "absent"), LONG_CASES)
def test_paimon_reads_long_columns_and_values(
    jvm: PaimonJvm, kind: str, make: Callable[[], list[Json]], sql: str, absent: list[Json]
) -> None:
    index_type, options, _ = KINDS[kind]
    values, data_type = make(), DataType.parse(sql)
    index = build(index_type, sql, {"c": values}, own_options(index_type, options))
    reader = JavaReader(jvm, index, sql, "c")
    present = distinct(values)
    column = Column(kind, index_type, sql, present[:: len(present) // 4 or 1], absent)
    check_answers(reader, index, "c", column, BruteForce(sql, values))
    if index_type == "range-bitmap":
        plain = values_of(arrow_array(values, data_type))
        for order, strict in itertools.product(ORDERS, (True, False)):
            question = {
                "k": 1500,  # more than there are nulls
                "direction": order[0].removesuffix("ENDING"),
                "nulls": order[1].replace("_", " "),
                "strict": strict,
                "found_set": None,
                "result": reader.top_n(1500, order, strict, None),
            }
            check_top_n(index, "c", plain, data_type, question)


def sample(sql: str, number: int) -> Json:
    """A value of the type; different for each number, from 0 to 255 at least."""
    root, *sizes = re.split(r"[(), ]+", sql)
    match root:
        case "BOOLEAN":
            return number % 2 == 1
        case "TINYINT":
            return number % 256 - 128
        case "SMALLINT" | "INT" | "DATE" | "TIME":
            return number * 7
        case "BIGINT":
            return number * 0x123456789AB - 2**40
        case "FLOAT":
            return f32(number / 4 - 20)
        case "DOUBLE":
            return f64(number / 3 - 20)
        case "DECIMAL":
            return format(Decimal(number - 100).scaleb(-int(sizes[1])), "f")
        case "TIMESTAMP":
            step = 10 ** (9 - int(sizes[0]))
            return timestamp(*divmod((number * 10_007 - 10**6) * step, 10**6))
        case "CHAR" | "VARCHAR" | "STRING":
            return f"auk-{number}"
        case "BINARY" | "VARBINARY" | "BYTES":
            return binary(number.to_bytes(3))
    raise AssertionError(sql)


@pytest.mark.parametrize("sql", KINDS["bloom"][2])
def test_paimon_finds_in_our_bloom_filter_what_we_find(jvm: PaimonJvm, sql: str) -> None:
    numbers = range(250 if sql == "TINYINT" else 600)
    values = [sample(sql, number) for number in numbers]
    hits = bloom_hits(jvm, sql, values[::2], values[1::2], {"fpp": "0.2"})
    assert 0.14 < hits / len(values[1::2]) < 0.26


@pytest.mark.parametrize(("options", "most"), [({}, 21), ({"fpp": "0.2"}, 85)])
def test_our_bloom_filter_lets_the_asked_share_pass_in_paimon(
    jvm: PaimonJvm, options: dict[str, str], most: int
) -> None:
    """Of 5000 absent values 50, or 1000, within three standard deviations."""
    values = [sample("BIGINT", number) for number in range(10_000)]
    hits = bloom_hits(jvm, "BIGINT", values[::2], values[1::2], options)
    assert abs(hits - 5000 * float(options.get("fpp", "0.01"))) <= most


def bloom_hits(
    jvm: PaimonJvm, sql: str, present: list[Json], absent: list[Json], options: dict[str, str]
) -> int:
    """How many absent values pass, in Paimon and in ours: the same ones."""
    data_type = paimon_type(sql)
    index = build("bloom-filter", sql, {"c": present}, options)
    reader = JavaReader(jvm, index, sql, "c")
    assert all(reader.remains(present))
    passed = reader.remains(absent)
    assert passed == [not index.evaluate(col("c") == literal(v, data_type)).skip for v in absent]
    return sum(passed)


@pytest.mark.parametrize("table", TABLES, ids=name_of)
def test_paimon_answers_from_our_container_as_from_its_own(jvm: PaimonJvm, table: Table) -> None:
    golden = CONTAINERS[f"container_{table.name}"]
    data = FileIndex.build(container_columns(golden)[0], table.options).to_bytes()
    reader = jvm.paimon.fileindex.FileIndexPredicate(data, java_row_type(jvm, table))
    for question in golden.json["predicates"]:
        answer = ask_container(jvm, table, reader, question["predicate"])
        assert answer == question["result"], question
    answers = [top_n_of_container(jvm, table, reader, *asked) for asked in table.top_n]
    assert answers == golden.json["topn"]


@pytest.mark.parametrize("name", RAW)
def test_paimon_finds_every_payload_of_our_container(jvm: PaimonJvm, name: str) -> None:
    """Names of all kinds; an empty index, for which Paimon gives no bytes; no index at all."""
    payloads = {
        (column, index_type): payload
        for column, indexes in RAW[name].items()
        for index_type, payload in indexes.items()
    }
    stream = jvm.paimon.fs.ByteArraySeekableStream(write_container(payloads))
    row_type = java_row_type(jvm, Table("ours", {}, {}, []))
    read = jvm.paimon.fileindex.FileIndexFormat.createReader(stream, row_type).readAll()
    stored = {
        (column, index_type): bytes(payload)
        for column, indexes in read.items()
        for index_type, payload in indexes.items()
    }
    assert stored == {key: payload or b"" for key, payload in payloads.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_random_columns_in_both_directions(jvm: PaimonJvm, kind: str) -> None:
    """Paimon writes, we read; we write, Paimon reads. The header names the seed of the run."""
    index_type, options, names = KINDS[kind]
    chance = random.Random(f"{random.getrandbits(32)} {kind}")
    for sql in chance.sample(names, min(5, len(names))):
        spread, nulls = chance.choice((2, 40, 250)), chance.choice((0.0, 0.1, 0.9))
        values = [
            None if chance.random() < nulls else sample(sql, chance.randrange(spread))
            for _ in range(chance.choice((1, 30, 400)))
        ]
        absent = [sample(sql, chance.randrange(250)) for _ in range(3)]
        column = Column(kind, index_type, sql, values, absent, options, present=3)
        print(column)  # shown if the test fails
        data_type = DataType.parse(sql)
        types, array = {"c": data_type}, arrow_array(values, data_type)
        written = jvm.write(index_type, sql, options, values)
        read = index_of(index_type, written, data_type, "written by Paimon")
        theirs = PayloadReader(jvm, column, written)
        of_ours = JavaReader(jvm, build(index_type, sql, {"c": values}, options), sql, "c")
        exact = index_type != "bloom-filter" and not is_loose(data_type)
        for operator, literals in questions(column, values):
            question = answered(column, theirs, {"op": operator, "literals": literals})
            assert of_ours.ask(operator, literals) == question["result"]
            asking = predicate("c", operator, [literal(value, data_type) for value in literals])
            if not isinstance(asking, Unknown):
                truth = BitMap(matching_rows({"c": values_of(array)}, types, asking))
                loose = is_loose(data_type)
                check(read.evaluate(asking), truth, question, exact=exact, loose=loose)
        if index_type == "range-bitmap":
            asked = list(top_n(column, theirs))
            assert list(top_n(column, of_ours)) == asked
            for question in asked:
                check_top_n(read, "c", values_of(array), data_type, question)
