"""The rows of a table, about which everything is known."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid._arrays import Int64Array
from alcid.testing.strategies import SampleColumn, edges
from alcid.types import DataType, indexes_for
from tests.cross.factors import TYPES, kinds_of
from tests.scan.column_kinds import ColumnKind
from tests.scan.random_table import deleted_rows

__all__ = ["PARTITION", "ROW", "A", "B", "Column", "Data", "DataFile"]

ROW, A, B, PARTITION = "row", "a", "b", "p"
"""The columns: a unique number for every row, the type of the case, a second one, the path's."""
_FILES = (2, 3, 4)
_FILE_ROWS = {"one": (40, 0, 1, 70), "several": (40, 3, 70), "single rows": (12, 1, 8)}
"""Row groups: of the first file, then of the others."""
_SHARE_OF_NULLS = {"none": 0.0, "some": 0.3, "all": 1.0}
_PARTITIONS = (1, -7)
_MILLISECOND = 10**6


@dataclass(frozen=True)
class Column:
    """A few distinct values, and which of them each row has."""

    data_type: DataType
    values: tuple[Any, ...]
    """In the form of `alcid.testing.oracle`; the last is None."""
    codes: Int64Array
    """For each row, the position of its value."""

    def to_arrow(self) -> pa.Array:
        distinct = SampleColumn(self.data_type, self.values, len(self.values)).to_arrow()
        return distinct.take(pa.array(self.codes))

    @cached_property
    def present(self) -> tuple[Any, ...]:
        """The values that occur in any row."""
        last = len(self.values) - 1
        return tuple(self.values[code] for code in np.unique(self.codes).tolist() if code < last)


@dataclass(frozen=True)
class DataFile:
    """A file, or rows written in one go: some of all rows, and which of them are deleted."""

    start: int
    stop: int
    partition: int | None
    deleted: tuple[int, ...]
    """Positions within the file."""


class Data:
    """The rows that are drawn for the levels of a table."""

    def __init__(self, levels: Mapping[str, str], source: random.Random) -> None:
        self.files = tuple(_draw_files(levels, source))
        bounds = [(file.start, file.stop) for file in self.files]
        count = bounds[-1][1]
        self.columns: dict[str, Column] = {
            ROW: Column(DataType("BIGINT"), (*range(count), None), np.arange(count)),
            A: _draw_column(levels["type"], levels["index"], levels["nulls"], bounds, source),
            B: _draw_column(_other_type(levels, source), levels["index"], "some", bounds, source),
        }
        if levels["partition"] != "none":
            codes = [(*_PARTITIONS, None).index(file.partition) for file in self.files]
            lengths = [stop - start for start, stop in bounds]
            parted = np.repeat(np.array(codes, np.int64), lengths)
            self.columns[PARTITION] = Column(DataType("INT"), (*_PARTITIONS, None), parted)

    @cached_property
    def rows(self) -> pa.Table:
        """All rows, also the deleted ones, in the canonical types of Arrow."""
        return pa.table({name: column.to_arrow() for name, column in self.columns.items()})

    @property
    def types(self) -> dict[str, DataType]:
        return {name: column.data_type for name, column in self.columns.items()}

    @cached_property
    def deleted(self) -> Int64Array:
        """The numbers of the deleted rows."""
        numbers = [file.start + row for file in self.files for row in file.deleted]
        return np.array(numbers, np.int64)

    @cached_property
    def is_live(self) -> npt.NDArray[np.bool_]:
        return ~np.isin(np.arange(self.files[-1].stop), self.deleted)


def _draw_files(levels: Mapping[str, str], source: random.Random) -> Sequence[DataFile]:
    partitions: tuple[int | None, ...] = {
        "none": (None,),
        "some": _PARTITIONS,
        "null": (*_PARTITIONS, None),
    }[levels["partition"]]
    files = []
    start = 0
    for number in range(source.choice(_FILES)):
        # The first file has rows, deleted ones if there are any, and the null partition.
        first, *others = _FILE_ROWS[levels["groups"]]
        rows = source.choice(others) if number else first
        gone = [] if levels["deletions"] == "none" else deleted_rows(source, rows)
        if levels["deletions"] != "none" and not number:
            gone = gone or [3, 4, 11]
        partition = source.choice(partitions) if number else partitions[-1]
        files.append(DataFile(start, start + rows, partition, tuple(gone)))
        start += rows
    return files


def _other_type(levels: Mapping[str, str], source: random.Random) -> str:
    """A type for the second column, which is not in nanoseconds: they narrow other timestamps."""
    fitting = [
        text
        for text in TYPES
        if levels["kind"] in kinds_of(text)
        and not text.endswith("(9)")
        and not (levels["type"].endswith("(9)") and text.startswith("TIMESTAMP"))
    ]
    return source.choice(fitting)


def _draw_column(
    type_text: str,
    index: str,
    nulls: str,
    bounds: Sequence[tuple[int, int]],
    source: random.Random,
) -> Column:
    """A column whose files have some of its values each, sorted or not."""
    data_type = DataType.parse(type_text)
    values = _draw_values(data_type, index, source)
    null = len(values)
    pieces = []
    for start, stop in bounds:
        some = source.sample(range(null), source.randint(1, min(null, 8)))
        codes = source.choices(some, k=stop - start)
        if source.random() < 0.4:
            codes.sort()
        share = _SHARE_OF_NULLS[nulls]
        pieces += [null if source.random() < share else code for code in codes]
    return Column(data_type, (*values, None), np.array(pieces, np.int64))


def _draw_values(data_type: DataType, index: str, source: random.Random) -> list[Any]:
    """Some values at the limits of the type, and some from anywhere."""
    bsi_index = "bsi" if "bsi" in indexes_for(data_type) and index in ("bsi", "several") else None
    fitting = [edge for edge in edges(data_type, bsi_index) if _fits(edge, data_type)]
    kind = ColumnKind(data_type.to_arrow())
    drawn = [kind.draw(source) for _ in range(source.choice((0, 4, 16)))]
    some = source.sample(fitting, source.randint(1, len(fitting)))
    values = [*some, *(value for value in drawn if _fits(value, data_type))]
    if data_type.root == "TIME":  # which Paimon stores in milliseconds
        values = [value // _MILLISECOND * _MILLISECOND for value in values]
    # Distinct by bits: NaN is one value, and the two zeros are two.
    return list({repr(value): value for value in values}.values())


def _fits(value: Any, data_type: DataType) -> bool:
    return not isinstance(value, str | bytes) or len(value) <= data_type.length
