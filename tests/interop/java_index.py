"""Our containers read by Paimon's Java, and the answers that it should give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from alcid import FileIndex
from alcid.testing.oracle import matching_rows, values_of
from alcid.types import DataType
from tests.golden.container_cases import Table
from tests.golden.java_containers import java_row_type
from tests.golden.make_paimon_java import questions
from tests.golden.paimon_jvm import PaimonJvm
from tests.golden.payload_columns import Column
from tests.golden.payload_reader import COMPARISONS, READER, PayloadReader
from tests.golden.values import Json
from tests.golden_files import arrow_array, literal, predicate, rows_of
from tests.test_golden import trusted

_POINTS = {"is_null", "is_not_null", "eq", "neq", "in", "not_in"}
ANSWERED = {
    "bloom-filter": {"eq", "in"},
    "bitmap": _POINTS,
    "range-bitmap": {*_POINTS, *COMPARISONS, "between"},
    "bsi": {*_POINTS, *COMPARISONS, "between"},
}


class JavaReader(PayloadReader):
    """Paimon's reader for the only index of a column in a container."""

    def __init__(self, jvm: PaimonJvm, index: FileIndex, data_type: str, column: str) -> None:
        self.jvm = jvm
        self.data_type = data_type
        self.field = jvm.paimon.predicate.FieldRef(0, column, jvm.data_type(data_type))
        stream = jvm.paimon.fs.ByteArraySeekableStream(index.to_bytes())
        row_type = java_row_type(jvm, Table("ours", {column: data_type}, {}, []))
        container = jvm.paimon.fileindex.FileIndexFormat.createReader(stream, row_type)
        (self.reader,) = container.readColumnIndex(column)

    def remains(self, literals: Sequence[Json]) -> list[bool]:
        """Whether the file is kept for `= literal`, for many literals in one call."""
        visit = self.jvm.method(READER, "visitEqual", 2).bindTo(self.reader).bindTo(self.field)
        remain = self.jvm.method("org.apache.paimon.fileindex.FileIndexResult", "remain", 0)
        handle = self.jvm.java.lang.invoke.MethodHandles.filterReturnValue(visit, remain)
        answers = self.jvm.values(self.data_type, literals)
        answers.replaceAll(self.jvm.interface("UnaryOperator", handle))
        return [answer == "true" for answer in answers.toString()[1:-1].split(", ")]


def paimon_type(data_type: str) -> DataType:
    """The type as Paimon's indexes see it: they do not pad CHAR, and cut nanoseconds off.

    >>> paimon_type("TIMESTAMP(9)").precision
    6
    """
    seen = "STRING" if data_type.startswith("CHAR") else data_type.replace("(9)", "(6)")
    return DataType.parse(seen)


def build(
    index_type: str,
    data_type: str,
    columns: Mapping[str, Sequence[Json]],
    options: Mapping[str, str | int],
) -> FileIndex:
    """Our index of columns of one type and with the same options, opened as Paimon sees it."""
    index_options: dict[str, str | int | float] = {
        f"file-index.{index_type}.columns": ",".join(columns)
    }
    for column in columns:
        for option, value in options.items():
            index_options[f"file-index.{index_type}.{column}.{option}"] = value
    arrays = {
        column: arrow_array(values, DataType.parse(data_type)) for column, values in columns.items()
    }
    data = FileIndex.build(pa.table(arrays), index_options).to_bytes()
    return FileIndex.from_bytes(data, dict.fromkeys(columns, paimon_type(data_type)), strict=True)


def rows(answer: Json) -> BitMap | None:
    """Paimon's answer as rows, None for any."""
    if answer == "REMAIN":
        return None
    return rows_of(() if answer == "SKIP" else answer["ranges"])


def asked_of(column: Column) -> Iterator[tuple[str, list[Json]]]:
    """The questions to which Paimon's answer equals Spark's, or differs in a known way."""
    for operator, literals in questions(column, column.values):
        nothing = operator == "in" and not literals  # which a bloom filter turns into a Java null
        if trusted({"op": operator, "literals": literals}) and not nothing:
            yield operator, literals


class BruteForce:
    """The matching rows of a column, with each distinct value checked once."""

    def __init__(self, data_type: str, values: Sequence[Json]) -> None:
        self.data_type = paimon_type(data_type)
        encoded = arrow_array(values, self.data_type).dictionary_encode(null_encoding="encode")
        self._values = values_of(encoded.dictionary)
        self._codes = np.asarray(encoded.indices)

    def rows(self, operator: str, literals: Sequence[Json]) -> BitMap:
        """The rows for which a question is true."""
        asking = predicate("c", operator, [literal(value, self.data_type) for value in literals])
        matching = matching_rows({"c": self._values}, {"c": self.data_type}, asking)
        return BitMap(np.flatnonzero(np.isin(self._codes, matching)))

    def paimon_rows(
        self, index_type: str, operator: str, literals: Sequence[Json]
    ) -> BitMap | None:
        """The rows that an index of Paimon 1.4.2 (not a bloom filter) returns; None for any.

        It differs from Spark in two things: a bitmap counts null rows as `<>` and NOT IN, and IS
        NULL on a range-bitmap of nulls returns only the first and the last row.
        """
        if operator not in ANSWERED[index_type]:
            return None
        matched, count = self.rows(operator, literals), len(self._codes)
        if index_type == "bitmap" and operator in ("neq", "not_in"):
            return matched | self.rows("is_null", ())
        if index_type == "range-bitmap" and operator == "is_null" and len(matched) == count > 0:
            return BitMap([0, count - 1])
        return matched


def check_answers(
    reader: JavaReader, index: FileIndex, name: str, column: Column, force: BruteForce
) -> None:
    """Compare Paimon's answers from our index with brute force."""
    for operator, literals in asked_of(column):
        if column.index_type == "bloom-filter" and operator in ("eq", "in"):
            # The same hashes and bits, so even false positives agree.
            asked = predicate(name, operator, [literal(v, force.data_type) for v in literals])
            expected = index.evaluate(asked).rows
            assert expected is None or not force.rows(operator, literals)
        else:
            expected = force.paimon_rows(column.index_type, operator, literals)
        assert rows(reader.ask(operator, literals)) == expected, (name, operator, literals)
