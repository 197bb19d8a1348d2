"""What `verify` found of some files, and how an index is held against the data.

Whether an index says of each row what the data says.

Equal bytes are equal indexes. Where bytes differ, each says for itself: a bloom filter is asked for
every value, and of the others every row is taken out with its value, and compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import (
    # MOVED,
    IntArray,
    UInt32Array,
    value_text,
)
from alcid._text import count_text
from alcid.errors import AlcidError, ColumnError, FormatError, LimitError, UnsupportedError
from alcid.formats.file_index import READERS
from alcid.formats.file_index.bitmap import BitmapReader
from alcid.formats.file_index.bloom_filter import BloomFilterReader, fill
from alcid.formats.file_index.bsi import BsiReader
from alcid.formats.file_index.distinct import rank
from alcid.formats.file_index.hashes import hash_column
from alcid.formats.file_index.keys import KeyColumn, Keys, map_key_column, read_column
from alcid.formats.file_index.range_bitmap import RangeBitmapReader
from alcid.formats.roaring import to_rows
from alcid.formats.source import BytesSource, Section
from alcid.options import IndexSpec
from alcid.tables.maintenance.findings import Example, Findings, IndexCheck
from alcid.types import DataType

__all__ = ["Checked", "Difference", "compare_index"]

_NULL, _UNKNOWN = -1, -2
_MOST_ROWS = 1 << 22  # that an index may have beyond those of its file; damage may state any number

Rows = UInt32Array


@dataclass(frozen=True, slots=True)
class Difference:
    """What an index says otherwise than the data."""

    false_negatives: int
    """Rows that it does not give for their own value."""
    false_positives: int
    """Rows that it gives for a value that they do not have; of a bloom filter not known."""
    row: int | None
    """The first row that it is wrong about; None if it is only larger than it need be."""

    def __str__(self) -> str:
        if self.row is None:
            return "bits that no value sets"
        counts = (self.false_negatives, "missing"), (self.false_positives, "too many")
        told = [f"{count_text(count, 'row')} {what}" for count, what in counts if count]
        return f"{', '.join(told)}, the first is row {self.row}"


def compare_index(
    index_type: str, payload: bytes, column: KeyColumn, *, name: str
) -> Difference | None:
    """Compare an index with the column that it should be of; None if there is no difference.

    Args:
        index_type: One of `alcid.types.INDEX_TYPES`.
        payload: The index.
        column: The data.
        name: What errors call the index.

    Raises:
        FormatError: The index is damaged.

    >>> from alcid.formats.file_index import BUILDERS
    >>> from alcid.formats.file_index.keys import read_column
    >>> from alcid.types import DataType
    >>> one = read_column(pa.array([5, 6, 7]), DataType.parse("BIGINT"))
    >>> other = read_column(pa.array([5, 7, 7]), DataType.parse("BIGINT"))
    >>> compare_index("bsi", BUILDERS["bsi"](one), other, name="a.index")
    Difference(false_negatives=1, false_positives=1, row=1)
    """
    if not payload:  # which means a file without rows
        rows = column.row_count
        return Difference(rows, 0, 0) if rows else None
    section = Section(BytesSource(payload, name))
    reader = READERS[index_type](section, column.key_type)
    if isinstance(reader, BloomFilterReader):
        return _compare_filter(reader, payload, column)
    assert isinstance(reader, BitmapReader | RangeBitmapReader | BsiReader)
    return _compare_rows(reader, column, name)


def _compare_filter(
    reader: BloomFilterReader, payload: bytes, column: KeyColumn
) -> Difference | None:
    hashes = hash_column(column)
    denied = np.flatnonzero(~reader.may_have(hashes))
    if len(denied):
        return Difference(len(denied), 0, int(column.key_rows[denied[0]]))
    same = fill(hashes, reader.functions, reader.bits) == payload
    return None if same else Difference(0, 0, None)


def _compare_rows(
    reader: BitmapReader | RangeBitmapReader | BsiReader, column: KeyColumn, name: str
) -> Difference | None:
    """Compare all pairs of a row and its key, or null, that the index has."""
    count = column.row_count
    if reader.row_count > 2 * count + _MOST_ROWS:
        raise FormatError("too many rows", file=name, found=reader.row_count, expected=count)
    ranked = rank(column)
    actual = np.full(count, _NULL, np.int64)
    actual[column.key_rows] = ranked.ranks
    rows, keys = reader.contents()
    nulls = reader.is_null().rows
    null_rows = np.zeros(0, np.uint32) if nulls is None else to_rows(nulls)
    rows = np.concatenate((rows, null_rows)).astype(np.int64)
    stated = np.concatenate((_places(keys, ranked.keys), np.full(len(null_rows), _NULL)))
    inside = rows < count
    right = np.zeros(len(rows), np.bool_)
    right[inside] = actual[rows[inside]] == stated[inside]
    found = np.zeros(count, np.bool_)
    found[rows[right]] = True
    missing, wrong = np.flatnonzero(~found), rows[~right]
    too_many = len(wrong)
    if reader.row_count > count:  # of which a bitmap says that they are not null
        beyond = np.setdiff1d(np.arange(count, reader.row_count), wrong)
        wrong, too_many = np.append(wrong, beyond), too_many + len(beyond)
    if not len(missing) and not too_many:
        return None
    first = int(missing[0]) if len(missing) else int(wrong.min())
    return Difference(len(missing), too_many, first)


def _places(keys: Keys, among: Keys) -> IntArray:
    """The place of each key among others, which ascend; `_UNKNOWN` where it is none of them."""
    if isinstance(keys, pa.Array):
        places = pc.index_in(keys, value_set=among).fill_null(_UNKNOWN)
        found: Any = places.to_numpy(zero_copy_only=False).astype(np.int64)
        return found  # type: ignore[no-any-return]
    if not len(among):
        return np.full(len(keys), _UNKNOWN)
    places = np.minimum(np.searchsorted(among, keys), len(among) - 1)
    return np.where(among[places] == keys, places, _UNKNOWN)


_LONGEST_VALUE = 80  # characters of an example


@dataclass(slots=True)
class Checked:
    """What was found of some files."""

    checked: int = 0
    changed: int = 0
    rows: int = 0
    indexes: dict[tuple[str, str], IndexCheck] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)
    warnings: Findings = field(default_factory=Findings)

    def index(self, column: str, index_type: str) -> IndexCheck:
        """What was found of an index."""
        return self.indexes.setdefault((column, index_type), IndexCheck(column, index_type))

    def add(self, other: Checked) -> None:
        """Count what was found of later files."""
        self.checked += other.checked
        self.changed += other.changed
        self.rows += other.rows
        for check in other.indexes.values():
            self.index(check.column, check.index_type).add(check)
        self.findings.extend(other.findings.first, other.findings.count)
        self.warnings.extend(other.warnings.first, other.warnings.count)

    def count(self, path: str, column: str, index_type: str, problem: str) -> None:
        """Count a file as sound, or with a problem."""
        check = self.index(column, index_type)
        check.checked += 1
        if problem:
            check.differing += 1
            self.findings.add(path, f"{index_type} of {column!r}", problem)
        else:
            check.sound += 1

    def count_damaged(self, path: str, column: str, index_type: str, error: AlcidError) -> None:
        """Count a file of which something cannot be read."""
        check = self.index(column, index_type)
        check.checked, check.damaged = check.checked + 1, check.damaged + 1
        self.findings.add(path, f"{index_type} of {column!r}", error)

    def compare(
        self,
        path: str,
        column: str,
        spec: IndexSpec,
        stored: bytes,
        rebuilt: bytes | None,
        read: Callable[[], tuple[pa.ChunkedArray, DataType]],
    ) -> None:
        """Count a file by whether its index says what its data says.

        Args:
            path: The file.
            column: What the report calls the column.
            spec: The index, as the file has it.
            stored: Its bytes.
            rebuilt: Those of the index that was built again; None if it could not be.
            read: Gives the column, which is the map for a key of one, and the type of the values;
                it is called where the bytes differ.
        """
        if stored == rebuilt:
            self.count(path, column, spec.index_type, "")
            return
        name = f"{path}: {spec.index_type} of {column!r}"
        try:
            values, data_type = read()
            if spec.map_key is not None:
                values = map_key_column(values, spec.map_key)
            difference = compare_index(
                spec.index_type, stored, read_column(values, data_type), name=name
            )
        except FormatError as error:
            self.count_damaged(path, column, spec.index_type, error)
            return
        except (ColumnError, LimitError, UnsupportedError) as error:
            problem = f"cannot be of this file: {error}"
            self.count(path, column, spec.index_type, problem)
            return
        if difference is None:
            self.count(path, column, spec.index_type, "")
        elif difference.row is None:  # larger than it need be, and right
            check = self.index(column, spec.index_type)
            check.checked, check.differing = check.checked + 1, check.differing + 1
        else:
            self.count(path, column, spec.index_type, str(difference))
            check = self.index(column, spec.index_type)
            check.false_negatives += difference.false_negatives
            check.false_positives += difference.false_positives
            row = difference.row
            value = value_text(values[row]) if row < len(values) else "which there is not"
            check.example = check.example or Example(path, row, value[:_LONGEST_VALUE])
