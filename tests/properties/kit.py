"""What the property tests share: kinds of indexes, forms of a column, what is exact."""

from __future__ import annotations

import datetime
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from alcid import (
    DataType,
    FileIndex,
    Predicate,
    Selection,
)
from alcid.expressions import (
    Between,
    Comparison,
    In,
    IsNull,
    Like,
    Not,
)
from alcid.testing.strategies import SampleColumn
from alcid.types import indexes_for

_NAMES = """
BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE CHAR(12) STRING BINARY(3) BYTES DATE
TIME(3) TIME(6) TIME(9) TIMESTAMP(0) TIMESTAMP(3) TIMESTAMP(6) TIMESTAMP(9)
TIMESTAMP_LTZ(0) TIMESTAMP_LTZ(3) TIMESTAMP_LTZ(6) TIMESTAMP_LTZ(9)
DECIMAL(1,0) DECIMAL(9,3) DECIMAL(18,0) DECIMAL(18,18) DECIMAL(19,0) DECIMAL(38,4)
"""
TYPES = [DataType.parse(name) for name in _NAMES.split()]
_DATA = st.data()


@dataclass(frozen=True)
class Kind:
    """An index type with options."""

    name: str
    index_type: str
    options: Mapping[str, tuple[str | int | None, ...]] = field(default_factory=dict)
    """For each option of the column, the values to draw from; None omits it."""

    @property
    def types(self) -> list[DataType]:
        return [data_type for data_type in TYPES if self.index_type in indexes_for(data_type)]

    def draw_options(self, data: st.DataObject, column: str) -> dict[str, str | int | float]:
        chosen: dict[str, str | int | float] = {f"file-index.{self.index_type}.columns": column}
        for option, values in self.options.items():
            value = data.draw(st.sampled_from(values), label=option)
            if value is not None:
                chosen[f"file-index.{self.index_type}.{column}.{option}"] = value
        return chosen


BLOOM = Kind("bloom-filter", "bloom-filter", {"items": (None, 1, 1000), "fpp": (None, "0.5")})
BITMAP_V1 = Kind("bitmap-v1", "bitmap", {"version": (1,)})
BITMAP_V2 = Kind("bitmap-v2", "bitmap", {"index-block-size": (16, 64, "1kb", "16kb")})
RANGE_BITMAP = Kind("range-bitmap", "range-bitmap", {"chunk-size": (0, 9, 100, "16kb")})
BSI = Kind("bsi", "bsi")
KINDS = [BLOOM, BITMAP_V1, BITMAP_V2, RANGE_BITMAP, BSI]


def run(check: Callable[[st.DataObject], None], name: str, examples: int) -> None:
    """Run a check on random data: `examples` times, or more if the profile says so."""
    profile = settings()
    body = settings(max_examples=max(examples, profile.max_examples // 10))(given(_DATA)(check))
    if profile.derandomize:  # the same examples in every run, but different for each name
        body = seed(zlib.crc32(name.encode()))(body)
    body()


def arrow_forms(array: pa.Array) -> Iterator[pa.Array | pa.ChunkedArray]:
    """The same column in the forms that Arrow has."""
    yield array
    middle = len(array) // 2
    yield pa.chunked_array([array[:middle], array[:0], array[middle:]], array.type)
    yield pa.concat_arrays([array[:1], array])[min(len(array), 1) :]  # starts within its buffers
    yield array.dictionary_encode()
    if pa.types.is_string(array.type):
        yield from (array.cast(pa.large_string()), array.cast(pa.string_view()))
    elif pa.types.is_binary(array.type):
        yield from (array.cast(pa.large_binary()), array.cast(pa.binary_view()))
    else:
        yield pa.compute.run_end_encode(array)


def open_again(index: FileIndex, types: Mapping[str, DataType]) -> FileIndex:
    return FileIndex.from_bytes(index.to_bytes(), types, strict=True)


def build(
    column: SampleColumn, options: Mapping[str, str | int | float], form: int = 0
) -> FileIndex:
    """The index of a column `c`, written and opened again."""
    forms = list(arrow_forms(column.to_arrow()))
    table = pa.table({"c": forms[form % len(forms)]})
    return open_again(FileIndex.build(table, options), {"c": column.data_type})


def rows_of(selection: Selection, row_count: int) -> BitMap:
    """The rows of an answer; all of them if it names none."""
    return BitMap(range(row_count)) if selection.rows is None else selection.rows


def given_literals(leaf: Predicate) -> tuple[Any, ...]:
    match leaf:
        case Not(child):
            return given_literals(child)
        case Comparison(_, _, literal):
            return (literal,)
        case Between(_, low, high):
            return low, high
        case In(_, literals, _):
            return literals
    return ()


def is_truncated(data_type: DataType) -> bool:
    """Whether an index stores less than the value."""
    most = {"TIME": 3, "TIMESTAMP": 6, "TIMESTAMP_LTZ": 6}
    return data_type.precision > most.get(data_type.root, data_type.precision)


def is_exact(leaf: Predicate, data_type: DataType) -> bool:
    """Whether an answer in rows must be exactly the matching rows."""
    if isinstance(leaf, IsNull):
        return True
    drawn = given_literals(leaf)
    # Padding, and Spark's conversion of a list of several types, leave more rows to be kept.
    if is_truncated(data_type) or data_type.root == "CHAR" or len(set(map(_kind, drawn))) > 1:
        return False
    if data_type.root not in ("BIGINT", "DECIMAL"):
        return True
    # As doubles, many large numbers are equal.
    unit, beyond = 10**data_type.scale, 2 * max(2**63, 10**data_type.precision)
    doubles = [abs(literal) * unit for literal in drawn if isinstance(literal, float)]
    return all(not size < beyond or size < 2**50 for size in doubles)


def _kind(literal: object) -> object:
    if literal is None or isinstance(literal, int | Decimal):
        return None
    return datetime.datetime if isinstance(literal, np.datetime64) else type(literal)


def must_answer(leaf: Predicate, data_type: DataType, kind: Kind) -> bool:
    """Whether the index must return rows, and may not answer with any row."""
    if kind.index_type == "bloom-filter":
        return False
    if data_type.root in ("TINYINT", "SMALLINT", "INT", "BIGINT") and any(
        isinstance(literal, int | Decimal) and not -(2**63) <= literal < 2**63
        for literal in given_literals(leaf)
    ):
        return False  # Spark considers some of these comparisons TRUE
    if kind.index_type in ("range-bitmap", "bsi"):
        return True
    match leaf:
        case Not(child):
            return must_answer(child, data_type, kind)
        case Comparison(_, operator, literal) if operator not in ("=", "<>", "<=>"):
            return literal is None
        case Between(_, low, high):
            return low is None or high is None
        case Like(_, _, prefix, _):
            return not prefix
    # A double may equal more keys than a bitmap is asked for one by one.
    return data_type.root != "BIGINT" or is_exact(leaf, data_type)


def as_text(predicate: Predicate) -> str | None:
    """The SQL text of a predicate, unless a literal has none."""
    for literal in given_literals(predicate):
        if isinstance(literal, np.datetime64):
            unit = np.datetime_data(literal.dtype)[0]
            if unit not in ("us", "D") or abs(int(literal.astype("M8[Y]").astype(int))) > 7999:
                return None
    return str(predicate)
