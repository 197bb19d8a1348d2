"""File indexes: each kind by itself, asked in keys; and their container, asked by predicates."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from alcid import (
    AlcidError,
    DamagedIndexWarning,
    FileIndex,
    Predicate,
    col,
)
from alcid.formats.file_index import READERS
from alcid.formats.file_index.bitmap import BitmapReader
from alcid.formats.file_index.bsi import BsiReader
from alcid.formats.file_index.container import Container
from alcid.formats.file_index.keys import Key, KeyType, key_type
from alcid.formats.file_index.range_bitmap import RangeBitmapReader
from alcid.formats.file_index.reader import IndexReader
from alcid.formats.source import BytesSource, Section
from alcid.types import DataType, require_index
from tests.fuzz.target import Target, small
from tests.golden_files import golden_files

LITERALS: dict[str, tuple[Any, Any]] = {
    "INT": (-1, 20),
    "BIGINT": (0, 2**40),
    "STRING": ("a", "name 7"),
    "DOUBLE": (-0.0, float("nan")),
    "BOOLEAN": (False, True),
    "TINYINT": (-128, 3),
    "FLOAT": (1.5, float("inf")),
    "DATE": (date(1969, 12, 31), date(2024, 1, 2)),
    "TIMESTAMP(3)": (datetime(2020, 1, 1), datetime(2024, 5, 6, 7)),
    "TIMESTAMP(6)": (datetime(1970, 1, 1), datetime(2024, 5, 6, 7)),
    "DECIMAL(10, 2)": (Decimal("-0.01"), Decimal("12.34")),
    "BYTES": (b"", b"\xff"),
}
"""The predicates for a column of each type; the first byte of an input chooses the type."""
TYPES = tuple(map(DataType.parse, LITERALS))
_FEW = 50  # keys that are listed
_MOST_ROWS = 1 << 20  # that are listed


def index_targets() -> list[Target]:
    """The targets of this module."""
    return [
        *(
            Target(kind, partial(_ask_payload, kind), partial(_payload_seeds, kind))
            for kind in READERS
        ),
        Target("container", _ask_container, _container_seeds),
    ]


def _type_of(data: bytes) -> DataType:
    return TYPES[data[0] % len(TYPES)] if data else TYPES[0]


def _ask_payload(index_type: str, data: bytes) -> None:
    data_type = _type_of(data)
    require_index(index_type, "c", data_type)
    keys = key_type(data_type)
    reader = READERS[index_type](Section(BytesSource(data[1:])), keys)
    low, high = (b"a", b"name 7") if keys.is_bytes else (0, 20)
    _ask_keys(reader, low, high)
    _list_values(reader, keys)


def _ask_keys(reader: IndexReader, low: Key, high: Key) -> None:
    for answer in (
        *(reader.is_null(), reader.is_not_null(), reader.is_in([low, high])),
        *(reader.is_not_in([low]), reader.between(low, high), reader.between(None, high)),
        *(
            reader.top_n(2, descending=False, nulls="first", ties=False),
            reader.top_n(2, descending=True, nulls="last", among=BitMap(range(100))),
        ),
    ):
        assert answer.rows is None or answer.skip == (not len(answer.rows))
    reader.extremes(3, descending=True)


def _list_values(reader: IndexReader, keys: KeyType) -> None:
    """The keys of an index, and all of its rows if they are not too many."""
    if isinstance(reader, BitmapReader | RangeBitmapReader):
        for key, _ in islice(reader.items(), _FEW):
            assert isinstance(key, bytes) == keys.is_bytes
    if isinstance(reader, BitmapReader | RangeBitmapReader | BsiReader) and (
        reader.row_count <= _MOST_ROWS
    ):
        rows, listed = reader.contents()
        assert len(rows) == len(listed)


def _payload_seeds(index_type: str) -> list[bytes]:
    seeds = [
        bytes((TYPES.index(data_type),)) + golden.data
        for golden in golden_files("payload")
        if golden.json["index_type"] == index_type and "file" in golden.json
        for data_type in (DataType.parse(golden.json["data_type"]),)
        if data_type in TYPES
    ]
    return small([*seeds, *_built_payloads(index_type)])


def _built_payloads(index_type: str) -> list[bytes]:
    """A few rows of numbers and of text, in both versions and in several blocks or chunks."""
    numbers = pa.array([10, 10, 20, 20, 30, None, None, -7, 10**6] * 3, pa.int32())
    texts = pa.array(["a", "b", "b", None, "name 7", "name 8", "c" * 40] * 3)
    variants: dict[str, Sequence[dict[str, str | int]]] = {
        "bitmap": [{"version": 1}, {"index-block-size": 40}],
        "range-bitmap": [{}, {"chunk-size": 16}],
    }
    seeds = []
    for array, data_type in ((numbers, "INT"), (texts, "STRING")):
        if index_type == "bsi" and data_type == "STRING":
            continue
        for chosen in variants.get(index_type, [{}]):
            settings = {f"file-index.{index_type}.c.{key}": value for key, value in chosen.items()}
            table = pa.table({"c": array})
            index = FileIndex.build(table, {f"file-index.{index_type}.columns": "c", **settings})
            (entry,) = index.entries
            payload = index.to_bytes()[entry.start :]
            seeds.append(bytes((TYPES.index(DataType.parse(data_type)),)) + payload)
    return seeds


def _ask_container(data: bytes) -> None:
    """Ask everything; what is an error in strict mode must otherwise be a warning and an answer."""
    data_type, container = _type_of(data), data[1:]
    columns = dict.fromkeys(e.column for e in Container.open(BytesSource(container)).entries)
    types = dict.fromkeys(columns, data_type)
    try:
        _ask_columns(FileIndex.from_bytes(container, types, strict=True), types)
    except AlcidError:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _ask_columns(FileIndex.from_bytes(container, types), types)
        assert {warning.category for warning in caught} <= {DamagedIndexWarning}
        raise


def _ask_columns(index: FileIndex, types: dict[str, DataType]) -> None:
    for name, data_type in types.items():
        for question in _questions(name, data_type):
            index.evaluate(question)
        index.top_n(name, 2)


@lru_cache(maxsize=64)
def _questions(name: str, data_type: DataType) -> tuple[Predicate, ...]:
    """One predicate of each kind that an index answers."""
    column, (low, high) = col(name), list(LITERALS.values())[TYPES.index(data_type)]
    ranges = (column > low, column.between(low, high))
    sets = (column == low, column != high, column.isin([low, high]), ~column.isin([low]))
    return (column.is_null(), column.is_not_null(), *ranges, *sets)


def _container_seeds() -> list[bytes]:
    seeds = [b"\0" + golden.data for golden in golden_files("container_raw")]
    for golden in golden_files("container"):
        types = [DataType.parse(field["type"]) for field in golden.json["fields"]]
        known_types = [TYPES.index(data_type) for data_type in types if data_type in TYPES]
        seeds.append(bytes((known_types[0] if known_types else 0,)) + golden.data)
    return small(seeds)
