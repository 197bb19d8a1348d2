"""Make the golden files of Apache Paimon's Java writer and reader, from the released jar.

    python -m tests.golden.make_paimon_java

Needs Java, Maven, py4j and the network. Takes about a minute; writes the same files every time.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.golden.brute_force import loses_rows, misses_rows
from tests.golden.java_containers import write_containers
from tests.golden.java_vectors import write_vectors
from tests.golden.paimon_jvm import VERSION, PaimonJvm, paimon_jvm
from tests.golden.payload_columns import Column, columns, literals
from tests.golden.payload_reader import COMPARISONS, PayloadReader
from tests.golden.values import Json, rule_values, save

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "golden" / "file-index" / f"paimon-java-{VERSION}"

ORDERS = [
    (direction, nulls)
    for direction in ("ASCENDING", "DESCENDING")
    for nulls in ("NULLS_FIRST", "NULLS_LAST")
]


def questions(column: Column, values: list[Json]) -> Iterator[tuple[str, list[Json]]]:
    """Predicates to ask: all where the index type answers them, one where it never does."""
    asked = literals(column, values)
    yield "is_null", []
    yield "is_not_null", []
    answered = {"bloom-filter": ["eq"], "bitmap": ["eq", "neq"]}
    for operator in COMPARISONS:
        often = operator in answered.get(column.index_type, list(COMPARISONS))
        for literal in asked if often else asked[:1]:
            if literal is not None or operator in ("eq", "neq", "lt"):
                yield operator, [literal]
    two = [*asked[:-1], *asked][:2]  # a column without values asks with null
    yield "between", two
    yield "between", two[::-1]
    yield "not_between", two
    for operator in ("in", "not_in"):
        yield operator, asked[:-1][::2]
        yield operator, [asked[0], None]
        yield operator, []
    if column.data_type == "STRING":
        for operator in ("starts_with", "ends_with", "contains", "like"):
            yield operator, ["plum"]


def write_payload(jvm: PaimonJvm, column: Column) -> None:
    """Write a payload, ask the reader about it, and save both."""
    values = rule_values(column.rule) if column.rule else column.values
    payload = jvm.write(column.index_type, column.data_type, column.options, values)
    reader = PayloadReader(jvm, column, payload)
    facts: dict[str, Json] = {
        "kind": "payload",
        "index_type": column.index_type,
        "data_type": column.data_type,
        "options": column.options,
        "row_count": len(values),
    }
    if column.rule:
        facts["value_rule"] = column.rule
        facts["predicates_cardinality"] = [
            {"op": operator, "literals": asked_values, "cardinality": cardinality(answer)}
            for operator, asked_values in questions(column, values)
            if isinstance(answer := reader.ask(operator, asked_values), dict) and "ranges" in answer
        ]
    else:
        facts["values"] = values
        facts["predicates"] = [
            answered(column, reader, {"op": operator, "literals": asked_values})
            for operator, asked_values in questions(column, values)
        ]
    if column.index_type == "range-bitmap" and not column.rule:
        facts["topn"] = list(top_n(column, reader))
    save(FOLDER, column.name, facts, payload)


def answered(column: Column, reader: PayloadReader, question: dict[str, Json]) -> Json:
    """A predicate with its answer, marked where the answer is a bug of the release."""
    result = reader.ask(question["op"], question["literals"])
    wrong = loses_rows(column.data_type, column.values, question, result)
    return question | {"result": result} | ({"wrong": True} if wrong else {})


def top_n(column: Column, reader: PayloadReader) -> Iterator[Json]:
    """Top-n questions with their answers."""
    rows = len(column.values)
    kept = [[0, rows // 3], [rows // 2, rows - 1]]
    selection = {"ranges": [[start, end] for start, end in kept if start < end]}
    for limit, order, strict, allowed in itertools.product(
        column.limits, ORDERS, (True, False), (None, selection)
    ):
        question = {
            "k": limit,
            "direction": order[0].removesuffix("ENDING"),
            "nulls": order[1].replace("_", " "),
            "strict": strict,
            "found_set": allowed,
        }
        result = reader.top_n(limit, order, strict, allowed)
        wrong = misses_rows(column.data_type, column.values, question, result)
        yield question | {"result": result} | ({"wrong": True} if wrong else {})


def cardinality(answer: Json) -> int:
    """How many positions are in an answer."""
    return sum(end - start for start, end in answer["ranges"])


def main() -> None:
    """Make the folder again."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with paimon_jvm() as jvm:
        for column in columns():
            write_payload(jvm, column)
        write_containers(jvm, FOLDER)
        write_vectors(jvm, FOLDER)
    files = sorted(FOLDER.iterdir())
    print(
        f"{len(files)} files, {sum(file.stat().st_size for file in files)} bytes in {FOLDER.name}"
    )


if __name__ == "__main__":
    main()
